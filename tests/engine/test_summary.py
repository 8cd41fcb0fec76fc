"""Summaries of results with diverged runs: against brute force, and never silent."""

from __future__ import annotations

import warnings

import equinox as eqx
import numpy as np
import pytest
import xarray as xr

import gyrostat as gs
from checks import refuses
from gyrostat.engine import compile
from gyrostat.engine.summary import quantiles_with_infinity

PROBLEM = gs.Problem(gs.RandomEnvironments(6, law=gs.TwoPoint(mean=1.0, spread=13.0)), gs.FreshGaussian(600))


@pytest.fixture(scope="module")
def torn() -> xr.Dataset:
    """A result in which some runs diverge and some do not."""
    with pytest.warns(gs.DivergenceWarning):
        found = gs.run(gs.HeteroSGD(0.12), PROBLEM, num_steps=60, seeds=24, record_at=7)
    assert 0 < int(np.isfinite(found.diverged).sum()) < 24
    return found


def brute(values: np.ndarray, q: float) -> float:
    """A quantile by its definition, one column at a time."""
    x = sorted(values.tolist())
    at = (len(x) - 1) * q
    low, high = x[int(np.floor(at))], x[int(np.ceil(at))]
    return low if low == high or at == int(at) else low + (high - low) * (at - int(at))


def test_a_diverged_run_counts_as_infinite(torn):
    found = gs.summary(torn)
    for name in ("signal", "spurious", "error", "distance"):
        for s, step in enumerate(torn.step.values):
            values = torn[name].values[:, s].copy()
            lost = torn.diverged.values <= step
            assert np.isnan(values[lost]).all() and not np.isnan(values[~lost]).any()
            values[lost] = np.inf
            wanted = [brute(values, q) for q in (0.25, 0.5, 0.75)]
            np.testing.assert_allclose(found[name].isel(step=s).values, wanted, rtol=1e-12)
    share = float(np.isfinite(torn.diverged).mean())
    assert float(found.diverged_share) == share and int(found.runs) == 24


def test_the_last_step_alone_gives_the_same(torn):
    at_once, after = gs.summary(torn.isel(step=-1)), gs.summary(torn).isel(step=-1)
    xr.testing.assert_identical(at_once, after)


def test_without_divergence_it_is_xarrays_quantile():
    found = gs.run(gs.HeteroSGD(0.02), PROBLEM, num_steps=20, seeds=9, record_at=3)
    ours, theirs = gs.summary(found, quantiles=[0.1, 0.5]), found.quantile([0.1, 0.5], "seed")
    for name in ("signal", "spurious"):
        np.testing.assert_array_equal(ours[name].values, theirs[name].values)
    assert "diverged" not in found.attrs and float(ours.diverged_share) == 0


def test_quantiles_next_to_infinity():
    rng = np.random.default_rng(0)
    x = rng.standard_normal((11, 40))
    for q in (0.0, 0.1, 0.25, 0.5, 0.77, 1.0):
        np.testing.assert_array_equal(quantiles_with_infinity(x, [q])[0], np.quantile(x, q, axis=0))
    x[rng.random(x.shape) < 0.4] = np.inf
    for q in (0.0, 0.1, 0.25, 0.5, 0.77, 1.0):
        wanted = [brute(column, q) for column in x.T]
        np.testing.assert_allclose(quantiles_with_infinity(x, [q])[0], wanted, rtol=1e-12)
    x[0, 0] = np.nan  # not diverged, not known: the quantile is not known
    assert np.isnan(quantiles_with_infinity(x, [0.5])[0][0])


def test_the_warning_names_the_share_and_points_to_the_caller():
    with pytest.warns(gs.DivergenceWarning, match=r"3 of 3 runs \(100 %\) diverged") as caught:
        gs.run(gs.GradientDescent(9.0), gs.Problem(gs.Environments.diagonal(3), gs.Identity()), num_steps=40, seeds=3)
    assert [w.filename for w in caught] == [__file__]
    build = lambda eta: (gs.GradientDescent(eta), gs.Problem(gs.Environments.diagonal(3), gs.Identity()))  # noqa: E731
    with pytest.warns(gs.DivergenceWarning, match=r"2 of 4 runs \(50 %\)") as caught:
        grid = gs.run_grid(build, {"eta": [0.1, 9.0]}, num_steps=40, seeds=2)
    assert [w.filename for w in caught] == [__file__]
    assert gs.summary(grid).diverged_share.values.tolist() == [0.0, 1.0]
    with pytest.warns(gs.DivergenceWarning, match="2 of 2 runs") as caught:
        gs.offshoots(*build(9.0), at=[1, 30], schedule=gs.Constant(9.0), num_steps=40)
    assert [w.filename for w in caught] == [__file__]


def test_nothing_is_said_of_runs_that_converge():
    with warnings.catch_warnings():
        warnings.simplefilter("error", gs.DivergenceWarning)
        gs.run(gs.GradientDescent(0.1), gs.Problem(gs.Environments.diagonal(3), gs.Identity()), num_steps=40, seeds=3)


def test_the_note_comes_first_in_the_text_of_the_result(torn):
    assert next(iter(torn.attrs)) == "diverged" and "gs.summary" in torn.attrs["diverged"]
    shown = repr(torn).partition("Attributes")[2]
    assert "runs (" in shown.splitlines()[1]
    assert "diverged" in torn.isel(step=-1).median("seed").attrs  # and survives the tempting statistic


