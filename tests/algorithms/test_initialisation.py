"""Starts of factors and of layers: their laws, their shapes, and how they use the data."""

from __future__ import annotations

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
"""The level of each of the ten tests of a law in this file; keys are fixed."""


def entries_are_normal(entries: np.ndarray, deviation: float) -> None:
    entries = np.asarray(entries).ravel()
    assert stats.kstest(entries, stats.norm(scale=deviation).cdf).pvalue > LEVEL
    # The test can fail: a deviation that is off by a third.
    assert stats.kstest(entries, stats.norm(scale=1.3 * deviation).cdf).pvalue < 1e-6


def test_gaussian_starts_have_the_deviations_of_the_paper(x64):
    key = jax.random.key(0)
    (X,) = gs.SymmetricGaussian(0.5)(gs.Symmetric(9), (400, 400), key)
    entries_are_normal(X, 0.5 / 3)
    F, G = gs.ImbalancedGaussian(0.5)(gs.Asymmetric(16), (100, 225), key)
    entries_are_normal(F, 0.5 / 10)
    entries_are_normal(G, 0.5 / 3 / 15)
    F, G = gs.ImbalancedGaussian(0.5, ratio=1.0)(gs.Asymmetric(16), (100, 225), key)
    entries_are_normal(G, 0.5 / 15)
    assert abs(stats.pearsonr(np.ravel(F)[:1600], np.ravel(G)[:1600]).statistic) < 5 / 40  # five standard errors


def test_orthonormal_start_is_uniform_and_leaves_the_other_factor_at_zero(x64):
    n, draws = 5, 1500
    start = jax.jit(jax.vmap(lambda key: gs.OrthonormalZero(2.0)(gs.Asymmetric(2), (n, 4), key)))
    F, G = (np.asarray(x) for x in start(jax.random.split(jax.random.key(1), draws)))
    assert G.shape == (draws, 4, 2) and not G.any()
    np.testing.assert_allclose(np.swapaxes(F, 1, 2) @ F, np.broadcast_to(4 * np.eye(2), (draws, 2, 2)), atol=1e-13)
    # An entry of a uniform direction: (1 + u) / 2 is Beta((n - 1)/2, (n - 1)/2).
    for i, j in [(0, 0), (n - 1, 0), (0, 1), (n - 1, 1)]:
        u = F[:, i, j] / 2
        assert stats.kstest((1 + u) / 2, stats.beta((n - 1) / 2, (n - 1) / 2).cdf).pvalue > LEVEL
        assert stats.kstest((1 + np.abs(u)) / 2, stats.beta((n - 1) / 2, (n - 1) / 2).cdf).pvalue < 1e-6


def test_spectral_start_is_the_estimate_from_the_first_gradient():
    """(1/m) sum_i y_i X_i of the shared rows, cut to the rank; and on the population the truth itself."""
    measurements = gs.Dense(30, noise=0.2, design=4)
    algorithm = gs.GradientDescent(0.1, width=2, start=gs.Spectral())
    options = {"num_steps": 1, "record": ["left_factor", "right_factor"], "record_at": [0]}
    found = gs.run(algorithm, gs.Problem(RECTANGLE, measurements), **options)
    rows = measurements.rows(RECTANGLE, gs.Asymmetric().space(RECTANGLE.shape))
    X, eps = np.asarray(rows.matrices[0]), np.asarray(rows.noises[0])
    y = X @ np.asarray(RECTANGLE.invariant).ravel() + eps
    F, G = found.left_factor.values[0, 0], found.right_factor.values[0, 0]
    np.testing.assert_allclose(F @ G.T, reference.truncated((y @ X / len(y)).reshape(N1, N2), 2), atol=1e-12)

    exact = gs.run(algorithm, FACTORISATION, num_steps=1, record=["distance"], record_at=[0])
    assert exact.distance[0, 0] < 1e-14


def test_spectral_start_and_later_readings_see_one_design():
    """With H = X^T X / m, the start is H a and the gradient of step t is H (a_t - a): H is symmetric only if it is one."""
    eta, truth = 0.1, np.diag([1.0, 0.6])
    algorithm = gs.GradientDescent(eta, width=2, start=gs.Spectral())
    problem = gs.Problem(gs.Environments(np.eye(2), values=[1.0, 0.6]), gs.FixedGaussian(9))
    names = ["left_factor", "right_factor"]
    found = gs.run(algorithm, problem, num_steps=7, record=names, record_at=8)  # more questions than dimensions
    F, G = found.left_factor.values[0], found.right_factor.values[0]
    first = F[0] @ G[0].T
    for t in range(7):
        gradient = (F[t] - F[t + 1]) / eta @ np.linalg.inv(G[t])  # F moved by -eta M G
        # Both sides are a^T H (a_t - a), of order 0.1; inverting the step divides rounding by eta.
        assert np.sum(truth * gradient) == pytest.approx(np.sum(first * (F[t] @ G[t].T - truth)), abs=1e-12)
    assert np.abs(first - truth).max() > 0.05  # nine samples: H is not the identity


def test_uniform_start_has_the_law_of_torch(x64):
    torch = pytest.importorskip("torch")
    torch.manual_seed(0)
    found = gs.FanInUniform()(gs.DeepLinear(3, 100), (2, 9), jax.random.key(1))
    for W in found:
        theirs = torch.nn.Linear(W.shape[1], W.shape[0], bias=False).weight.detach().numpy()
        assert theirs.shape == W.shape
        bound = W.shape[1] ** -0.5
        assert stats.kstest(np.asarray(W).ravel(), "uniform", args=(-bound, 2 * bound)).pvalue > LEVEL / 3
        assert np.abs(theirs).max() <= bound + 1e-6


def test_gaussian_and_orthogonal_starts(x64):
    model, key = gs.DeepLinear(4, 40), jax.random.key(2)
    starts = (gs.FanInGaussian(0.5), gs.Orthogonal(0.5))
    gaussian, orthogonal = jax.jit(lambda key: [start(model, (3, 5), key) for start in starts])(key)
    for W in gaussian:
        assert abs(np.std(W) * W.shape[1] ** 0.5 - 0.5) < 5 * 0.5 / np.sqrt(2 * W.size)  # five standard errors
    found = [np.asarray(W) for W in orthogonal]
    assert tuple(W.shape for W in found) == model.shapes((3, 5))
    for W in found:
        gram = W.T @ W if W.shape[0] >= W.shape[1] else W @ W.T
        np.testing.assert_allclose(gram, 0.25 * np.eye(len(gram)), atol=1e-13)
    # Uniform: an entry of a column of length 40 has mean 0 and variance 1 / 40.
    keys = jax.random.split(jax.random.key(3), 2000)
    corner = np.asarray(jax.jit(jax.vmap(lambda k: gs.Orthogonal()(gs.DeepLinear(2, 3), (3, 3), k)[0][2, 2]))(keys))
    assert stats.kstest(corner, "uniform", args=(-1, 2)).pvalue > LEVEL  # Archimedes: on the sphere in three dimensions
