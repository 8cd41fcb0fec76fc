"""Diagnostics of layers, jumps on paths, the sets B_r, and the landscape, against closed forms and other software."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest
from scipy import optimize

import gyrostat as gs
from gyrostat.diagnostics import Snapshot, contains, layers, margins, ranks
from gyrostat.jax_tools.float64 import double
from gyrostat.theory import critical_points, fold
from gyrostat.theory.deep_linear import OBSERVED

pytestmark = pytest.mark.usefixtures("hasty")

SHAPE, MODEL = (3, 4), gs.DeepLinear(3, 5)


def snapshot(seed: int = 0, model=MODEL, params=None) -> Snapshot:
    rng = np.random.default_rng(seed)
    params = tuple(rng.standard_normal(s) for s in model.shapes(SHAPE)) if params is None else params
    return Snapshot(gs.RectangularEnvironments(np.eye(3, 1), np.eye(4, 1)), model, params, SHAPE)


def value(name: str, shown: Snapshot):
    return np.asarray(gs.DIAGNOSTICS[name].function(shown))


# --- diagnostics ----------------------------------------------------------------------------------


def test_diagnostics_are_what_they_say(x64):
    shown = snapshot()
    W = shown.params
    A = W[2] @ W[1] @ W[0]
    s = np.linalg.svd(A, compute_uv=False)
    np.testing.assert_allclose(value("product", shown), A, rtol=1e-12, atol=1e-12)
    assert value("singular_ratio", shown) == pytest.approx(s[1] / s[0], rel=1e-12)
    np.testing.assert_allclose(value("layer_norms", shown), [np.sum(w**2) for w in W], rtol=1e-12)
    gaps = [W[0] @ W[0].T - W[1].T @ W[1], W[1] @ W[1].T - W[2].T @ W[2]]
    np.testing.assert_allclose(value("imbalances", shown), [np.linalg.norm(g, 2) for g in gaps], rtol=1e-12)
    np.testing.assert_allclose(value("imbalances_frobenius", shown), [np.linalg.norm(g) for g in gaps], rtol=1e-12)
    cost = sum(np.sum(w**2) for w in W) - 3 * np.sum(s ** (2 / 3))
    assert value("excess_cost", shown) == pytest.approx(cost, rel=1e-12)
    alpha = 2.0
    wanted = [sum(x * (2 * alpha - x) / alpha**2 if x <= alpha else 1 for x in np.linalg.svd(w)[1] ** 2) for w in W]
    np.testing.assert_allclose(gs.approximate_rank(alpha).function(shown), wanted, rtol=1e-12)
    assert gs.approximate_rank(alpha) is gs.approximate_rank(alpha)  # one program for one alpha


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
    cost = float(gs.representation_cost(A, depth))
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

        found = optimize.minimize(norm, inner.ravel(), method="Nelder-Mead", options={"maxiter": 400})
        assert found.fun >= cost - 1e-9


def test_balancedness_decays_at_four_lambda_under_small_steps():
    """Under the main text's loss W_l W_l^T - W_(l+1)^T W_(l+1) decays at 4 lambda per unit of eta t (the text says lambda)."""
    ridge, eta, T = 0.05, 1e-3, 4000
    problem = gs.Problem(gs.RectangularEnvironments.of([[1.0, 4.0], [0.25, 1.0]]), gs.Entries(OBSERVED))
    algorithm = gs.RidgeDescent(eta, ridge, model=gs.DeepLinear(3, 4), convention="main_text")
    found = gs.run(algorithm, problem, num_steps=T, record=["imbalances_frobenius"], record_at=5)
    rate = -np.polyfit(found.step * eta, np.log(found.imbalances_frobenius[0]), 1)[0] / ridge
    np.testing.assert_allclose(rate, 4.0, rtol=0.01)  # steps of 1e-3: terms of order eta are left


# --- jumps ----------------------------------------------------------------------------------------

STEPS = [0, 10, 20, 30, 40, 50]


def path(*found) -> np.ndarray:
    return np.array([[1.0, r, r**2] if isinstance(r, float) else r for r in found])


def test_jumps_are_lasting_changes_of_rank():
    three, two, one, zero = [2.0, 1.0, 1.0], [2.0, 1.0, 1e-6], [2.0, 1e-6, 1e-9], [1e-7, 1e-8, 1e-9]
    nan = [np.nan] * 3
    assert gs.jumps([three, two, three, two, one, one], STEPS).jumps == [(30, 3, 2), (40, 2, 1)]
    assert gs.jumps([three, three, one, one, one, one], STEPS).jumps == [(20, 3, 1)]
    settled = gs.jumps([one, one, one, one, one, one], STEPS)
    assert settled == ([], 1, "settled")
    assert gs.jumps([two, two, one, zero, zero, zero], STEPS) == ([(20, 2, 1), (30, 1, 0)], 0, "collapsed")
    assert gs.jumps([two, two, one, nan, nan, nan], STEPS) == ([(20, 2, 1)], -1, "diverged")
    assert gs.jumps([nan] * 6, STEPS) == ([], -1, "diverged")
    assert ranks([three, two, one, zero, nan]).tolist() == [3, 2, 1, 0, -1]


def test_jump_times_are_those_of_the_ratio():
    """The definition of the spec, looked for one record at a time: after the last time s_2 / s_1 >= .01."""
    rng = np.random.default_rng(0)
    ratio = 10 ** rng.uniform(-4, 0, (50, 30))
    steps = np.arange(30) * 7
    for k in range(50):
        ratio[k, rng.integers(1, 31) :] = 1e-6
    found = gs.jump_times(np.stack([np.ones((50, 30)), ratio], axis=-1), steps)
    for row, t in zip(ratio, found, strict=True):
        above = [k for k in range(30) if row[k] >= 0.01]
        wanted = np.inf if above and above[-1] == 29 else steps[above[-1] + 1] if above else steps[0]
        assert t == wanted
        listed = gs.jumps(np.stack([np.ones(30), row], axis=-1), steps).jumps
        assert [j.step for j in listed if j.after == 1] == ([t] if 0 < t < np.inf else [])
    assert gs.jump_times([[[1.0, 0.5], [np.nan, np.nan]]], [0, 1]).tolist() == [np.inf]


