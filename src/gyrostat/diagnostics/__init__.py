"""Diagnostics: what we look at. Pure functions of the problem and the parameters, never part of an algorithm."""

from gyrostat.diagnostics.isometry import IsometryEstimate, isometry_constant
from gyrostat.diagnostics.trajectory import DIAGNOSTICS, Diagnostic, View, diagnostic

__all__ = ["DIAGNOSTICS", "Diagnostic", "IsometryEstimate", "View", "diagnostic", "isometry_constant"]
