"""Multi-environment sensing: one environment per batch beside mixed batches (Xu 2024)."""

from __future__ import annotations

from gyrostat.lab.lab import Lab, Plane
from gyrostat.lab.laboratories.environments.presets import PRESETS
from gyrostat.lab.laboratories.environments.says import boundary, conditions, eliminated, lines, sentences
from gyrostat.lab.laboratories.environments.settings import CONTROLS, program, sides, views

ENVIRONMENTS = Lab(
    "environments",
    "Several environments",
    "A signal that holds everywhere and one that changes from place to place: which one does SGD keep?",
    CONTROLS,
    sides,
    views,
    program,
    conditions,
    sentences,
    lines,
    Plane(
        "spread",
        "step_size",
        "hetero",
        "Runs that end without the spurious signal (HeteroSGD)",
        "share of runs",
        False,
        eliminated,
        ("spurious",),
        boundary,
        "Very small steps learn neither signal in T steps: such cells end without the spurious one, too.",
    ),
    PRESETS,
)
