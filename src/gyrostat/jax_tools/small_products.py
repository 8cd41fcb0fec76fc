"""Products of small matrices that are fast for many runs at once."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from gyrostat.jax_tools.runs_last_loop import runs_are_last

LARGEST = 2000
"""The number of multiplications up to which a product is small. Above it, the matrix product of XLA is faster."""


def times(A: Float[Array, "m k"], B: Float[Array, "k n"]) -> Float[Array, "m n"]:
    """``A @ B``.

    XLA computes a batch of small products one by one, with a call and a transposed copy for each. Written as a sum, a small
    product is fused with the operations before and after it, which is two to six times faster. NumPy arrays are left to
    NumPy.

    >>> times(jnp.ones((2, 3)), jnp.ones((3, 2))).tolist()
    [[3.0, 3.0], [3.0, 3.0]]
    """
    is_numpy = isinstance(A, np.ndarray) and isinstance(B, np.ndarray)
    is_large = A.shape[0] * A.shape[1] * B.shape[1] > LARGEST
    return A @ B if is_numpy or is_large else _small_product(A, B)


def are_small(shape: tuple[int, ...], params: tuple[Array, ...]) -> bool:
    """Whether products of these matrices, with each other and with a matrix of this shape, are small.

    >>> are_small((7, 7), (jnp.ones((7, 5)),)), are_small((50, 50), (jnp.ones((50, 5)),))
    (True, False)
    """
    matrices = len(shape) == 2 and all(p.ndim in (0, 2) for p in params)
    return matrices and max(p.size for p in params) * max(shape) <= LARGEST


def _sum(A: Array, B: Array) -> Array:
    """The matrix product over the first two axes; both arrays share any further axes."""
    return jnp.sum(A[:, :, None] * B[None], axis=1)


_sum_over_runs = jax.custom_batching.custom_vmap(_sum)


@_sum_over_runs.def_vmap
def _sums(size: int, batched: list[bool], A: Array, B: Array) -> tuple[Array, bool]:
    if not runs_are_last():
        return jax.vmap(_sum, in_axes=[0 if b else None for b in batched])(A, B), True
    A, B = (jnp.moveaxis(x, 0, -1) if b else x[..., None] for x, b in zip((A, B), batched, strict=True))
    return jnp.moveaxis(_sum(A, B), -1, 0), True


@jax.custom_jvp
def _small_product(A: Array, B: Array) -> Array:
    return _sum_over_runs(A, B)


@_small_product.defjvp
def _small_product_jvp(at: tuple[Array, Array], along: tuple[Array, Array]) -> tuple[Array, Array]:
    # A function with a rule for vmap cannot be transposed, so the derivative uses ordinary products.
    return _small_product(*at), along[0] @ at[1] + at[0] @ along[1]


def squared_norm(A: Array) -> Float[Array, ""]:
    """The sum of the squares of all entries.

    >>> squared_norm(jnp.ones((2, 3))).item()
    6.0
    """
    return _squared_norm(A)


_squared_norm = jax.custom_batching.custom_vmap(lambda A: jnp.vdot(A, A))


@_squared_norm.def_vmap
def _squared_norms(size: int, batched: list[bool], A: Array) -> tuple[Array, bool]:
    if A.ndim < 3 or not runs_are_last():
        return jax.vmap(lambda A: jnp.vdot(A, A))(A), True
    A = jnp.moveaxis(A, 0, -1)
    return jnp.sum(A * A, axis=tuple(range(A.ndim - 1))), True
