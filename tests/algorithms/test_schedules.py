"""Schedules: the step size and the ridge at chosen steps."""

from __future__ import annotations

import jax.numpy as jnp
import pytest

import gyrostat as gs

LOW, HIGH = gs.schedules.Constant(0.1, 0.001), gs.schedules.Constant(0.4, 0.1)


def table(schedule, steps) -> list[tuple[float, float]]:
    return [tuple(round(float(x), 6) for x in schedule(jnp.asarray(t))) for t in steps]


def test_schedules_say_what_they_are():
    pieces = gs.schedules.Piecewise([(0, 5, LOW), (5, 7, HIGH), (7, None, gs.schedules.Constant(0.2))])
    assert table(pieces, (0, 4, 5, 6, 7, 900)) == [(0.1, 0.001)] * 2 + [(0.4, 0.1)] * 2 + [(0.2, 0.0)] * 2
    periodic = gs.schedules.Periodic([(10, LOW), (5, HIGH)], start=3)
    wanted = [0 if t < 3 or (t - 3) % 15 < 10 else 1 for t in range(50)]
    assert [int(periodic.phase(t)) for t in range(50)] == wanted
    assert table(periodic, range(50)) == [[(0.1, 0.001), (0.4, 0.1)][k] for k in wanted]
    assert table(gs.schedules.WarmUp(2, 0.3, periodic), (0, 1, 13)) == [
        (0.1, 0.001),
        (0.1, 0.001),
        (0.4, 0.1),
    ]  # never raised
    assert table(gs.schedules.WarmUp(20, 0.3, periodic), (13, 20)) == [(0.3, 0.1), (0.1, 0.001)]
    assert table(gs.schedules.Annealing(HIGH, LOW, at=0), (0,)) == [(0.1, 0.001)]
    geometric = gs.HeteroSGD(lambda t: (0.4 * 0.25 ** jnp.clip(t / 4, 0, 1), 0.1 * 0.01 ** jnp.clip(t / 4, 0, 1)))
    assert table(geometric.schedule, (0, 2, 4, 9)) == [(0.4, 0.1), (0.2, 0.01), (0.1, 0.001), (0.1, 0.001)]


def test_a_function_is_a_schedule_wherever_one_is_taken():
    decay = lambda t: 0.05 / (1 + t / 100)  # noqa: E731
    assert table(gs.HeteroSGD(decay).schedule, (0, 100, 300)) == [(0.05, 0.0), (0.025, 0.0), (0.0125, 0.0)]
    both = lambda t: (jnp.where(t < 5, 0.4, 0.1), 0.01)  # noqa: E731
    assert table(gs.RidgeDescent(both).schedule, (4, 5)) == [(0.4, 0.01), (0.1, 0.01)]
    assert table(gs.RidgeDescent(decay, 0.3).schedule, (0,)) == [(0.05, 0.3)]
    assert table(gs.schedules.WarmUp(2, 0.03, decay), (0, 2)) == [(0.03, 0.0), (round(0.05 / 1.02, 6), 0.0)]
    parts = gs.Symmetric(), gs.starts.ScaledIdentity(0.1), gs.batches.Pooled()
    assert table(gs.Algorithm(*parts, decay).schedule, (0,)) == [(0.05, 0.0)]


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (lambda t: 0.1 if t < 5 else 0.01, "cannot be traced .*jnp.where"),
        (lambda t: -0.1, "must give finite numbers of at least 0; at step 0 it gives -0.1"),
        (lambda t: [0.1, 0.2, 0.3], "must give a step size, or a pair"),
        (lambda t: jnp.ones(3), "must give a step size, or a pair"),
        (lambda t: "fast", "cannot be traced"),
        (lambda: 0.1, "cannot be traced"),
    ],
)
def test_a_function_that_is_no_schedule_is_refused(function, words):
    with pytest.raises(gs.GyrostatError, match=words):
        gs.HeteroSGD(function)
