"""Products of small matrices, written so that many runs together make them fast."""

from __future__ import annotations

import jax.numpy as jnp
from jaxtyping import Array, Float

WRITTEN = 2000
"""Products of at most so many multiplications are written as sums: beyond, a library's product is faster."""


def times(A: Float[Array, "m k"], B: Float[Array, "k n"]) -> Float[Array, "m n"]:
    """``A @ B``.

    XLA makes a batch of small products one by one, with a call and a transposed copy for each; a sum it fuses with what
    comes before and after, which is two to six times faster.

    >>> times(jnp.ones((2, 3)), jnp.ones((3, 2))).tolist()
    [[3.0, 3.0], [3.0, 3.0]]
    """
    if A.shape[0] * A.shape[1] * B.shape[1] > WRITTEN:
        return A @ B
    return jnp.sum(A[:, :, None] * B[None], axis=1)
