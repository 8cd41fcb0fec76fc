"""Estimators in scikit-learn's manner for data from several environments: what holds in all of them, and what does not."""

from gyrostat.estimators.linear import InvariantLinearRegressor
from gyrostat.estimators.matrix import InvariantMatrixRegressor
from gyrostat.estimators.moments import stacked
from gyrostat.estimators.quadratic import InvariantQuadraticRegressor

__all__ = ["InvariantLinearRegressor", "InvariantMatrixRegressor", "InvariantQuadraticRegressor", "stacked"]
