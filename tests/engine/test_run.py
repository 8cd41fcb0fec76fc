"""Labelled results: dimensions, coordinates, and the settings that they carry."""

from __future__ import annotations

import json

import numpy as np
import pytest

import gyrostat as gs
from checks import refuses
from conftest import given_environments
from gyrostat.engine.results import describe


def build(eta, spread):
    return gs.HeteroSGD(eta, init_scale=0.2), gs.Problem(
        given_environments(3, gs.TwoPoint(spread=spread)), gs.Identity()
    )


OPTIONS = {"seeds": [4, 2], "record": ["signal", "singular_values"], "record_at": 3}


def test_run_has_labelled_dimensions():
    found = gs.run(*build(0.1, 2.0), num_steps=8, seed=3, **OPTIONS)
    assert found.signal.dims == ("seed", "step")
    assert found.singular_values.dims == ("seed", "step", "singular_value")
    assert found.seed.values.tolist() == [4, 2] and found.step.values.tolist() == [0, 4, 8]
    assert found.diverged.dims == ("seed",)
    assert found.attrs["gyrostat"] == gs.__version__ and found.attrs["seed"] == 3
    carried = json.loads(found.attrs["settings"])
    assert carried["algorithm"]["kind"] == "HeteroSGD"
    assert carried["algorithm"]["schedule"]["step_size"] == 0.1
    assert carried["algorithm"]["batches"]["order"] == "iid"
    assert carried["problem"]["environments"]["law"]["kind"] == "TwoPoint"


def test_grid_cells_are_the_runs():
    found = gs.run_grid(build, {"eta": [0.05, 0.1], "spread": [1.0, 2.0, 3.0]}, num_steps=8, **OPTIONS)
    assert found.signal.dims == ("eta", "spread", "seed", "step")
    assert found.sizes == {"eta": 2, "spread": 3, "seed": 2, "step": 3, "singular_value": 3}
    assert json.loads(found.attrs["varied"]) == {"eta": [0.05, 0.1], "spread": [1.0, 2.0, 3.0]}
    for eta, spread in [(0.05, 3.0), (0.1, 1.0)]:
        alone = gs.run(*build(eta, spread), num_steps=8, **OPTIONS)
        cell = found.sel(eta=eta, spread=spread)
        # Another number of runs is another program: rounding of eight steps.
        np.testing.assert_allclose(cell.signal, alone.signal, rtol=1e-12)
        np.testing.assert_allclose(cell.singular_values, alone.singular_values, rtol=1e-11)


def test_grid_with_a_horizon_per_cell():
    found = gs.run_grid(
        build, {"eta": [0.05, 0.1], "spread": [2.0]}, num_steps=lambda eta, spread: round(1 / eta), **OPTIONS
    )
    assert found.signal.dims == ("eta", "spread", "seed", "record")
    assert found.step.dims == ("eta", "spread", "record")
    assert found.step.sel(eta=0.05).values.ravel().tolist() == [0, 10, 20]
    assert found.step.sel(eta=0.1).values.ravel().tolist() == [0, 5, 10]


def test_axes_may_hold_words():
    def cell(order):
        return gs.HeteroSGD(0.1, order=order), gs.Problem(given_environments(3), gs.Identity())

    found = gs.run_grid(cell, {"order": ["cyclic", "iid"]}, num_steps=4, **OPTIONS)
    assert found.sel(order="cyclic").signal.dims == ("seed", "step")
    assert found.order.values.tolist() == ["cyclic", "iid"]


def test_results_survive_the_store(tmp_path):
    import xarray as xr

    found = gs.run(*build(0.1, 2.0), num_steps=8, **OPTIONS)
    found.to_zarr(tmp_path / "store.zarr", consolidated=False)
    xr.testing.assert_identical(xr.open_zarr(tmp_path / "store.zarr", consolidated=False).load(), found)


@pytest.mark.parametrize("part", [gs.Dense(3), gs.RankOne(5), gs.QuadraticNetwork(0.1), gs.Uniform(rank=2)])
def test_descriptions_are_plain_data(part):
    text = json.dumps(describe(part))
    assert json.loads(text)["kind"] == type(part).__name__


def test_large_arrays_are_described_by_their_shape():
    environments = given_environments(20)
    assert describe(environments)["invariant_basis"] == environments.invariant_basis.tolist()
    data = gs.DenseData(np.ones((50, 100)), np.ones(50), np.zeros(50, dtype=int))
    assert describe(data)["matrices"] == "array of shape (50, 100)"


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"seeds": [0, 0]}, ["seeds lists 0 more than once"]),
        ({"seeds": [0, 2**32]}, ["seeds must be a whole number of at least 0 and at most 4294967295; got 4294967296"]),
        ({"seeds": [2**63]}, ["got 9223372036854775808"]),
        ({"seed": 2**63}, ["seed must be a whole number of at least 0 and at most 9223372036854775807"]),
    ],
)
def test_seeds_that_would_be_the_same_run_are_refused(options, words):
    refuses(
        lambda: gs.run(
            gs.HeteroSGD(0.05), gs.Problem(gs.Environments.diagonal(3), gs.Identity()), num_steps=1, **options
        ),
        *words,
    )


def test_every_bit_of_the_seed_counts():
    problem = gs.Problem(gs.RandomEnvironments(3, law=gs.TwoPoint()), gs.Identity())

    def final(**options):
        return float(gs.run(gs.HeteroSGD(0.05), problem, num_steps=5, **options).spurious[0, -1])

    seeds = [0, 2**31, 2**32 - 1]
    found = [final(seeds=[s]) for s in seeds] + [final(seed=s) for s in (2**32, 2**62, 2**63 - 1)]
    assert len(set(found)) == len(found)
