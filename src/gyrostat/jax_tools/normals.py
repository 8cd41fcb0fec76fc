"""Standard normals, the numbers of ``jax.random.normal`` bit for bit, and chi-squares made of them."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Float, PRNGKeyArray

from gyrostat.jax_tools.random_bits import fold_in, fractions, is_written_out

HALVES = 2


def normal(key: PRNGKeyArray, count: int) -> Float[Array, " count"]:
    """``count`` independent N(0, 1) numbers, those of ``jax.random.normal(key, (count,))``, at two thirds of the cost.

    >>> from gyrostat.jax_tools.float64 import double
    >>> with double():
    ...     key = jax.random.key(3)
    ...     bool((normal(key, 7) == jax.random.normal(key, (7,), dtype=float)).all())
    True
    """
    if not is_written_out(key):
        return jax.random.normal(key, (count,), dtype=float)
    size = -(-count // HALVES)

    def fill(i: Array, out: Array) -> Array:
        return lax.dynamic_update_slice(out, _gaussian(fractions(key, i * size, size)), (i * size,))

    # A loop over two halves: without it XLA draws the numbers again for each of their consumers.
    return lax.fori_loop(0, HALVES, fill, jnp.zeros(HALVES * size, dtype=float))[:count]


def stretch(key: PRNGKeyArray, start: int | Array, count: int) -> Float[Array, " count"]:
    """Numbers ``start`` ... of the stream of :func:`normal`; only for a key that is written out.

    >>> from gyrostat.jax_tools.float64 import double
    >>> with double():
    ...     key = jax.random.key(3)
    ...     bool((stretch(key, 4, 3) == normal(key, 7)[4:]).all())
    True
    """
    return _gaussian(fractions(key, start, count))


def few_normals(key: PRNGKeyArray, count: int) -> Float[Array, " count"]:
    """The numbers of :func:`normal` without its loop: for a handful that one consumer asks for."""
    return _gaussian(fractions(key, 0, count)) if is_written_out(key) else jax.random.normal(key, (count,), dtype=float)


def chi_square(key: PRNGKeyArray, freedom: Float[Array, ""]) -> Float[Array, ""]:
    """A chi-square number with ``freedom`` >= 1 degrees, by the rejection of Marsaglia and Tsang (2000).

    With a = freedom/2, d = a - 1/3 and x normal, d (1 + x/sqrt(9d))^3 is accepted as Gamma(a). The inequality that it
    rests on, 3 log y <= y^3 - 1 - 9/2 (y - 1)^2 for y > 0, does not involve a, so that a > 1/3 is enough. Half the sum of
    two squared normals is the exponential number of the test. Compiles in half the time of ``jax.random.chisquare``.
    """
    d = freedom / 2 - 1 / 3

    def rejected(state: tuple[Array, Float[Array, " 3"]]) -> Array:
        x, a, b = state[1]
        t = x / jnp.sqrt(9 * d)
        surplus = d * (t**3 - 1.5 * t**2 + 3 * (t - jnp.log1p(t)))
        return (t <= -1) | ((a * a + b * b) / 2 <= surplus)

    def attempt(state: tuple[Array, Float[Array, " 3"]]) -> tuple[Array, Float[Array, " 3"]]:
        return state[0] + 1, few_normals(fold_in(key, state[0]), 3)

    # Zeros are rejected, so that the loop is entered.
    _, z = lax.while_loop(rejected, attempt, (jnp.zeros((), dtype=jnp.uint32), jnp.zeros(3, dtype=float)))
    return 2 * d * (1 + z[0] / jnp.sqrt(9 * d)) ** 3


def _gaussian(uniforms: Float[Array, " size"]) -> Float[Array, " size"]:
    """Normal numbers, by inversion."""
    low = np.nextafter(-1.0, 0.0)
    return np.sqrt(2) * lax.erf_inv(jnp.maximum(low, uniforms * (1.0 - low) + low))
