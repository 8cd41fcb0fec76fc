"""Two factors: the model, its starts and the imbalance step."""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

import gyrostat as gs
import reference
from conftest import orthonormal, rectangular_environments
from gyrostat.algorithms.events import automatic_beta, imbalanced, least_above, stable_range

pytestmark = pytest.mark.usefixtures("hasty")

N1, N2, K = 5, 4, 3
RECTANGLE = gs.RectangularEnvironments(orthonormal(0, N1, 2), orthonormal(1, N2, 2), values=[1.0, 0.6])
FACTORISATION = gs.Problem(RECTANGLE, gs.Identity())
LEVEL = 1e-4
"""Of each of the eight tests of a law in this file; keys are fixed."""


def pair(seed: int, n1: int = N1, n2: int = N2, k: int = K) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    return rng.standard_normal((n1, k)), rng.standard_normal((n2, k))


# --- models ---------------------------------------------------------------------------------------


def test_two_factors_equal_the_twin(x64):
    params, M = pair(0), np.random.default_rng(1).standard_normal((N1, N2))
    model = gs.Asymmetric()
    np.testing.assert_allclose(model.product(params), reference.product("Asymmetric", params), rtol=1e-13)
    for ours, twin in zip(model.pullback(params, M), reference.pullback("Asymmetric", params, M), strict=True):
        np.testing.assert_allclose(ours, twin, rtol=1e-12, atol=1e-13)
    assert model.factor(params) is params[0] and model.cofactor(params) is params[1]


def test_two_factors_are_pulled_back_as_by_torch(x64):
    torch = pytest.importorskip("torch")
    params, M = pair(2), np.random.default_rng(3).standard_normal((N1, N2))
    F, G = (torch.tensor(p, requires_grad=True) for p in params)
    ((F @ G.T) * torch.tensor(M)).sum().backward()
    for ours, theirs in zip(gs.Asymmetric().pullback(params, M), (F, G), strict=True):
        np.testing.assert_allclose(ours, theirs.grad.numpy(), rtol=1e-12, atol=1e-13)  # both doubles: rounding only


@pytest.mark.parametrize("width", [None, 1, 3, 7])
def test_shapes_follow_the_target_and_the_width(width):
    k = min(N1, N2) if width is None else width
    assert gs.Asymmetric(width).shapes((N1, N2)) == ((N1, k), (N2, k))
    assert gs.Asymmetric(width).space((N1, N2)).shape == (N1, N2)


MODELS = [
    gs.Symmetric(2),
    gs.Symmetric(9),
    gs.SymmetricDifference(1),
    gs.SymmetricDifference(4),
    gs.Asymmetric(2),
    gs.Asymmetric(9),
]


@pytest.mark.parametrize("i", range(len(MODELS)))
def test_rank_limit_is_the_rank_of_a_random_product(i, x64):
    model = MODELS[i]
    shape = (N1, N2) if isinstance(model, gs.Asymmetric) else (N1, N1)
    params = gs.ScaledGaussian(1.0)(model, shape, jax.random.key(i))
    assert model.rank_limit(shape) == np.linalg.matrix_rank(np.asarray(model.product(params)))


@pytest.mark.parametrize("i", range(len(MODELS)))
def test_coordinates_of_the_product_carry_over(i, x64):
    """Rows and columns of the product turned: the product of the turned parameters."""
    model, rng = MODELS[i], np.random.default_rng(i)
    shape = (N1, N2) if isinstance(model, gs.Asymmetric) else (N1, N1)
    L = rng.standard_normal((3, N1))
    R = rng.standard_normal((2, N2)) if isinstance(model, gs.Asymmetric) else L
    params = gs.ScaledGaussian(1.0)(model, shape, jax.random.key(i))
    turned = model.product(model.rotated(params, L, R))
    np.testing.assert_allclose(turned, L @ np.asarray(model.product(params)) @ R.T, rtol=1e-12, atol=1e-12)


def truncated(A: np.ndarray, k: int) -> np.ndarray:
    """The nearest matrix of rank k (Eckart and Young)."""
    U, s, Vt = np.linalg.svd(A, full_matrices=False)
    return (U[:, :k] * s[:k]) @ Vt[:k]


