"""The random streams of JAX, bit for bit, made faster on a CPU: keys, uniform numbers and standard normals.

On a CPU, JAX compiles the rounds of its default generator (threefry) to a loop. Unrolled rounds compile sooner, and the
few words that a step needs for its keys take a third of the time. The functions here call JAX for other generators, and
for uniform and normal numbers in single precision.
"""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Float, Int, PRNGKeyArray, UInt

ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
HALVES = 2


def fold_in(key: PRNGKeyArray, number: int | Int[Array, ""]) -> PRNGKeyArray:
    """The key of ``jax.random.fold_in``.

    >>> key = jax.random.key(3)
    >>> bool(fold_in(key, 5) == jax.random.fold_in(key, 5))
    True
    """
    if not is_threefry(key):
        return jax.random.fold_in(key, number)
    return _child(key, jnp.asarray(number).astype(jnp.uint32))


def split(key: PRNGKeyArray, count: int = 2) -> PRNGKeyArray:
    """The keys of ``jax.random.split``.

    >>> key = jax.random.key(3)
    >>> bool((split(key, 5) == jax.random.split(key, 5)).all())
    True
    """
    if not is_threefry(key):
        return jax.random.split(key, count)
    return _child(key, lax.iota(jnp.uint32, count))


def uniform(key: PRNGKeyArray, count: int) -> Float[Array, " count"]:
    """The numbers of ``jax.random.uniform(key, (count,))``, uniform on [0, 1)."""
    return uniform_slice(key, 0, count) if is_unrolled(key) else jax.random.uniform(key, (count,), dtype=float)


def uniform_slice(key: PRNGKeyArray, start: int | Array, count: int) -> Float[Array, " count"]:
    """``uniform(key, start + count)[start:]`` without the numbers before ``start``, for a key that :func:`is_unrolled`."""
    low = lax.iota(jnp.uint32, count) + jnp.asarray(start).astype(jnp.uint32)
    a, b = _hash(jax.random.key_data(key), low)
    bits = (a.astype(jnp.uint64) << np.uint64(32)) | b.astype(jnp.uint64)
    return lax.bitcast_convert_type((bits >> np.uint64(12)) | np.uint64(0x3FF0000000000000), jnp.float64) - 1.0


@functools.partial(jax.jit, static_argnums=1)  # else the loop is compiled again at each use outside of a program
def normal(key: PRNGKeyArray, count: int) -> Float[Array, " count"]:
    """The numbers of ``jax.random.normal(key, (count,))``, independent N(0, 1), at two thirds of the cost.

    >>> from gyrostat.jax_tools.float64 import double
    >>> with double():
    ...     key = jax.random.key(3)
    ...     bool((normal(key, 7) == jax.random.normal(key, (7,), dtype=float)).all())
    True
    """
    if not is_unrolled(key):
        return jax.random.normal(key, (count,), dtype=float)
    size = -(-count // HALVES)

    def fill(i: Array, out: Array) -> Array:
        return lax.dynamic_update_slice(out, _gaussian(uniform_slice(key, i * size, size)), (i * size,))

    # A loop over two halves: without a loop, XLA draws the numbers again for each of their consumers.
    return lax.fori_loop(0, HALVES, fill, jnp.zeros(HALVES * size, dtype=float))[:count]


def few_normals(key: PRNGKeyArray, count: int) -> Float[Array, " count"]:
    """The numbers of :func:`normal` without its loop: for a few numbers that are used once."""
    return (
        _gaussian(uniform_slice(key, 0, count)) if is_unrolled(key) else jax.random.normal(key, (count,), dtype=float)
    )


def is_unrolled(key: PRNGKeyArray) -> bool:
    """Whether the numbers of ``key`` are made here: the default generator of JAX, in double precision."""
    return jnp.result_type(float) == jnp.float64 and is_threefry(key)


def is_threefry(key: PRNGKeyArray) -> bool:
    """Whether ``key`` belongs to the default generator of JAX."""
    return jax.random.key_impl(key) == "threefry2x32"


def _child(key: PRNGKeyArray, number: Array) -> PRNGKeyArray:
    words = jnp.stack(_hash(jax.random.key_data(key), number), axis=-1)
    return jax.random.wrap_key_data(words, impl="threefry2x32")


@jax.jit  # traced once for each shape instead of at each use
def _hash(words: UInt[Array, " 2"], low: Array) -> tuple[Array, Array]:
    """Threefry-2x32 with 20 rounds (Salmon et al. 2011), of a counter with the low word ``low`` and the high word zero."""
    ks = (words[0], words[1], words[0] ^ words[1] ^ np.uint32(0x1BD11BDA))
    x0, x1 = jnp.broadcast_to(ks[0], low.shape), low + ks[1]
    for i in range(5):
        for r in ROTATIONS[i % 2]:
            x0 = x0 + x1
            x1 = x0 ^ ((x1 << np.uint32(r)) | (x1 >> np.uint32(32 - r)))
        x0, x1 = x0 + ks[(i + 1) % 3], x1 + ks[(i + 2) % 3] + np.uint32(i + 1)
    return x0, x1


def _gaussian(uniforms: Float[Array, " size"]) -> Float[Array, " size"]:
    """Standard normals from uniform numbers, by inversion."""
    low = np.nextafter(-1.0, 0.0)
    return np.sqrt(2) * lax.erf_inv(jnp.maximum(low, uniforms * (1.0 - low) + low))
