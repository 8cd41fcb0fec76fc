"""The live laboratory: `gyrostat lab`, a local page whose sliders redraw trajectories at once.

``controls`` say what can be set, ``labs`` what is then run (an expression that is both executed and copied as Python),
``worker`` is the process that computes, ``server`` the web application, ``page`` what the browser gets.
"""
