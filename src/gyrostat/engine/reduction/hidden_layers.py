"""A deep linear network confined to a few dimensions of every hidden layer: the exact width reduction.

A step changes W_l by ``eta g h^T`` with g and h images of the outer layers, and otherwise shrinks it by the ridge. When
subspaces S_l of the hidden layers contain the images of the outer layers and W_(l+1) maps S_l into S_(l+1) and its
transpose back, then so it stays, and outside of them every W_l is only ever multiplied by the same number. With square
orthogonal hidden layers at the start ``S_l = span(W_l ... W_1, (W_L ... W_(l+1))^T)`` will do, d_in + d_out dimensions; with
two layers it does for any start. With three layers and independent random entries the block Krylov spaces of W_2 contain
what is reached; they are cut off at so many levels that nothing arrives at the last, which :class:`Leak` watches.
"""

from __future__ import annotations

from typing import Any

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from gyrostat.algorithms.events import Event, Moment
from gyrostat.algorithms.initialisation import FanInGaussian, FanInUniform, Orthogonal, ScaledGaussian, Start
from gyrostat.models import DeepLinear, Model
from gyrostat.models.deep_linear import directions, forward
from gyrostat.models.spaces import Matrices
from gyrostat.typing import Params

LEVELS = 12
"""Levels of the block Krylov spaces; what arrives at the last is measured."""

GENERIC = (ScaledGaussian, FanInGaussian, FanInUniform)
"""Starts from which no level of the Krylov spaces is empty."""

Shapes = tuple[tuple[int, ...], ...]


class Confined(Model):
    """The network in the coordinates of the subspaces, with one more parameter: by how much the rest has shrunk."""

    layers: Shapes = eqx.field(static=True)

    def space(self, shape: tuple[int, ...]) -> Matrices:
        return Matrices(*shape)

    def shapes(self, shape: tuple[int, ...]) -> Shapes:
        return (*self.layers, ())

    def product(self, params: Params) -> Float[Array, "n1 n2"]:
        return forward(params[:-1])[-1]

    def pullback(self, params: Params, gradient: Float[Array, "n1 n2"]) -> Params:
        return (*directions(params[:-1], gradient), jnp.zeros_like(params[-1]))

    def entry(self, params: Params, row: Int[Array, ""], column: Int[Array, ""]) -> Float[Array, ""]:
        A = self.product(params)
        # By sums: of many runs XLA would look the entry up one by one.
        here = (jnp.arange(A.shape[0])[:, None] == row) & (jnp.arange(A.shape[1]) == column)
        return jnp.sum(jnp.where(here, A, 0.0))

    def factor(self, params: Params) -> Array:
        return params[-2]

    def cofactor(self, params: Params) -> Array:
        return params[0].T


class Leak(Event):
    """Watches the last level of truncated Krylov spaces: the largest entry there, relative to the layers' largest.

    What the truncation leaves out starts from there, so a run in which nothing arrives is the run that was stated.
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
    """The dimensions of both hidden layers that the block Krylov spaces take.

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
    P = jnp.linalg.qr(first)[0]
    Q = jnp.linalg.qr(last.T)[0]
    newest, other = P, Q
    for _ in range(LEVELS - 1):
        ahead = _beyond(P, W.T @ other)
        newest, other = ahead, _beyond(Q, W @ newest)
        P, Q = jnp.concatenate([P, newest], axis=1), jnp.concatenate([Q, other], axis=1)
    return [P, Q]


def _beyond(Q: Array, X: Array) -> Array:
    """An orthonormal basis of what X adds to the span of Q."""
    for _ in range(2):  # once loses digits when X is nearly in the span
        X = jnp.linalg.qr(X - Q @ (Q.T @ X))[0]
    return X


def confined(params: Params, bases: list[Array]) -> tuple[Confined, Params]:
    """The model and the parameters inside the subspaces."""
    ends = [None, *bases, None]
    layers = tuple(_inside(W, ends[k], ends[k + 1]) for k, W in enumerate(params))
    return Confined(tuple(W.shape for W in layers)), (*layers, jnp.ones((), dtype=float))


def _inside(W: Array, before: Array | None, after: Array | None) -> Array:
    W = W if before is None else W @ before
    return W if after is None else after.T @ W


def restored(layers: Params, rest: Array, start: Params, bases: list[Array]) -> Params:
    """The layers of the whole network: what the subspaces hold, and what is left of the start outside of them."""
    ends = [None, *bases, None]

    def one(k: int, W: Array) -> Array:
        inside = _outside(W, ends[k], ends[k + 1])
        if ends[k] is None or ends[k + 1] is None:
            return inside
        return inside + rest * (start[k] - _outside(_inside(start[k], ends[k], ends[k + 1]), ends[k], ends[k + 1]))

    return tuple(one(k, W) for k, W in enumerate(layers))


def _outside(W: Array, before: Array | None, after: Array | None) -> Array:
    W = W if before is None else W @ before.T
    return W if after is None else after @ W


def kind(model: DeepLinear, start: Start, shape: tuple[int, ...]) -> str | None:
    """How the widths can be reduced from this start: ``"closed"`` for ever, ``"krylov"`` up to a leak, or not (None)."""
    widths = {s[0] for s in model.shapes(shape)[:-1]}
    if model.depth == 2 or (isinstance(start, Orthogonal) and len(widths) == 1):
        return "closed"
    return "krylov" if model.depth == 3 and isinstance(start, GENERIC) else None
