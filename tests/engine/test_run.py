"""Labelled results: dimensions, coordinates, recorded functions, the options of all entries, and the settings they carry."""

from __future__ import annotations

import inspect
import json
import subprocess
import sys

import jax.numpy as jnp
import numpy as np
import pytest
import xarray as xr

import gyrostat as gs
from checks import refuses
from conftest import given_environments
from gyrostat.engine.results import describe, described


def build(eta, spread):
    problem = gs.Problem(given_environments(3, gs.TwoPoint(spread=spread)), gs.Identity())
    return gs.HeteroSGD(eta, init_scale=0.2), problem


def trace(snapshot):
    """The trace of A."""
    return jnp.trace(snapshot.product)


OPTIONS = {"seeds": [4, 2], "record": ["signal", "singular_values"], "record_at": 3}
EVERYWHERE = [
    lambda **options: gs.run(*build(0.1, 2.0), **options),
    lambda **options: gs.run_grid(build, {"eta": [0.1], "spread": [2.0]}, **options),
    lambda **options: gs.engine.offshoots(*build(0.1, 2.0), at=[3], schedule=gs.schedules.Constant(0.1), **options),
]


def test_run_has_labelled_dimensions(tmp_path):
    result = gs.run(*build(0.1, 2.0), num_steps=8, seed=3, **OPTIONS)
    assert result.signal.dims == ("seed", "step")
    assert result.singular_values.dims == ("seed", "step", "singular_value")
    assert result.seed.values.tolist() == [4, 2] and result.step.values.tolist() == [0, 4, 8]
    assert result.diverged.dims == ("seed",)
    assert result.attrs["gyrostat"] == gs.__version__ and result.attrs["seed"] == 3
    settings = json.loads(result.attrs["settings"])
    assert settings["algorithm"]["schedule"]["step_size"] == 0.1
    assert settings["algorithm"]["batches"]["order"] == "iid"
    assert described(settings["algorithm"]) == build(0.1, 2.0)[0]
    result.to_zarr(tmp_path / "store.zarr", consolidated=False)
    xr.testing.assert_identical(xr.open_zarr(tmp_path / "store.zarr", consolidated=False).load(), result)


def test_grid_cells_are_the_runs():
    grid = gs.run_grid(build, {"eta": [0.05, 0.1], "spread": [1.0, 2.0, 3.0]}, num_steps=8, **OPTIONS)
    assert grid.signal.dims == ("eta", "spread", "seed", "step")
    assert grid.sizes == {"eta": 2, "spread": 3, "seed": 2, "step": 3, "singular_value": 3}
    assert json.loads(grid.attrs["varied"]) == {"eta": [0.05, 0.1], "spread": [1.0, 2.0, 3.0]}
    alone = gs.run(*build(0.05, 3.0), num_steps=8, **OPTIONS)
    for name in OPTIONS["record"]:  # another number of runs is another program: rounding of eight steps
        np.testing.assert_allclose(grid[name].sel(eta=0.05, spread=3.0), alone[name], rtol=1e-11)


def test_a_grid_has_a_horizon_for_each_cell_and_axes_of_words():
    def cell(eta, order):
        return gs.HeteroSGD(eta, order=order), gs.Problem(given_environments(3), gs.Identity())

    axes = {"eta": [0.05, 0.1], "order": ["cyclic", "iid"]}
    grid = gs.run_grid(cell, axes, num_steps=lambda eta, order: round(1 / eta), **OPTIONS)
    assert grid.signal.dims == ("eta", "order", "seed", "record")
    assert grid.step.dims == ("eta", "order", "record")
    assert grid.step.sel(eta=0.05, order="iid").values.tolist() == [0, 10, 20]
    assert grid.step.sel(eta=0.1, order="cyclic").values.tolist() == [0, 5, 10]


@pytest.mark.parametrize("entry", EVERYWHERE, ids=["run", "run_grid", "offshoots"])
def test_every_entry_records_plain_functions(entry):
    result = entry(num_steps=4, record=[trace, "product"], record_at=[0, 4], tolerance=1e-9)
    assert (
        result["trace"].dims == result["product"].dims[:-2] and result["trace"].attrs["long_name"] == "The trace of A"
    )
    expected = np.trace(result["product"].values, axis1=-2, axis2=-1)
    np.testing.assert_allclose(result["trace"], expected, atol=1e-12)
    assert np.isinf(result.reached).all()
    refuses(lambda: entry(num_steps=4, record=[lambda snapshot: snapshot.product.sum()]), "record", "no name", "def")
    refuses(lambda: entry(num_steps=4, record=trace), "record", "list", "brackets")


@pytest.mark.parametrize("entry", [gs.run_grid, gs.engine.offshoots])
def test_the_options_are_those_of_run_in_the_same_words(entry):
    known, text = inspect.signature(gs.run).parameters, inspect.getdoc(entry)
    for name, parameter in inspect.signature(entry).parameters.items():
        _, _, words = text.partition(f"\n{name}\n    ")
        assert words and not words.startswith("As in")
        if name in known and name != "num_steps":
            assert parameter == known[name]
            assert name == "record_at" or words.partition("\n")[0] in inspect.getdoc(gs.run)


@pytest.mark.parametrize("name", ["seed", "step", "diverged", "reached", "signal", "singular_value"])
def test_an_axis_cannot_have_a_name_that_the_result_has(name):
    def cell(**setting):
        raise AssertionError("refused before anything is built")

    refuses(lambda: gs.run_grid(cell, {name: [1.0]}, num_steps=8, **OPTIONS), "settings", repr(name), "rename")


@pytest.mark.parametrize("part", [gs.Dense(3), gs.RankOne(5), gs.QuadraticNetworkSGD(0.1), gs.Uniform(rank=2)])
def test_descriptions_are_plain_data(part):
    assert described(json.loads(json.dumps(describe(part)))) == part


def test_large_arrays_are_described_by_their_shape():
    data = describe(gs.DenseData(np.ones((50, 100)), np.ones(50), np.zeros(50, dtype=int)))
    assert data["matrices"] == "array of shape (50, 100)" and described(data) is None


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
    refuses(lambda: gs.run(*build(0.1, 2.0), num_steps=1, **options), *words)


def test_every_bit_of_the_seed_counts():
    problem = gs.Problem(gs.RandomEnvironments(3, law=gs.TwoPoint()), gs.Identity())

    def final(**options):
        return float(gs.run(gs.HeteroSGD(0.05), problem, num_steps=5, **options).spurious[0, -1])

    ends = [final(seeds=[s]) for s in (0, 2**31, 2**32 - 1)] + [final(seed=s) for s in (2**32, 2**62, 2**63 - 1)]
    assert len(set(ends)) == len(ends)


def test_a_first_result_imports_no_dask_and_dask_works_afterwards():
    pytest.importorskip("dask.array")
    code = """
import sys
import gyrostat as gs
result = gs.run(gs.GradientDescent(0.1), gs.Problem(gs.Environments.diagonal(3), gs.Identity()), num_steps=3, seeds=4)
text = repr(gs.summary(result).isel(step=-1).sel(quantile=0.5)), str(result.median("seed").signal.values)
assert "dask" not in sys.modules
lazy = result.chunk({"seed": 2})
import dask
assert dask.is_dask_collection(lazy) and lazy.isel(step=-1).signal.chunks == ((2, 2),)
assert gs.summary(lazy).equals(gs.summary(result))
assert lazy.mean("seed").compute().signal.equals(result.mean("seed").signal)
"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=300)
