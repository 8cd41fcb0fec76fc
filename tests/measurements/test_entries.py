"""Readings of observed entries: whole batches, batches with and without replacement, mixtures, noise."""

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


@pytest.mark.parametrize("index", [0, 1])
def test_the_whole_set_is_the_gradient_of_the_mean_square(index, x64):
    A, y = product(), target(TWO, index)[ROWS, COLUMNS]

    def loss(A):
        return jnp.sum((A[ROWS, COLUMNS] - y) ** 2) / (2 * len(PAIRS))

    reading = read(gs.Entries(PAIRS), A, index=index)
    np.testing.assert_allclose(reading.gradient, jax.grad(loss)(A), rtol=1e-13, atol=1e-14)
    assert float(reading.residual_square) == pytest.approx(2 * float(loss(A)), rel=1e-13)
    assert float(reading.response_mean) == pytest.approx(y.mean(), rel=1e-13)


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
    state = measurements.init(jax.random.key(0), TWO, SPACE, ONE)
    scene = Scene(TWO, SPACE, jnp.asarray(product()))

    @jax.jit
    def sense(state, number, index):
        reading, state = measurements.sense(
            state, jax.random.fold_in(jax.random.key(1), number), scene, TWO.law.at(index)
        )
        return reading.gradient, state

    batches = []
    for t in range(40):  # the other environment has its own order
        for index in (0, 1, 1) if t % 2 else (0,):
            gradient, state = sense(state, 10 * t + index, index)
            if index == 0:
                batches.append(tuple(np.flatnonzero(np.asarray(gradient)[ROWS, COLUMNS])))
    assert all(len(batch) == 2 for batch in batches)
    assert [set(a) | set(b) for a, b in zip(batches[::2], batches[1::2], strict=True)] == [{0, 1, 2, 3}] * 20
    assert len(set(batches[::2])) > 3


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
    one, two = (read(noisy, A, key=key).gradient for key in (1, 2))
    np.testing.assert_array_equal(one, two)
    assert (np.asarray(one - read(gs.Entries(PAIRS), A).gradient)[ROWS, COLUMNS] != 0).all()
    many = gs.Entries([(i, j) for i in range(30) for j in range(30)], noise=0.5)
    wide = rectangular_environments(30, 30, gs.Finite([-1.0, 2.0]))
    noises = many.init(jax.random.key(0), wide, gs.DeepLinear().space((30, 30)), ONE).noises
    assert stats.kstest(np.asarray(noises).ravel() / 0.5, "norm").pvalue > LEVEL
