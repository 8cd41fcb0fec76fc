"""Diagnostics: what we look at. Pure functions of the problem and the parameters, never part of an algorithm."""

from gyrostat.diagnostics import factors
from gyrostat.diagnostics.curvature import Speed, late_speed
from gyrostat.diagnostics.isometry import IsometryEstimate, isometry_constant
from gyrostat.diagnostics.trajectory import DIAGNOSTICS, Diagnostic, View, diagnostic

__all__ = [
    "DIAGNOSTICS",
    "Diagnostic",
    "IsometryEstimate",
    "Speed",
    "View",
    "diagnostic",
    "factors",
    "isometry_constant",
    "late_speed",
]