@pytest.mark.parametrize("k", [1, 2, 4, 6])
def test_two_factors_of_the_nearest_product(k, x64):
    A = np.random.default_rng(4).standard_normal((N1, N2))
    F, G = (np.asarray(x) for x in gs.Asymmetric(k).factorise(A))
    assert F.shape == (N1, k) and G.shape == (N2, k)
    np.testing.assert_allclose(F @ G.T, truncated(A, k), atol=1e-13)
    np.testing.assert_allclose(F.T @ F, G.T @ G, atol=1e-13)  # balanced


@pytest.mark.parametrize("k", [1, 2, 4, 7])
def test_symmetric_factors_of_the_nearest_product(k, x64):
    """What is negative is out of reach of U U^T, so the nearest product keeps the largest positive eigenvalues."""
    Q, values = orthonormal(5, N1, N1), np.array([3.0, -2.0, 1.5, 0.5, -0.1])
    A = (Q * values) @ Q.T
    (U,) = (np.asarray(x) for x in gs.Symmetric(k).factorise(A))
    kept = [3.0, 0.0, 1.5 * (k > 1), 0.5 * (k > 2), 0.0]
    assert U.shape == (N1, k)
    np.testing.assert_allclose(U @ U.T, (Q * kept) @ Q.T, atol=1e-13)
    U, V = (np.asarray(x) for x in gs.SymmetricDifference(k).factorise(A))
    kept[1], kept[4] = -2.0, -0.1 * (k > 1)
    np.testing.assert_allclose(U @ U.T - V @ V.T, (Q * kept) @ Q.T, atol=1e-13)


def test_preconditioned_steps_do_not_depend_on_the_basis_of_the_factors(x64):
    """F Q and G Q^-T make the same product, and after a step of ScaledGD still do; gradient steps do not."""
    F, G = pair(6)
    Q = np.random.default_rng(7).standard_normal((K, K)) + 3 * np.eye(K)
    M = np.random.default_rng(8).standard_normal((N1, N2))
    reading = gs.measurements.Reading(M, np.sum(M**2))
    model = gs.Asymmetric()

    def after(rule, params):
        return np.asarray(model.product(rule(model, params, reading, 0.1, 0.0)))

    other = (F @ Q, G @ np.linalg.inv(Q).T)
    scaled, plain = gs.Preconditioned(), gs.GradientStep()
    np.testing.assert_allclose(after(scaled, other), after(scaled, (F, G)), atol=1e-11)  # condition of Q^T Q: about 100
    assert np.abs(after(plain, other) - after(plain, (F, G))).max() > 0.1
    for rule, damping in [(scaled, 0.0), (gs.Preconditioned(0.3), 0.3), (gs.Preconditioned("residual"), None)]:
        damping = np.linalg.norm(M) if damping is None else damping
        twin = reference.preconditioned_step("Asymmetric", (F, G), M, 0.1, damping)
        np.testing.assert_allclose(after(rule, (F, G)), reference.product("Asymmetric", twin), atol=1e-12)


# --- starts ---------------------------------------------------------------------------------------


def entries_are_normal(entries: np.ndarray, deviation: float) -> None:
    entries = np.asarray(entries).ravel()
    assert stats.kstest(entries, stats.norm(scale=deviation).cdf).pvalue > LEVEL
    # Able to notice: a deviation that is off by a third.
    assert stats.kstest(entries, stats.norm(scale=1.3 * deviation).cdf).pvalue < 1e-6


def test_gaussian_starts_have_the_deviations_of_the_paper(x64):
    key = jax.random.key(0)
    (X,) = gs.SymmetricGaussian(0.5)(gs.Symmetric(9), (400, 400), key)
    entries_are_normal(X, 0.5 / 3)
    F, G = gs.ImbalancedGaussian(0.5)(gs.Asymmetric(16), (100, 225), key)
    entries_are_normal(F, 0.5 / 10)
    entries_are_normal(G, 0.5 / 3 / 15)
    F, G = gs.ImbalancedGaussian(0.5, ratio=1.0)(gs.Asymmetric(16), (100, 225), key)
    entries_are_normal(G, 0.5 / 15)
    assert abs(stats.pearsonr(np.ravel(F)[:1600], np.ravel(G)[:1600]).statistic) < 5 / 40  # five standard errors


