"""The rates and conditions of Xiong 2024 against descent written out, and the printed formulas typed in again."""

from __future__ import annotations

import math

import numpy as np
import pytest

from gyrostat.theory.xiong2024 import (
    exact_width_rate,
    imbalance_increment,
    imbalanced_rate,
    increment_bound,
    lower_bound,
    symmetric_tail,
    theorem31_conditions,
    theorem41_bounds,
    theorem42_conditions,
    theorem42_rate,
    theorem43_rate,
    theorem51_rate,
    toy_sequences,
)


def one_factor(X, target, eta, steps):
    """Squared errors of X X^T along ``X <- X - 2 eta (X X^T - target) X``, update (2.3)."""
    errors = []
    for _ in range(steps):
        E = X @ X.T - target
        errors.append(np.sum(E**2))
        X = X - 2 * eta * E @ X
    return np.array(errors)


def test_rates_of_one_factor_are_those_of_descent():
    rng, eta, target = np.random.default_rng(0), 0.02, np.diag([1.0, 0.8, 0.0, 0.0, 0.0])
    exact = one_factor(0.3 * rng.standard_normal((5, 2)), target, eta, 1200)
    assert math.log(exact[-400] / exact[-200]) / 200 == pytest.approx(exact_width_rate(eta, 0.8), rel=1e-3)
    wide = one_factor(0.3 * rng.standard_normal((5, 4)), target, eta, 40_000)
    # 1 / (4 eta t + 1 / x_0^2): the start still counts by a part in a hundred
    assert wide[-1] == pytest.approx(symmetric_tail(eta, 4, 2, 40_000), rel=0.03)


def test_the_imbalanced_rate_is_that_of_descent_in_the_second_factor():
    """With a large F, G follows ``G <- G - eta (F G^T - target)^T F``, and F hardly moves."""
    eta, F, G = 0.1, np.array([[3.0, 0.0], [0.0, 1.2], [0.0, 0.0]]), np.zeros((2, 2))
    target, errors = F @ np.array([[0.01, 0.02], [0.03, 0.01]]), []
    for _ in range(120):
        E = F @ G.T - target
        errors.append(np.sum(E**2))
        F, G = F - eta * E @ G, G - eta * E.T @ F
    rate = imbalanced_rate(eta, np.linalg.eigvalsh(F.T @ F)[0])
    assert math.log(errors[60] / errors[100]) / 40 == pytest.approx(rate, rel=1e-2)


def test_the_lower_bound_is_below_the_recursion_that_it_comes_from():
    eta, alpha, n, c = 0.01, 0.1, 50, 8.0
    A = [n * alpha**2 / 8]
    for _ in range(3000):
        A.append(A[-1] * (1 - c * eta * A[-1]))  # (3.3b) with equality
    exact = np.array(A) ** 2 / n
    bound = lower_bound(eta, alpha, n, np.arange(3001), c)
    np.testing.assert_array_equal(lower_bound(eta, alpha, n, 7.0), lower_bound(eta, alpha, n, 7.0, 1.0))
    assert (bound * (1 + 1e-12) >= exact).all() and (bound < 1.03 * exact).all()  # the ODE of that recursion
    assert lower_bound(eta, alpha, n, 1e12, c) == pytest.approx(1 / (n * (c * eta * 1e12) ** 2), rel=1e-6)


def test_the_toy_sequences_are_those_of_the_matrices():
    eta, alpha, r = 0.1, 0.5, 2
    F, G = np.diag([alpha] * r + [alpha]), np.diag([alpha] * r + [alpha / 3])
    target, errors = np.diag([1.0] * r + [0.0]), []
    *_, error = toy_sequences(eta, alpha, r, 12)
    for _ in range(13):
        E = F @ G.T - target
        errors.append(np.sum(E**2))
        F, G = F - eta * E @ G, G - eta * E.T @ F
    np.testing.assert_allclose(error, errors, rtol=1e-12)


