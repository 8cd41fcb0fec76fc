"""Estimators in scikit-learn's manner: what holds in all environments, and matrices of low rank whose rank is not known."""

from gyrostat.estimators.imputer import LowRankImputer
from gyrostat.estimators.linear import InvariantLinearRegressor
from gyrostat.estimators.matrix import InvariantMatrixRegressor
from gyrostat.estimators.moments import stacked
from gyrostat.estimators.quadratic import InvariantQuadraticRegressor
from gyrostat.estimators.recovery import MatrixSensingRegressor

__all__ = [
    "InvariantLinearRegressor",
    "InvariantMatrixRegressor",
    "InvariantQuadraticRegressor",
    "LowRankImputer",
    "MatrixSensingRegressor",
    "stacked",
]
