"""Refinement: the boundary of the whole grid from fewer runs."""

from __future__ import annotations

import itertools
import json

import numpy as np
import pytest
from test_sweep_run import with_

from checks import refuses
from gyrostat.experiments.statistics import crossing
from gyrostat.sweeps import read_spec, run_sweep, sweep
from gyrostat.sweeps.refine import Refinement, nested_levels
from gyrostat.sweeps.store import SweepStore


@pytest.mark.parametrize("length", [1, 2, 5, 6, 7, 13, 50])
def test_levels_of_refinement_are_nested_and_keep_the_ends(length):
    levels = nested_levels(length)
    assert levels[-1] == list(range(length))
    assert all(set(a) < set(b) for a, b in itertools.pairwise(levels))
    assert all(level[0] == 0 and level[-1] == length - 1 for level in levels)


def followed(truth: np.ndarray, x: np.ndarray, y: np.ndarray) -> set:
    """The cells that a refinement asks for when the shares are these."""
    table = with_(axes={"spread": [float(f"{v:.6g}") for v in x], "overlap": [float(f"{v:.6g}") for v in y]})
    refinement = Refinement(read_spec(table))
    known = np.full(truth.shape, np.nan)
    for point in refinement.first():
        known[point] = truth[point]
    for level in refinement.finer_levels():
        while new := refinement.next(level, known, known, known):
            for point in new:
                assert np.isnan(known[point])
                known[point] = truth[point]
    return {tuple(int(i) for i in point) for point in np.argwhere(~np.isnan(known))}


@pytest.mark.parametrize("wiggle", [0.0, 0.12], ids=["smooth", "wiggling between the coarse lines"])
def test_refinement_finds_the_boundary_of_the_whole_grid(wiggle):
    """A curved boundary, stored in a shuffled order: every pair of neighbours across it is computed, on few cells."""
    rng = np.random.default_rng(0)
    x, y = rng.permutation(np.linspace(0, 1, 33)), rng.permutation(np.linspace(0, 1, 29))
    edge = 0.2 + 0.6 * x**2 + wiggle * np.sin(8 * np.pi * x) ** 2  # zero on the coarse lines
    truth = (y[None, :] > edge[:, None]).astype(float)
    asked = followed(truth, x, y)
    i, j = np.argsort(x), np.argsort(y)
    pairs = [{(i[a], j[b]), (i[a], j[b + 1])} for a, b in itertools.product(range(33), range(28))]
    across = [pair for pair in pairs if len({truth[point] for point in pair}) == 2]
    assert len(across) >= 30 and all(pair <= asked for pair in across)
    assert len(asked) < (0.3 if wiggle == 0 else 0.45) * truth.size


def test_a_refined_sweep_has_the_boundary_of_the_whole_one_for_fewer_runs(tmp_path):
    axes = {"step_size": [0.05, 0.1], "spread": {"linear": [1, 25], "points": 13}, "order": ["iid", "cyclic"]}
    table = with_(axes=axes, seeds=6, record={"final": ["spurious"]})
    whole = sweep(table, out=tmp_path / "whole", jobs=0)
    summary = run_sweep(table, out=tmp_path / "refined", jobs=0, refine=True)
    found = SweepStore(tmp_path / "refined").load()
    assert summary.saved == int((found.done == 0).sum()) * 6 > 0 and summary.cells * 6 + summary.saved == 52 * 6
    there = found.done > 0
    assert np.array_equal(found.spurious.values[there.values], whole.spurious.values[there.values], equal_nan=True)
    for point in itertools.product([0.05, 0.1], ["iid", "cyclic"]):
        at = dict(zip(("step_size", "order"), point, strict=True))
        part = found.success.sel(at).dropna("spread")
        edges = crossing(whole.spread.values, whole.success.sel(at).values, 0.5)
        assert crossing(part.spread.values, part.values, 0.5) == pytest.approx(edges, nan_ok=True)
    stated = json.loads((tmp_path / "refined" / "sweep.json").read_text())
    assert stated["refine"]["runs_saved"] == summary.saved
    again = run_sweep(table, out=tmp_path / "refined", jobs=0, refine=True)
    assert (again.saved, again.kept, again.computed) == (summary.saved, summary.cells, 0)
    refuses(lambda: sweep({**table, "success": {}}, out=tmp_path / "x", jobs=0, refine=True), "refine")
