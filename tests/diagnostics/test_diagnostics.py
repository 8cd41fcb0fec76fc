"""Diagnostics against their formulas in NumPy, and the isometry constant against the whole spectrum."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

import gyrostat as gs
import reference
from checks import refuses
from conftest import given_environments, orthonormal
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
    gs.Environments(U_STAR, V_STAR, LAW, values=VALUES), gs.SymmetricDifference(width=4), (U, V), (len(U), len(U))
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
    "loss": sum(
        w * FROBENIUS(A - A_STAR - V_STAR @ S @ V_STAR.T) ** 2 / 2 for w, S in zip(LAW.weights, LAW.values, strict=True)
    ),
}


def test_every_diagnostic_has_an_expected_value():
    assert set(EXPECTED) <= set(gs.DIAGNOSTICS)
    ours = {n for n, d in gs.DIAGNOSTICS.items() if d.function.__module__ == "gyrostat.diagnostics.signal_and_loss"}
    assert ours == set(EXPECTED)


@pytest.mark.parametrize("name", EXPECTED)
def test_diagnostic_equals_its_formula(name, x64):
    chosen = gs.DIAGNOSTICS[name]
    found = np.asarray(chosen.function(SNAPSHOT))
    assert found.ndim == len(chosen.dims)
    np.testing.assert_allclose(found, EXPECTED[name], rtol=1e-11)  # singular values: rounding times a few


def test_diagonal_diagnostics_are_those_of_the_diagonal_matrix(x64):
    law = gs.Finite([1.0, 3.0])
    u, v = RNG.standard_normal((2, 4))
    vectors = gs.VectorEnvironments([1.0, -2.0, 0.0, 0.0], [2], law)
    identity = np.eye(4)
    matrices = gs.Environments(identity[:, :2], identity[:, 2:3], law, values=[1.0, -2.0])
    narrow = Snapshot(vectors, gs.Diagonal(), (u, v), (len(u),))
    wide = Snapshot(matrices, gs.SymmetricDifference(), (np.diag(u), np.diag(v)), (len(u), len(u)))
    for name in (
        "signal",
        "spurious",
        "signal_values",
        "spurious_values",
        "singular_values",
        "distance",
        "loss",
    ):
        found, wanted = (gs.DIAGNOSTICS[name].function(x) for x in (narrow, wide))
        np.testing.assert_allclose(found, wanted, rtol=1e-12, err_msg=name)


def test_spurious_share_without_a_mean_or_without_a_spurious_part(x64):
    centred = Snapshot(given_environments(4, gs.TwoPoint(mean=0.0, spread=1.0)), gs.Symmetric(), (np.eye(4),), (4, 4))
    assert float(gs.DIAGNOSTICS["spurious"].function(centred)) == pytest.approx(1.0, rel=1e-12)
    absent = Snapshot(gs.Environments(U_STAR), gs.Symmetric(), (np.eye(5),), (5, 5))
    assert float(gs.DIAGNOSTICS["spurious"].function(absent)) == 0.0
    assert float(gs.DIAGNOSTICS["signal"].function(absent)) == pytest.approx(1.0, rel=1e-12)


@pytest.mark.parametrize("independent", [False, True])
def test_loss_in_another_basis_is_the_mean_over_draws(independent, x64):
    """Features are not orthonormal, so entries of Sigma mix: independent ones are not shared ones."""
    import jax

    recipe = gs.FeatureEnvironments(4, 1, gs.Uniform(mean=0.5, spread=3.0, rank=2, independent=independent))
    environments = recipe.draw(jax.random.key(1))
    found = float(gs.DIAGNOSTICS["loss"].function(Snapshot(environments, gs.Symmetric(), (0.3 * np.eye(4),), (4, 4))))
    sigma = jax.jit(jax.vmap(lambda k: environments.law.draw(k).sigma))(jax.random.split(jax.random.key(2), 40_000))
    B = np.asarray(environments.spurious_basis)
    gap = 0.09 * np.eye(4) - np.asarray(environments.invariant) - B @ np.asarray(sigma) @ B.T
    losses = np.sum(gap**2, axis=(1, 2)) / 2
    assert abs(found - losses.mean()) < 5 * losses.std() / np.sqrt(len(losses))


@pytest.fixture
def registry(monkeypatch):
    """A copy of the registry, so that diagnostics of tests do not stay."""
    monkeypatch.setattr(diagnostics_base, "DIAGNOSTICS", dict(gs.DIAGNOSTICS))
    return diagnostics_base.DIAGNOSTICS


def test_a_diagnostic_of_ones_own_is_found_by_name(registry):
    """Bare, with a name, and with dimensions, by words or by keywords."""

    @gs.diagnostic
    def top_value(snapshot):
        """The largest entry of the product."""
        return jnp.max(snapshot.product)

    @gs.diagnostic("renamed")
    @gs.diagnostic(name="named")
    def some_function(snapshot):
        return jnp.max(snapshot.product)

    @gs.diagnostic("entry")
    @gs.diagnostic(name="first_row", dims="entry", of_product=True)
    def first_row_by_words(snapshot):
        return snapshot.product[0]

    @gs.diagnostic(dims=["row", "column"])
    def whole_product(snapshot):
        return snapshot.product

    @gs.diagnostic()
    def also_bare(snapshot):
        return 1.0

    problem = gs.Problem(given_environments(3), gs.Identity())
    wanted = {
        "top_value": (),
        "renamed": (),
        "named": (),
        "first_row": ("entry",),
        "first_row_by_words": ("entry",),
        "whole_product": ("row", "column"),
        "also_bare": (),
    }
    found = gs.run(gs.HeteroSGD(0.1), problem, num_steps=2, record=list(wanted))
    assert {name: found[name].dims for name in wanted} == {n: ("seed", "step", *dims) for n, dims in wanted.items()}
    np.testing.assert_array_equal(found["top_value"], found["whole_product"].max(["row", "column"]))
    np.testing.assert_array_equal(found["first_row"], found["whole_product"].isel(row=0))
    assert registry["top_value"].description == "The largest entry of the product."
    assert registry["first_row"].of_product and not registry["top_value"].of_product


@pytest.mark.parametrize(
    ("decorate", "words"),
    [
        (lambda: gs.diagnostic(lambda s, t: 1.0, name="two"), "must take one argument, the snapshot"),
        (
            lambda: gs.diagnostic(lambda s: s.product, name="whole"),
            r"gives an array with 2 dimensions and dims names 0: write dims=",
        ),
        (lambda: gs.diagnostic("a", "b", name="x")(lambda s: jnp.max(s.product)), "gives a number and dims names 2"),
        (lambda: gs.diagnostic(lambda s: s.produkt, name="typo"), "a snapshot has environments, model, params, shape"),
        (lambda: gs.diagnostic(lambda s: np.linalg.norm(s.product), name="slow"), "use jax.numpy instead of numpy"),
        (lambda: gs.diagnostic(lambda s: float(s.product.sum()), name="slow"), r"neither float\(\) nor if"),
        (lambda: gs.diagnostic(lambda s: None, name="nothing"), "must give a number or an array; got None"),
        (lambda: gs.diagnostic(lambda s: 1.0, name="signal"), "'signal' exists already"),
        (lambda: gs.diagnostic(lambda s: 1.0, name="step"), "which every result has already"),
        (lambda: gs.diagnostic(lambda s: s.product[0], name="x", dims="seed"), "dims cannot be 'seed'"),
        (lambda: gs.diagnostic(lambda s: s.product, name="x", dims=["row", "row"]), "dims must be different words"),
        (lambda: gs.diagnostic(lambda s: 1.0), "name must be a word such as 'layer'; got '<lambda>'"),
        (lambda: gs.diagnostic(3), "dims must be a word such as 'layer'; got 3"),
        (lambda: gs.diagnostic("row", dims="row"), "got dimensions twice"),
    ],
)
def test_mistakes_are_found_at_the_decorator(decorate, words, registry):
    before = dict(registry)
    with pytest.raises(gs.GyrostatError, match=words):
        decorate()
    assert registry == before


def test_a_diagnostic_for_ones_own_model_is_tried_in_the_run(registry):
    """It takes the parameters apart, so nothing can be said about its dimensions at the decorator."""

    @gs.diagnostic(dims="row")
    def output(snapshot):
        W, a = snapshot.params[:2]  # two matrices in most built-in models
        return W @ a

    @gs.diagnostic
    def bias(snapshot):
        W, a, b = snapshot.params
        return (W @ a + b)[:2]

    network = gs.Model.from_function(lambda W, a, b: W @ a + b, [(3, 2), (2,), (3,)])
    problem = gs.Problem(gs.VectorEnvironments([1.0, 2.0, 3.0]), gs.Identity())
    with pytest.raises(gs.GyrostatError, match=r"'bias' gives an array of shape .2,. for FunctionModel"):
        gs.run(gs.HeteroSGD(0.1, model=network), problem, num_steps=2, record=["bias"])
    found = gs.run(gs.HeteroSGD(0.1, model=network), problem, num_steps=2, record=["output"])
    assert found.output.dims == ("seed", "step", "row")


def test_the_list_describes_every_diagnostic():
    found = gs.diagnostics.list()
    assert [d.name for d in found] == sorted(gs.DIAGNOSTICS) and len(found) >= 22
    ours = [d for d in found if d.function.__module__.startswith("gyrostat.")]
    assert all(d.description.endswith((".", ")")) and len(d.description) > 5 for d in ours)
    lines = repr(found).splitlines()
    assert lines[0].split() == ["name", "dimensions", "meaning"] and len(lines) == len(found) + 1
    assert any(line.startswith("singular_values ") and "singular_value " in line for line in lines)
    assert found._repr_html_().count("<tr>") == len(found) + 1


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
    # Sixty power iterations in three dimensions: the eigenvalue is found to far below the spread over
    # designs.
    found = gs.isometry_constant(d, m, d, draws=n, steps=60)
    assert stats.ks_2samp(found.draws, brute).pvalue > 1e-3
    assert found.low < brute.mean() + 4 * brute.std() / np.sqrt(
        n
    ) and found.high > brute.mean() - 4 * brute.std() / np.sqrt(n)
    # The test can fail: the constant of other sample sizes is refuted.
    assert stats.ks_2samp(found.draws, brute_constants(d, m // 2, n)).pvalue < 1e-6


def test_isometry_constant_grows_with_rank_and_falls_with_samples():
    sizes = np.array([250, 1000, 4000, 16000])
    low, high = ([gs.isometry_constant(5, int(m), r, draws=8).value for m in sizes] for r in (1, 5))
    assert (np.array(low) < high).all()
    # Search included: a climb that is slower for more samples would show as a steeper slope (it was -0.66
    # once).
    for values in (low, high):
        slope = np.polyfit(np.log(sizes), np.log(values), 1)[0]
        assert -0.57 < slope < -0.43  # m^-1/2; eight designs with a spread of about 10 % each


def test_isometry_interval_contains_its_mean():
    found = gs.isometry_constant(5, 100, 1, draws=4)
    assert found.low < found.value < found.high and found.draws.shape == (4,)
    assert found.value == pytest.approx(found.draws.mean())


# --- functions as they are ----------------------------------------------------------------------------


def top_entry(snapshot):
    """The largest entry of A."""
    return jnp.abs(snapshot.product).max()


def whole_product(snapshot):
    return snapshot.product


def test_a_plain_function_is_recorded_under_its_name_and_registered_nowhere():
    problem = gs.Problem(gs.RandomEnvironments(5, law=gs.TwoPoint(spread=3.0)), gs.Identity())
    recorded = gs.run(gs.HeteroSGD(0.1), problem, num_steps=30, record_at=4, record=[top_entry, "product"])
    np.testing.assert_array_equal(recorded.top_entry, abs(recorded["product"]).max(["row", "column"]))
    assert recorded.top_entry.attrs["long_name"] == "The largest entry of A" and "top_entry" not in gs.DIAGNOSTICS


def test_what_cannot_be_recorded_is_refused():
    def signal(snapshot):
        return snapshot.product.sum()

    def record(*wanted):
        problem = gs.Problem(gs.RandomEnvironments(5, law=gs.TwoPoint(spread=3.0)), gs.Identity())
        return gs.run(gs.HeteroSGD(0.1), problem, num_steps=3, record=wanted)

    refuses(lambda: record(signal), "'signal' exists already", "another name")
    refuses(lambda: record(whole_product), "2 dimensions", "dims=['row', 'column']")
    refuses(lambda: record("signal", gs.Diagnostic("signal", top_entry)), "two different diagnostics", "'signal'")
