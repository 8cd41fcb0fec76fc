"""Observed entries of a matrix: completion, one entry at a time or all at once."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, PRNGKeyArray

from gyrostat import errors
from gyrostat.environments import Environments
from gyrostat.environments.laws import Environment
from gyrostat.errors import GyrostatError
from gyrostat.jax_tools.fast_random import split, uniform
from gyrostat.jax_tools.lazy_condition import change_if_needed
from gyrostat.measurements.base import Demand, EntryGradient, Measurements, Reading, Scene, require_finite_law
from gyrostat.models.spaces import RectangularMatrices, Space
from gyrostat.typing import Leaf

RUNS_PER_CALL = 128
"""The number of runs of a small network that stay in the near caches of a processor; with more, steps get slower."""


class EntriesState(NamedTuple):
    """The state of the measurements: the noise of every response, and for each environment its order and the position in it."""

    noises: Float[Array, "K N"] | None
    orders: Int[Array, "K N"] | None
    positions: Int[Array, " K"] | None


class Entries(Measurements):
    """Responses ``y_ij = A_e,ij`` on a set of N observed (row, column) pairs, the same for every environment.

    ``G = (1/b) sum (A_ij - y_ij) E_ij`` over a batch of b entries: the gradient of ``(1/2b) sum (A_ij - y_ij)^2``, which on
    the whole set is the loss ``C(A) = (1/2N) sum (A_ij - y_ij)^2`` of Wang 2023, section 2.1: ``training_loss``, while
    ``full_loss`` is over all entries. ``batch_size=None`` takes the whole set. ``order`` is ``"iid"`` (drawn with replacement,
    as in the paper) or ``"shuffled"`` (without replacement: every entry once per pass, in a new random order for each pass).
    ``noise`` is the standard deviation of an error in each response, drawn once per run.

    Parameters
    ----------
    pairs
        The observed (row, column) pairs.
    batch_size
        The number of entries in a batch; by default all.
    order
        ``"iid"`` (with replacement) or ``"shuffled"`` (without).
    noise
        The standard deviation of an error in each response, drawn once per run.

    >>> Entries([(0, 0), (1, 0), (1, 1)], batch_size=1).count
    3
    """

    pairs: tuple[tuple[int, int], ...] = eqx.field(static=True)
    batch_size: int | None = eqx.field(static=True)
    order: str = eqx.field(static=True)
    noise: Leaf
    is_noisy: bool = eqx.field(static=True)

    by_entries = True

    def __init__(
        self,
        pairs: Sequence[Sequence[int]] | np.ndarray,
        *,
        batch_size: int | None = None,
        order: str = "iid",
        noise: float = 0.0,
    ):
        self.pairs = _pairs(pairs)
        most = None if order == "iid" else self.count
        self.batch_size = (
            None
            if batch_size is None
            else errors.integer("batch_size", batch_size, least=1, most=most, most_because=", the observed entries")
        )
        self.order = errors.choice("order", order, ("iid", "shuffled"))
        if self.order == "shuffled" and (self.batch_size is None or self.count % self.batch_size):
            raise GyrostatError(
                f"order='shuffled' goes through the {self.count} observed entries batch by batch: batch_size must divide "
                f"that number; got {batch_size}."
            )
        self.noise = errors.number("noise", noise, least=0)
        self.is_noisy = bool(self.noise > 0)

    @property
    def count(self) -> int:
        """N, the number of observed entries."""
        return len(self.pairs)

    def runs_per_call(self, size: int, mixes: bool) -> int:
        return min(RUNS_PER_CALL, super().runs_per_call(size, mixes))

    def check(self, environments: Any, space: Space, mixes: bool) -> None:
        if not isinstance(space, RectangularMatrices):
            raise GyrostatError(
                "Entries sees single entries of a matrix, which is not a symmetric reading: use Asymmetric or DeepLinear."
            )
        rows, columns = space.shape
        outside = [p for p in self.pairs if p[0] >= rows or p[1] >= columns]
        if outside:
            raise GyrostatError(
                f"pairs must lie inside the {rows} x {columns} target; {outside[0]} does not: count from zero."
            )
        if self.is_noisy or self.order == "shuffled":
            require_finite_law(self, environments)
        if mixes and self.order == "shuffled":
            raise GyrostatError(
                "order='shuffled' keeps an order for each environment, which a Pooled batch mixes: use order='iid'."
            )

    def init(self, key: PRNGKeyArray, environments: Environments, space: Space, demand: Demand) -> EntriesState:
        noises = orders = positions = None
        if self.is_noisy:
            size = (environments.law.count, self.count)  # type: ignore[attr-defined]
            noises = self.noise * jax.random.normal(key, size, dtype=float)
        if self.order == "shuffled":
            count = environments.law.count  # type: ignore[attr-defined]
            orders = jnp.zeros((count, self.count), dtype=jnp.int32)
            positions = jnp.zeros(count, dtype=jnp.int32)
        return EntriesState(noises, orders, positions)

    def sense(
        self, state: EntriesState, key: PRNGKeyArray, scene: Scene, environment: Environment
    ) -> tuple[Reading, EntriesState]:
        if self.batch_size is None:
            return self.read_all(state, scene, environment), state
        batch, state = self._next_batch(state, key, environment.index)
        return _reading(scene, *self._responses(state, scene, environment, batch)), state

    def read_all(self, state: EntriesState, scene: Scene, environment: Environment) -> Reading:
        return _reading(scene, *self._responses(state, scene, environment, slice(None)))

    def mix(self, state: EntriesState, key: PRNGKeyArray, scene: Scene) -> tuple[Reading, EntriesState]:
        size = self.batch_size or self.count
        choosing, within = split(key)
        environments = jax.vmap(scene.environments.law.environment)(split(choosing, size))
        one_each = jax.vmap(functools.partial(self._responses, state, scene))
        return _reading(scene, *one_each(environments, self._draw(within, size))), state

    def _responses(
        self, state: EntriesState, scene: Scene, environment: Environment, batch: Array | slice
    ) -> tuple[Array, Array, Array]:
        """The rows, the columns and the responses of a batch of entries."""
        i, j = jnp.asarray(np.array(self.pairs, dtype=np.int32).T)[:, batch]
        y = scene.environments.target(environment.sigma)[i, j]
        return i, j, y if state.noises is None else y + state.noises[environment.index][batch]

    def _draw(self, key: PRNGKeyArray, size: int) -> Int[Array, " size"]:
        return (uniform(key, size) * self.count).astype(jnp.int32)

    def _next_batch(
        self, state: EntriesState, key: PRNGKeyArray, index: Int[Array, ""]
    ) -> tuple[Int[Array, " size"], EntriesState]:
        """The numbers of the entries in the batch."""
        assert self.batch_size is not None
        if state.orders is None or state.positions is None:
            return self._draw(key, self.batch_size), state
        at = state.positions[index]

        def reordered(_: Int[Array, " N"]) -> Int[Array, " N"]:
            return jnp.argsort(uniform(key, self.count)).astype(jnp.int32)

        order = change_if_needed(at == 0, reordered, state.orders[index])
        batch = jax.lax.dynamic_slice(order, (at,), (self.batch_size,))
        positions = state.positions.at[index].set((at + self.batch_size) % self.count)
        return batch, state._replace(orders=state.orders.at[index].set(order), positions=positions)


def _reading(scene: Scene, i: Array, j: Array, y: Array) -> Reading:
    """The mean over a batch of entries (i, j), each with its response."""
    single = i.size == 1 and scene.entry is not None
    value = scene.entry(i[0], j[0])[None] if single else scene.product[i, j]
    error = value - y
    entry = EntryGradient(i[0], j[0], error[0], value[0]) if single else None
    rows, columns = scene.space.shape
    # One-hot rows and columns: XLA scatters many runs one by one; for a single entry this is an outer product.
    e, f = (jnp.equal(at[:, None], jnp.arange(n)).astype(error.dtype) for at, n in ((i, rows), (j, columns)))
    weighted = e * (error / error.size)[:, None]
    gradient = weighted[0][:, None] * f[0] if error.size == 1 else weighted.T @ f
    return Reading(gradient, jnp.mean(error * error), jnp.mean(y), entry)


def _pairs(pairs: Any) -> tuple[tuple[int, int], ...]:
    try:
        x = np.asarray(pairs)
    except ValueError:  # rows of unequal length
        x = np.zeros(1)
    if x.size == 0:
        raise GyrostatError("pairs holds no observed entries: give at least one (row, column).")
    if x.ndim != 2 or x.shape[1] != 2 or not np.issubdtype(x.dtype, np.integer):
        raise GyrostatError(f"pairs must list (row, column) pairs of whole numbers; got {errors.shown(pairs)}.")
    if x.min() < 0:
        raise GyrostatError(f"pairs must be counted from zero; got {tuple(map(int, x[x.min(axis=1).argmin()]))}.")
    entries = tuple((int(i), int(j)) for i, j in x)
    if len(set(entries)) < len(entries):
        twice = next(p for p in entries if entries.count(p) > 1)
        raise GyrostatError(f"pairs must be distinct; {twice} occurs {entries.count(twice)} times: remove the copies.")
    return entries
