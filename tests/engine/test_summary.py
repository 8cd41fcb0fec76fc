"""Summaries of results with diverged runs: against brute force, and never silent."""

from __future__ import annotations

import warnings

import jax.numpy as jnp
import numpy as np
import pytest
import xarray as xr

import gyrostat as gs
from checks import refuses
from gyrostat.diagnostics.base import Snapshot
from gyrostat.engine.summary import quantiles_with_infinity

PROBLEM = gs.Problem(gs.RandomEnvironments(6, law=gs.TwoPoint(mean=1.0, spread=13.0)), gs.FreshGaussian(600))
FLAT = gs.Problem(gs.Environments.diagonal(4, [1.0]), gs.Identity())


def build(eta):
    return gs.GradientDescent(eta, width=2), FLAT


@pytest.fixture(scope="module")
def torn() -> xr.Dataset:
    """A result in which some runs diverge and some do not."""
    with pytest.warns(gs.errors.DivergenceWarning):
        result = gs.run(gs.HeteroSGD(0.12), PROBLEM, num_steps=60, seeds=24, record_at=7)
    assert 0 < int(np.isfinite(result.diverged).sum()) < 24
    return result


def brute(values: np.ndarray, q: float) -> float:
    """A quantile by its definition, one column at a time."""
    x = sorted(values.tolist())
    at = (len(x) - 1) * q
    low, high = x[int(np.floor(at))], x[int(np.ceil(at))]
    return low if low == high or at == int(at) else low + (high - low) * (at - int(at))


def test_a_diverged_run_counts_as_infinite(torn):
    whole = gs.summary(torn)
    for name in ("signal", "spurious", "error", "distance"):
        for s, step in enumerate(torn.step.values):
            values = torn[name].values[:, s].copy()
            lost = torn.diverged.values <= step
            assert np.isnan(values[lost]).all() and not np.isnan(values[~lost]).any()
            values[lost] = np.inf
            expected = [brute(values, q) for q in (0.25, 0.5, 0.75)]
            np.testing.assert_allclose(whole[name].isel(step=s).values, expected, rtol=1e-12)
    share = float(np.isfinite(torn.diverged).mean())
    assert float(whole.diverged_share) == share and int(whole.runs) == 24
    xr.testing.assert_identical(gs.summary(torn.isel(step=-1)), whole.isel(step=-1))


def test_runs_that_are_not_computed_do_not_count(torn):
    """As in the store of a sweep, where such a run has no step of divergence, and a table of quantiles is left out."""
    steps = torn.diverged.where(torn.seed >= 5)
    part = torn.where(torn.seed >= 5).assign(diverged=steps, tables=("quantile", [0.0]))
    alone = gs.summary(torn.isel(seed=slice(5, None)))
    assert "tables" not in gs.summary(part) and int(gs.summary(part).runs) == 19
    xr.testing.assert_equal(gs.summary(part), alone)
    assert np.isnan(gs.summary(part.assign(diverged=steps * np.nan)).signal).all()


def test_quantiles_next_to_infinity():
    rng = np.random.default_rng(0)
    levels = [0.0, 0.1, 0.25, 0.5, 0.77, 1.0]
    x = rng.standard_normal((11, 40))
    np.testing.assert_array_equal(quantiles_with_infinity(x, levels), np.quantile(x, levels, axis=0))
    x[rng.random(x.shape) < 0.4] = np.inf
    expected = [[brute(column, q) for column in x.T] for q in levels]
    np.testing.assert_allclose(quantiles_with_infinity(x, levels), expected, rtol=1e-12)
    x[0, 0] = np.nan  # not diverged, not known: the quantile is not known
    assert np.isnan(quantiles_with_infinity(x, [0.5])[0][0])


@pytest.mark.parametrize(
    ("entry", "words", "shares"),
    [
        (lambda: gs.run(*build(9.0), num_steps=40, seeds=3), r"3 of 3 runs \(100 %\) diverged", 1.0),
        (lambda: gs.run_grid(build, {"eta": [0.1, 9.0]}, num_steps=40, seeds=2), r"2 of 4 runs \(50 %\)", [0.0, 1.0]),
        (
            lambda: gs.engine.offshoots(*build(9.0), at=[1, 30], schedule=gs.schedules.Constant(9.0), num_steps=40),
            "2 of 2",
            [1.0, 1.0],
        ),
    ],
    ids=["run", "run_grid", "offshoots"],
)
def test_the_warning_names_the_share_and_points_to_the_caller(entry, words, shares):
    with pytest.warns(gs.errors.DivergenceWarning, match=words) as caught:
        result = entry()
    assert [w.filename for w in caught] == [__file__]
    assert gs.summary(result).diverged_share.values.tolist() == shares


