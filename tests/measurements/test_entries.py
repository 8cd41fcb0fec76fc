"""Readings of observed entries: batches with and without replacement, mixtures, noise. Gradients: test_conformance.py."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

import gyrostat as gs
from conftest import rectangular_environments
from gyrostat.measurements import Demand
from gyrostat.measurements.base import Scene

SHAPE = (3, 4)

LEVEL = 1e-4
"""The level of each of the three tests of a law in this file; keys are fixed."""


PAIRS = [(0, 0), (2, 3), (1, 1), (2, 0)]


TWO = rectangular_environments(*SHAPE, gs.Finite([-1.0, 2.0]))
SPACE = gs.DeepLinear().space(SHAPE)
ROWS, COLUMNS = np.array(PAIRS).T
ONE, MIXED = Demand(1, False), Demand(1, True)


def product(seed: int = 1) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(SHAPE) + 9.0  # far from the targets: no residual is zero


def target(environments, index: int) -> np.ndarray:
    return np.asarray(environments.target(environments.law.at(index).sigma))


def read(measurements, A, key=0, index=0):
    state = measurements.init(jax.random.key(99), TWO, SPACE, ONE)
    scene = Scene(TWO, SPACE, jnp.asarray(A))
    return measurements.sense(state, jax.random.key(key), scene, TWO.law.at(index))[0]


@pytest.mark.parametrize("batch", [1, 3])
def test_a_batch_with_replacement_draws_every_entry_equally_often(batch, x64):
    A, measurements = product(), gs.Entries(PAIRS, batch_size=batch)
    scene = Scene(TWO, SPACE, jnp.asarray(A))

    def one(key):
        return measurements.sense(measurements.init(key, TWO, SPACE, ONE), key, scene, TWO.law.at(0))[0]

    readings = jax.jit(jax.vmap(one))(jax.random.split(jax.random.key(5), 3000))
    residual = (A - target(TWO, 0))[ROWS, COLUMNS]
    counts = np.round(np.asarray(readings.gradient)[:, ROWS, COLUMNS] * batch / residual).astype(int)
    assert (counts.sum(axis=1) == batch).all()
    outside = np.ones(SHAPE, dtype=bool)
    outside[ROWS, COLUMNS] = False
    assert np.abs(np.asarray(readings.gradient)[:, outside]).max() == 0
    assert stats.chisquare(counts.sum(axis=0)).pvalue > LEVEL
    np.testing.assert_allclose(readings.residual_square, counts @ residual**2 / batch, rtol=1e-12)


def test_without_replacement_every_pass_sees_every_entry_once_in_a_new_order(x64):
    measurements = gs.Entries(PAIRS, batch_size=2, order="shuffled")
    state, scene = measurements.init(jax.random.key(0), TWO, SPACE, ONE), Scene(TWO, SPACE, jnp.asarray(product()))

    @jax.jit
    def sense(state, key, index):
        reading, state = measurements.sense(state, key, scene, TWO.law.at(index))
        return reading.gradient[ROWS, COLUMNS] != 0, state

    batches = {0: [], 1: []}
    keys = jax.random.split(jax.random.key(1), 120)
    for key, index in zip(keys, [0, 0, 1] * 40, strict=True):  # each environment has its own order
        seen, state = sense(state, key, index)
        batches[index].append(np.asarray(seen))
    for several in batches.values():
        passes = np.array(several).reshape(-1, 2, len(PAIRS))
        assert (passes.sum(axis=1) == 1).all() and (passes.sum(axis=2) == 2).all()
        assert len(np.unique(passes[:, 0], axis=0)) > 3


def test_a_mixture_draws_an_environment_for_every_entry(x64):
    environments = rectangular_environments(*SHAPE, gs.Finite([-1.0, 2.0], [0.25, 0.75]))
    measurements, n = gs.Entries(PAIRS, batch_size=1), 4000
    scene = Scene(environments, SPACE, jnp.zeros(SHAPE))

    def one(key):
        return measurements.mix(measurements.init(key, environments, SPACE, MIXED), key, scene)[0].gradient

    gradients = np.asarray(jax.jit(jax.vmap(one))(jax.random.split(jax.random.key(5), n)))
    responses = np.array([target(environments, index)[ROWS, COLUMNS] for index in (0, 1)])
    counts = np.isclose(-gradients[:, None, ROWS, COLUMNS], responses, rtol=1e-9, atol=0).sum(axis=0)
    assert counts.sum() == n  # the two environments differ at each of these entries
    assert stats.chisquare(counts.ravel(), n / 4 * np.repeat([0.25, 0.75], 4)).pvalue > LEVEL


def test_noise_is_drawn_once_per_run_and_environment(x64):
    noisy, A = gs.Entries(PAIRS, noise=0.5), product()
    one, two, other = (read(noisy, A, key, index).gradient for key, index in ((1, 0), (2, 0), (1, 1)))
    np.testing.assert_array_equal(one, two)
    exact = [read(gs.Entries(PAIRS), A, index=index).gradient for index in (0, 1)]
    noises = np.array([one - exact[0], other - exact[1]])[:, ROWS, COLUMNS]
    assert np.abs(noises).min() > 0 and np.abs(noises[0] - noises[1]).min() > 0
    many = gs.Entries([(i, j) for i in range(30) for j in range(30)], noise=0.5)
    wide = rectangular_environments(30, 30, gs.Finite([-1.0, 2.0]))
    noises = many.init(jax.random.key(0), wide, gs.DeepLinear().space((30, 30)), ONE).noises
    assert stats.kstest(np.asarray(noises).ravel() / 0.5, "norm").pvalue > LEVEL