def test_orthonormal_start_is_uniform_and_leaves_the_other_factor_at_zero(x64):
    n, draws = 5, 1500
    start = jax.jit(jax.vmap(lambda key: gs.OrthonormalZero(2.0)(gs.Asymmetric(2), (n, 4), key)))
    F, G = (np.asarray(x) for x in start(jax.random.split(jax.random.key(1), draws)))
    assert G.shape == (draws, 4, 2) and not G.any()
    np.testing.assert_allclose(np.swapaxes(F, 1, 2) @ F, np.broadcast_to(4 * np.eye(2), (draws, 2, 2)), atol=1e-13)
    # An entry of a uniform direction: (1 + u) / 2 is Beta((n - 1)/2, (n - 1)/2).
    for i, j in [(0, 0), (n - 1, 0), (0, 1), (n - 1, 1)]:
        u = F[:, i, j] / 2
        assert stats.kstest((1 + u) / 2, stats.beta((n - 1) / 2, (n - 1) / 2).cdf).pvalue > LEVEL
        assert stats.kstest((1 + np.abs(u)) / 2, stats.beta((n - 1) / 2, (n - 1) / 2).cdf).pvalue < 1e-6


def test_spectral_start_is_the_estimate_from_the_first_look():
    """(1/m) sum_i y_i X_i of the shared rows, cut to the rank; and on the population the truth itself."""
    measurements = gs.Dense(30, noise=0.2, design=4)
    algorithm = gs.GradientDescent(0.1, width=2, start=gs.Spectral())
    options = {"num_steps": 1, "record": ["left_factor", "right_factor"], "record_at": [0]}
    found = gs.run(algorithm, gs.Problem(RECTANGLE, measurements), **options)
    rows = measurements.rows(RECTANGLE, gs.Asymmetric().space(RECTANGLE.shape))
    X, eps = np.asarray(rows.matrices[0]), np.asarray(rows.noises[0])
    y = X @ np.asarray(RECTANGLE.invariant).ravel() + eps
    F, G = found.left_factor.values[0, 0], found.right_factor.values[0, 0]
    np.testing.assert_allclose(F @ G.T, truncated((y @ X / len(y)).reshape(N1, N2), 2), atol=1e-12)

    exact = gs.run(algorithm, FACTORISATION, num_steps=1, record=["distance"], record_at=[0])
    assert exact.distance[0, 0] < 1e-14


def test_spectral_start_and_later_readings_see_one_design():
    """With H = X^T X / m, the start is H a and the gradient of step t is H (a_t - a): H is symmetric only if it is one."""
    eta, truth = 0.1, np.diag([1.0, 0.6])
    algorithm = gs.GradientDescent(eta, width=2, start=gs.Spectral())
    problem = gs.Problem(gs.Environments(np.eye(2), values=[1.0, 0.6]), gs.FixedGaussian(9))
    names = ["left_factor", "right_factor"]
    found = gs.run(algorithm, problem, num_steps=7, record=names, record_at=8)  # more questions than dimensions
    F, G = found.left_factor.values[0], found.right_factor.values[0]
    first = F[0] @ G[0].T
    for t in range(7):
        gradient = (F[t] - F[t + 1]) / eta @ np.linalg.inv(G[t])  # F moved by -eta M G
        # Both sides are a^T H (a_t - a), of order 0.1; inverting the step divides rounding by eta.
        assert np.sum(truth * gradient) == pytest.approx(np.sum(first * (F[t] @ G[t].T - truth)), abs=1e-12)
    assert np.abs(first - truth).max() > 0.05  # nine samples: H is not the identity


# --- the imbalance step ---------------------------------------------------------------------------


@pytest.mark.parametrize("beta", [0.3, 1.0, 2.5])
def test_imbalance_step_keeps_the_product(beta, x64):
    F, G = pair(10)
    new_F, new_G = (np.asarray(x) for x in imbalanced((F, G), beta))
    # Rounding of a few sums of K numbers of size at most 10.
    np.testing.assert_allclose(new_F @ new_G.T, F @ G.T, atol=1e-14 * np.abs(F @ G.T).max() * K)
    np.testing.assert_allclose(new_F.T @ new_F, beta**2 * np.eye(K), atol=1e-14 * beta**2)
    twin_F, twin_G = reference.imbalance_step(F, G, beta)
    signs = np.sign(np.sum(twin_F * new_F, axis=0))
    np.testing.assert_allclose(new_F, twin_F * signs, atol=1e-12)
    np.testing.assert_allclose(new_G, twin_G * signs, atol=1e-12)


