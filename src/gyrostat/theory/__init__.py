"""Theory: what the papers promised, as functions that return values, bounds and verdicts, and our own predictors."""

from gyrostat.theory.bounds import (
    Heterogeneity,
    assumptions,
    edge_overlap,
    heterogeneity,
    isometry_bound,
    overlap_constant,
    pooled_gap,
    step_conditions,
    step_window,
    theorem2_bound,
)
from gyrostat.theory.conditions import Condition
from gyrostat.theory.error import error_law, leading_error
from gyrostat.theory.report import Assessment, Prediction, Setting, assess
from gyrostat.theory.sequences import calibration, calibration_line, controller, envelope, phase_one_length
from gyrostat.theory.transition import (
    critical_spread,
    eliminated_by_lyapunov,
    exact_moments,
    informal_window,
    lyapunov_exponent,
    moment_growth,
    surrogate,
)

__all__ = [
    "Assessment",
    "Condition",
    "Heterogeneity",
    "Prediction",
    "Setting",
    "assess",
    "assumptions",
    "calibration",
    "calibration_line",
    "controller",
    "critical_spread",
    "edge_overlap",
    "eliminated_by_lyapunov",
    "envelope",
    "error_law",
    "exact_moments",
    "heterogeneity",
    "informal_window",
    "isometry_bound",
    "leading_error",
    "lyapunov_exponent",
    "moment_growth",
    "overlap_constant",
    "phase_one_length",
    "pooled_gap",
    "step_conditions",
    "step_window",
    "surrogate",
    "theorem2_bound",
]