def test_the_note_comes_first_in_the_text_of_the_result(torn):
    assert next(iter(torn.attrs)) == "diverged" and "gs.summary" in torn.attrs["diverged"]
    assert "runs (" in repr(torn).partition("Attributes")[2].splitlines()[1]
    assert "diverged" in torn.isel(step=-1).median("seed").attrs  # and survives the tempting statistic


def test_times_that_never_came_are_infinite():
    with warnings.catch_warnings():
        warnings.simplefilter("error", gs.errors.DivergenceWarning)  # nothing is said of runs that converge
        result = gs.run(*build(0.2), num_steps=5, seeds=3, tolerance=1e-9)
    assert np.isinf(result.reached).all() and np.isinf(result.diverged).all() and "diverged" not in result.attrs
    # A median over runs of which most never did it is infinite, not -1 and not the time of the few that did.
    assert np.isinf(result.median("seed").reached) and np.isinf(gs.summary(result).reached.sel(quantile=0.5))


def test_every_variable_and_coordinate_says_what_it_is():
    def cell(eta):
        return gs.GradientDescent(eta, width=2, events=(gs.events.ImbalanceStep(at=3),)), FLAT

    my_norm = gs.diagnostics.Diagnostic("my_norm", lambda view: (view.product**2).sum())
    grid = gs.run_grid(cell, {"eta": [0.1]}, num_steps=5, record=["signal", my_norm], tolerance=1e-9)
    for name, variable in [*grid.variables.items(), *gs.summary(grid).variables.items()]:
        assert all(variable.attrs[word] for word in ("long_name", "units", "one_means")), name
    assert grid.signal.attrs["one_means"] == "the invariant signal is learnt in full"
    assert grid.my_norm.attrs["long_name"] == "my norm" and grid.step.attrs["units"] == "steps"
    ours = [d for d in gs.diagnostics.DIAGNOSTICS.values() if d.function.__module__.startswith("gyrostat")]
    assert [d.name for d in ours if not (d.one_means and d.description)] == []


def test_what_cannot_be_summarised_is_refused(torn):
    refuses(lambda: gs.summary(xr.Dataset({"x": ("seed", [1.0])})), "result", "diverged", "gs.run")
    refuses(lambda: gs.summary(3), "result", "int")
    refuses(lambda: gs.summary(torn, quantiles=[2.0]), "quantiles", "between 0 and 1")


# --- unknown truth ------------------------------------------------------------------------------------


@pytest.mark.parametrize("model", [gs.Symmetric(), gs.Diagonal()], ids=["matrix", "vector"])
def test_what_compares_with_an_unknown_truth_is_nan(model):
    rng, shape = np.random.default_rng(0), (4, 4) if isinstance(model, gs.Symmetric) else (4,)
    data = gs.DenseData(rng.standard_normal((30, *shape)), rng.standard_normal(30), np.arange(30) % 2)
    gap = gs.diagnostics.Diagnostic("gap", lambda view: abs(view.product - view.environments.invariant).sum())
    truth = ["signal", "spurious_values", "error", "distance", "full_loss", gap]
    problem = gs.Problem(gs.Observed(shape, 2), data)
    result = gs.run(gs.HeteroSGD(0.01, model=model), problem, num_steps=5, record=[*truth, "singular_values"])
    assert all(np.isnan(x).all() == (name not in ("singular_values", "diverged")) for name, x in result.items())
    assert np.isnan(gs.summary(result).signal).all() and float(gs.summary(result).diverged_share) == 0


@pytest.mark.parametrize(
    "model", [gs.Symmetric(), gs.Asymmetric(), gs.DeepLinear(2)], ids=lambda model: type(model).__name__
)
def test_the_list_of_diagnostics_that_need_the_truth_is_complete(model):
    """Every other built-in diagnostic gives the same numbers whatever the truth is."""
    rng, shape = np.random.default_rng(0), (4, 4)
    params = tuple(jnp.asarray(rng.standard_normal(s)) for s in model.shapes(shape))
    views = [Snapshot(gs.Environments(np.eye(4)[:, k : k + 1]), model, params, shape) for k in (0, 1)]
    equal = []
    for d in gs.diagnostics.DIAGNOSTICS.values():
        if d.needs_truth or not d.function.__module__.startswith("gyrostat") or d.name == "training_loss":
            continue  # the training loss sees data, which a snapshot without measurements makes from the truth
        try:
            one, two = (d.value(view) for view in views)
        except gs.GyrostatError:  # it is not for this model
            continue
        np.testing.assert_array_equal(one, two, err_msg=d.name)
        equal.append(d.name)
    assert {"singular_values", "product"} <= set(equal)
