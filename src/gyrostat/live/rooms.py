"""Rooms: one compiled program for many dimensions, with exactly the numbers of each.

A run in dimension d takes place in a larger room, whose other rows and columns are zero at the start and stay so: the
noise is zero there too. JAX's generator gives the first numbers of a longer stream as it gives a shorter one, so the room
draws more than it needs and uses the first; the run in the room is then that of dimension d, to rounding.
"""

from __future__ import annotations

import math
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from gyrostat.environments import RandomEnvironments
from gyrostat.loop import Cell
from gyrostat.measurements import FreshGaussian, Identity
from gyrostat.models import Params, Symmetric
from gyrostat.models.base import Model
from gyrostat.spaces import Leaf, SymmetricMatrices
from gyrostat.starts import ScaledIdentity, Start

STEP = 16
"""Rooms are multiples of this: eight programs serve all dimensions up to 128."""


class RoomMatrices(SymmetricMatrices):
    """Symmetric matrices of the room that are zero outside the first ``used`` rows and columns."""

    used: Leaf = 0

    def element(self, coordinates: Array) -> Array:
        d, i = self.used, jnp.arange(self.dimension)
        low, high = jnp.minimum(i[:, None], i), jnp.maximum(i[:, None], i)
        where = low * d - low * (low - 1) // 2 + high - low
        scale = jnp.where(low == high, 1.0, math.sqrt(2.0))
        return jnp.where(high < d, coordinates[jnp.where(high < d, where, 0)] / scale, 0.0)


class RoomSymmetric(Symmetric):
    """``U U^T`` in a room."""

    used: Leaf = 0

    def space(self, shape: tuple[int, ...]) -> RoomMatrices:
        return RoomMatrices(shape[0], self.used)


class RoomIdentity(Start):
    """``scale * I`` in the part of the room that is used."""

    scale: Leaf
    used: Leaf

    def __call__(self, model: Model, shape: tuple[int, ...], key: PRNGKeyArray, seen: Array | None = None) -> Params:
        ((rows, columns),) = model.shapes(shape)
        return (
            jnp.where(jnp.arange(rows)[:, None] < self.used, self.scale * jnp.eye(rows, columns, dtype=float), 0.0),
        )


class RoomEnvironments(RandomEnvironments):
    """Random environments in the part of the room that is used."""

    used: Leaf

    def __init__(self, recipe: RandomEnvironments, room: int):
        super().__init__(room, recipe.rank, recipe.law, values=recipe.values, overlap=recipe.overlap)
        self.used = np.asarray(recipe.dimension)

    def frame(self, key: PRNGKeyArray, count: int) -> Float[Array, "room count"]:
        Z = jax.random.normal(key, (self.dimension, count), dtype=float)
        Q, R = jnp.linalg.qr(jnp.where(jnp.arange(self.dimension)[:, None] < self.used, Z, 0.0))
        return Q * jnp.where(jnp.diagonal(R) < 0, -1.0, 1.0)


def in_room(cell: Cell) -> Cell | None:
    """The same run in a room, or None where its parts have none: then every dimension has a program of its own."""
    algorithm, problem = cell
    model: Any
    start: Any
    model, start, places = algorithm.model, algorithm.start, problem.environments
    known = [type(part) for part in (model, start, places)] == [Symmetric, ScaledIdentity, RandomEnvironments]
    if not known or not isinstance(problem.measurements, FreshGaussian | Identity):
        return None
    if model.width is not None or places.placement != "orthogonal":
        return None
    d = np.asarray(places.dimension)
    changed = (RoomSymmetric(gradient_factor=model.gradient_factor, used=d), RoomIdentity(start.scale, d))
    algorithm = eqx.tree_at(lambda a: (a.model, a.start), algorithm, changed)
    room = -(-places.dimension // STEP) * STEP
    return algorithm, eqx.tree_at(lambda p: p.environments, problem, RoomEnvironments(places, room))
