"""Jumps of rank along singular values."""

from __future__ import annotations

import numpy as np
import pytest

import gyrostat as gs
from gyrostat.diagnostics import ranks

LEVELS = {
    "3": [2.0, 1.0, 1.0],
    "2": [2.0, 1.0, 1e-6],
    "1": [2.0, 1e-6, 1e-9],
    "0": [1e-7, 1e-8, 1e-9],
    "n": [np.nan] * 3,
}
STEPS = [0, 10, 20, 30, 40, 50]


@pytest.mark.parametrize(
    ("path", "outcome"),
    [
        ("323211", ([(30, 3, 2), (40, 2, 1)], 1, "settled")),
        ("331111", ([(20, 3, 1)], 1, "settled")),
        ("111111", ([], 1, "settled")),
        ("221000", ([(20, 2, 1), (30, 1, 0)], 0, "collapsed")),
        ("221nnn", ([(20, 2, 1)], -1, "diverged")),
        ("nnnnnn", ([], -1, "diverged")),
    ],
)
def test_jumps_are_lasting_changes_of_rank(path, outcome):
    values = [LEVELS[level] for level in path]
    assert gs.diagnostics.jumps(values, STEPS) == outcome
    assert ranks(values).tolist() == [-1 if level == "n" else int(level) for level in path]


def test_jump_times_are_those_of_the_ratio():
    """The definition, checked record by record: after the last time s_2 / s_1 >= .01."""
    rng = np.random.default_rng(0)
    ratio = 10 ** rng.uniform(-4, 0, (50, 30))
    for row in ratio:
        row[rng.integers(1, 31) :] = 1e-6
    steps = np.arange(30) * 7
    times = gs.diagnostics.jump_times(np.stack([np.ones_like(ratio), ratio], axis=-1), steps)
    for row, time in zip(ratio, times, strict=True):
        last = max(np.flatnonzero(row >= 0.01), default=-1)
        assert time == (steps[last + 1] if last < 29 else np.inf)
    assert gs.diagnostics.jump_times([[[1.0, 0.5], [np.nan, np.nan]]], [0, 1]).tolist() == [np.inf]
