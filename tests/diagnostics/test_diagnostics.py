"""Diagnostics against their formulas in NumPy, and the isometry constant against the whole spectrum."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

import gyrostat as gs
import reference
from checks import refuses
from conftest import given_environments, orthonormal, rectangular_environments
from gyrostat.diagnostics import Snapshot
from gyrostat.diagnostics import base as diagnostics_base

RNG = np.random.default_rng(0)
BASIS = orthonormal(0, 5, 3)
U_STAR, V_STAR = BASIS[:, :1], BASIS[:, 1:]
VALUES = np.array([2.0])
LAW = gs.Finite([np.diag([1.0, 3.0]), np.array([[0.5, 1.0], [1.0, -2.0]])], [0.25, 0.75])
MEAN = 0.25 * LAW.values[0] + 0.75 * LAW.values[1]
A_STAR = 2 * U_STAR @ U_STAR.T
U, V = RNG.standard_normal((2, 5, 4))
A = U @ U.T - V @ V.T
SNAPSHOT = Snapshot(
    gs.Environments(U_STAR, V_STAR, LAW, values=VALUES),
    gs.models.SymmetricDifference(width=4),
    (U, V),
    (len(U), len(U)),
)
W = np.hstack([U, V])
R, Q = W.T @ U_STAR, W.T @ V_STAR
E = W - U_STAR @ R.T - V_STAR @ Q.T
FROBENIUS = np.linalg.norm

EXPECTED = {
    "signal": abs(U_STAR.T @ A @ U_STAR).item() / 2,
    "spurious": FROBENIUS(V_STAR.T @ A @ V_STAR) / FROBENIUS(MEAN),
    "signal_values": np.diag(U_STAR.T @ A @ U_STAR),
    "spurious_values": np.diag(V_STAR.T @ A @ V_STAR),
    "error": FROBENIUS(E),
    "error_operator": FROBENIUS(E, 2),
    "spurious_part": FROBENIUS(Q),
    "invariant_singular_values": np.linalg.svd(R, compute_uv=False),
    "singular_values": np.sort(np.abs(np.linalg.eigvalsh(A)))[::-1],
    "distance": FROBENIUS(A - A_STAR),
    "distance_to_mean": FROBENIUS(A - A_STAR - V_STAR @ MEAN @ V_STAR.T),
    "full_loss": sum(
        w * FROBENIUS(A - A_STAR - V_STAR @ S @ V_STAR.T) ** 2 / 2 for w, S in zip(LAW.weights, LAW.values, strict=True)
    ),
}
EXPECTED["training_loss"] = EXPECTED["full_loss"]  # a snapshot that says nothing of measurements sees all entries


def test_every_diagnostic_has_an_expected_value():
    ours = {
        n
        for n, d in gs.diagnostics.DIAGNOSTICS.items()
        if d.function.__module__ == "gyrostat.diagnostics.signal_and_loss"
    }
    assert ours == set(EXPECTED)


@pytest.mark.parametrize("name", EXPECTED)
def test_diagnostic_equals_its_formula(name, x64):
    value = np.asarray(gs.diagnostics.DIAGNOSTICS[name].value(SNAPSHOT))
    np.testing.assert_allclose(value, EXPECTED[name], rtol=1e-11)  # singular values: rounding times a few


def test_diagonal_diagnostics_are_those_of_the_diagonal_matrix(x64):
    law = gs.Finite([1.0, 3.0])
    u, v = RNG.standard_normal((2, 4))
    vectors = gs.VectorEnvironments([1.0, -2.0, 0.0, 0.0], [2], law)
    identity = np.eye(4)
    matrices = gs.Environments(identity[:, :2], identity[:, 2:3], law, values=[1.0, -2.0])
    narrow = Snapshot(vectors, gs.Diagonal(), (u, v), (len(u),))
    wide = Snapshot(matrices, gs.models.SymmetricDifference(), (np.diag(u), np.diag(v)), (len(u), len(u)))
    for name in ("signal", "spurious", "signal_values", "spurious_values", "singular_values", "distance", "full_loss"):
        value, wanted = (gs.diagnostics.DIAGNOSTICS[name].function(x) for x in (narrow, wide))
        np.testing.assert_allclose(value, wanted, rtol=1e-12, err_msg=name)


def test_spurious_share_without_a_mean_or_without_a_spurious_part(x64):
    centred = Snapshot(given_environments(4, gs.TwoPoint(mean=0.0, spread=1.0)), gs.Symmetric(), (np.eye(4),), (4, 4))
    assert float(gs.diagnostics.DIAGNOSTICS["spurious"].function(centred)) == pytest.approx(1.0, rel=1e-12)
    absent = Snapshot(gs.Environments(U_STAR), gs.Symmetric(), (np.eye(5),), (5, 5))
    assert float(gs.diagnostics.DIAGNOSTICS["spurious"].function(absent)) == 0.0
    assert float(gs.diagnostics.DIAGNOSTICS["signal"].function(absent)) == pytest.approx(1.0, rel=1e-12)


@pytest.mark.parametrize("independent", [False, True])
def test_loss_in_another_basis_is_the_mean_over_draws(independent, x64):
    """Features are not orthonormal, so entries of Sigma mix: independent ones are not shared ones."""
    recipe = gs.environments.FeatureEnvironments(
        4, 1, gs.Uniform(mean=0.5, spread=3.0, rank=2, independent=independent)
    )
    environments = recipe.draw(jax.random.key(1))
    snapshot = Snapshot(environments, gs.Symmetric(), (0.3 * np.eye(4),), (4, 4))
    sigma = jax.jit(jax.vmap(lambda k: environments.law.environment(k).sigma))(
        jax.random.split(jax.random.key(2), 40_000)
    )
    B = np.asarray(environments.spurious_basis)
    gap = 0.09 * np.eye(4) - np.asarray(environments.invariant) - B @ np.asarray(sigma) @ B.T
    losses = np.sum(gap**2, axis=(1, 2)) / 2
    error = 5 * losses.std() / np.sqrt(len(losses))
    assert abs(float(gs.diagnostics.DIAGNOSTICS["full_loss"].function(snapshot)) - losses.mean()) < error


# --- the loss of the data that a run is given ---------------------------------------------------------

ROWS, RESPONSES, SITES = RNG.standard_normal((7, 3, 4)), RNG.standard_normal(7), np.arange(7) % 2
PAIRS = [(0, 0), (1, 3), (2, 1)]


def entries_loss(A, targets):
    i, j = np.array(PAIRS).T
    return np.mean([(A[i, j] - T[i, j]) ** 2 for T in targets]) / 2


def rows_loss(A, targets):
    errors = np.einsum("nij,ij->n", ROWS, A) - RESPONSES
    return np.mean([np.mean(errors[e == SITES] ** 2) for e in (0, 1)]) / 2


@pytest.mark.parametrize(
    "measurements",
    [
        gs.Entries(PAIRS),
        gs.Entries(PAIRS, batch_size=1),
        gs.Entries(PAIRS, batch_size=1, order="shuffled"),
        gs.DenseData(ROWS, RESPONSES, SITES),
        gs.DenseData(ROWS, RESPONSES, SITES, batch_size=2),
    ],
    ids=["entries", "one entry", "one entry, shuffled", "rows", "two rows"],
)
def test_the_training_loss_is_that_of_the_data(measurements):
    """Whatever the batches hold; the loss over all entries of the targets is another number, NaN where nobody knows them."""
    has_truth = isinstance(measurements, gs.Entries)
    loss = entries_loss if has_truth else rows_loss
    environments = rectangular_environments(3, 4, gs.Finite([-1.0, 2.0])) if has_truth else gs.Observed((3, 4), 2)
    algorithm = gs.HeteroSGD(0.05, model=gs.Asymmetric(2), start=gs.starts.ScaledGaussian(0.5))
    record = ["training_loss", "product"] + ["full_loss"] * has_truth
    recorded = gs.run(algorithm, gs.Problem(environments, measurements), num_steps=9, seeds=2, record=record)
    targets = [np.asarray(environments.target(sigma)) for sigma in environments.law.values]
    for value, A in zip(
        recorded.training_loss.values.ravel(), recorded["product"].values.reshape(-1, 3, 4), strict=True
    ):
        assert value == pytest.approx(loss(A, targets), rel=1e-12)
    if has_truth:
        assert (abs(recorded.full_loss - recorded.training_loss) > 0.01).all()


def test_a_design_has_a_training_loss_and_new_measurements_have_none():
    """The rows of a design and its Gram matrix agree; with noise and few rows the loss is far from that over all entries."""
    problems = [
        gs.Problem(gs.Environments.diagonal(4), gs.Dense(30, noise=0.3, design=1, operator=operator))
        for operator in ("rows", "gram")
    ]
    rows, gram = (record(p, "training_loss").training_loss for p in problems)
    np.testing.assert_allclose(rows, gram, rtol=1e-9)
    again = record(gs.Problem(gs.Environments.diagonal(4), gs.Identity()), "training_loss", "full_loss")
    np.testing.assert_allclose(again.training_loss, again.full_loss, rtol=1e-12)
    assert (abs(rows - again.full_loss) > 0.02).any()
    for measurements in (gs.FreshGaussian(30), gs.FixedGaussian(30), gs.RankOne(30), gs.Dense(30, redraw=True)):
        problem = gs.Problem(gs.Environments.diagonal(4), measurements)
        refuses(lambda p=problem: record(p, "training_loss"), type(measurements).__name__, "record 'full_loss'")


def test_the_old_name_of_the_full_loss_warns_and_stays():
    with pytest.warns(DeprecationWarning, match="the diagnostic 'loss' is now 'full_loss'"):
        recorded = record(PROBLEM, "loss", "full_loss")
    np.testing.assert_array_equal(recorded.loss, recorded.full_loss)
    with pytest.raises(gs.GyrostatError, match="did you mean 'full_loss'"):
        record(PROBLEM, "ful_loss")


# --- diagnostics of one's own --------------------------------------------------------------------------

PROBLEM = gs.Problem(gs.RandomEnvironments(5, law=gs.TwoPoint(spread=3.0)), gs.Identity())


def record(problem, *wanted):
    return gs.run(gs.HeteroSGD(0.1), problem, num_steps=3, record=wanted)


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
    gs.diagnostic(name="named")(top_entry)
    gs.diagnostic("row", "column", of_product=True)(whole_product)
    gs.diagnostic(name="first_row", dims="entry")(lambda snapshot: snapshot.product[0])
    gs.diagnostic(name="one")(lambda snapshot: 1.0)

    def unregistered(snapshot):
        return jnp.max(snapshot.product)

    recorded = record(PROBLEM, "top_entry", "named", "whole_product", "first_row", "one", unregistered)
    dims = {name: recorded[name].dims[2:] for name in ("top_entry", "named", "whole_product", "first_row", "one")}
    assert dims == {
        "top_entry": (),
        "named": (),
        "whole_product": ("row", "column"),
        "first_row": ("entry",),
        "one": (),
    }
    np.testing.assert_array_equal(recorded.unregistered, recorded.whole_product.max(["row", "column"]))
    np.testing.assert_array_equal(recorded.first_row, recorded.whole_product.isel(row=0))
    assert recorded.top_entry.attrs["long_name"] == "The largest entry of A"
    assert registry["whole_product"].of_product and not registry["top_entry"].of_product
    assert "unregistered" not in registry


@pytest.mark.parametrize(
    ("decorate", "words"),
    [
        (lambda: gs.diagnostic(lambda s, t: 1.0, name="two"), "must take one argument, the snapshot"),
        (lambda: gs.diagnostic(lambda s: 1.0, name="signal"), "'signal' exists already"),
        (lambda: gs.diagnostic(lambda s: 1.0, name="step"), "which every result has already"),
        (lambda: gs.diagnostic(lambda s: s.product[0], name="x", dims="seed"), "dims cannot be 'seed'"),
        (lambda: gs.diagnostic(lambda s: s.product, name="x", dims=["row", "row"]), "dims must be different words"),
        (lambda: gs.diagnostic(lambda s: 1.0), "a lambda has no name"),
        (lambda: gs.diagnostic(3), "dims must be a word such as 'layer'; got 3"),
        (lambda: gs.diagnostic("row", dims="row"), "got dimensions twice"),
    ],
)
def test_mistakes_are_found_at_the_decorator(decorate, words, registry):
    before = dict(registry)
    with pytest.raises(gs.GyrostatError, match=words):
        decorate()
    assert registry == before


COMPILED: list[str] = []
jax.monitoring.register_event_duration_secs_listener(
    lambda name, *_, **__: COMPILED.append(name) if name.endswith("backend_compile_duration") else None
)


@pytest.mark.parametrize(
    ("function", "dims", "words"),
    [
        (
            whole_product,
            (),
            r"an array of shape \(5, 5\) for Symmetric, and its dims are \[\]: write dims=\['row', 'column'\]",
        ),
        (top_entry, ("top",), "gives a number for Symmetric, and its dims are .'top'.: leave them out; .* name='top'"),
        (lambda s: s.produkt, (), "has no attribute 'produkt'.*environments, model, params, shape and product"),
        (lambda s: s.params[1], (), "cannot be computed for Symmetric .IndexError: tuple index out of range"),
        (lambda s: np.linalg.norm(s.product), (), "use jax.numpy instead of numpy"),
        (lambda s: float(s.product.sum()), (), r"neither float\(\) nor if"),
        (lambda s: 1.0 if s.product[0, 0] > 0 else 0.0, (), r"neither float\(\) nor if"),
        (lambda s: None, (), "must give a number or an array; got None"),
        (lambda s: [s.product], ("row",), r"must give a number or an array; got \[.*jnp.stack"),
    ],
)
def test_mistakes_of_the_function_are_found_before_anything_is_compiled(function, dims, words, registry):
    gs.diagnostic(name="mistaken", dims=dims)(function)
    COMPILED.clear()
    with pytest.raises(gs.GyrostatError, match=words) as caught:
        record(PROBLEM, "mistaken")
    assert not COMPILED and "\n" not in str(caught.value)


def test_what_cannot_be_recorded_is_refused():
    def signal(snapshot):
        return snapshot.product.sum()

    refuses(lambda: record(PROBLEM, signal), "'signal' exists already", "another name")
    refuses(
        lambda: record(PROBLEM, "signal", gs.diagnostics.Diagnostic("signal", top_entry)), "two different diagnostics"
    )


def test_a_diagnostic_for_ones_own_model():
    network = gs.Model.from_function(lambda W, a, b: W @ a + b, [(3, 2), (2,), (3,)])
    problem = gs.Problem(gs.VectorEnvironments([1.0, 2.0, 3.0]), gs.Identity())
    output = gs.diagnostics.Diagnostic("output", lambda snapshot: snapshot.params[0] @ snapshot.params[1], ("row",))
    recorded = gs.run(gs.HeteroSGD(0.1, model=network), problem, num_steps=2, record=[output])
    assert recorded.output.dims == ("seed", "step", "row")


def test_the_list_describes_every_diagnostic():
    listed = gs.diagnostics.list()
    assert [d.name for d in listed] == sorted(gs.diagnostics.DIAGNOSTICS) and len(listed) >= 23
    ours = [d for d in listed if d.function.__module__.startswith("gyrostat.")]
    assert all(d.description.endswith((".", ")")) and len(d.description) > 5 for d in ours)
    lines = repr(listed).splitlines()
    assert lines[0].split() == ["name", "dimensions", "meaning"] and len(lines) == len(listed) + 1
    assert any(line.startswith("singular_values ") and "singular_value " in line for line in lines)


# --- the isometry constant ------------------------------------------------------------------------


def brute_constants(d: int, m: int, n: int) -> np.ndarray:
    """max |eigenvalue of X^T X / m - 1| for explicit designs: the constant of rank d."""
    rng = np.random.default_rng(d + m)
    X = np.stack([[reference.svec(x) for x in reference.gaussian(rng, (d, d), m)] for _ in range(n)])
    values = np.linalg.eigvalsh(np.swapaxes(X, 1, 2) @ X / m)
    return np.abs(values - 1).max(axis=1)


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
