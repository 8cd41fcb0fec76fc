"""Wang 2023: the fold and the critical points of the small problem, the decay after a jump, and the absorbing sets B_r."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest

import gyrostat as gs
from gyrostat.diagnostics import Snapshot, ranks
from gyrostat.jax_tools.float64 import double
from gyrostat.theory.wang2023 import (
    Region,
    absorbing,
    contains,
    critical_points,
    fold,
    margins,
    membership,
    turning_rate,
)
from gyrostat.theory.wang2023.landscape import OBSERVED


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
        start = gs.starts.Given(*gs.DeepLinear(depth).factorise(jnp.asarray(found.matrix)))
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


# --- after a jump (Wang 2023) ---------------------------------------------------------------------


@pytest.mark.parametrize("depth", [3, 4, 5])
def test_the_turning_rate_is_what_a_step_does_to_the_second_singular_value(depth):
    """Balanced layers of rank nearly 1; a step on each entry, without ridge, written out."""
    eta, small = 1e-3, 3e-7
    rng = np.random.default_rng(depth)
    turns = [np.linalg.qr(rng.standard_normal((2, 2)))[0] for _ in range(depth + 1)]
    layers = [turns[k + 1] @ np.diag([1.3, small]) @ turns[k].T for k in range(depth)]
    truth, observed = np.array([[1.0, 9.0], [0.3, -0.7]]), [(0, 0), (1, 0), (1, 1)]

    def product(layers):
        return np.linalg.multi_dot(layers[::-1])

    def logarithm(layers):
        """log s2, through determinants: an SVD of the product knows nothing below 1e-16."""
        large = np.linalg.svd(product(layers), compute_uv=False)[0]
        return sum(np.log(abs(np.linalg.det(W))) for W in layers) - np.log(large)

    A, found = product(layers), []
    for i, j in observed:
        G = np.zeros((2, 2))
        G[i, j] = 2 * (A[i, j] - truth[i, j])
        moved = []
        for k, W in enumerate(layers):
            before = np.linalg.multi_dot([*layers[:k][::-1], np.eye(2)]) if k else np.eye(2)
            after = np.linalg.multi_dot([*layers[k + 1 :][::-1], np.eye(2)]) if k + 1 < depth else np.eye(2)
            moved.append(W - eta * after.T @ G @ before.T)
        found.append(logarithm(layers) - logarithm(moved))
    wanted = turning_rate(A, truth, observed, step_size=eta, depth=depth).item()
    assert np.mean(found) == pytest.approx(wanted, rel=0.03)  # the next order is about 1e-2 of this one
    assert wanted > 5e-8


# --- the absorbing sets B_r -------------------------------------------------------------------------


def test_margins_of_a_region(x64):
    region = Region(rank=1, alpha=0.5, balance=0.1, excess=0.4, bound=3.0)
    model, rng = gs.DeepLinear(3, 5), np.random.default_rng(3)
    W = tuple(rng.standard_normal(shape) for shape in model.shapes((3, 4)))
    snapshot = Snapshot(gs.RectangularEnvironments(np.eye(3, 1), np.eye(4, 1)), model, W, (3, 4))
    gaps = [W[0] @ W[0].T - W[1].T @ W[1], W[1] @ W[1].T - W[2].T @ W[2]]
    wanted = [
        0.1 - max(np.linalg.norm(g, 2) for g in gaps),
        1.4 - max(float(x) for x in gs.diagnostics.approximate_rank(0.5).function(snapshot)),
        3.0 - max(np.sum(w**2) for w in W),
    ]
    np.testing.assert_allclose(margins(W, region), wanted, rtol=1e-12)
    np.testing.assert_allclose(membership(region).function(snapshot), wanted, rtol=1e-12)
    assert not contains(region, W)
    small = tuple(0.3 * np.eye(3)[:, :1] @ np.eye(3)[:1] for _ in range(3))
    assert contains(region, small)
    assert not contains(region._replace(bound=0.08), small)  # .09 is too large
    assert not contains(region, (small[0], 2 * small[1], small[2]))  # out of balance


@pytest.mark.parametrize(
    ("lam", "L", "n", "r", "largest", "e2", "least"),
    [
        (0.1, 3, 2, 1, 1.0, 0.4, 1),
        (0.3, 4, 5, 2, 1.7, 0.3, 1),
        (5e3, 3, 1, 1, 0.5, 0.45, 0),
        (100.0, 5, 2, 2, 3.0, 0.1, 2),
    ],
)
def test_the_constants_are_the_largest_that_theorem_b1_admits(lam, L, n, r, largest, e2, least):
    """Its conditions, printed; the last one, eta <= 2 (r + 1) / lambda, follows from the first."""
    C1 = largest**2
    C = C1 / (2 * lam)
    region, eta = absorbing(lam, L, n, rank=r, largest=largest, excess=e2)
    alpha = (lam**2 / (2 * (C1 + C**L))) ** (1 / (L - 2))
    root = lam * alpha * e2 / (32 * n * L * (r + 1) * C ** ((L - 1) / 2) * (2 * (C1 + C**L)) ** 0.5)
    np.testing.assert_allclose(region, (r, alpha, root**2, e2, C), rtol=1e-12)
    bounds = [
        C1 / (4 * (2 * (C1 + C**L) * C ** (L - 1) + lam**2 * C)),
        2 * lam * root**2 / (4 * (C1 + C**L) * C ** (L - 1) + lam**2 * root**2),
        lam * alpha * e2 / (32 * n * (r + 1) * (2 * (C1 + C**L) * C ** (L - 1) + lam**2 * C)),
        2 * (r + 1) / lam,
    ]
    assert eta == pytest.approx(min(bounds), rel=1e-12) and np.argmin(bounds) == least


def test_the_theorem_says_nothing_about_the_step_of_the_figures():
    assert absorbing(0.1, 3, 2) == absorbing(0.1, 3, 2, rank=1, largest=1.0, excess=0.4)
    assert 4e-26 < absorbing(0.1, 3, 2).step_size < 5e-26
