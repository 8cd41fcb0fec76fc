"""Our normals are JAX's, bit for bit, in every context in which they are drawn."""

from __future__ import annotations

import jax
import numpy as np
import pytest

from gyrostat.gaussians import normal
from gyrostat.precision import double


@pytest.mark.parametrize("count", [0, 1, 2, 7, 210, 5050])
def test_bit_for_bit(count):
    with double():
        key = jax.random.fold_in(jax.random.key(11), count)
        ours = jax.jit(normal, static_argnums=1)(key, count)
        assert np.array_equal(ours, jax.random.normal(key, (count,), dtype=float))


def test_under_vmap():
    with double():
        keys = jax.random.split(jax.random.key(4), 5)
        ours = jax.vmap(lambda k: normal(k, 33))(keys)
        assert np.array_equal(ours, jax.vmap(lambda k: jax.random.normal(k, (33,), dtype=float))(keys))


def test_single_precision_and_other_generators_fall_back_to_jax():
    key = jax.random.key(2)
    assert np.array_equal(normal(key, 9), jax.random.normal(key, (9,)))
    with double():
        other = jax.random.key(2, impl="rbg")
        assert np.array_equal(normal(other, 9), jax.random.normal(other, (9,), dtype=float))
