"""The exact width reduction of a deep linear network: a few dimensions of every hidden layer are enough.

A step changes W_l by ``eta g h^T``, where g and h are images of the outer layers, and otherwise shrinks it by the ridge.
Suppose that subspaces S_l of the hidden layers contain the images of the outer layers, that W_(l+1) maps S_l into S_(l+1) and
that its transpose maps S_(l+1) into S_l. Then every step preserves this, and outside of the subspaces every W_l is only
multiplied by the same number. With square orthogonal hidden layers at the start,
``S_l = span(W_l ... W_1, (W_L ... W_(l+1))^T)`` has this property, with d_in + d_out dimensions; with two layers it has it
for any start. With three layers and independent random entries the block Krylov spaces of W_2 contain all that a run
reaches. They are cut off at a level that nothing should reach; :class:`KrylovLeak` measures what does.
"""

from __future__ import annotations

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from gyrostat.algorithms.events import Event, Moment
from gyrostat.algorithms.starts import FanInGaussian, FanInUniform, Orthogonal, ScaledGaussian, Start
from gyrostat.jax_tools.sequential_lapack import in_sequence
from gyrostat.models import DeepLinear, Model
from gyrostat.models.deep_linear import directions, forward
from gyrostat.models.spaces import RectangularMatrices
from gyrostat.typing import Params

LEVELS = 12
"""Levels of the block Krylov spaces; :class:`KrylovLeak` measures what arrives at the last one."""

GENERIC = (ScaledGaussian, FanInGaussian, FanInUniform)
"""Starts from which no level of the Krylov spaces is empty."""

Shapes = tuple[tuple[int, ...], ...]


class NarrowedNetwork(Model):
    """The network in the coordinates of the subspaces, with one more parameter: the factor by which the rest has shrunk."""

    layers: Shapes = eqx.field(static=True)

    def space(self, shape: tuple[int, ...]) -> RectangularMatrices:
        return RectangularMatrices(*shape)

    def shapes(self, shape: tuple[int, ...]) -> Shapes:
        return (*self.layers, ())

    def product(self, params: Params) -> Float[Array, "n1 n2"]:
        return forward(params[:-1])[-1]

    def pullback(self, params: Params, gradient: Float[Array, "n1 n2"]) -> Params:
        return (*directions(params[:-1], gradient), jnp.zeros_like(params[-1]))

    def entry(self, params: Params, row: Int[Array, ""], column: Int[Array, ""]) -> Float[Array, ""]:
        A = self.product(params)
        # A sum over a mask: for many runs XLA would look up the entries one after the other.
        here = (jnp.arange(A.shape[0])[:, None] == row) & (jnp.arange(A.shape[1]) == column)
        return jnp.sum(jnp.where(here, A, 0.0))

    def factor(self, params: Params) -> Array:
        return params[-2]

    def cofactor(self, params: Params) -> Array:
        return params[0].T


class KrylovLeak(Event):
    """Measures the last level of the truncated Krylov spaces: its largest entry, relative to the largest of the layers.

    The part that the truncation leaves out starts from there. If nothing arrives, the reduced run equals the stated one.
    """

    last: tuple[int, int] = eqx.field(static=True)

    def init(self, model: Model, params: Params) -> Any:
        return jnp.zeros((), dtype=float)

    def summary(self, state: Any) -> dict[str, Array]:
        return {"leak": state}

    def __call__(self, state: Any, model: Any, moment: Moment) -> tuple[Params, Any]:
        first, _, last, _ = moment.after
        a, b = self.last
        arrived = jnp.maximum(jnp.abs(first[-a:]).max(), jnp.abs(last[:, -b:]).max())
        size = jnp.maximum(jnp.abs(first).max(), jnp.abs(last).max())
        share = arrived / jnp.maximum(size, 1.0)
        return moment.after, jnp.maximum(state, jnp.where(jnp.isnan(share), 0.0, share))


def krylov_widths(rows: int, columns: int) -> list[int]:
    """The dimensions of the block Krylov spaces in both hidden layers.

    >>> krylov_widths(2, 2)
    [24, 24]
    """
    even, odd = (LEVELS + 1) // 2, LEVELS // 2
    return [even * columns + odd * rows, even * rows + odd * columns]


