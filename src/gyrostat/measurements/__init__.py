"""Measurements: how a step sees the residual, as ``(1/m) sum_i (<X_i, A> - y_i) X_i`` or a draw from its exact law.

:class:`Identity`, :class:`FreshGaussian`, :class:`FixedGaussian`, :class:`Dense`, :class:`DenseData`, :class:`RankOne`,
:class:`Entries`. :class:`Problem` joins measurements with environments. Derive a way of your own from :class:`Measurements`: it
answers a :class:`Demand` for a :class:`Scene` with a :class:`Reading`.
"""

from gyrostat.measurements.base import Demand as Demand
from gyrostat.measurements.base import Measurements
from gyrostat.measurements.base import Reading as Reading
from gyrostat.measurements.base import Scene as Scene
from gyrostat.measurements.dense import Dense
from gyrostat.measurements.dense_data import DenseData
from gyrostat.measurements.entries import Entries
from gyrostat.measurements.fixed_gaussian import FixedGaussian
from gyrostat.measurements.fresh_gaussian import FreshGaussian
from gyrostat.measurements.identity import Identity
from gyrostat.measurements.problem import Problem
from gyrostat.measurements.rank_one import RankOne

__all__ = [
    "Dense",
    "DenseData",
    "Entries",
    "FixedGaussian",
    "FreshGaussian",
    "Identity",
    "Measurements",
    "Problem",
    "RankOne",
]


def __dir__() -> list[str]:
    return __all__
