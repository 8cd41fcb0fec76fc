"""Standard normals: the numbers of ``jax.random.normal``, bit for bit, at two thirds of its cost on a CPU.

JAX lowers the rounds of its threefry generator to a rolled loop on the CPU; here they are written out.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Float, PRNGKeyArray, UInt

ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
HALVES = 2


def normal(key: PRNGKeyArray, count: int) -> Float[Array, " count"]:
    """``count`` independent N(0, 1) numbers, those of ``jax.random.normal(key, (count,))``.

    >>> from gyrostat.precision import double
    >>> with double():
    ...     key = jax.random.key(3)
    ...     bool((normal(key, 7) == jax.random.normal(key, (7,), dtype=float)).all())
    True
    """
    if jnp.result_type(float) != jnp.float64 or jax.random.key_impl(key) != "threefry2x32":
        return jax.random.normal(key, (count,), dtype=float)
    words = jax.random.key_data(key)
    size = -(-count // HALVES)

    def fill(i: Array, out: Array) -> Array:
        part = np.sqrt(2) * lax.erf_inv(_symmetric_uniform(_bits(words, i * size, size)))
        return lax.dynamic_update_slice(out, part, (i * size,))

    # A loop over two halves: without it XLA draws the numbers again for each of their consumers.
    return lax.fori_loop(0, HALVES, fill, jnp.zeros(HALVES * size, dtype=float))[:count]


def _bits(words: UInt[Array, " 2"], start: Array, size: int) -> UInt[Array, " size"]:
    """Words ``start`` ... of the generator's stream of 64-bit numbers (the partitionable one, JAX's default)."""
    low = lax.iota(jnp.uint32, size) + jnp.asarray(start).astype(jnp.uint32)
    a, b = _threefry(words[0], words[1], jnp.zeros_like(low), low)
    return (a.astype(jnp.uint64) << np.uint64(32)) | b.astype(jnp.uint64)


def _threefry(k0: Array, k1: Array, x0: Array, x1: Array) -> tuple[Array, Array]:
    """Threefry-2x32 with 20 rounds (Salmon et al. 2011)."""
    ks = (k0, k1, k0 ^ k1 ^ np.uint32(0x1BD11BDA))
    x0, x1 = x0 + ks[0], x1 + ks[1]
    for i in range(5):
        for r in ROTATIONS[i % 2]:
            x0 = x0 + x1
            x1 = x0 ^ ((x1 << np.uint32(r)) | (x1 >> np.uint32(32 - r)))
        x0, x1 = x0 + ks[(i + 1) % 3], x1 + ks[(i + 2) % 3] + np.uint32(i + 1)
    return x0, x1


def _symmetric_uniform(bits: UInt[Array, " size"]) -> Float[Array, " size"]:
    """Uniform on (-1, 1) from 52 of the bits."""
    ones = lax.bitcast_convert_type((bits >> np.uint64(12)) | np.uint64(0x3FF0000000000000), jnp.float64) - 1.0
    low = np.nextafter(-1.0, 0.0)
    return jnp.maximum(low, ones * (1.0 - low) + low)
