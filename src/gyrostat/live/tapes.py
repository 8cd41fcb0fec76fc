"""Tapes: the Gaussian noise of fresh batches, drawn once and read again at every move of a slider.

The noise of step t of a seed depends on neither the step size nor the strength of anything, and drawing it takes two thirds
of the time of a run. The numbers are those that a run without a tape draws.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PRNGKeyArray

from gyrostat.batches import OneEnvironment
from gyrostat.environments import Environment
from gyrostat.gaussians import normal
from gyrostat.loop import Cell
from gyrostat.measurements import FreshGaussian, Reading
from gyrostat.measurements.base import Demand, Scene
from gyrostat.spaces import Leaf, Space
from gyrostat.threefry import fold_in, split

MOST, SHELF = 48_000_000, 320_000_000
"""Bytes of one tape, beyond which runs draw their noise as they go, and of all that are kept."""

STEPS = 200
"""Tapes are as long as a multiple of this."""


class OnTape(Space):
    """A space whose next Gaussian element is known: it asks for no coordinates of it."""

    space: Space
    row: Leaf

    @property
    def shape(self) -> tuple[int, ...]:
        return self.space.shape

    @property
    def size(self) -> int:
        return 0

    def coordinates(self, element: Array) -> Array:
        return self.space.coordinates(element)

    def element(self, coordinates: Array) -> Array:
        return self.space.element(self.row)


class TapedGaussian(FreshGaussian):
    """:class:`FreshGaussian` whose noise comes from a tape (step, coordinates); its state is the number of the step."""

    tape: Leaf = None

    def init(self, key: PRNGKeyArray, environments: Any, space: Space, demand: Demand) -> Int[Array, ""]:
        return jnp.zeros((), dtype=jnp.int32)

    def sense(self, state: Any, key: PRNGKeyArray, scene: Scene, environment: Environment) -> tuple[Reading, Any]:
        return super().sense((), key, self._at(state, scene), environment)[0], state + 1

    def mix(self, state: Any, key: PRNGKeyArray, scene: Scene) -> tuple[Reading, Any]:
        return super().mix((), key, self._at(state, scene))[0], state + 1

    def _at(self, step: Array, scene: Scene) -> Scene:
        return scene._replace(space=OnTape(scene.space, jax.lax.dynamic_index_in_dim(self.tape, step, keepdims=False)))


def offset(cell: Cell) -> tuple[str, int] | None:
    """How a run of fresh batches comes to its noise: the way of its keys and the numbers before it; None without a tape."""
    algorithm, problem = cell
    if type(problem.measurements) is not FreshGaussian or not problem.environments.law.is_finite:
        return None
    batches, law = algorithm.batches, problem.environments.law
    if batches.mixes:
        return "mixed", law.count * (law.rank * (law.rank + 1) // 2 + 2)
    if not isinstance(batches, OneEnvironment) or batches.amplify is not None:
        return None
    return ("drawn" if batches.order == "iid" else "ordered"), 2


@eqx.filter_jit
def record(keys: PRNGKeyArray, way: str, before: int, size: int, steps: int) -> Float[Array, "lanes steps size"]:
    """The noise of every step of some runs."""

    def row(stepping: PRNGKeyArray, t: Array) -> Array:
        key = fold_in(stepping, t)
        if way == "drawn":  # the other key chooses the environment
            key = split(key)[1]
        return normal(split(key)[1], before + size)[before:]

    def one(key: PRNGKeyArray) -> Array:
        stepping = split(key, 4)[3]
        return jax.lax.map(lambda t: row(stepping, t), jnp.arange(steps))

    return jax.lax.map(one, keys)


class Shelf:
    """The tapes used last."""

    def __init__(self) -> None:
        self.tapes: OrderedDict[tuple, Array] = OrderedDict()

    def tape(self, cell: Cell, keys: PRNGKeyArray, first: int, num_steps: int) -> Array | None:
        """The tape of the runs that begin with number ``first``, or None where there is none to be had."""
        found, room = offset(cell), cell[1].shape[0]
        steps, size = -(-num_steps // STEPS) * STEPS, room * (room + 1) // 2
        if found is None or 8 * len(keys) * steps * size > MOST:
            return None
        label = (*found, room, first, len(keys), steps)
        if label not in self.tapes:
            self.tapes[label] = record(keys, *found, size, steps)
            while len(self.tapes) > 1 and sum(tape.nbytes for tape in self.tapes.values()) > SHELF:
                self.tapes.popitem(last=False)
        self.tapes.move_to_end(label)
        return self.tapes[label]
