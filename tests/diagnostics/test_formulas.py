"""Every diagnostic against its formula in NumPy: of one factor and two, of rectangles, vectors and layers."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest
from scipy import linalg, optimize

import gyrostat as gs
from checks import refuses
from conftest import given_environments, orthonormal, random_factors
from gyrostat.diagnostics import Snapshot, layers

DIAGNOSTICS = gs.diagnostics.DIAGNOSTICS
NORM = np.linalg.norm


def singular_values(A: np.ndarray) -> np.ndarray:
    return np.linalg.svd(A, compute_uv=False)


def difference_of_squares() -> tuple[Snapshot, dict]:
    """U U^T - V V^T, and environments that are not diagonal. The factor is [U V]."""
    basis, (U, V) = orthonormal(0, 5, 3), random_factors(0, 5, 5, 4)
    U_star, V_star = basis[:, :1], basis[:, 1:]
    law = gs.Finite([np.diag([1.0, 3.0]), np.array([[0.5, 1.0], [1.0, -2.0]])], [0.25, 0.75])
    mean = 0.25 * law.values[0] + 0.75 * law.values[1]
    A, A_star, W = U @ U.T - V @ V.T, 2 * U_star @ U_star.T, np.hstack([U, V])
    R, Q = W.T @ U_star, W.T @ V_star
    E = W - U_star @ R.T - V_star @ Q.T
    losses = [NORM(A - A_star - V_star @ sigma @ V_star.T) ** 2 / 2 for sigma in law.values]
    expected = {
        "signal": abs(U_star.T @ A @ U_star).item() / 2,
        "spurious": NORM(V_star.T @ A @ V_star) / NORM(mean),
        "signal_values": np.diag(U_star.T @ A @ U_star),
        "spurious_values": np.diag(V_star.T @ A @ V_star),
        "error": NORM(E),
        "error_operator": NORM(E, 2),
        "spurious_part": NORM(Q),
        "invariant_singular_values": singular_values(R),
        "singular_values": np.sort(np.abs(np.linalg.eigvalsh(A)))[::-1],
        "distance": NORM(A - A_star),
        "distance_to_mean": NORM(A - A_star - V_star @ mean @ V_star.T),
        "full_loss": law.weights @ losses,
        "training_loss": law.weights @ losses,  # a snapshot that says nothing of measurements sees all entries
    }
    environments = gs.Environments(U_star, V_star, law, values=[2.0])
    return Snapshot(environments, gs.models.SymmetricDifference(4), (U, V), A.shape), expected


def two_factors() -> tuple[Snapshot, dict]:
    """F G^T on a rectangle of rank two."""
    left, right, values = orthonormal(1, 6, 3), orthonormal(2, 5, 3), np.array([2.0, 0.5])
    (U, V), (X, Y) = np.split(left, [2], axis=1), np.split(right, [2], axis=1)
    F, G = random_factors(0, 6, 5, 3)
    A, outside = F @ G.T, linalg.null_space(U.T).T @ F  # the rows J of F = [U; J] after a rotation
    errors = F - left @ left.T @ F, G - right @ right.T @ G
    expected = {
        "imbalance": NORM(F.T @ F - G.T @ G),
        "imbalance_matrix": F.T @ F - G.T @ G,
        "factor_values": singular_values(F),
        "potential": NORM(outside) ** 2,
        "row_norms": np.sum(F**2, axis=1),
        "left_factor": F,
        "right_factor": G,
        "imbalances_frobenius": [NORM(F.T @ F - G.T @ G)],  # two factors are two layers
        "signal": NORM(U.T @ A @ X) / NORM(values),
        "spurious": NORM(V.T @ A @ Y) / 0.5,  # the mean of the law is 1/2
        "signal_values": np.diag(U.T @ A @ X),
        "error": np.hypot(*map(NORM, errors)),
        "error_operator": max(NORM(E, 2) for E in errors),
        "spurious_part": np.hypot(NORM(F.T @ V), NORM(G.T @ Y)),
        "invariant_singular_values": singular_values(np.concatenate([F.T @ U, G.T @ X])),
    }
    environments = gs.RectangularEnvironments(U, X, V, Y, gs.Finite([-1.0, 2.0]), values=values)
    return Snapshot(environments, gs.Asymmetric(3), (F, G), A.shape), expected


def one_factor() -> tuple[Snapshot, dict]:
    """U U^T, whose factors F and G are both U."""
    U, _ = random_factors(3, 6, 6, 3)
    environments = gs.Environments(orthonormal(1, 6, 2), values=[2.0, 0.5])
    return Snapshot(environments, gs.Symmetric(3), (U,), (6, 6)), {"imbalance": 0.0, "right_factor": U}


def vectors() -> tuple[Snapshot, dict]:
    """u * u - v * v: as the diagonal matrix of these numbers."""
    u, v = np.random.default_rng(1).standard_normal((2, 4))
    b, star, law = u**2 - v**2, np.array([1.0, -2.0, 0.0, 0.0]), gs.Finite([1.0, 3.0])
    expected = {
        "signal": NORM(b[:2]) / NORM(star),
        "spurious": abs(b[2]) / 2,
        "signal_values": b[:2],
        "spurious_values": b[2:3],
        "singular_values": np.sort(np.abs(b))[::-1],
        "distance": NORM(b - star),
        "full_loss": np.mean([np.sum((b - star - [0, 0, s, 0]) ** 2) / 2 for s in (1.0, 3.0)]),
        "product": b[:, None],
    }
    return Snapshot(gs.VectorEnvironments(star, [2], law), gs.Diagonal(), (u, v), (4,)), expected


def three_layers() -> tuple[Snapshot, dict]:
    model, rng = gs.DeepLinear(3, 5), np.random.default_rng(0)
    W = tuple(rng.standard_normal(shape) for shape in model.shapes((3, 4)))
    A, gaps = W[2] @ W[1] @ W[0], [W[0] @ W[0].T - W[1].T @ W[1], W[1] @ W[1].T - W[2].T @ W[2]]
    s = singular_values(A)
    expected = {
        "product": A,
        "singular_ratio": s[1] / s[0],
        "layer_norms": [np.sum(w**2) for w in W],
        "imbalances": [NORM(gap, 2) for gap in gaps],
        "imbalances_frobenius": [NORM(gap) for gap in gaps],
    }
    return Snapshot(gs.RectangularEnvironments(np.eye(3, 1), np.eye(4, 1)), model, W, A.shape), expected


CASES = [difference_of_squares, two_factors, one_factor, vectors, three_layers]


@pytest.mark.parametrize("case", CASES)
def test_diagnostics_equal_their_formulas(case, x64):
    snapshot, expected = case()
    for name, wanted in expected.items():
        value = np.asarray(DIAGNOSTICS[name].value(snapshot))
        # Singular values: rounding times a few.
        np.testing.assert_allclose(value, wanted, rtol=1e-11, atol=1e-13, err_msg=name)


def test_every_diagnostic_has_an_expected_value():
    ours = {name for name, d in DIAGNOSTICS.items() if d.function.__module__.startswith("gyrostat.diagnostics.")}
    assert ours == {name for case in CASES for name in case()[1]}


# --- shares of a mean that is zero -------------------------------------------------------------------------------------------


def from_mean(scale: float) -> gs.Environments:
    """Targets whose mean is A_star: E Sigma is zero but for rounding, which is of the size of A_star."""
    rng, A_star = np.random.default_rng(0), np.diag([scale, scale, 0.0, 0.0])
    changes = [B + B.T for B in rng.standard_normal((3, 4, 4))]
    changes = [change - sum(changes) / 3 for change in changes]
    return gs.Environments.from_matrices(A_star, [A_star + change for change in changes])


@pytest.mark.parametrize(
    "environments",
    [
        given_environments(4, gs.TwoPoint(mean=0.0)),
        given_environments(4, gs.Finite([0.1, 0.2, -0.3])),
        from_mean(1.0),
        from_mean(1e5),
    ],
    ids=["zero", "rounded", "mean of targets", "mean of large targets"],
)
def test_the_spurious_share_of_a_mean_of_zero_is_that_of_the_root_of_the_rank(environments, x64):
    snapshot = Snapshot(environments, gs.Symmetric(), (np.eye(4),), (4, 4))
    assert float(DIAGNOSTICS["spurious"].function(snapshot)) == pytest.approx(1.0, rel=1e-12)


def test_a_small_mean_is_not_zero_and_no_spurious_part_has_no_share(x64):
    small = given_environments(4, gs.Finite([1e-6 - 1.0, 1e-6 + 1.0]))
    snapshot = Snapshot(small, gs.Symmetric(), (np.eye(4),), (4, 4))
    assert float(DIAGNOSTICS["spurious"].function(snapshot)) == pytest.approx(1e6, rel=1e-9)
    absent = Snapshot(gs.Environments(np.eye(5, 1)), gs.Symmetric(), (np.eye(5),), (5, 5))
    assert float(DIAGNOSTICS["spurious"].function(absent)) == 0.0


# --- factors and layers ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("case", [difference_of_squares, vectors, three_layers])
def test_what_is_not_a_product_of_two_factors_is_refused(case):
    snapshot, _ = case()
    words = (f"{type(snapshot.model).__name__} is not a product F G^T", "Asymmetric or Symmetric")
    refuses(lambda: DIAGNOSTICS["imbalance"].value(snapshot), *words)


def test_layers_of_other_models_are_refused_and_zero_has_ratio_zero(x64):
    one, _ = one_factor()
    refuses(lambda: layers.layers(one), "Symmetric is not a product of layers", "DeepLinear")
    snapshot, _ = three_layers()
    zero = snapshot._replace(params=tuple(map(np.zeros_like, snapshot.params)))
    assert DIAGNOSTICS["singular_ratio"].function(zero) == 0


def test_approximate_rank_counts_what_is_above_alpha(x64):
    snapshot, _ = three_layers()
    alpha = 2.0
    counts = [
        [x * (2 * alpha - x) / alpha**2 if x <= alpha else 1 for x in singular_values(w) ** 2] for w in snapshot.params
    ]
    rank = gs.diagnostics.approximate_rank(alpha)
    np.testing.assert_allclose(rank.function(snapshot), list(map(sum, counts)), rtol=1e-12)
    assert rank is gs.diagnostics.approximate_rank(alpha)  # one program for one alpha


@pytest.mark.parametrize("depth", [2, 4])
def test_the_representation_cost_is_the_least_norm_of_layers(depth, x64):
    """Least among balanced layers by the closed form; no search from a random start finds less."""
    A = np.random.default_rng(depth).standard_normal((2, 2))
    cost = float(gs.diagnostics.representation_cost(A, depth))
    balanced = gs.DeepLinear(depth).factorise(jnp.asarray(A))
    assert sum(float(jnp.sum(W * W)) for W in balanced) == pytest.approx(cost, rel=1e-12)

    def norm(x):
        W = x.reshape(depth - 1, 2, 2)
        rest = np.linalg.multi_dot([*W[::-1], np.eye(2)])
        return np.sum(x**2) + np.sum((A @ np.linalg.inv(rest)) ** 2)  # the last layer makes the product A

    start = np.random.default_rng(1).standard_normal(4 * (depth - 1))
    assert optimize.minimize(norm, start, method="Nelder-Mead", options={"maxiter": 400}).fun >= cost - 1e-9
