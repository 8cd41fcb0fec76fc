"""Our normals are JAX's, bit for bit, in every context in which they are drawn; chi-squares have their law."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from gyrostat.jax_tools.float64 import double
from gyrostat.jax_tools.normals import chi_square, normal


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


@pytest.mark.parametrize("freedom", [1.0, 2.0, 3.0, 7.0, 40.0, 2000.0, 1e7])
def test_chi_square_law(freedom):
    with double():
        keys = jax.random.split(jax.random.key(int(freedom)), 100_000)
        found = np.asarray(jax.jit(jax.vmap(lambda key: chi_square(key, jnp.asarray(freedom))))(keys))
    # Seven tests at a family level of 1e-3; keys are fixed.
    assert stats.kstest(found, stats.chi2(freedom).cdf).pvalue > 1e-3 / 7
    assert stats.kstest(found, stats.chi2(freedom, scale=1 + 0.1 / freedom**0.5).cdf).pvalue < 1e-9


def test_chi_square_rests_on_an_inequality_for_all_degrees():
    y = np.geomspace(1e-6, 1e3, 100_001)
    assert (3 * np.log(y) <= y**3 - 1 - 4.5 * (y - 1) ** 2 + 1e-12).all()
