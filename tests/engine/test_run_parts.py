"""A run in parts: the same bits wherever it is cut, one compilation, an interrupt between two parts."""

from __future__ import annotations

import numpy as np
import pytest

import gyrostat as gs
from gyrostat.engine import compile as programs
from gyrostat.engine.one_run import RunPart

LAW = gs.Finite([-0.5, 1.5], [0.5, 0.5])
SHARED = gs.Dense(1100, design=0)  # more numbers than every run has a copy of


def cut(monkeypatch, steps: int) -> list[RunPart]:
    """Make all parts this long; the list of parts that are made."""
    made = []
    plain = programs.Pace.parts

    def parts(self, grid):
        for part in plain(self, grid):
            self.steps = steps
            made.append(part)
            yield part

    monkeypatch.setattr(programs, "PACES", {})
    monkeypatch.setattr(programs, "FIRST_STEPS", steps)
    monkeypatch.setattr(programs.Pace, "_learn", lambda self, *a: None)
    monkeypatch.setattr(programs.Pace, "parts", parts)
    return made


@pytest.mark.parametrize(
    ("algorithm", "problem", "options"),
    [
        (gs.HeteroSGD(0.05), gs.Problem(gs.RandomEnvironments(6, law=gs.TwoPoint()), gs.FreshGaussian(200)), {}),
        (gs.GradientDescent(0.1), gs.Problem(gs.Environments.diagonal(3), SHARED), {"tolerance": 0.01}),
        (gs.HeteroSGD(0.05), gs.Problem(gs.RandomEnvironments(4, law=LAW), gs.FixedGaussian(50)), {"record_at": [9]}),
    ],
    ids=["fresh", "shared design", "revealed design"],
)
def test_the_numbers_do_not_depend_on_where_a_run_is_cut(monkeypatch, algorithm, problem, options):
    options = {"num_steps": 23, "seeds": 3, "record_at": 5, **options}
    traced = []
    plain = programs.continue_run
    monkeypatch.setattr(programs, "continue_run", lambda *a: traced.append(a) or plain(*a))
    with monkeypatch.context() as patch:
        whole_parts = cut(patch, 100)
        whole = gs.run(algorithm, problem, **options)
    with monkeypatch.context() as patch:
        parts = cut(patch, 3)
        pieces = gs.run(algorithm, problem, **options)
    assert len(parts) == 8 * len(whole_parts) and len(traced) == 1
    assert whole.identical(pieces)


def test_an_interrupt_ends_a_run_between_two_parts(monkeypatch):
    """And progress counts runs that are under way by their steps."""
    parts = cut(monkeypatch, 10)
    shown = []

    def progress(done, total):
        shown.append((done, total))
        if len(shown) == 3:
            raise KeyboardInterrupt

    problem = gs.Problem(gs.Environments.diagonal(3), gs.Identity())
    with pytest.raises(KeyboardInterrupt):
        gs.run(gs.HeteroSGD(0.05), problem, num_steps=100, seeds=4, progress=progress)
    assert len(parts) == 3 and np.allclose(shown, [(0.4, 4), (0.8, 4), (1.2, 4)])
