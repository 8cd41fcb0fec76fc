"""Algorithms: batches, initialisation, update rules, schedules, events, and the algorithms of the papers by their names.

Names are imported on first use.
"""

import lazy_loader as lazy

__getattr__, __dir__, __all__ = lazy.attach_stub(__name__, __file__)
