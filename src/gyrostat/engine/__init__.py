"""The engine: one compiled loop for every algorithm, and labelled results.

:func:`gyrostat.run` and :func:`gyrostat.run_grid` are at the top; :func:`offshoots` continues a run with other schedules.
"""

import lazy_loader as lazy

__getattr__, __dir__, __all__ = lazy.attach_stub(__name__, __file__)