def test_times_that_never_came_are_infinite():
    problem = gs.Problem(gs.Environments.diagonal(4, [1.0]), gs.Identity())
    found = gs.run(gs.GradientDescent(0.2), problem, num_steps=5, seeds=3, tolerance=1e-9)
    assert np.isinf(found.reached).all() and np.isinf(found.diverged).all()
    # A median over runs of which most never did it is infinite, not -1 and not the time of the few that did.
    assert np.isinf(found.median("seed").reached) and np.isinf(gs.summary(found).reached.sel(quantile=0.5))


def test_every_variable_and_coordinate_says_what_it_is():
    mine = gs.Diagnostic("my_norm", lambda view: (view.product**2).sum())
    build = lambda eta: (gs.GradientDescent(eta, width=2, events=(gs.ImbalanceStep(at=3),)), problem)  # noqa: E731
    problem = gs.Problem(gs.Environments.diagonal(4, [1.0]), gs.Identity())
    scalars = [name for name in gs.DIAGNOSTICS if "layer" not in name]
    record = [*[n for n in scalars if not n.startswith("imbalances")], mine]
    found = gs.run_grid(build, {"eta": [0.1]}, num_steps=5, record=record, tolerance=1e-9)
    for name in [*found.data_vars, *found.coords]:
        about = found[name].attrs
        assert about["long_name"] and about["units"] and about["one_means"], name
    assert found.signal.attrs["one_means"] == "the invariant signal is learnt in full"
    assert found.my_norm.attrs["long_name"] == "my norm" and found.step.attrs["units"] == "steps"
    for name in gs.summary(found).variables:
        assert gs.summary(found)[name].attrs["long_name"], name


def test_every_diagnostic_says_what_one_means():
    assert [
        d.name for d in gs.DIAGNOSTICS.values() if not d.one_means and d.function.__module__.startswith("gyro")
    ] == []


def test_a_result_without_divergence_is_refused():
    refuses(lambda: gs.summary(xr.Dataset({"x": ("seed", [1.0])})), "result", "diverged", "gs.run")
    refuses(lambda: gs.summary(3), "result", "int")


def test_bad_quantiles(torn):
    refuses(lambda: gs.summary(torn, quantiles=[2.0]), "quantiles", "between 0 and 1")


# --- unknown truth ------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(4, 4), (4,)])
def test_what_compares_with_an_unknown_truth_is_nan_or_absent(shape):
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((30, *shape)), rng.standard_normal(30)
    problem = gs.Problem(gs.Observed(shape, 2), gs.DenseData(X, y, np.arange(30) % 2))
    model = gs.Symmetric() if len(shape) == 2 else gs.Diagonal()
    own = gs.Diagnostic("own", lambda view: abs(view.product - view.environments.invariant).sum())
    factors = ("potential",) if len(shape) == 2 else ()
    both = ("signal", "spurious", "signal_values", "spurious_values", "error", "error_operator", "spurious_part")
    truth = (*both, "invariant_singular_values", "distance", "distance_to_mean", "loss", *factors)
    assert {d.name for d in gs.DIAGNOSTICS.values() if d.needs_truth} >= set(truth)
    found = gs.run(gs.HeteroSGD(0.01, model=model), problem, num_steps=5, record=[*truth, own, "singular_values"])
    for name in (*truth, "own"):
        assert np.isnan(found[name].values).all(), name  # all of none, where the directions are absent
    assert np.isfinite(found.singular_values).all()
    assert np.isnan(gs.summary(found).spurious).all() and float(gs.summary(found).diverged_share) == 0


def test_the_list_of_diagnostics_that_need_the_truth_is_complete(monkeypatch):
    """Every other built-in diagnostic gives the same numbers whatever the truth is."""
    problem = [gs.Problem(gs.Environments(np.eye(4)[:, k : k + 1]), gs.DenseData(*data())) for k in (0, 1)]
    names = [n for n, d in gs.DIAGNOSTICS.items() if not d.needs_truth and d.function.__module__.startswith("gyrostat")]
    for model in (gs.Symmetric(), gs.Asymmetric(), gs.DeepLinear(2)):
        with monkeypatch.context() as patched:
            for program in ("_continue_one", "_continue_many"):
                patched.setattr(compile, program, only_traced(getattr(compile, program)))
            mine = [n for n in names if works(n, model, problem[0])]
        assert mine
        one, two = (gs.run(algorithm(model), p, num_steps=5, record=mine) for p in problem)
        for name in mine:
            np.testing.assert_array_equal(one[name], two[name], err_msg=name)


def data():
    rng = np.random.default_rng(0)
    return rng.standard_normal((30, 4, 4)), rng.standard_normal(30), np.zeros(30, dtype=int)


def algorithm(model) -> gs.Algorithm:
    return gs.Algorithm(model, gs.ScaledGaussian(0.5), gs.Full(), gs.Constant(0.01))


class Traced(Exception):
    """A program was traced, and is not worth compiling."""


def only_traced(program):
    def call(fixed, *moving):
        eqx.filter_eval_shape(lambda *given: program(fixed, *given), *moving)
        raise Traced

    return call


def works(name: str, model, problem) -> bool:
    try:
        gs.run(algorithm(model), problem, num_steps=1, record=[name])
    except gs.GyrostatError:
        return False
    except Traced:
        return True
    raise AssertionError("nothing was traced")
