"""Diagnostics: what to record along a run. Pure functions of the problem and the parameters, never part of an algorithm."""

from gyrostat.diagnostics import factors, layers, signal_and_loss
from gyrostat.diagnostics.absorbing_sets import Constants, Region, absorbing, contains, margins, membership
from gyrostat.diagnostics.base import DIAGNOSTICS, Diagnostic, Snapshot, diagnostic, resolve
from gyrostat.diagnostics.isometry import IsometryEstimate, isometry_constant
from gyrostat.diagnostics.layers import approximate_rank, representation_cost
from gyrostat.diagnostics.rank_jumps import Jump, Jumps, jump_times, jumps, ranks
from gyrostat.diagnostics.rate_from_curvature import Speed, late_speed

__all__ = [
    "DIAGNOSTICS",
    "Constants",
    "Diagnostic",
    "IsometryEstimate",
    "Jump",
    "Jumps",
    "Region",
    "Snapshot",
    "Speed",
    "absorbing",
    "approximate_rank",
    "contains",
    "diagnostic",
    "factors",
    "isometry_constant",
    "jump_times",
    "jumps",
    "late_speed",
    "layers",
    "margins",
    "membership",
    "ranks",
    "representation_cost",
    "resolve",
    "signal_and_loss",
]
