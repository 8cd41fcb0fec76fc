"""Diagnostics of two factors against NumPy, and the late speed against the Hessian and against descent itself."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import linalg

import gyrostat as gs
import reference
from conftest import orthonormal
from gyrostat.diagnostics import Snapshot, Speed

N1, N2, K, RANK = 6, 5, 3, 2
RNG = np.random.default_rng(0)
LEFT, RIGHT = orthonormal(1, N1, RANK + 1), orthonormal(2, N2, RANK + 1)
VALUES = np.array([2.0, 0.5])
LAW = gs.Finite([-1.0, 2.0])
ENVIRONMENTS = gs.RectangularEnvironments(
    LEFT[:, :RANK], RIGHT[:, :RANK], LEFT[:, RANK:], RIGHT[:, RANK:], LAW, values=VALUES
)
F, G = RNG.standard_normal((N1, K)), RNG.standard_normal((N2, K))
SNAPSHOT = Snapshot(ENVIRONMENTS, gs.Asymmetric(K), (F, G), (N1, N2))
A = F @ G.T
# The paper's coordinates: Sigma in the first rows, F = [U; J] and G = [V; K] after a rotation of either side.
U, V = LEFT[:, :RANK].T @ F, RIGHT[:, :RANK].T @ G
J = linalg.null_space(LEFT[:, :RANK].T).T @ F
IMBALANCE = F.T @ F - G.T @ G
NORM = np.linalg.norm

EXPECTED = {
    "imbalance": NORM(IMBALANCE),
    "imbalance_matrix": IMBALANCE,
    "factor_values": np.sqrt(np.linalg.eigvalsh(F.T @ F))[::-1],
    "potential": NORM(J) ** 2,
    "row_norms": np.sum(F**2, axis=1),
    "left_factor": F,
    "right_factor": G,
}


def test_every_diagnostic_of_factors_has_an_expected_value():
    ours = {n for n, d in gs.diagnostics.DIAGNOSTICS.items() if d.function.__module__ == "gyrostat.diagnostics.factors"}
    assert ours == set(EXPECTED)


@pytest.mark.parametrize("name", EXPECTED)
def test_diagnostic_of_factors_equals_its_formula(name, x64):
    np.testing.assert_allclose(gs.diagnostics.DIAGNOSTICS[name].value(SNAPSHOT), EXPECTED[name], rtol=1e-11, atol=1e-13)


def test_diagnostics_of_the_product_on_a_rectangle(x64):
    left, right = LEFT[:, RANK:], RIGHT[:, RANK:]
    errors = F - LEFT @ LEFT.T @ F, G - RIGHT @ RIGHT.T @ G
    both = np.concatenate([F.T @ LEFT[:, :RANK], G.T @ RIGHT[:, :RANK]])
    values = np.linalg.svd(A, compute_uv=False)
    expected = {
        "signal": NORM(U @ V.T) / NORM(VALUES),
        "spurious": NORM(left.T @ A @ right) / 0.5,  # the law's mean is 1/2
        "signal_values": np.diag(U @ V.T),
        "singular_values": values,
        "error": np.hypot(*map(NORM, errors)),
        "error_operator": max(NORM(E, 2) for E in errors),
        "spurious_part": np.hypot(NORM(F.T @ left), NORM(G.T @ right)),
        "invariant_singular_values": np.linalg.svd(both, compute_uv=False),
    }
    for name, value in expected.items():
        ours = gs.diagnostics.DIAGNOSTICS[name].function(SNAPSHOT)
        np.testing.assert_allclose(ours, value, rtol=1e-12, atol=1e-13, err_msg=name)


def test_one_factor_is_both(x64):
    X = RNG.standard_normal((N1, K))
    environments = gs.Environments(LEFT[:, :RANK], values=VALUES)
    snapshot = Snapshot(environments, gs.Symmetric(K), (X,), (N1, N1))
    assert float(gs.diagnostics.DIAGNOSTICS["imbalance"].function(snapshot)) == 0
    np.testing.assert_array_equal(gs.diagnostics.DIAGNOSTICS["right_factor"].function(snapshot), X)


@pytest.mark.parametrize("model", [gs.models.SymmetricDifference(), gs.Diagonal()])
def test_what_is_not_a_product_of_two_factors_is_refused(model):
    environments = (
        gs.VectorEnvironments([1.0, 0.0]) if isinstance(model, gs.Diagonal) else gs.Environments(np.eye(2, 1))
    )
    with pytest.raises(gs.GyrostatError, match=r"is not a product F G\^T: .*Asymmetric or Symmetric"):
        gs.run(
            gs.PooledGD(0.1, model=model), gs.Problem(environments, gs.Identity()), num_steps=1, record=["imbalance"]
        )


# --- the late speed -------------------------------------------------------------------------------


def zero_of_the_loss(k: int, seed: int = 0, n1: int = N1, n2: int = N2) -> tuple[np.ndarray, np.ndarray]:
    """F of full rank and G of rank two, whose product is the target."""
    rng = np.random.default_rng(seed)
    F = rng.standard_normal((n1, k))
    G = rng.standard_normal((n2, RANK)) @ rng.standard_normal((RANK, k))
    return F / np.sqrt(n1), G / np.sqrt(n2)


def hessian(F: np.ndarray, G: np.ndarray, matrices: np.ndarray | None) -> np.ndarray:
    """Of ||A(F G^T) - y||^2 / 2 at a zero of it, by central differences of the gradient written out."""
    target, sizes = F @ G.T, (F.size, G.size)
    operator = np.eye(target.size) if matrices is None else matrices

    def gradient(theta):
        left, right = theta[: sizes[0]].reshape(F.shape), theta[sizes[0] :].reshape(G.shape)
        M = (operator.T @ (operator @ (left @ right.T - target).ravel())).reshape(target.shape)
        return np.concatenate([(M @ right).ravel(), (M.T @ left).ravel()])

    theta, h = np.concatenate([F.ravel(), G.ravel()]), 1e-5
    steps = h * np.eye(theta.size)
    H = np.array([(gradient(theta + e) - gradient(theta - e)) / (2 * h) for e in steps])
    return (H + H.T) / 2


@pytest.mark.parametrize(("k", "m"), [(2, None), (8, None), (2, 60), (4, 60)])
def test_late_speed_is_read_from_the_hessian(k, m):
    """The number of flat directions too, also for factors with more columns than rows."""
    F, G = zero_of_the_loss(k)
    matrices = None if m is None else RNG.standard_normal((m, N1 * N2)) / np.sqrt(m)
    values = np.linalg.eigvalsh(hessian(F, G, matrices))
    speed = gs.diagnostics.late_speed(F, G, 1e-3, RANK, matrices)
    assert speed.steepest == pytest.approx(values[-1], rel=1e-7)  # differences: h^2 = 1e-10 and rounding / h
    flat = np.abs(values) < 1e-7
    assert speed.slowest == pytest.approx(values[~flat].min(), rel=1e-5)
    assert values[~flat].min() > 1e-4  # what is flat and what is not are far apart
    assert speed.rate == pytest.approx(-2 * np.log(1 - 1e-3 * speed.slowest), rel=1e-9)


@pytest.mark.parametrize("eta", [0.05, 0.97])
def test_late_speed_is_that_of_descent(eta):
    """Sensing with 60 rows from close to a zero of the loss; the largest step size is limited by the steepest direction."""
    F, G = zero_of_the_loss(K, seed=4)
    matrices = np.random.default_rng(5).standard_normal((60, N1 * N2)) / np.sqrt(60)
    eta = eta * 2 / gs.diagnostics.late_speed(F, G, 1.0, RANK, matrices).steepest
    speed = gs.diagnostics.late_speed(F, G, eta, RANK, matrices)
    target, rng = F @ G.T, np.random.default_rng(6)
    params = tuple(p + 1e-6 * rng.standard_normal(p.shape) for p in (F, G))
    steps = int(12 / speed.rate)
    losses = []
    for _ in range(steps):
        error = matrices @ (params[0] @ params[1].T - target).ravel()
        losses.append(error @ error / 2)
        params = reference.move("Asymmetric", params, (matrices.T @ error).reshape(N1, N2), eta)
    late = np.arange(2 * steps // 3, steps)
    slope = np.polyfit(late, np.log(np.array(losses)[late]), 1)[0]
    assert -slope == pytest.approx(speed.rate, rel=0.02)  # the second slowest direction is e^-8 below or more
    assert speed.stable
    first, last = losses[late[0]], losses[-1]
    assert speed.iterations(first, last) == pytest.approx(late[-1] - late[0], rel=0.02)


def test_steps_that_are_too_large_take_for_ever_and_one_is_enough_when_all_curvatures_agree():
    F, G = zero_of_the_loss(K)
    steepest = gs.diagnostics.late_speed(F, G, 1.0, RANK).steepest
    assert gs.diagnostics.late_speed(F, G, 1.99 / steepest, RANK).stable
    wild = gs.diagnostics.late_speed(F, G, 2.01 / steepest, RANK)
    assert not wild.stable and wild.iterations(1.0, 1e-6) == math.inf and wild.iterations(1e-6, 1.0) == 0
    assert Speed(0.0, 1.0, 0.0).iterations(1.0, 0.5) == math.inf
    only = gs.diagnostics.late_speed(np.ones((1, 1)), np.ones((1, 1)), 0.5, 1)
    assert only.rate == math.inf and only.stable and only.iterations(1.0, 1e-12) == 0
