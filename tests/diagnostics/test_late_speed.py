"""The late speed of descent on two factors against the Hessian and against descent itself."""

from __future__ import annotations

import math

import numpy as np
import pytest

import gyrostat as gs
import reference
from gyrostat.diagnostics import Speed

N1, N2, RANK = 6, 5, 2
late_speed = gs.diagnostics.late_speed


def zero_of_the_loss(k: int) -> tuple[np.ndarray, np.ndarray]:
    """F of full rank and G of rank two, whose product is the target."""
    rng = np.random.default_rng(4)
    F, G = rng.standard_normal((N1, k)), rng.standard_normal((N2, RANK)) @ rng.standard_normal((RANK, k))
    return F / np.sqrt(N1), G / np.sqrt(N2)


def rows(m: int) -> np.ndarray:
    return np.random.default_rng(5).standard_normal((m, N1 * N2)) / np.sqrt(m)


@pytest.mark.parametrize(("k", "m"), [(8, None), (2, 60), (4, 60)])
def test_late_speed_is_read_from_the_hessian(k, m):
    """That of ||A(F G^T) - y||^2 / 2 by differences; the number of flat directions too, also for more columns than rows."""
    F, G = zero_of_the_loss(k)
    A, target = np.eye(N1 * N2) if m is None else rows(m), F @ G.T

    def gradient(theta):
        left, right = theta[: F.size].reshape(F.shape), theta[F.size :].reshape(G.shape)
        M = (A.T @ (A @ (left @ right.T - target).ravel())).reshape(target.shape)
        return np.concatenate([(M @ right).ravel(), (M.T @ left).ravel()])

    theta, h = np.concatenate([F.ravel(), G.ravel()]), 1e-5
    H = np.array([(gradient(theta + e) - gradient(theta - e)) / (2 * h) for e in h * np.eye(theta.size)])
    values = np.linalg.eigvalsh((H + H.T) / 2)
    flat = np.abs(values) < 1e-7
    assert values[~flat].min() > 1e-4  # what is flat and what is not are far apart
    speed = late_speed(F, G, 1e-3, RANK, None if m is None else A)
    assert speed.steepest == pytest.approx(values[-1], rel=1e-7)  # differences: h^2 = 1e-10 and rounding / h
    assert speed.slowest == pytest.approx(values[~flat].min(), rel=1e-5)
    assert speed.rate == pytest.approx(-2 * np.log(1 - 1e-3 * speed.slowest), rel=1e-9)


@pytest.mark.parametrize("share", [0.05, 0.97])
def test_late_speed_is_that_of_descent(share):
    """From close to a zero of the loss; the larger step is limited by the steepest direction."""
    (F, G), matrices, rng = zero_of_the_loss(3), rows(60), np.random.default_rng(6)
    eta = share * 2 / late_speed(F, G, 1.0, RANK, matrices).steepest
    speed = late_speed(F, G, eta, RANK, matrices)
    params = tuple(p + 1e-6 * rng.standard_normal(p.shape) for p in (F, G))
    losses = []
    for _ in range(int(12 / speed.rate)):
        error = matrices @ (params[0] @ params[1].T - F @ G.T).ravel()
        losses.append(error @ error / 2)
        params = reference.move("Asymmetric", params, (matrices.T @ error).reshape(N1, N2), eta)
    late = np.log(losses[2 * len(losses) // 3 :])
    slope = np.polyfit(np.arange(len(late)), late, 1)[0]
    assert -slope == pytest.approx(speed.rate, rel=0.02)  # the second slowest direction is e^-8 below or more
    assert speed.iterations(*np.exp(late[[0, -1]])) == pytest.approx(len(late) - 1, rel=0.02)


def test_steps_that_are_too_large_take_for_ever_and_one_is_enough_when_all_curvatures_agree():
    F, G = zero_of_the_loss(3)
    steepest = late_speed(F, G, 1.0, RANK).steepest
    assert late_speed(F, G, 1.99 / steepest, RANK).stable
    wild = late_speed(F, G, 2.01 / steepest, RANK)
    assert not wild.stable and wild.iterations(1.0, 1e-6) == math.inf and wild.iterations(1e-6, 1.0) == 0
    assert Speed(0.0, 1.0, 0.0).iterations(1.0, 0.5) == math.inf
    only = late_speed(np.ones((1, 1)), np.ones((1, 1)), 0.5, 1)
    assert only.rate == math.inf and only.stable and only.iterations(1.0, 1e-12) == 0
