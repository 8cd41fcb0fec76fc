"""Deep linear completion with a ridge: SGD, which jumps to a lower rank, beside descent, which stays (Wang 2023)."""

from __future__ import annotations

from gyrostat.lab.lab import Lab, Plane
from gyrostat.lab.laboratories.completion.presets import PRESETS
from gyrostat.lab.laboratories.completion.says import boundary, conditions, jumped, lines, sentences
from gyrostat.lab.laboratories.completion.settings import CONTROLS, check, program, sides, views

COMPLETION = Lab(
    "completion",
    "Deep completion",
    "A deep linear network with a ridge fills in a matrix: noise makes it jump to a lower rank, and never back.",
    CONTROLS,
    sides,
    views,
    program,
    conditions,
    sentences,
    lines,
    Plane(
        "ridge",
        "step_size",
        "sgd",
        "Runs that end at rank 1 (SGD)",
        "share of runs",
        False,
        jumped,
        ("singular_values",),
        boundary,
    ),
    PRESETS,
    check,
)
