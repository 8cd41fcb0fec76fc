"""The live laboratory: `gyrostat lab`, a local page whose sliders redraw trajectories at once.

``laboratories`` declares three laboratories with the parts of ``declarations`` and ``controls``. ``computations`` finds what
the page shows, in the processes of ``workers``; ``pictures`` makes figures of it; ``server`` sends these to the page in
``static``, and as files. ``start`` serves it; ``export`` gives the screen as an address, a program, a command or a table.
"""
