"""The figures of Xu 2024 as settings."""

from __future__ import annotations

from gyrostat.lab.lab import Preset


def _xu(name: str, title: str, **values: object) -> Preset:
    return Preset(f"xu2024/{name}", title, values)


PRESETS = (
    _xu(
        "fig1",
        "Mixed batches keep both signals",
        dimension=40,
        rank=3,
        spurious_rank=2,
        mean=0.5,
        spread=4.0,
        step_size=0.1,
        num_samples=2800,
        num_steps=100,
    ),
    _xu("fig2", "The oscillation that kills (M = 8)", spread=8.0, num_steps=100, measurements="population"),
    _xu("fig3", "M = 6 forgets the spurious signal", dimension=100, spread=6.0),
    _xu("fig3-m1", "M = 1 learns it", dimension=100, spread=1.0),
    _xu("fig4", "A larger step forgets sooner", dimension=100, spread=6.0, step_size=0.1, num_steps=200),
    _xu(
        "fig5",
        "Hetero against pooled",
        dimension=40,
        rank=3,
        spurious_rank=2,
        mean=0.5,
        spread=4.0,
        step_size=0.1,
        num_samples=2800,
        num_steps=150,
    ),
    _xu(
        "fig6",
        "A batch of 80 is too small",
        dimension=30,
        rank=5,
        spurious_rank=5,
        mean=0.5,
        spread=4.0,
        step_size=0.05,
        num_samples=80,
        num_steps=400,
        view="errors",
    ),
)
