"""Gaussian noise in place of that of SGD: moments against NumPy, and what is refused."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import gyrostat as gs
from conftest import random_layers
from gyrostat.algorithms.events import Moment
from gyrostat.measurements import Reading
from gyrostat.papers.wang2023.gaussian_noise import LangevinNoise, MatchedNoise

PAIRS = ((0, 0), (1, 0), (1, 1))
TRUTH = np.array([[1.0, 4.0], [0.25, 1.0]])
MODEL = gs.DeepLinear(3, 2)
ETA, DRAWS = 0.1, 20_000


def _entry_gradients(layers):
    """The gradients of (A_ij - y_ij)^2 / 2, one row per observed entry: a NumPy twin by central differences."""

    def error(theta, i, j):
        first, middle, last = theta.reshape(3, 2, 2)
        return ((last @ middle @ first)[i, j] - TRUTH[i, j]) ** 2 / 2

    theta, h = np.concatenate([W.ravel() for W in layers]), 1e-5
    steps = h * np.eye(theta.size)
    return np.array([[(error(theta + s, i, j) - error(theta - s, i, j)) / (2 * h) for s in steps] for i, j in PAIRS])


def _drawn(event):
    """Many draws of what the event adds to the layers, and the gradients of the entries there."""
    layers = random_layers(MODEL, 3, (2, 2))
    error = layers[2] @ layers[1] @ layers[0] - TRUTH
    mask = np.array([[1.0, 0.0], [1.0, 1.0]])
    reading = Reading(jnp.asarray(mask * error / len(PAIRS)), jnp.asarray(0.0), jnp.asarray(0.0), None)

    def added(key):
        moment = Moment(jnp.asarray(0), key, jnp.asarray(ETA), layers, layers, reading)
        after, _ = event((), MODEL, moment)
        return jnp.concatenate([(a - b).ravel() for a, b in zip(after, layers, strict=True)])

    return np.asarray(jax.vmap(added)(jax.random.split(jax.random.key(1), DRAWS))), _entry_gradients(layers)


def _same_covariance(draws, wanted):
    # The standard error of an entry is at most sqrt(2 / DRAWS) = .01 of the largest variance; 5 of them for 144 entries.
    np.testing.assert_allclose(draws.T @ draws / len(draws), wanted, atol=0.05 * np.diag(wanted).max())
    np.testing.assert_allclose(draws.mean(axis=0), 0, atol=5 * (np.diag(wanted).max() / len(draws)) ** 0.5)


def test_langevin_noise_has_the_variance_of_its_temperature(x64):
    draws, _ = _drawn(LangevinNoise(0.02))
    _same_covariance(draws, 2 * (2 * ETA) * 0.02 * np.eye(12))


def test_noise_of_matched_trace_is_isotropic(x64):
    draws, gradients = _drawn(MatchedNoise(PAIRS, "trace", convention="main_text", scale=3.0))
    trace = np.trace(np.cov(gradients.T, bias=True))
    _same_covariance(draws, (3 * ETA) ** 2 * trace / 12 * np.eye(12))


def test_noise_of_matched_covariance_is_that_of_the_entries(x64):
    draws, gradients = _drawn(MatchedNoise(PAIRS, "covariance"))
    _same_covariance(draws, (2 * ETA) ** 2 * np.cov(gradients.T, bias=True))


def test_matched_noise_refuses_single_entries_and_other_pairs():
    event = MatchedNoise(PAIRS, "trace")
    for seen in (gs.Entries(PAIRS, batch_size=1), gs.Entries(PAIRS[:2]), gs.Identity()):
        with pytest.raises(gs.GyrostatError, match="same pairs"):
            event.check(None, gs.Problem(gs.RectangularEnvironments.of(TRUTH), seen))
