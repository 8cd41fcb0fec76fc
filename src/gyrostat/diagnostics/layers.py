"""Diagnostics of layered networks (Wang 2023): the ratio of singular values, layer norms, balance, approximate rank."""

from __future__ import annotations

import functools
import itertools

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike

from gyrostat import errors
from gyrostat.diagnostics.base import Diagnostic, Snapshot, diagnostic
from gyrostat.diagnostics.signal_and_loss import values_of
from gyrostat.errors import GyrostatError
from gyrostat.models import Asymmetric, DeepLinear
from gyrostat.typing import Params


def layers(snapshot: Snapshot) -> Params:
    """W_1, ..., W_L with A = W_L ... W_1; for F G^T they are G^T and F."""
    if isinstance(snapshot.model, DeepLinear):
        return snapshot.params
    if isinstance(snapshot.model, Asymmetric):
        F, G = snapshot.params
        return G.T, F
    raise GyrostatError(
        f"{type(snapshot.model).__name__} is not a product of layers: record diagnostics of the product, or use DeepLinear."
    )


@diagnostic("row", "column", of_product=True, one_means="an entry of 1 of A")
def product(snapshot: Snapshot) -> Array:
    """A itself, in the coordinates of the target (as one column for a vector)."""
    A = snapshot.product
    return A[:, None] if A.ndim == 1 else A


@diagnostic(rotates=True, one_means="the two largest singular values are equal")
def singular_ratio(snapshot: Snapshot) -> Array:
    """s_2 / s_1 of A: the second singular value over the first (0 when A is zero)."""
    s = jnp.pad(values_of(snapshot.product), (0, 2))
    return jnp.where(s[0] > 0, s[1] / jnp.where(s[0] > 0, s[0], 1.0), 0.0)


@diagnostic("layer", one_means="a layer of Frobenius norm 1")
def layer_norms(snapshot: Snapshot) -> Array:
    """The squared Frobenius norms ||W_l||_F^2: their sum is what the ridge penalises."""
    return jnp.stack([jnp.sum(W * W) for W in layers(snapshot)])


@diagnostic("joint", one_means="adjacent layers are out of balance by an operator norm of 1")
def imbalances(snapshot: Snapshot) -> Array:
    """The operator norms of W_l W_l^T - W_(l+1)^T W_(l+1), zero at every critical point (Wang 2023, Prop. A.1)."""
    return jnp.stack([jnp.linalg.norm(x, 2) for x in gaps(layers(snapshot))])


@diagnostic("joint", one_means="adjacent layers are out of balance by a Frobenius norm of 1")
def imbalances_frobenius(snapshot: Snapshot) -> Array:
    """The Frobenius norms of W_l W_l^T - W_(l+1)^T W_(l+1)."""
    return jnp.stack([jnp.sqrt(jnp.sum(x * x)) for x in gaps(layers(snapshot))])


def gaps(W: Params) -> list[Array]:
    """W_l W_l^T - W_(l+1)^T W_(l+1) for each pair of adjacent layers.

    >>> [x.tolist() for x in gaps((jnp.eye(1), 2 * jnp.eye(1)))]
    [[[-3.0]]]
    """
    return [a @ a.T - b.T @ b for a, b in itertools.pairwise(W)]


@errors.explains_keywords
def representation_cost(matrix: ArrayLike, depth: int) -> Array:
    """``R(A; L) = L sum_i s_i^(2/L)``: the least ||W_1||^2 + ... + ||W_L||^2 with W_L ... W_1 = A (Wang 2023, section 2.2).

    Parameters
    ----------
    matrix
        The matrix A, with any number of leading dimensions.
    depth
        The number L of layers.

    >>> round(float(representation_cost(jnp.diag(jnp.array([8.0, 1.0])), 3)), 5)
    15.0
    """
    L = errors.integer("depth", depth, least=1)
    if np.ndim(matrix) != 2:
        raise GyrostatError(f"matrix must have 2 dimensions; got shape {np.shape(matrix)}.")
    return L * jnp.sum(values_of(jnp.asarray(matrix)) ** (2 / L))


def smooth_count(x: Array, alpha: float | Array) -> Array:
    """f_alpha(x) = x (2 alpha - x) / alpha^2 up to alpha and 1 beyond: 0 at 0, once differentiable (Wang 2023).

    >>> [float(v) for v in smooth_count(jnp.array([0.0, 0.5, 1.0, 7.0]), 1.0)]
    [0.0, 0.75, 1.0, 1.0]
    """
    share = jnp.minimum(jnp.asarray(x) / alpha, 1.0)
    return share * (2 - share)


def layer_rank(layer: Array, alpha: float | Array) -> Array:
    """``sum_i f_alpha(s_i(W^T W))``: a rank in which values far below alpha count little.

    >>> round(float(layer_rank(jnp.diag(jnp.array([2.0, 0.1])), 1.0)), 4)
    1.0199
    """
    return jnp.sum(smooth_count(jnp.linalg.svd(layer, compute_uv=False) ** 2, alpha))


@errors.explains_keywords
def approximate_rank(alpha: float) -> Diagnostic:
    """A diagnostic: ``sum_i f_alpha(s_i(W_l^T W_l))`` of each layer (Wang 2023, section 3.2).

    Parameters
    ----------
    alpha
        The scale of f_alpha: singular values well below it do not count.

    >>> approximate_rank(0.1).dims
    ('layer',)
    """
    return _approximate_rank(float(errors.number("alpha", alpha, above=0)))


@functools.lru_cache(maxsize=64)  # a diagnostic is identified by its function: one alpha, one program
def _approximate_rank(alpha: float) -> Diagnostic:
    def function(snapshot: Snapshot) -> Array:
        return jnp.stack([layer_rank(W, alpha) for W in layers(snapshot)])

    about = "the approximate rank of each layer"
    return Diagnostic("approximate_rank", function, ("layer",), about, one_means="a layer of rank 1")
