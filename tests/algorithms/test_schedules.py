"""Schedules: the step size and the ridge at chosen steps."""

from __future__ import annotations

import jax.numpy as jnp
import pytest

import gyrostat as gs

pytestmark = pytest.mark.usefixtures("hasty")

LOW, HIGH = gs.Constant(0.1, 0.001), gs.Constant(0.4, 0.1)


def table(schedule, steps) -> list[tuple[float, float]]:
    return [tuple(round(float(x), 6) for x in schedule(jnp.asarray(t))) for t in steps]


def test_schedules_say_what_they_are():
    pieces = gs.Piecewise([(0, 5, LOW), (5, 7, HIGH), (7, None, gs.Constant(0.2))])
    assert table(pieces, (0, 4, 5, 6, 7, 900)) == [(0.1, 0.001)] * 2 + [(0.4, 0.1)] * 2 + [(0.2, 0.0)] * 2
    periodic = gs.Periodic([(10, LOW), (5, HIGH)], start=3)
    wanted = [0 if t < 3 or (t - 3) % 15 < 10 else 1 for t in range(50)]
    assert [int(periodic.phase(t)) for t in range(50)] == wanted
    assert table(periodic, range(50)) == [[(0.1, 0.001), (0.4, 0.1)][k] for k in wanted]
    assert table(gs.WarmUp(2, 0.3, periodic), (0, 1, 13)) == [(0.1, 0.001), (0.1, 0.001), (0.4, 0.1)]  # never raised
    assert table(gs.WarmUp(20, 0.3, periodic), (13, 20)) == [(0.3, 0.1), (0.1, 0.001)]
    assert table(gs.Annealing(HIGH, LOW, at=0), (0,)) == [(0.1, 0.001)]
    geometric = gs.Geometric(gs.Constant(0.4, 0.1), gs.Constant(0.1, 0.001), num_steps=4)
    assert table(geometric, (0, 2, 4, 9)) == [(0.4, 0.1), (0.2, 0.01), (0.1, 0.001), (0.1, 0.001)]
