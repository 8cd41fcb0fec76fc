"""The live laboratory: `gyrostat lab`, a local page whose sliders redraw trajectories at once.

``laboratories`` declares three laboratories with the parts of ``declarations`` and ``controls``; ``jobs`` computes what the
page shows, in the processes of ``workers``; ``server`` is the web application and ``static`` its page; ``start`` serves it.
"""
