"""Ours: the transition by Lyapunov exponents, momentum, amplified heterogeneity, the error that is left, and the surrogate.

Names are imported on first use, so that the closed formulas do not import JAX.
"""

import lazy_loader as lazy

__getattr__, __dir__, __all__ = lazy.attach_stub(__name__, __file__)