def closed_bases(layers: Params) -> list[Array]:
    """Orthonormal bases of the images of both outer layers in every hidden layer."""
    ahead = forward(layers[:-1])
    back = forward(tuple(W.T for W in layers[:0:-1]))[::-1]
    return [jnp.linalg.qr(jnp.concatenate(pair, axis=1))[0] for pair in zip(ahead, back, strict=True)]


def krylov_bases(layers: Params) -> list[Array]:
    """Orthonormal bases of the block Krylov spaces of the middle layer, level by level."""
    first, W, last = layers
    columns, rows = first.shape[1], last.shape[0]
    newest = jnp.linalg.qr(first)[0], jnp.linalg.qr(last.T)[0]
    room = (
        jnp.zeros((len(X), width), dtype=X.dtype) for X, width in zip(newest, krylov_widths(rows, columns), strict=True)
    )
    bases = tuple(B.at[:, : X.shape[1]].set(X) for B, X in zip(room, newest, strict=True))

    def next_level(k: Any, is_odd: bool, bases: Any, newest: Any) -> tuple[Any, Any]:
        newest = _outside_span(bases[0], W.T @ newest[1]), _outside_span(bases[1], W @ newest[0])
        places = (k // 2 * (rows + columns) + (own if is_odd else 0) for own in (columns, rows))
        put = jax.lax.dynamic_update_slice_in_dim
        return tuple(put(B, X, at, axis=1) for B, X, at in zip(bases, newest, places, strict=True)), newest

    # The blocks of one basis have as many columns as there are columns and rows in turn, so a loop makes two levels at a time:
    # written out, the QR decompositions of eleven levels take seconds to compile.
    def two_levels(i: Any, state: Any) -> Any:
        return in_sequence(lambda: next_level(2 * i + 2, False, *next_level(2 * i + 1, True, *state)))

    bases, newest = jax.lax.fori_loop(0, (LEVELS - 1) // 2, two_levels, (bases, newest))
    return list(bases if LEVELS % 2 else next_level(LEVELS - 1, True, bases, newest)[0])


def _outside_span(Q: Array, X: Array) -> Array:
    """An orthonormal basis of the part of X outside the span of Q."""
    for _ in range(2):  # one pass loses digits when X is nearly in the span
        X = jnp.linalg.qr(X - Q @ (Q.T @ X))[0]
    return X


def narrowed(params: Params, bases: list[Array]) -> tuple[NarrowedNetwork, Params]:
    """The model and the parameters inside the subspaces."""
    ends = [None, *bases, None]
    layers = tuple(_restrict(W, ends[k], ends[k + 1]) for k, W in enumerate(params))
    return NarrowedNetwork(tuple(W.shape for W in layers)), (*layers, jnp.ones((), dtype=float))


def _restrict(W: Array, before: Array | None, after: Array | None) -> Array:
    W = W if before is None else W @ before
    return W if after is None else after.T @ W


def widened(layers: Params, shrinkage: Array, start: Params, bases: list[Array]) -> Params:
    """The layers of the whole network: the parts inside the subspaces, and the shrunk start outside of them."""
    ends = [None, *bases, None]

    def one(k: int, W: Array) -> Array:
        inside = _embed(W, ends[k], ends[k + 1])
        if ends[k] is None or ends[k + 1] is None:
            return inside
        return inside + shrinkage * (start[k] - _embed(_restrict(start[k], ends[k], ends[k + 1]), ends[k], ends[k + 1]))

    return tuple(one(k, W) for k, W in enumerate(layers))


def _embed(W: Array, before: Array | None, after: Array | None) -> Array:
    W = W if before is None else W @ before.T
    return W if after is None else after @ W


def kind(model: DeepLinear, start: Start, shape: tuple[int, ...]) -> str | None:
    """How widths can be reduced from this start: ``"closed"`` (exact at all times), ``"krylov"`` (up to a leak), or None."""
    widths = {s[0] for s in model.shapes(shape)[:-1]}
    if model.depth == 2 or (isinstance(start, Orthogonal) and len(widths) == 1):
        return "closed"
    return "krylov" if model.depth == 3 and isinstance(start, GENERIC) else None
