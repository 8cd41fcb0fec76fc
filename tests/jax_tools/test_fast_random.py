"""Our keys, uniform numbers and normals are those of JAX, bit for bit, in every context in which they are drawn."""

from __future__ import annotations

from contextlib import nullcontext

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from gyrostat.jax_tools.fast_random import fold_in, normal, split, uniform
from gyrostat.jax_tools.float64 import double


def words(keys):
    return np.asarray(jax.random.key_data(keys))


@pytest.mark.parametrize("impl", ["threefry2x32", "rbg"])
@pytest.mark.parametrize("precision", [double, nullcontext])
def test_keys_and_uniform_numbers_are_bit_for_bit(impl, precision):
    with precision():
        key = jax.random.key(11, impl=impl)
        for number in (0, 1, 2**30 + 5, jnp.asarray(7)):
            assert np.array_equal(words(fold_in(key, number)), words(jax.random.fold_in(key, number)))
        for count in (1, 2, 33):
            assert np.array_equal(words(split(key, count)), words(jax.random.split(key, count)))
            assert np.array_equal(uniform(key, count), jax.random.uniform(key, (count,), dtype=float))


def test_keys_and_uniform_numbers_under_vmap_and_jit():
    with double():
        keys = jax.random.split(jax.random.key(4), 5)
        ours = jax.jit(jax.vmap(lambda k: uniform(split(fold_in(k, 3))[1], 4)))(keys)
        theirs = jax.vmap(
            lambda k: jax.random.uniform(jax.random.split(jax.random.fold_in(k, 3))[1], (4,), dtype=float)
        )
        assert np.array_equal(ours, theirs(keys))


@pytest.mark.parametrize("count", [0, 1, 2, 7, 210, 5050])
def test_normals_are_bit_for_bit_also_under_vmap(count):
    with double():
        keys = jax.random.split(jax.random.key(4), 3)
        theirs = jax.vmap(lambda k: jax.random.normal(k, (count,), dtype=float))(keys)
        assert np.array_equal(jax.vmap(lambda k: normal(k, count))(keys), theirs)
        assert np.array_equal(jax.jit(normal, static_argnums=1)(keys[1], count), theirs[1])


def test_normals_in_single_precision_and_other_generators_fall_back_to_jax():
    key = jax.random.key(2)
    assert np.array_equal(normal(key, 9), jax.random.normal(key, (9,)))
    with double():
        other = jax.random.key(2, impl="rbg")
        assert np.array_equal(normal(other, 9), jax.random.normal(other, (9,), dtype=float))
