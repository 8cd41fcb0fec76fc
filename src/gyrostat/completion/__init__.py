"""Completion of a matrix from some of its entries, without knowing its rank: the solver behind ``LowRankImputer``."""

from gyrostat.completion.fit import Completion, Options, complete
from gyrostat.completion.observed import Factors, Observed

__all__ = ["Completion", "Factors", "Observed", "Options", "complete"]
