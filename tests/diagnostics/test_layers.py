"""Diagnostics of layers against their definitions."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest
from scipy import optimize

import gyrostat as gs
from gyrostat.diagnostics import Snapshot, layers
from gyrostat.theory.wang2023.landscape import OBSERVED

SHAPE, MODEL = (3, 4), gs.DeepLinear(3, 5)


def snapshot(seed: int = 0, model=MODEL, params=None) -> Snapshot:
    rng = np.random.default_rng(seed)
    params = tuple(rng.standard_normal(s) for s in model.shapes(SHAPE)) if params is None else params
    return Snapshot(gs.RectangularEnvironments(np.eye(3, 1), np.eye(4, 1)), model, params, SHAPE)


def value(name: str, shown: Snapshot):
    return np.asarray(gs.diagnostics.DIAGNOSTICS[name].function(shown))


def test_diagnostics_are_what_they_say(x64):
    shown = snapshot()
    W = shown.params
    A = W[2] @ W[1] @ W[0]
    s = np.linalg.svd(A, compute_uv=False)
    gaps = [W[0] @ W[0].T - W[1].T @ W[1], W[1] @ W[1].T - W[2].T @ W[2]]
    expected = {
        "product": A,
        "singular_ratio": s[1] / s[0],
        "layer_norms": [np.sum(w**2) for w in W],
        "imbalances": [np.linalg.norm(g, 2) for g in gaps],
        "imbalances_frobenius": [np.linalg.norm(g) for g in gaps],
    }
    for name, wanted in expected.items():
        np.testing.assert_allclose(value(name, shown), wanted, rtol=1e-12, atol=1e-12, err_msg=name)
    assert float(gs.diagnostics.representation_cost(A, 3)) == pytest.approx(3 * np.sum(s ** (2 / 3)), rel=1e-12)
    alpha = 2.0
    wanted = [sum(x * (2 * alpha - x) / alpha**2 if x <= alpha else 1 for x in np.linalg.svd(w)[1] ** 2) for w in W]
    np.testing.assert_allclose(gs.diagnostics.approximate_rank(alpha).function(shown), wanted, rtol=1e-12)
    assert gs.diagnostics.approximate_rank(alpha) is gs.diagnostics.approximate_rank(alpha)  # one program for one alpha


def test_two_factors_are_two_layers(x64):
    rng = np.random.default_rng(0)
    F, G = rng.standard_normal((3, 2)), rng.standard_normal((4, 2))
    shown = snapshot(model=gs.Asymmetric(2), params=(F, G))
    np.testing.assert_allclose(value("imbalances_frobenius", shown), [np.linalg.norm(G.T @ G - F.T @ F)], rtol=1e-12)
    with pytest.raises(gs.GyrostatError, match=r"Symmetric is not a product of layers.*DeepLinear"):
        layers.layers(snapshot(model=gs.Symmetric(), params=(F,)))
    with pytest.raises(gs.GyrostatError, match="DeepLinear is not a product F"):
        value("imbalance", snapshot())


def test_a_product_of_zero_has_ratio_zero(x64):
    assert value("singular_ratio", snapshot(params=tuple(np.zeros(s) for s in MODEL.shapes(SHAPE)))) == 0


@pytest.mark.parametrize("depth", [2, 3, 4])
def test_the_representation_cost_is_the_least_norm_of_layers(depth, x64):
    """Least among balanced layers by the closed form; no search from random starts finds less."""
    A = np.random.default_rng(depth).standard_normal((2, 2))
    model = gs.DeepLinear(depth)
    cost = float(gs.diagnostics.representation_cost(A, depth))
    balanced = model.factorise(jnp.asarray(A))
    assert sum(float(jnp.sum(W * W)) for W in balanced) == pytest.approx(cost, rel=1e-12)
    assert depth != 2 or cost == pytest.approx(2 * np.linalg.norm(A, "nuc"), rel=1e-12)
    rng = np.random.default_rng(1)
    for _ in range(3):
        inner = rng.standard_normal((depth - 1, 2, 2))

        def norm(x):
            W = x.reshape(depth - 1, 2, 2)
            rest = np.linalg.multi_dot([*W[::-1], np.eye(2)])
            return np.sum(x**2) + np.sum((A @ np.linalg.inv(rest)) ** 2)  # the last layer makes the product A

        best = optimize.minimize(norm, inner.ravel(), method="Nelder-Mead", options={"maxiter": 400})
        assert best.fun >= cost - 1e-9


def test_balancedness_decays_at_four_lambda_under_small_steps():
    """Under the main text's loss W_l W_l^T - W_(l+1)^T W_(l+1) decays at 4 lambda per unit of eta t (the text says lambda)."""
    ridge, eta, T = 0.05, 1e-3, 4000
    problem = gs.Problem(gs.RectangularEnvironments.of([[1.0, 4.0], [0.25, 1.0]]), gs.Entries(OBSERVED))
    algorithm = gs.RidgeDescent(eta, ridge, model=gs.DeepLinear(3, 4), convention="main_text")
    path = gs.run(algorithm, problem, num_steps=T, record=["imbalances_frobenius"], record_at=5)
    rate = -np.polyfit(path.step * eta, np.log(path.imbalances_frobenius[0]), 1)[0] / ridge
    np.testing.assert_allclose(rate, 4.0, rtol=0.01)  # steps of 1e-3: terms of order eta are left