def test_imbalance_step_fills_a_factor_that_lacks_a_direction(x64):
    F, G = pair(11)
    F[:, 1] = F[:, 0]
    new_F, new_G = (np.asarray(x) for x in imbalanced((F, G), 0.7))
    np.testing.assert_allclose(new_F @ new_G.T, F @ G.T, atol=1e-13)
    np.testing.assert_allclose(new_F.T @ new_F, 0.49 * np.eye(K), atol=1e-13)


@pytest.mark.parametrize(("values", "residual", "wanted"), [((1, 0.9, 0.08), 0.07, 0.9), ((1, 0.3, 0.08), 0.05, 0.3)])
def test_the_spare_columns_do_not_choose_beta(values, residual, wanted, x64):
    """With few measurements what spare columns hold is a little above the residual that is seen."""
    found = automatic_beta(np.diag(np.asarray(values, dtype=float)), np.asarray(residual), np.asarray(0.01))
    assert float(found) == pytest.approx(np.sqrt(wanted), rel=1e-12)


@pytest.mark.parametrize("residual", [0.0, 0.05, 0.15, 0.4, 0.8, 1.9, 50.0])
def test_least_above_by_looking_at_every_value(residual, x64):
    values = np.array([3.0, 1.0, 0.2])
    A = (orthonormal(12, N1, 3) * values) @ orthonormal(13, N2, 3).T  # N2 values: the fourth is zero up to rounding
    wanted = min([v for v in values if v > residual], default=3.0)
    if residual > 0:
        assert float(least_above(A, residual)) == pytest.approx(wanted, rel=1e-12)
    else:  # everything is above zero, also what is rounding
        assert float(least_above(A, residual)) < 1e-14


def late_errors(eta: float, beta: float, sigma: float, steps: int = 400) -> np.ndarray:
    """Errors of plain descent from just beside the point that the imbalance step makes of an exact solution."""
    rng = np.random.default_rng(14)
    A, w = orthonormal(15, N1, K), orthonormal(16, N2, 1)
    target = sigma * A[:, :1] @ w.T
    F, G = beta * A, target.T @ A / beta
    F, G = F + 1e-9 * rng.standard_normal(F.shape), G + 1e-9 * rng.standard_normal(G.shape)
    found = []
    for _ in range(steps):
        M = F @ G.T - target
        found.append(np.linalg.norm(M))
        F, G = reference.move("Asymmetric", (F, G), M, eta)
    return np.array(found)


@pytest.mark.parametrize(("eta", "sigma"), [(0.2, 1.0), (0.9, 1.0), (0.3, 2.5)])
def test_stable_range_is_where_small_errors_shrink(eta, sigma):
    """Just inside they shrink, just outside they grow: by 1 - eta (beta^2 + sigma^2 / beta^2) = -1.03 or so per step."""
    for edge, inward in zip(stable_range(eta, sigma), (1, -1), strict=True):
        inside = late_errors(eta, edge * (1 + 0.02 * inward), sigma)
        outside = late_errors(eta, edge * (1 - 0.02 * inward), sigma)
        assert inside[-1] < 0.1 * inside[0]
        assert outside.max() > 10 * outside[0]


def events(step: gs.ImbalanceStep) -> gs.GradientDescent:
    return gs.GradientDescent(0.1, width=K, start=0.5, events=[step])


TRIGGERED = {"num_steps": 90, "record": ["left_factor", "right_factor"], "record_at": 91, "reduction": "never"}


def test_imbalance_step_at_a_given_step():
    start = gs.Given(*pair(17))
    with_step, without = (
        gs.run(
            gs.GradientDescent(0.05, width=K, start=start, events=chosen),
            FACTORISATION,
            num_steps=9,
            record=["left_factor", "right_factor"],
            record_at=10,
        )
        for chosen in ([gs.ImbalanceStep(at=5, beta=1.25)], [])
    )
    assert with_step.imbalance_step.values.tolist() == [6] and with_step.imbalance_beta.values.tolist() == [1.25]
    assert "imbalance_step" not in without and "notes" not in with_step.attrs
    F, G = with_step.left_factor.values[0], with_step.right_factor.values[0]
    plain_F, plain_G = without.left_factor.values[0], without.right_factor.values[0]
    # Another program: rounding of ten steps.
    np.testing.assert_allclose(F[:6], plain_F[:6], atol=1e-12)
    assert np.abs(F[6] - plain_F[6]).max() > 0.1
    np.testing.assert_allclose(F[6] @ G[6].T, plain_F[6] @ plain_G[6].T, atol=1e-12)
    np.testing.assert_allclose(F[6].T @ F[6], 1.25**2 * np.eye(K), atol=1e-13)
    assert np.abs(F[7].T @ F[7] - 1.25**2 * np.eye(K)).max() > 1e-6  # once, not from then on


