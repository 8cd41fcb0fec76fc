"""Products of small matrices, written so that many runs together make them fast."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from gyrostat.jax_tools import runs_last_loop as lanes

WRITTEN = 2000
"""Products of at most so many multiplications are written as sums: beyond, a library's product is faster."""


def times(A: Float[Array, "m k"], B: Float[Array, "k n"]) -> Float[Array, "m n"]:
    """``A @ B``.

    XLA makes a batch of small products one by one, with a call and a transposed copy for each; a sum it fuses with what
    comes before and after, which is two to six times faster. Arrays of NumPy are left to NumPy.

    >>> times(jnp.ones((2, 3)), jnp.ones((3, 2))).tolist()
    [[3.0, 3.0], [3.0, 3.0]]
    """
    known = isinstance(A, np.ndarray) and isinstance(B, np.ndarray)
    return A @ B if known or A.shape[0] * A.shape[1] * B.shape[1] > WRITTEN else _written(A, B)


def written(shape: tuple[int, ...], params: tuple[Array, ...]) -> bool:
    """Whether products of these matrices, and of a matrix of this shape with them, are written as sums.

    >>> written((7, 7), (jnp.ones((7, 5)),)), written((50, 50), (jnp.ones((50, 5)),))
    (True, False)
    """
    matrices = len(shape) == 2 and all(p.ndim in (0, 2) for p in params)
    return matrices and max(p.size for p in params) * max(shape) <= WRITTEN


def _sum(A: Array, B: Array) -> Array:
    """The product over the first two axes; any others are common to both."""
    return jnp.sum(A[:, :, None] * B[None], axis=1)


_batched = jax.custom_batching.custom_vmap(_sum)


@_batched.def_vmap
def _many(size: int, batched: list[bool], A: Array, B: Array) -> tuple[Array, bool]:
    if not lanes.are_last():
        return jax.vmap(_sum, in_axes=[0 if b else None for b in batched])(A, B), True
    A, B = (jnp.moveaxis(x, 0, -1) if b else x[..., None] for x, b in zip((A, B), batched, strict=True))
    return jnp.moveaxis(_sum(A, B), -1, 0), True


@jax.custom_jvp
def _written(A: Array, B: Array) -> Array:
    return _batched(A, B)


@_written.defjvp
def _slope(at: tuple[Array, Array], along: tuple[Array, Array]) -> tuple[Array, Array]:
    # A rule for vmap cannot be transposed, so the derivative is written with ordinary products.
    return _written(*at), along[0] @ at[1] + at[0] @ along[1]


def square(A: Array) -> Float[Array, ""]:
    """The sum of the squares of all entries.

    >>> square(jnp.ones((2, 3))).item()
    6.0
    """
    return _squared(A)


_squared = jax.custom_batching.custom_vmap(lambda A: jnp.vdot(A, A))


@_squared.def_vmap
def _squares(size: int, batched: list[bool], A: Array) -> tuple[Array, bool]:
    if A.ndim < 3 or not lanes.are_last():
        return jax.vmap(lambda A: jnp.vdot(A, A))(A), True
    A = jnp.moveaxis(A, 0, -1)
    return jnp.sum(A * A, axis=tuple(range(A.ndim - 1))), True
