"""Starts of factors and of layers: their laws, their shapes, and how they use the data."""

from __future__ import annotations

import itertools

import jax
import numpy as np
import pytest
from scipy import stats

import gyrostat as gs
import reference
from conftest import orthonormal

N1, N2, K = 5, 4, 3

RECTANGLE = gs.RectangularEnvironments(orthonormal(0, N1, 2), orthonormal(1, N2, 2), values=[1.0, 0.6])

FACTORISATION = gs.Problem(RECTANGLE, gs.Identity())

LEVEL = 1e-4
"""The level of each test of a law in this file; keys are fixed."""

KEY = jax.random.key(0)
NETWORK, FACTORS = gs.DeepLinear(3, 100), gs.Asymmetric(16)


def uniform(bound: float):
    return stats.uniform(-bound, 2 * bound)


@pytest.mark.parametrize(
    ("start", "model", "shape", "laws"),
    [
        (gs.starts.ScaledGaussian(0.5), FACTORS, (100, 225), [stats.norm(scale=0.5)] * 2),
        (gs.starts.FanInGaussian(0.5), gs.Symmetric(9), (400, 400), [stats.norm(scale=0.5 / 3)]),
        (gs.starts.FanInGaussian(0.5), NETWORK, (25, 36), [stats.norm(scale=0.5 / n) for n in (6, 10, 10)]),
        (gs.starts.FanInUniform(0.5), NETWORK, (25, 36), [uniform(0.5 / n) for n in (6, 10, 10)]),
        (
            gs.starts.ImbalancedGaussian(0.5),
            FACTORS,
            (100, 225),
            [stats.norm(scale=s) for s in (0.5 / 10, 0.5 / 3 / 15)],
        ),
    ],
    ids=lambda x: type(x).__name__,
)
def test_entries_have_the_law_of_the_paper(start, model, shape, laws, x64):
    params = [np.ravel(p) for p in start(model, shape, KEY)]
    for entries, law in zip(params, laws, strict=True):
        assert stats.kstest(entries, law.cdf).pvalue > LEVEL
        assert stats.kstest(1.3 * entries, law.cdf).pvalue < 1e-6  # the test can fail
    count = min(p.size for p in params)
    for first, second in itertools.combinations(params, 2):  # five standard errors
        assert abs(stats.pearsonr(first[:count], second[:count]).statistic) < 5 / count**0.5


@pytest.mark.parametrize(
    ("start", "model"),
    [(gs.starts.OrthonormalZero(2.0), gs.Asymmetric(2)), (gs.starts.Orthogonal(2.0), gs.DeepLinear(3, 6))],
)
def test_orthonormal_starts_are_uniform(start, model, x64):
    draws = jax.jit(jax.vmap(lambda key: start(model, (5, 4), key)))(jax.random.split(jax.random.key(1), 1500))
    layers = [np.asarray(x) for x in draws]
    if isinstance(start, gs.starts.OrthonormalZero):
        assert not layers.pop().any()
    for W in layers:
        short = np.swapaxes(W, 1, 2) if W.shape[1] < W.shape[2] else W
        gram = np.swapaxes(short, 1, 2) @ short
        np.testing.assert_allclose(gram, np.broadcast_to(4 * np.eye(short.shape[2]), gram.shape), atol=1e-13)
        # An entry of a uniform direction in n dimensions: (1 + u) / 2 is Beta((n - 1)/2, (n - 1)/2).
        n = short.shape[1]
        law = stats.beta((n - 1) / 2, (n - 1) / 2)
        for u in (short[:, 0, 0] / 2, short[:, n - 1, -1] / 2):
            assert stats.kstest((1 + u) / 2, law.cdf).pvalue > LEVEL
            assert stats.kstest((1 + np.abs(u)) / 2, law.cdf).pvalue < 1e-6


def test_spectral_start_is_the_estimate_from_the_first_gradient():
    """(1/m) sum_i y_i X_i of the shared rows, cut to the rank; and on the population the truth itself."""
    measurements = gs.Dense(30, noise=0.2, design=4)
    algorithm = gs.GradientDescent(0.1, width=2, start=gs.starts.Spectral())
    options = {"num_steps": 1, "record": ["left_factor", "right_factor"], "record_at": [0]}
    result = gs.run(algorithm, gs.Problem(RECTANGLE, measurements), **options)
    rows = measurements.rows(RECTANGLE, gs.Asymmetric().space(RECTANGLE.shape))
    X, eps = np.asarray(rows.matrices[0]), np.asarray(rows.noises[0])
    y = X @ np.asarray(RECTANGLE.invariant).ravel() + eps
    F, G = result.left_factor.values[0, 0], result.right_factor.values[0, 0]
    np.testing.assert_allclose(F @ G.T, reference.truncated((y @ X / len(y)).reshape(N1, N2), 2), atol=1e-12)

    exact = gs.run(algorithm, FACTORISATION, num_steps=1, record=["distance"], record_at=[0])
    assert exact.distance[0, 0] < 1e-14


def test_spectral_start_and_later_readings_see_one_design():
    """With H = X^T X / m, the start is H a and the gradient of step t is H (a_t - a): H is symmetric only if it is one."""
    eta, truth = 0.1, np.diag([1.0, 0.6])
    algorithm = gs.GradientDescent(eta, width=2, start=gs.starts.Spectral())
    problem = gs.Problem(gs.Environments(np.eye(2), values=[1.0, 0.6]), gs.FixedGaussian(9))
    names = ["left_factor", "right_factor"]
    result = gs.run(algorithm, problem, num_steps=7, record=names, record_at=8)  # more questions than dimensions
    F, G = result.left_factor.values[0], result.right_factor.values[0]
    first = F[0] @ G[0].T
    for t in range(7):
        gradient = (F[t] - F[t + 1]) / eta @ np.linalg.inv(G[t])  # F moved by -eta M G
        # Both sides are a^T H (a_t - a), of order 0.1; inverting the step divides rounding by eta.
        assert np.sum(truth * gradient) == pytest.approx(np.sum(first * (F[t] @ G[t].T - truth)), abs=1e-12)
    assert np.abs(first - truth).max() > 0.05  # nine samples: H is not the identity
