"""Completion of a matrix from some of its entries, without knowing its rank: the solver of ``LowRankImputer``."""

from gyrostat.estimators.low_rank.solver.observed_entries import Factors, ObservedEntries
from gyrostat.estimators.low_rank.solver.search import Completion, Options, complete, refitted, searched

__all__ = ["Completion", "Factors", "ObservedEntries", "Options", "complete", "refitted", "searched"]
