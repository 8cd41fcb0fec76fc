"""Measurements: how a step sees the residual, as ``(1/m) sum_i (<X_i, A> - y_i) X_i`` or a draw from its exact law.

:class:`Problem` joins measurements with environments.
"""

from gyrostat.measurements.base import Demand, Measurements, Reading, Scene
from gyrostat.measurements.dense import Dense, DenseData
from gyrostat.measurements.entries import Entries
from gyrostat.measurements.fixed_gaussian import FixedGaussian
from gyrostat.measurements.fresh_gaussian import FreshGaussian
from gyrostat.measurements.identity import Identity
from gyrostat.measurements.problem import Problem
from gyrostat.measurements.rank_one import RankOne

__all__ = [
    "Demand",
    "Dense",
    "DenseData",
    "Entries",
    "FixedGaussian",
    "FreshGaussian",
    "Identity",
    "Measurements",
    "Problem",
    "RankOne",
    "Reading",
    "Scene",
]
