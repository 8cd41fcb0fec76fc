"""Decompositions one after the other: two LAPACK calls at once, each over many runs, can wait for each other for ever."""

from __future__ import annotations

import jax.numpy as jnp
from jaxtyping import Array


def after(done: Array, x: Array) -> Array:
    """``x``, made only when ``done`` has been (XLA keeps a product with zero, which might be a NaN).

    XLA's CPU runtime hands independent calls to a pool of as many threads as there are cores, and each call splits its
    batch over the same pool: with two cores and hundreds of runs, two decompositions at once have been seen to block.

    >>> float(after(jnp.ones((2, 2)), jnp.asarray(3.0)))
    3.0
    """
    return x + 0.0 * jnp.ravel(done)[0]
