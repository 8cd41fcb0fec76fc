"""The figures of Xiong 2024 as settings."""

from __future__ import annotations

from gyrostat.lab.lab import Preset


def _xiong(name: str, title: str, **values: object) -> Preset:
    return Preset(f"xiong2024/{name}", title, values)


PRESETS = (
    _xiong(
        "fig1.1",
        "One factor slows down, two do not",
        width=3,
        init_scale=0.5,
        step_size=0.01,
        num_steps=5000,
        view="loss, log time",
    ),
    _xiong(
        "fig1.2a",
        "k = r: the rate is free of α",
        width=2,
        init_scale=0.2,
        step_size=0.2,
        num_steps=300,
        measurements="sensing",
        seeds=4,
    ),
    _xiong(
        "fig1.2b",
        "k > r: it is not",
        width=4,
        init_scale=0.2,
        step_size=0.2,
        num_steps=600,
        measurements="sensing",
        seeds=4,
    ),
    _xiong(
        "fig1.2c",
        "One imbalance step sets it free",
        width=4,
        init_scale=0.05,
        step_size=0.2,
        num_steps=600,
        measurements="sensing",
        seeds=4,
        step_at=0.5,
    ),
    _xiong(
        "figI1",
        "One factor against two in sensing",
        width=4,
        init_scale=0.5,
        step_size=0.2,
        num_steps=400,
        measurements="sensing",
        per_row=24.0,
        seeds=4,
    ),
    _xiong("figI2", "Ill-conditioned targets", width=4, condition=5.0, init_scale=0.2, step_size=0.2, num_steps=2000),
    _xiong("figI3", "A small start", width=4, init_scale=0.05, step_size=0.2, num_steps=3000),
    _xiong("figI4", "Rank five", rank=5, width=8, init_scale=0.2, step_size=0.2, num_steps=2000),
    _xiong("figI5", "Starts of every scale: a large one", width=4, init_scale=1.0, step_size=0.2, num_steps=1000),
)
