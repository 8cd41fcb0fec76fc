"""Environments: what is true everywhere, and what changes from one environment to another.

Names are imported on first use, so that :mod:`gyrostat.environments.row_labels` can be used without JAX.
"""

import lazy_loader as lazy

__getattr__, __dir__, __all__ = lazy.attach_stub(__name__, __file__)
