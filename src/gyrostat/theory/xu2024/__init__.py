"""Xu 2024: assumptions, step windows, error bounds, oscillation, and the sequences of its proofs."""

from gyrostat.theory.xu2024.bounds import (
    Constants,
    assumptions,
    constants,
    edge_overlap,
    isometry_bound,
    overlap_constant,
    pooled_gap,
    step_conditions,
    step_window,
    theorem2_bound,
    truncation_radius,
)
from gyrostat.theory.xu2024.oscillation import exact_moments, informal_window, moment_growth
from gyrostat.theory.xu2024.proof_sequences import (
    Controller,
    Envelope,
    calibration,
    calibration_line,
    controller,
    envelope,
    phase_one_length,
)

__all__ = [
    "Constants",
    "Controller",
    "Envelope",
    "assumptions",
    "calibration",
    "calibration_line",
    "constants",
    "controller",
    "edge_overlap",
    "envelope",
    "exact_moments",
    "informal_window",
    "isometry_bound",
    "moment_growth",
    "overlap_constant",
    "phase_one_length",
    "pooled_gap",
    "step_conditions",
    "step_window",
    "theorem2_bound",
    "truncation_radius",
]


def __dir__() -> list[str]:
    return __all__