def test_the_printed_rates_and_bounds():
    eta, alpha, n, t, T1 = 0.02, 0.3, 50, np.array([1.0, 400.0]), 7.0
    low, high = theorem41_bounds(eta, alpha, n, t, T1)
    np.testing.assert_allclose(np.exp(low), alpha**4 / 36 * (1 - 4 * eta * alpha**2) ** (2 * t), rtol=1e-10)
    np.testing.assert_array_equal(theorem41_bounds(eta, alpha, n, t), theorem41_bounds(eta, alpha, n, t, 0.0))
    np.testing.assert_allclose(np.exp(high), 4 * n * (1 - eta * alpha**2 / 4) ** (2 * (t - T1)), rtol=1e-10)
    for rate, printed in (
        (theorem42_rate(eta, alpha), (1 - eta * alpha**2 / 8) ** (1 / 4)),
        (theorem43_rate(eta, 2.0, 0.5), (1 - eta * 0.5**2 / (64 * 2.0)) ** (1 / 2)),
        (theorem51_rate(eta, 0.6), (1 - eta * 0.6**2 / 2) ** 2),
    ):
        assert math.exp(-rate) == pytest.approx(printed, rel=1e-12)


def test_the_imbalance_changes_by_the_increment_and_at_most_by_its_bound():
    rng, eta = np.random.default_rng(3), 0.05
    for _ in range(20):
        F, G, M = rng.standard_normal((5, 3)), rng.standard_normal((4, 3)), rng.standard_normal((5, 4))
        after_F, after_G = F - eta * M @ G, G - eta * M.T @ F
        change = after_F.T @ after_F - after_G.T @ after_G - (F.T @ F - G.T @ G)
        np.testing.assert_allclose(imbalance_increment(F, G, M, eta), change, atol=1e-13)
        assert np.linalg.norm(change, 2) <= increment_bound(F, G, M, eta) * (1 + 1e-12)
    large, none = np.array([[2.0], [0.0]]), np.zeros((2, 1))  # attained
    bound = increment_bound(large, none, np.eye(2), eta)
    assert np.linalg.norm(imbalance_increment(large, none, np.eye(2), eta), 2) == pytest.approx(bound, rel=1e-12)


@pytest.mark.parametrize("alpha", [1e-7, 0.05, 9.0])  # the logarithms are those of the formula, or at least 1 and 0
def test_the_printed_conditions(alpha):
    eta, k, n, delta, values = 0.01, 4, 60, 0.1, np.array([3.0, 2.0, 1.2])
    s1, sr, r, kappa = 3.0, 1.2, 3, 2.5
    one = theorem31_conditions(eta, alpha, values, k, n)
    assert [(c.value, c.relation) for c in one] == [(alpha, "<="), (k, ">="), (eta, "<=")]
    wanted = [
        math.sqrt(s1) / (math.sqrt(n) * math.log(r * math.sqrt(n))),
        ((r * kappa) ** 2 * max(0, math.log(r * math.sqrt(s1) / alpha))) ** 4,
        1 / (n**2 * kappa * s1),
    ]
    assert [c.bound for c in one] == pytest.approx(wanted, rel=1e-12)
    two = theorem42_conditions(eta, alpha, values, k, n, delta)
    assert [c.value for c in two] == pytest.approx([alpha, eta, delta * math.sqrt(2 * k + 1), k])
    assert [c.relation for c in two] == ["<=", "<=", "<=", "in"]
    logarithm = max(1, math.log(math.sqrt(sr) / (n * alpha)))
    wanted = [math.sqrt(sr) / kappa**2, alpha**4 / s1**3, min(1 / (kappa**6 * logarithm), 1 / 128)]
    assert [c.bound for c in two[:3]] == pytest.approx(wanted, rel=1e-12) and two[3].bound == (r, n / 8)
    (*_, isometry, _) = theorem42_conditions(eta, alpha, np.ones(3), k, n, delta)  # kappa = 1
    assert isometry.bound == 1 / 128
