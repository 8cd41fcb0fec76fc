"""The absorbing sets B_r: margins, and the constants of Theorem B.1."""

from __future__ import annotations

import numpy as np
import pytest

import gyrostat as gs
from gyrostat.diagnostics import Snapshot, contains, margins

SHAPE, MODEL = (3, 4), gs.DeepLinear(3, 5)


def snapshot(seed: int = 0, model=MODEL, params=None) -> Snapshot:
    rng = np.random.default_rng(seed)
    params = tuple(rng.standard_normal(s) for s in model.shapes(SHAPE)) if params is None else params
    return Snapshot(gs.RectangularEnvironments(np.eye(3, 1), np.eye(4, 1)), model, params, SHAPE)


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