@pytest.mark.parametrize("below", [0.6, 1e-9])
def test_imbalance_step_by_its_trigger(below):
    """The first step whose residual is small enough, with the smallest value above the residual as beta squared."""
    found = gs.run(events(gs.ImbalanceStep(below=below)), FACTORISATION, seeds=6, **TRIGGERED)
    truth = np.asarray(RECTANGLE.invariant)
    for s in range(6):
        F, G = found.left_factor.values[s], found.right_factor.values[s]
        residuals = np.linalg.norm(F @ np.swapaxes(G, 1, 2) - truth, axis=(1, 2))
        due = np.flatnonzero(residuals[:-1] <= below * residuals[0])
        fired = int(found.imbalance_step[s])
        assert fired == (due[0] + 1 if due.size else -1)
        if due.size:
            values = np.linalg.svd(F[fired] @ G[fired].T, compute_uv=False)
            above = values[values > residuals[due[0]]]
            beta = np.sqrt(above.min() if above.size else values[0])
            assert float(found.imbalance_beta[s]) == pytest.approx(beta, rel=1e-10)
            np.testing.assert_allclose(F[fired].T @ F[fired], beta**2 * np.eye(K), atol=1e-12)
    never = int((found.imbalance_step.values < 0).sum())
    assert never == (0 if below == 0.6 else 6)
    if never:
        assert "6 of 6 runs" in found.attrs["notes"] and np.isnan(found.imbalance_beta.values).all()
    else:
        assert "notes" not in found.attrs and len(set(found.imbalance_step.values.tolist())) > 1


def test_a_grid_notes_steps_that_were_not_made_also_where_only_some_settings_have_one():
    def build(steps):
        events = [gs.ImbalanceStep(below=1e-9)] if steps else []
        return gs.GradientDescent(0.1, width=K, start=0.5, events=events), FACTORISATION

    found = gs.run_grid(build, {"steps": [False, True]}, num_steps=3, seeds=2, record=["distance"], record_at=2)
    assert "2 of 2 runs" in found.attrs["notes"]
    assert (found.imbalance_step == -1).all() and np.isnan(found.imbalance_beta).all()


def test_imbalance_step_makes_the_late_rate_that_of_its_beta():
    """Xiong 2024, Theorem 5.1, sharp: the part of G that must vanish shrinks by 1 - eta beta^2 per step."""
    eta, beta, steps = 0.1, 1.3, 240
    algorithm = gs.GradientDescent(eta, width=K, start=0.5, events=[gs.ImbalanceStep(at=60, beta=beta)])
    problem = gs.Problem(gs.RectangularEnvironments(np.eye(N1, 1), np.eye(N2, 1), values=[2.5]), gs.Identity())
    found = gs.run(algorithm, problem, num_steps=steps, seeds=3, record=["distance"], record_at=steps + 1)
    window = slice(70, 140)
    for distance in found.distance.values:
        slope = np.polyfit(np.arange(steps + 1)[window], np.log(distance[window]), 1)[0]
        # F's columns outside the signal keep beta up to the error squared: one per cent from step 70 on.
        assert slope == pytest.approx(np.log(1 - eta * beta**2), rel=0.01)


# --- rectangular environments ---------------------------------------------------------------------------


