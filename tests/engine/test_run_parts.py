"""A run in parts: the same bits wherever it is cut, one compilation, an interrupt between two parts."""

from __future__ import annotations

import numpy as np
import pytest

import gyrostat as gs
from gyrostat.engine import compile as programs
from gyrostat.engine import pace
from gyrostat.engine.one_run import RunPart

LAW = gs.Finite([-0.5, 1.5], [0.5, 0.5])
SHARED = gs.Dense(1100, design=0)  # more numbers than every run has a copy of


def cut(monkeypatch, steps: int) -> list[RunPart]:
    """Make all parts this long; the list of parts that are made."""
    made = []
    plain = pace.Pace.parts

    def parts(self, grid):
        for part in plain(self, grid):
            self.steps = steps
            made.append(part)
            yield part

    monkeypatch.setattr(programs, "PACES", {})
    monkeypatch.setattr(pace, "FIRST_STEPS", steps)
    monkeypatch.setattr(pace.Pace, "_learn", lambda self, *a: None)
    monkeypatch.setattr(pace.Pace, "parts", parts)
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


def in_parts(fixed: float, per_step: float, num_steps: int, *, noise: float = 0.0) -> list[float]:
    """The seconds of the parts of a run in which a part takes ``fixed + per_step * steps``.

    The first one takes three seconds more, as if it compiled, which are left out.
    """
    rng, paced, start, taken = np.random.default_rng(0), pace.Pace(), 0, []
    while start < num_steps:
        steps = min(paced.steps, num_steps - start)
        taken.append((fixed + per_step * steps) * np.exp(noise * rng.standard_normal()))
        paced._learn(steps, taken[-1] + 3 * (len(taken) == 1))
        start += steps
    return taken


@pytest.mark.parametrize("per_step", [1e-6, 1e-4, 1e-2, 1.0])
@pytest.mark.parametrize("fixed", [0.0, 0.1, 0.5])
def test_parts_are_short_where_that_costs_little(fixed, per_step):
    """A fixed cost above a quarter of a second once made parts ever shorter, down to a step each."""
    num_steps = min(1_000_000, int(60 / per_step))
    parts = in_parts(fixed, per_step, num_steps)
    assert sum(parts) < 1.5 * (fixed + per_step * num_steps) + 15 * fixed  # some short parts until the cost is known
    assert max(parts[1:]) < 2.1 * max(pace.PART_SECONDS, 4 * fixed, fixed + per_step)
    assert sum(in_parts(fixed, per_step, num_steps, noise=0.3)) < 2 * sum(parts)


def test_a_part_that_says_nothing_of_the_fixed_cost_is_followed_by_one_that_does():
    """Parts of one step, all equally long: only a longer one can show whether steps or calls are slow."""
    paced = pace.Pace()
    paced.steps, paced.count = 1, 1
    for _ in range(pace.TRIAL):
        paced._learn(paced.steps, 0.5)
    assert paced.steps > 1
