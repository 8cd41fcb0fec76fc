"""Wang 2023: critical points and folds of deep linear networks, the decay after a jump, and the absorbing sets B_r."""

from gyrostat.theory.wang2023.absorbing_sets import AbsorbingSet, Region, absorbing, contains, margins, membership
from gyrostat.theory.wang2023.landscape import CriticalPoint, Fold, critical_points, fold, turning_rate

__all__ = [
    "AbsorbingSet",
    "CriticalPoint",
    "Fold",
    "Region",
    "absorbing",
    "contains",
    "critical_points",
    "fold",
    "margins",
    "membership",
    "turning_rate",
]


def __dir__() -> list[str]:
    return __all__
