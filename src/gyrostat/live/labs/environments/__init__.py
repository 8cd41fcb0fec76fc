"""Multi-environment sensing: one environment per batch beside mixed batches (Xu 2024)."""

from __future__ import annotations

from gyrostat.live.lab import Lab, Plane
from gyrostat.live.labs.environments.presets import PRESETS
from gyrostat.live.labs.environments.says import boundary, conditions, eliminated, lines, sentences
from gyrostat.live.labs.environments.settings import CONTROLS, program, sides, views

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
