"""Our keys and uniform numbers are JAX's, bit for bit."""

from __future__ import annotations

from contextlib import nullcontext

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from gyrostat.jax_tools.float64 import double
from gyrostat.jax_tools.random_bits import fold_in, split, uniform


def words(keys):
    return np.asarray(jax.random.key_data(keys))


@pytest.mark.parametrize("impl", ["threefry2x32", "rbg"])
@pytest.mark.parametrize("precision", [double, nullcontext])
def test_bit_for_bit(impl, precision):
    with precision():
        key = jax.random.key(11, impl=impl)
        for number in (0, 1, 2**30 + 5, jnp.asarray(7)):
            assert np.array_equal(words(fold_in(key, number)), words(jax.random.fold_in(key, number)))
        for count in (1, 2, 33):
            assert np.array_equal(words(split(key, count)), words(jax.random.split(key, count)))
            assert np.array_equal(uniform(key, count), jax.random.uniform(key, (count,), dtype=float))


def test_under_vmap_and_jit():
    with double():
        keys = jax.random.split(jax.random.key(4), 5)
        ours = jax.jit(jax.vmap(lambda k: uniform(split(fold_in(k, 3))[1], 4)))(keys)
        theirs = jax.vmap(
            lambda k: jax.random.uniform(jax.random.split(jax.random.fold_in(k, 3))[1], (4,), dtype=float)
        )
        assert np.array_equal(ours, theirs(keys))
