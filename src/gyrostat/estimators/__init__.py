"""Estimators in scikit-learn's manner: what holds in all environments, and matrices of low rank whose rank is not known."""

from gyrostat.estimators.environment_labels import stacked
from gyrostat.estimators.invariant.linear import InvariantLinearRegressor
from gyrostat.estimators.invariant.matrix import InvariantMatrixRegressor, InvariantQuadraticRegressor
from gyrostat.estimators.low_rank.imputer import LowRankImputer
from gyrostat.estimators.low_rank.matrix_sensing import MatrixSensingRegressor

__all__ = [
    "InvariantLinearRegressor",
    "InvariantMatrixRegressor",
    "InvariantQuadraticRegressor",
    "LowRankImputer",
    "MatrixSensingRegressor",
    "stacked",
]
