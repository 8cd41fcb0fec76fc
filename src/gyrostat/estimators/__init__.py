"""Estimators with scikit-learn's interface: effects that hold in all environments, and low-rank matrices of unknown rank.

Names are imported on first use, so that an estimator only imports the modules it needs.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
