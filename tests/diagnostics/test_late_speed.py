"""The late speed of descent on two factors against the Hessian; against descent itself, the claims of `xiong2024/fig1.2`."""

from __future__ import annotations

import math

import numpy as np
import pytest

import gyrostat as gs
from gyrostat.diagnostics import Speed

N1, N2, RANK = 6, 5, 2
late_speed = gs.diagnostics.late_speed


def zero_of_the_loss(k: int) -> tuple[np.ndarray, np.ndarray]:
    """F of full rank and G of rank two, whose product is the target."""
    rng = np.random.default_rng(4)
    F, G = rng.standard_normal((N1, k)), rng.standard_normal((N2, RANK)) @ rng.standard_normal((RANK, k))
    return F / np.sqrt(N1), G / np.sqrt(N2)


@pytest.mark.parametrize(("k", "m"), [(8, None), (2, 60), (4, 60)])
def test_late_speed_is_read_from_the_hessian(k, m):
    """That of ||A(F G^T) - y||^2 / 2 by differences; the number of flat directions too, also for more columns than rows."""
    F, G = zero_of_the_loss(k)
    rows, target = None if m is None else np.random.default_rng(5).standard_normal((m, N1 * N2)) / np.sqrt(m), F @ G.T
    A = np.eye(N1 * N2) if m is None else rows

    def gradient(theta):
        left, right = theta[: F.size].reshape(F.shape), theta[F.size :].reshape(G.shape)
        M = (A.T @ (A @ (left @ right.T - target).ravel())).reshape(target.shape)
        return np.concatenate([(M @ right).ravel(), (M.T @ left).ravel()])

    theta, h = np.concatenate([F.ravel(), G.ravel()]), 1e-5
    H = np.array([(gradient(theta + e) - gradient(theta - e)) / (2 * h) for e in h * np.eye(theta.size)])
    values = np.linalg.eigvalsh((H + H.T) / 2)
    flat = np.abs(values) < 1e-7
    assert values[~flat].min() > 1e-4  # what is flat and what is not are far apart
    speed = late_speed(F, G, 1e-3, RANK, rows)
    assert speed.steepest == pytest.approx(values[-1], rel=1e-7)  # differences: h^2 = 1e-10 and rounding / h
    assert speed.slowest == pytest.approx(values[~flat].min(), rel=1e-5)
    assert speed.rate == pytest.approx(-2 * np.log(1 - 1e-3 * speed.slowest), rel=1e-9)
    assert speed.iterations(1.0, np.exp(-100 * speed.rate)) == pytest.approx(100)
    large = 1.97 / speed.steepest  # every curvature counts, also one that oscillates
    contraction = np.abs(1 - large * values[~flat]).max()
    assert late_speed(F, G, large, RANK, rows).rate == pytest.approx(-2 * np.log(contraction), rel=1e-4)


def test_steps_that_are_too_large_take_for_ever_and_one_is_enough_when_all_curvatures_agree():
    F, G = zero_of_the_loss(3)
    steepest = late_speed(F, G, 1.0, RANK).steepest
    assert late_speed(F, G, 1.99 / steepest, RANK).stable
    wild = late_speed(F, G, 2.01 / steepest, RANK)
    assert not wild.stable and wild.iterations(1.0, 1e-6) == math.inf and wild.iterations(1e-6, 1.0) == 0
    assert Speed(0.0, 1.0, 0.0).iterations(1.0, 0.5) == math.inf
    only = late_speed(np.ones((1, 1)), np.ones((1, 1)), 0.5, 1)
    assert only.rate == math.inf and only.stable and only.iterations(1.0, 1e-12) == 0
