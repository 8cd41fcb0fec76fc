"""Completion of a matrix from some of its entries, without knowing its rank: the solver behind ``LowRankImputer``."""

from gyrostat.estimators.low_rank.solver.fit import Completion, complete, refitted, searched
from gyrostat.estimators.low_rank.solver.observed import Factors, Observed
from gyrostat.estimators.low_rank.solver.offsets import Baseline, baseline
from gyrostat.estimators.low_rank.solver.search import Options

__all__ = ["Baseline", "Completion", "Factors", "Observed", "Options", "baseline", "complete", "refitted", "searched"]
