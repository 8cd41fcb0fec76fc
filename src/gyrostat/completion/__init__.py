"""Completion of a matrix from some of its entries, without knowing its rank: the solver behind ``LowRankImputer``."""

from gyrostat.completion.fit import Completion, complete, refitted, searched
from gyrostat.completion.observed import Factors, Observed
from gyrostat.completion.offsets import Baseline, baseline
from gyrostat.completion.search import Options

__all__ = ["Baseline", "Completion", "Factors", "Observed", "Options", "baseline", "complete", "refitted", "searched"]
