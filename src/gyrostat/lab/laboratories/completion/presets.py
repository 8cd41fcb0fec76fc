"""The figures of Wang 2023 as settings."""

from __future__ import annotations

from gyrostat.lab.lab import Preset


def _wang(name: str, title: str, **values: object) -> Preset:
    return Preset(f"wang2023/{name}", title, values)


ANNEALED = {"schedule": "annealed", "anneal_at": 5000, "epsilon": 0.1, "step_size": 0.25}

PRESETS = (
    _wang("fig1", "A jump from rank 2 to rank 1"),
    _wang("fig2-L3", "Depth 3 does not jump at ε = 0.1", depth=3, **ANNEALED),
    _wang("fig2-L4", "Depth 4 does", depth=4, **ANNEALED),
    _wang("fig3", "An easier matrix, annealed", epsilon=0.3, schedule="annealed", anneal_at=4000),
    _wang("fig4", "Quiet and loud phases in turn", epsilon=0.2, step_size=0.4, schedule="periodic", period=1000),
)
