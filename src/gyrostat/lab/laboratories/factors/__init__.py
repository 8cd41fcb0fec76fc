"""Factorisation and sensing: one factor, two factors, and two with an imbalance step (Xiong 2024)."""

from __future__ import annotations

from gyrostat.lab.lab import Lab, Plane
from gyrostat.lab.laboratories.factors.presets import PRESETS
from gyrostat.lab.laboratories.factors.says import boundary, conditions, final, lines, sentences
from gyrostat.lab.laboratories.factors.settings import CONTROLS, check, program, sides, views

FACTORS = Lab(
    "factors",
    "One factor or two",
    "Gradient descent on X Xᵀ and on F Gᵀ with more columns than the rank: which one slows down, and what one step changes.",
    CONTROLS,
    sides,
    views,
    program,
    conditions,
    sentences,
    lines,
    Plane(
        "init_scale",
        "step_size",
        "asymmetric",
        "Loss of F Gᵀ at the end",
        "loss",
        True,
        final,
        ("distance",),
        boundary,
    ),
    PRESETS,
    check,
)