# --- B_r ------------------------------------------------------------------------------------------


def test_margins_of_a_region(x64):
    region = gs.Region(rank=1, alpha=0.5, balance=0.1, excess=0.4, bound=3.0)
    W = snapshot(3).params
    gaps = [W[0] @ W[0].T - W[1].T @ W[1], W[1] @ W[1].T - W[2].T @ W[2]]
    wanted = [
        0.1 - max(np.linalg.norm(g, 2) for g in gaps),
        1.4 - max(float(x) for x in gs.approximate_rank(0.5).function(snapshot(3))),
        3.0 - max(np.sum(w**2) for w in W),
    ]
    np.testing.assert_allclose(margins(W, region), wanted, rtol=1e-12)
    np.testing.assert_allclose(gs.membership(region).function(snapshot(3)), wanted, rtol=1e-12)
    assert not contains(region, W)
    small = tuple(0.3 * np.eye(3)[:, :1] @ np.eye(3)[:1] for _ in range(3))
    assert contains(region, small)
    assert not contains(region._replace(bound=0.08), small)  # .09 is too large
    assert not contains(region, (small[0], 2 * small[1], small[2]))  # out of balance


def test_the_constants_of_theorem_b1_meet_its_conditions():
    lam, L, n, r, C1 = 0.1, 3, 2, 1, 1.0
    (_, alpha, e1, e2, C), eta = gs.absorbing(lam, L, n, rank=r)
    K = 2 * (C1 + C**L)
    assert C1 / (2 * lam) <= C and e2 < 0.5
    assert alpha <= (lam**2 / K) ** (1 / (L - 2)) * (1 + 1e-12)
    assert np.sqrt(e1) <= lam * alpha * e2 / (32 * n * L * (r + 1) * C ** ((L - 1) / 2) * np.sqrt(K)) * (1 + 1e-12)
    bounds = [
        C1 / (4 * (2 * (C1 + C**L) * C ** (L - 1) + lam**2 * C)),
        2 * lam * e1 / (4 * (C1 + C**L) * C ** (L - 1) + lam**2 * e1),
        lam * alpha * e2 / (32 * n * (r + 1) * (2 * (C1 + C**L) * C ** (L - 1) + lam**2 * C)),
        2 * (r + 1) / lam,
    ]
    assert eta == pytest.approx(min(bounds), rel=1e-12)
    assert 4e-26 < eta < 5e-26  # the theorem says nothing about a step of .2


# --- the landscape --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("eps", "depth", "ridge"),
    [
        (0.1, 3, 0.0457),
        (0.2, 3, 0.0320),
        (0.25, 3, 0.0259),
        (0.1, 4, 0.0257),
        (0.15, 4, 0.0194),
    ],
)
def test_the_fold_is_where_descent_loses_its_second_component(eps, depth, ridge):
    found = fold(eps, depth)
    assert found.ridge == pytest.approx(ridge, abs=6e-5)  # measured once with other software, to four digits
    if (eps, depth) != (0.25, 3):
        return
    # Gradient descent from the minimum at the fold: below it rank 2 stays, above it is lost.
    problem = gs.Problem(gs.RectangularEnvironments.of([[1.0, 1 / eps], [eps, 1.0]]), gs.Entries(OBSERVED))
    with double():
        start = gs.Given(*gs.DeepLinear(depth).factorise(jnp.asarray(found.matrix)))
    for factor, rank in ((0.98, 2), (1.02, 1)):
        algorithm = gs.RidgeDescent(
            0.1, factor * found.ridge, model=gs.DeepLinear(depth), start=start, convention="main_text"
        )
        s = gs.run(algorithm, problem, num_steps=30_000, record=["singular_values"], record_at=2).singular_values
        assert int(ranks(s.values[0, -1])) == rank


def test_no_minimum_of_rank_two_no_fold():
    assert fold(1.0, 4).ridge == 0


def test_critical_points_of_the_small_problem():
    found = critical_points([[1.0, 4.0], [0.25, 1.0]], OBSERVED, 3, 0.005, tries=150)
    for point in found:  # Prop. A.1 and section 2.2, at rounding error
        assert point.imbalance < 1e-9 and abs(point.gap) < 1e-9
        assert sum(point.signature) == 12
        W = point.matrix
        U, s, Vt = np.linalg.svd(W)
        if s[1] > 1e-4:  # C_lambda is smooth there: its own gradient vanishes, R / 3 + 2 lambda U s^(2/3 - 1) V^T
            R = (W - np.array([[1.0, 0.0], [0.25, 1.0]])) * np.array([[1, 0], [1, 1]])
            np.testing.assert_allclose(R / 3, -0.01 * (U * s ** (2 / 3 - 1)) @ Vt, atol=1e-9)
    minima = [p for p in found if p.kind == "minimum"]
    assert [p.rank for p in minima] == [0, 1, 1, 2]  # the paper says three: it leaves out the one of the wrong sign
    assert sorted(np.sign(np.round(p.matrix[0, 1], 6)) for p in minima if p.rank == 1) == [-1, 1]
    assert all(p.signature[0] > 0 for p in found if p.kind != "minimum")  # Thm 3.1: the others are strict saddles
    assert len(found) >= 10
