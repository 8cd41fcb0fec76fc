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


def sensed(measurements, product, key=0, environments=None, index=0):
    environments = rectangular_environments(*SHAPE, gs.Finite([-1.0, 2.0])) if environments is None else environments
    space = gs.DeepLinear().space(SHAPE)
    state = measurements.init(jax.random.key(99), environments, space, Demand(1, False))
    scene, environment = Scene(environments, space, product), environments.law.at(index)
    return measurements.sense(state, jax.random.key(key), scene, environment), environments


PAIRS = [(0, 0), (2, 3), (1, 1), (2, 0)]


@pytest.mark.parametrize("index", [0, 1])
def test_the_whole_set_is_the_gradient_of_the_mean_square(index, x64):
    A = jnp.asarray(np.random.default_rng(0).standard_normal(SHAPE))
    (reading, _), environments = sensed(gs.Entries(PAIRS), A, index=index)
    target = np.asarray(environments.target(environments.law.at(index).sigma))
    rows, columns = np.array(PAIRS).T

    def loss(A):
        return jnp.sum((A[rows, columns] - target[rows, columns]) ** 2) / (2 * len(PAIRS))

    np.testing.assert_allclose(reading.gradient, jax.grad(loss)(A), rtol=1e-13, atol=1e-14)
    assert float(reading.residual_square) == pytest.approx(2 * float(loss(A)), rel=1e-13)
    assert float(reading.response_mean) == pytest.approx(target[rows, columns].mean(), rel=1e-13)


@pytest.mark.parametrize("batch", [1, 3])
def test_a_batch_with_replacement_draws_every_entry_equally_often(batch, x64):
    A = jnp.asarray(np.random.default_rng(1).standard_normal(SHAPE))
    environments = rectangular_environments(*SHAPE, gs.Finite([-1.0, 2.0]))
    measurements, n = gs.Entries(PAIRS, batch_size=batch), 3000

    def one(key):
        space = gs.DeepLinear().space(SHAPE)
        state = measurements.init(key, environments, space, Demand(1, False))
        return measurements.sense(state, key, Scene(environments, space, A), environments.law.at(0))[0]

    found = jax.jit(jax.vmap(one))(jax.random.split(jax.random.key(5), n))
    residual = np.asarray(A - environments.target(environments.law.at(0).sigma))
    rows, columns = np.array(PAIRS).T
    counts = np.round(np.asarray(found.gradient)[:, rows, columns] * batch / residual[rows, columns]).astype(int)
    assert (counts.sum(axis=1) == batch).all()
    outside = np.ones(SHAPE, dtype=bool)
    outside[rows, columns] = False
    assert np.abs(np.asarray(found.gradient)[:, outside]).max() == 0
    assert stats.chisquare(counts.sum(axis=0)).pvalue > LEVEL
    squares = counts @ residual[rows, columns] ** 2 / batch
    np.testing.assert_allclose(found.residual_square, squares, rtol=1e-12)


def test_without_replacement_every_pass_sees_every_entry_once_in_a_new_order(x64):
    environments = rectangular_environments(*SHAPE, gs.Finite([-1.0, 2.0]))
    measurements, space = gs.Entries(PAIRS, batch_size=2, order="shuffled"), gs.DeepLinear().space(SHAPE)
    A = np.random.default_rng(1).standard_normal(SHAPE) + 9.0
    state = measurements.init(jax.random.key(0), environments, space, Demand(1, False))

    @jax.jit
    def sense(state, number, index):
        key = jax.random.fold_in(jax.random.key(1), number)
        reading, state = measurements.sense(
            state, key, Scene(environments, space, jnp.asarray(A)), environments.law.at(index)
        )
        return reading.gradient, state

    rows, columns = np.array(PAIRS).T
    orders = []
    for t in range(40):  # the other environment has its own order
        for index in (0, 1, 1) if t % 2 else (0,):
            gradient, state = sense(state, 10 * t + index, index)
            if index == 0:
                orders.append(tuple(np.flatnonzero(np.asarray(gradient)[rows, columns])))
    assert all(len(batch) == 2 for batch in orders)
    passes = [set(a) | set(b) for a, b in zip(orders[::2], orders[1::2], strict=True)]
    assert passes == [{0, 1, 2, 3}] * 20
    assert len({a for a in orders[::2]}) > 3


def test_a_mixture_draws_an_environment_for_every_entry(x64):
    environments = rectangular_environments(*SHAPE, gs.Finite([-1.0, 2.0], [0.25, 0.75]))
    measurements, space, n = gs.Entries(PAIRS, batch_size=1), gs.DeepLinear().space(SHAPE), 4000
    A = jnp.zeros(SHAPE)

    def one(key):
        state = measurements.init(key, environments, space, Demand(1, True))
        return measurements.mix(state, key, Scene(environments, space, A))[0].gradient

    found = np.asarray(jax.jit(jax.vmap(one))(jax.random.split(jax.random.key(5), n)))
    counts = []
    for i, j in PAIRS:
        for index in (0, 1):
            y = float(environments.target(environments.law.at(index).sigma)[i, j])
            counts.append(int(np.isclose(-found[:, i, j], y, rtol=1e-9, atol=0).sum()))
    assert sum(counts) == n  # the two environments differ at each of these entries
    assert stats.chisquare(counts, n / 4 * np.tile([0.25, 0.75], 4)).pvalue > LEVEL


def test_noise_is_drawn_once_per_run_and_environment(x64):
    measurements = gs.Entries(PAIRS, noise=0.5)
    (one, _), _environments = sensed(measurements, jnp.zeros(SHAPE), key=1)
    (two, _), _ = sensed(measurements, jnp.zeros(SHAPE), key=2)
    np.testing.assert_array_equal(one.gradient, two.gradient)
    (clean, _), _ = sensed(gs.Entries(PAIRS), jnp.zeros(SHAPE))
    rows, columns = np.array(PAIRS).T
    wide = rectangular_environments(30, 30, gs.Finite([-1.0, 2.0]))
    many = gs.Entries([(i, j) for i in range(30) for j in range(30)], noise=0.5)
    noises = many.init(jax.random.key(0), wide, gs.DeepLinear().space((30, 30)), Demand(1, False)).noises
    assert stats.kstest(np.asarray(noises).ravel() / 0.5, "norm").pvalue > LEVEL
    assert (np.asarray(one.gradient - clean.gradient)[rows, columns] != 0).all()