def test_targets_of_rectangular_environments(x64):
    left, right = orthonormal(20, 6, 4), orthonormal(21, 5, 4)
    S = np.array([[1.0, 0.3], [0.3, -2.0]])
    law = gs.Finite([S, -S, 3 * S], [0.5, 0.25, 0.25])
    environments = gs.RectangularEnvironments(
        left[:, :2], right[:, :2], left[:, 2:], right[:, 2:], law, values=[2.0, -1.0]
    )
    A_star = left[:, :2] @ np.diag([2.0, -1.0]) @ right[:, :2].T
    B = left[:, 2:] @ S @ right[:, 2:].T
    assert environments.shape == (6, 5)
    np.testing.assert_allclose(environments.invariant, A_star, atol=1e-14)
    np.testing.assert_allclose(environments.target(S), A_star + B, atol=1e-14)
    np.testing.assert_allclose(environments.mean_target, A_star + B, atol=1e-14)  # .5 - .25 + .75 = 1
    np.testing.assert_allclose(environments.signal_block(A_star + B), np.diag([2.0, -1.0]), atol=1e-14)
    np.testing.assert_allclose(environments.spurious_block(A_star + B), S, atol=1e-14)
    L, R = orthonormal(22, 6, 6), orthonormal(23, 5, 5)
    np.testing.assert_allclose(environments.rotated(L, R).target(S), L @ (A_star + B) @ R.T, atol=1e-13)


def test_a_square_rectangle_is_the_square_case(x64):
    basis = orthonormal(24, 5, 2)
    law = gs.Finite([-1.0, 2.0])
    wide = gs.RectangularEnvironments(basis[:, :1], basis[:, :1], basis[:, 1:], basis[:, 1:], law, values=[1.5])
    plain = gs.Environments(basis[:, :1], basis[:, 1:], law, values=[1.5])
    for sigma in law.values:
        np.testing.assert_allclose(wide.target(sigma), plain.target(sigma), atol=1e-15)


def test_random_rectangles_have_orthonormal_bases_of_their_own(x64):
    recipe = gs.RandomRectangular(7, 4, rank=2, law=gs.TwoPoint(rank=1), values=[2.0, 1.0])
    sides = jax.jit(
        jax.vmap(
            lambda k: (
                lambda p: (
                    jnp.concatenate([p.invariant_basis, p.spurious_basis], axis=1),
                    jnp.concatenate([p.right_basis, p.right_spurious_basis], axis=1),
                    p.invariant,
                )
            )(recipe.draw(k))
        )
    )
    L, R, A = (np.asarray(x) for x in sides(jax.random.split(jax.random.key(0), 8)))
    for basis in (L, R):  # spurious directions are orthogonal to invariant ones
        np.testing.assert_allclose(np.swapaxes(basis, 1, 2) @ basis, np.broadcast_to(np.eye(3), (8, 3, 3)), atol=1e-13)
    values = np.linalg.svd(A, compute_uv=False)
    np.testing.assert_allclose(values, np.broadcast_to([2.0, 1.0, 0.0, 0.0], values.shape), atol=1e-13)
    assert len({round(a[0, 0], 9) for a in A}) == 8
    assert recipe.shape == (7, 4)


def test_a_diagonal_truth(x64):
    environments = gs.Environments.diagonal(4, [3.0, -1.0])
    np.testing.assert_array_equal(environments.invariant, np.diag([3.0, -1.0, 0.0, 0.0]))
    assert environments.law.count == 1 and environments.mean_target.shape == (4, 4)


def test_an_algorithm_of_one_environment_runs_on_rectangles():
    """Everything that is not symmetric goes through the same loop: HeteroSGD finds a rectangular invariant."""
    law = gs.Finite([-2.0, 2.0])
    algorithm = gs.HeteroSGD(0.05, init_scale=0.3, order="cyclic", model=gs.Asymmetric(2))
    problem = gs.Problem(rectangular_environments(N1, N2, law), gs.Identity())
    found = gs.run(algorithm, problem, num_steps=600, record=["signal", "spurious"], record_at=2)
    assert found.signal[0, -1] == pytest.approx(1.0, abs=0.02) and found.spurious[0, -1] < 0.1


def test_modules_keep_what_they_were_given():
    step = gs.ImbalanceStep(below=0.1)
    assert step.at is None and step.beta is None and float(step.below) == 0.1
    assert eqx.tree_equal(gs.Given(np.eye(3, 2)).params, (np.eye(3, 2),))


def test_preconditioning_survives_the_floor_of_rounding():
    """Superfluous columns vanish and leave a singular Gram matrix: without a floor these runs diverge near step 800."""
    problem = gs.Problem(gs.Environments.diagonal(6, [1.0, 1.0]), gs.Dense(100, design=1))
    prec = gs.PrecGD(0.2, width=4, start=0.05)
    found = gs.run(prec, problem, num_steps=2000, seeds=4, record=["distance"], record_at=2)
    assert (found.diverged == -1).all() and float(found.distance.isel(step=-1).max()) < 1e-12
