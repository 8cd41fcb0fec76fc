"""Diagnostics of one's own, the loss over the data of a run, and the isometry constant against the whole spectrum."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

import gyrostat as gs
import reference
from checks import refuses
from conftest import rectangular_environments
from gyrostat.diagnostics import base as diagnostics_base

PROBLEM = gs.Problem(gs.RandomEnvironments(5, law=gs.TwoPoint(spread=3.0)), gs.Identity())


def record(problem, *wanted, algorithm=None):
    return gs.run(algorithm or gs.HeteroSGD(0.1), problem, num_steps=3, record=wanted)


# --- the loss over the data that a run is given ------------------------------------------------------------------------------

RNG = np.random.default_rng(0)
ROWS, RESPONSES, SITES = RNG.standard_normal((7, 3, 4)), RNG.standard_normal(7), np.arange(7) % 2
PAIRS = [(0, 0), (1, 3), (2, 1)]
TRUTH = rectangular_environments(3, 4, gs.Finite([-1.0, 2.0]))


def entries_loss(A):
    targets = [np.asarray(TRUTH.target(sigma)) for sigma in TRUTH.law.values]
    return np.mean([(A - target)[tuple(np.transpose(PAIRS))] ** 2 for target in targets]) / 2


def rows_loss(A):
    squares = (np.einsum("nij,ij->n", ROWS, A) - RESPONSES) ** 2
    return np.mean([squares[e == SITES].mean() for e in (0, 1)]) / 2


@pytest.mark.parametrize(
    ("environments", "measurements", "loss"),
    [
        (TRUTH, gs.Entries(PAIRS), entries_loss),
        (TRUTH, gs.Entries(PAIRS, batch_size=1, order="shuffled"), entries_loss),
        (gs.Observed((3, 4), 2), gs.DenseData(ROWS, RESPONSES, SITES), rows_loss),
        (gs.Observed((3, 4), 2), gs.DenseData(ROWS, RESPONSES, SITES, batch_size=2), rows_loss),
    ],
    ids=["entries", "one entry", "rows", "two rows"],
)
def test_the_training_loss_is_that_of_the_data(environments, measurements, loss):
    """Whatever the batches hold; the loss over all entries of the targets is another number, NaN where nobody knows them."""
    algorithm = gs.HeteroSGD(0.05, model=gs.Asymmetric(2), start=gs.starts.ScaledGaussian(0.5))
    problem = gs.Problem(environments, measurements)
    recorded = record(problem, "training_loss", "full_loss", "product", algorithm=algorithm)
    for step in recorded.isel(seed=0).transpose("step", ...).step:
        now = recorded.isel(seed=0).sel(step=step)
        assert float(now.training_loss) == pytest.approx(loss(now["product"].values), rel=1e-12)
    assert not (abs(recorded.full_loss - recorded.training_loss) <= 0.01).any()
    assert recorded.full_loss.isnull().all() == (environments is not TRUTH)


def test_a_design_has_a_training_loss_and_new_measurements_have_none():
    """The rows of a design and its Gram matrix agree; with noise and few rows the loss is far from that over all entries."""
    environments = gs.Environments.diagonal(4)
    designs = [gs.Dense(30, noise=0.3, design=1, operator=operator) for operator in ("rows", "gram")]
    rows, gram = (record(gs.Problem(environments, design), "training_loss").training_loss for design in designs)
    np.testing.assert_allclose(rows, gram, rtol=1e-9)
    again = record(gs.Problem(environments, gs.Identity()), "training_loss", "full_loss")
    np.testing.assert_allclose(again.training_loss, again.full_loss, rtol=1e-12)
    assert (abs(rows - again.full_loss) > 0.02).any()
    for measurements in (gs.FreshGaussian(30), gs.FixedGaussian(30), gs.RankOne(30), gs.Dense(30, redraw=True)):
        problem = gs.Problem(environments, measurements)
        refuses(lambda p=problem: record(p, "training_loss"), type(measurements).__name__, "record 'full_loss'")


def test_the_old_name_of_the_full_loss_warns_and_stays():
    with pytest.warns(DeprecationWarning, match="the diagnostic 'loss' is now 'full_loss'"):
        recorded = record(PROBLEM, "loss", "full_loss")
    np.testing.assert_array_equal(recorded.loss, recorded.full_loss)
    refuses(lambda: record(PROBLEM, "ful_loss"), "did you mean 'full_loss'")


# --- diagnostics of one's own ------------------------------------------------------------------------------------------------


def top_entry(snapshot):
    """The largest entry of A."""
    return jnp.abs(snapshot.product).max()


def whole_product(snapshot):
    return snapshot.product


@pytest.fixture
def registry(monkeypatch):
    """A copy of the registry, so that diagnostics of tests do not stay."""
    monkeypatch.setattr(diagnostics_base, "DIAGNOSTICS", dict(gs.diagnostics.DIAGNOSTICS))
    return diagnostics_base.DIAGNOSTICS


def test_a_diagnostic_of_ones_own_is_found_by_name(registry):
    """Bare, with a name, and with dimensions, by words or by keywords; a plain function is registered nowhere."""
    gs.diagnostic(top_entry)
    gs.diagnostic("row", "column", of_product=True)(whole_product)
    gs.diagnostic(name="first_row", dims="entry")(lambda snapshot: snapshot.product[0])
    gs.diagnostic(name="one")(lambda snapshot: 1.0)

    def unregistered(snapshot):
        return jnp.max(snapshot.product)

    recorded = record(PROBLEM, "top_entry", "whole_product", "first_row", "one", unregistered)
    dims = {"top_entry": (), "whole_product": ("row", "column"), "first_row": ("entry",), "one": ()}
    assert {name: recorded[name].dims[2:] for name in dims} == dims
    np.testing.assert_array_equal(recorded.unregistered, recorded.whole_product.max(["row", "column"]))
    np.testing.assert_array_equal(recorded.first_row, recorded.whole_product.isel(row=0))
    assert recorded.top_entry.attrs["long_name"] == "The largest entry of A"
    assert registry["whole_product"].of_product and not registry["top_entry"].of_product
    assert "unregistered" not in registry


@pytest.mark.parametrize(
    ("name", "dims", "words"),
    [
        ("signal", (), "'signal' exists already"),
        ("step", (), "which every result has already"),
        ("x", ("seed",), "dims cannot be 'seed'"),
        ("x", ("row", "row"), "dims must be different words"),
        ("two words", (), "name must be a word"),
    ],
)
def test_names_that_are_taken_or_no_words_are_found_at_the_decorator(name, dims, words, registry):
    before = dict(registry)
    refuses(lambda: gs.diagnostic(*dims, name=name)(whole_product), words)
    refuses(lambda: gs.diagnostic("row", dims="row"), "got dimensions twice")
    refuses(lambda: gs.diagnostic(name="x")(3), "a diagnostic is a function of a snapshot; got 3")
    assert registry == before


COMPILED: list[str] = []
jax.monitoring.register_event_duration_secs_listener(
    lambda name, *_, **__: COMPILED.append(name) if name.endswith("backend_compile_duration") else None
)
OF_A_MATRIX = r"an array of shape \(5, 5\) for Symmetric, and its dims are \[\]: write dims=\['row', 'column'\]"


@pytest.mark.parametrize(
    ("function", "dims", "words"),
    [
        (whole_product, (), OF_A_MATRIX),
        (top_entry, ("top",), "gives a number for Symmetric, and its dims are .'top'.: leave them out; .* name='top'"),
        (lambda s: s.produkt, (), "has no attribute 'produkt'.*environments, model, params, shape and product"),
        (lambda s, t: 1.0, (), "cannot be computed for Symmetric .TypeError.*'t'.: its argument is a snapshot"),
        (lambda s: np.linalg.norm(s.product), (), "use jax.numpy instead of numpy"),
        (lambda s: 1.0 if s.product[0, 0] > 0 else 0.0, (), r"neither float\(\) nor if"),
        (lambda s: [s.product], ("row",), r"must give a number or an array; got \[.*jnp.stack"),
    ],
)
def test_mistakes_of_the_function_are_found_before_anything_is_compiled(function, dims, words, registry):
    gs.diagnostic(name="mistaken", dims=dims)(function)
    COMPILED.clear()
    with pytest.raises(gs.GyrostatError, match=words) as caught:
        record(PROBLEM, "mistaken")
    assert not COMPILED and "\n" not in str(caught.value)


def test_two_diagnostics_of_one_name_are_refused():
    def signal(snapshot):
        return snapshot.product.sum()

    refuses(lambda: record(PROBLEM, signal), "'signal' exists already", "another name")
    other = gs.diagnostics.Diagnostic("signal", top_entry)
    refuses(lambda: record(PROBLEM, "signal", other), "two different diagnostics")


def test_a_diagnostic_for_ones_own_model():
    network = gs.Model.from_function(lambda W, a, b: W @ a + b, [(3, 2), (2,), (3,)])
    problem = gs.Problem(gs.VectorEnvironments([1.0, 2.0, 3.0]), gs.Identity())
    output = gs.diagnostics.Diagnostic("output", lambda snapshot: snapshot.params[0] @ snapshot.params[1], ("row",))
    assert record(problem, output, algorithm=gs.HeteroSGD(0.1, model=network)).output.dims == ("seed", "step", "row")


def test_the_list_describes_every_diagnostic():
    listed = gs.diagnostics.list()
    assert [d.name for d in listed] == sorted(gs.diagnostics.DIAGNOSTICS) and len(listed) >= 23
    ours = [d for d in listed if d.function.__module__.startswith("gyrostat.")]
    assert all(d.description.endswith((".", ")")) and len(d.description) > 5 for d in ours)
    lines = repr(listed).splitlines()
    assert lines[0].split() == ["name", "dimensions", "meaning"] and len(lines) == len(listed) + 1
    assert any(line.startswith("singular_values ") and "singular_value " in line for line in lines)


# --- the isometry constant ---------------------------------------------------------------------------------------------------


def brute_constants(d: int, m: int, n: int) -> np.ndarray:
    """max |eigenvalue of X^T X / m - 1| for explicit designs: the constant of rank d."""
    rng = np.random.default_rng(d + m)
    X = np.stack([[reference.svec(x) for x in reference.gaussian(rng, (d, d), m)] for _ in range(n)])
    return np.abs(np.linalg.eigvalsh(np.swapaxes(X, 1, 2) @ X / m) - 1).max(axis=1)


def test_full_rank_isometry_constant_has_the_law_of_the_spectrum():
    d, m, n = 2, 40, 150
    brute = brute_constants(d, m, n)
    # Sixty power iterations in three dimensions: the eigenvalue is found to far below the spread over designs.
    estimate = gs.diagnostics.isometry_constant(d, m, d, draws=n, steps=60)
    assert stats.ks_2samp(estimate.draws, brute).pvalue > 1e-3
    error = brute.std() / np.sqrt(n)
    assert estimate.low < brute.mean() + 4 * error and estimate.high > brute.mean() - 4 * error
    assert estimate.low < estimate.value < estimate.high and estimate.value == pytest.approx(estimate.draws.mean())
    # The test can fail: the constant of other sample sizes is refuted.
    assert stats.ks_2samp(estimate.draws, brute_constants(d, m // 2, n)).pvalue < 1e-6


def test_isometry_constant_grows_with_rank_and_falls_with_samples():
    sizes = np.array([250, 1000, 4000, 16000])
    low, high = ([gs.diagnostics.isometry_constant(5, int(m), r, draws=8).value for m in sizes] for r in (1, 5))
    assert (np.array(low) < high).all()
    # Search included: a climb that is slower for more samples would show as a steeper slope (it was -0.66 once).
    for values in (low, high):
        slope = np.polyfit(np.log(sizes), np.log(values), 1)[0]
        assert -0.57 < slope < -0.43  # m^-1/2; eight designs with a spread of about 10 % each
