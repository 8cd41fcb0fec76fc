"""Jumps of rank along singular values."""

from __future__ import annotations

import numpy as np

import gyrostat as gs
from gyrostat.diagnostics import ranks

STEPS = [0, 10, 20, 30, 40, 50]


def test_jumps_are_lasting_changes_of_rank():
    three, two, one, zero = [2.0, 1.0, 1.0], [2.0, 1.0, 1e-6], [2.0, 1e-6, 1e-9], [1e-7, 1e-8, 1e-9]
    nan = [np.nan] * 3
    assert gs.diagnostics.jumps([three, two, three, two, one, one], STEPS).jumps == [(30, 3, 2), (40, 2, 1)]
    assert gs.diagnostics.jumps([three, three, one, one, one, one], STEPS).jumps == [(20, 3, 1)]
    settled = gs.diagnostics.jumps([one, one, one, one, one, one], STEPS)
    assert settled == ([], 1, "settled")
    assert gs.diagnostics.jumps([two, two, one, zero, zero, zero], STEPS) == ([(20, 2, 1), (30, 1, 0)], 0, "collapsed")
    assert gs.diagnostics.jumps([two, two, one, nan, nan, nan], STEPS) == ([(20, 2, 1)], -1, "diverged")
    assert gs.diagnostics.jumps([nan] * 6, STEPS) == ([], -1, "diverged")
    assert ranks([three, two, one, zero, nan]).tolist() == [3, 2, 1, 0, -1]


def test_jump_times_are_those_of_the_ratio():
    """The definition, checked record by record: after the last time s_2 / s_1 >= .01."""
    rng = np.random.default_rng(0)
    ratio = 10 ** rng.uniform(-4, 0, (50, 30))
    steps = np.arange(30) * 7
    for k in range(50):
        ratio[k, rng.integers(1, 31) :] = 1e-6
    times = gs.diagnostics.jump_times(np.stack([np.ones((50, 30)), ratio], axis=-1), steps)
    for row, t in zip(ratio, times, strict=True):
        above = [k for k in range(30) if row[k] >= 0.01]
        wanted = np.inf if above and above[-1] == 29 else steps[above[-1] + 1] if above else steps[0]
        assert t == wanted
        listed = gs.diagnostics.jumps(np.stack([np.ones(30), row], axis=-1), steps).jumps
        assert [j.step for j in listed if j.after == 1] == ([t] if 0 < t < np.inf else [])
    assert gs.diagnostics.jump_times([[[1.0, 0.5], [np.nan, np.nan]]], [0, 1]).tolist() == [np.inf]
