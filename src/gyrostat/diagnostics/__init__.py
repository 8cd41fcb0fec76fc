"""Diagnostics: what we look at. Pure functions of the problem and the parameters, never part of an algorithm."""

from gyrostat.diagnostics import factors, layers
from gyrostat.diagnostics.curvature import Speed, late_speed
from gyrostat.diagnostics.isometry import IsometryEstimate, isometry_constant
from gyrostat.diagnostics.layers import approximate_rank, representation_cost
from gyrostat.diagnostics.rank_jumps import Jump, Jumps, jump_times, jumps, ranks
from gyrostat.diagnostics.regions import Constants, Region, absorbing, contains, margins, membership
from gyrostat.diagnostics.signals import DIAGNOSTICS, Diagnostic, View, diagnostic

__all__ = [
    "DIAGNOSTICS",
    "Constants",
    "Diagnostic",
    "IsometryEstimate",
    "Jump",
    "Jumps",
    "Region",
    "Speed",
    "View",
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
]
