"""Diagnostics: what to record along a run. Pure functions of the problem and the parameters, never part of an algorithm."""

from collections.abc import Sequence

from gyrostat.diagnostics import factors as factors
from gyrostat.diagnostics import layers as layers
from gyrostat.diagnostics import signal_and_loss as signal_and_loss
from gyrostat.diagnostics.base import DIAGNOSTICS, Diagnostic, diagnostic
from gyrostat.diagnostics.base import DiagnosticTable as DiagnosticTable
from gyrostat.diagnostics.base import Snapshot as Snapshot
from gyrostat.diagnostics.base import resolve as resolve
from gyrostat.diagnostics.base import table as list
from gyrostat.diagnostics.isometry import IsometryEstimate as IsometryEstimate
from gyrostat.diagnostics.isometry import isometry_constant
from gyrostat.diagnostics.layers import approximate_rank, representation_cost
from gyrostat.diagnostics.rank_jumps import Jump as Jump
from gyrostat.diagnostics.rank_jumps import Jumps as Jumps
from gyrostat.diagnostics.rank_jumps import jump_times, jumps
from gyrostat.diagnostics.rank_jumps import ranks as ranks
from gyrostat.diagnostics.rate_from_curvature import Speed as Speed
from gyrostat.diagnostics.rate_from_curvature import late_speed

__all__ = [
    "DIAGNOSTICS",
    "Diagnostic",
    "approximate_rank",
    "diagnostic",
    "isometry_constant",
    "jump_times",
    "jumps",
    "late_speed",
    "list",
    "representation_cost",
]


def __dir__() -> Sequence[str]:
    return __all__
