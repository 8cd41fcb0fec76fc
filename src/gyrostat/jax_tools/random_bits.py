"""Keys and bits of JAX's default generator, bit for bit, faster on a CPU.

JAX lowers the rounds of threefry to a rolled loop there. Written out they compile sooner, and the few words that a step
needs for its keys take a third of the time.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Float, Int, PRNGKeyArray, UInt

ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))


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
    return fractions(key, 0, count) if is_written_out(key) else jax.random.uniform(key, (count,), dtype=float)


def fractions(key: PRNGKeyArray, start: int | Array, count: int) -> Float[Array, " count"]:
    """Numbers ``start`` ... of the stream of uniform numbers of a key that :func:`is_written_out`."""
    low = lax.iota(jnp.uint32, count) + jnp.asarray(start).astype(jnp.uint32)
    a, b = _hash(jax.random.key_data(key), low)
    bits = (a.astype(jnp.uint64) << np.uint64(32)) | b.astype(jnp.uint64)
    return lax.bitcast_convert_type((bits >> np.uint64(12)) | np.uint64(0x3FF0000000000000), jnp.float64) - 1.0


def is_written_out(key: PRNGKeyArray) -> bool:
    """Whether the numbers of ``key`` are those made here: JAX's default generator, in double precision."""
    return jnp.result_type(float) == jnp.float64 and is_threefry(key)


def is_threefry(key: PRNGKeyArray) -> bool:
    """Whether ``key`` belongs to JAX's default generator."""
    return jax.random.key_impl(key) == "threefry2x32"


def _child(key: PRNGKeyArray, number: Array) -> PRNGKeyArray:
    words = jnp.stack(_hash(jax.random.key_data(key), number), axis=-1)
    return jax.random.wrap_key_data(words, impl="threefry2x32")


@jax.jit  # traced once for each shape, not at each use
def _hash(words: UInt[Array, " 2"], low: Array) -> tuple[Array, Array]:
    """Threefry-2x32 with 20 rounds (Salmon et al. 2011) of the counter ``low``, its high word being zero."""
    ks = (words[0], words[1], words[0] ^ words[1] ^ np.uint32(0x1BD11BDA))
    x0, x1 = jnp.broadcast_to(ks[0], low.shape), low + ks[1]
    for i in range(5):
        for r in ROTATIONS[i % 2]:
            x0 = x0 + x1
            x1 = x0 ^ ((x1 << np.uint32(r)) | (x1 >> np.uint32(32 - r)))
        x0, x1 = x0 + ks[(i + 1) % 3], x1 + ks[(i + 2) % 3] + np.uint32(i + 1)
    return x0, x1
