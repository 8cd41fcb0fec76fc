"""Models: how parameters make a matrix (or, for the diagonal model, a vector of coefficients).

:class:`Symmetric`, :class:`SymmetricDifference`, :class:`Asymmetric`, :class:`DeepLinear` and :class:`Diagonal`. A function
is a model by :meth:`Model.from_function`; derive one of your own from :class:`Model`.

Names are imported on first use, so that :mod:`gyrostat.models.symmetric_coordinates` can be used without JAX.
"""

import lazy_loader as lazy

__getattr__, __dir__, __all__ = lazy.attach_stub(__name__, __file__)
