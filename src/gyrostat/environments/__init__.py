"""Environments: what is true everywhere, and what changes from one environment to another.

Given ones: :class:`Environments` of symmetric matrices, :class:`RectangularEnvironments`, :class:`VectorEnvironments`,
:class:`ArrayEnvironments`, and :class:`Observed` data without a known truth. Drawn for every seed: :class:`RandomEnvironments`,
:class:`RandomRectangular`, :class:`FeatureEnvironments`. The part that varies has a law (:mod:`gyrostat.environments.laws`):
:class:`Law`, :class:`TwoPoint`, :class:`Finite`, :class:`Uniform`, :class:`Gaussian`, :class:`Sampler`, :class:`Absent`,
:class:`RandomLaw`.

Names are imported on first use.
"""

import lazy_loader as lazy

__getattr__, __dir__, __all__ = lazy.attach_stub(__name__, __file__)
