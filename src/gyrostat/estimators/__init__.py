"""Estimators in scikit-learn's manner: matrices of low rank, of which the rank is not known."""

from gyrostat.estimators.imputer import LowRankImputer
from gyrostat.estimators.recovery import MatrixSensingRegressor

__all__ = ["LowRankImputer", "MatrixSensingRegressor"]
