"""The live laboratory: `gyrostat lab`, a local page whose sliders redraw trajectories at once.

``laboratories`` declares three laboratories with the parts of ``declarations`` and ``controls``; ``jobs`` computes what the
page shows, with ``runs`` and in the processes of ``workers``; ``server`` is the web application and ``static`` its page;
``start`` serves it; ``export`` gives the screen as an address, a program, a command or a file.
"""
