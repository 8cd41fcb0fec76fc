"""Some seeds of a run, as fast as can be: in a room, with its noise from a tape, all its numbers given to one program."""

from __future__ import annotations

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from gyrostat.diagnostics.trajectory import resolve
from gyrostat.live.lab import RECORDS
from gyrostat.live.rooms import in_room
from gyrostat.live.tapes import Shelf, TapedGaussian
from gyrostat.loop import Cell, Plan, lane, simulate
from gyrostat.measurements.base import Demand
from gyrostat.precision import double
from gyrostat.reduction import Reduction

Values = dict[str, np.ndarray]
FEW, MANY = 4, 8
"""Seeds of one call: few where a run takes long, so that something is to be seen soon. A program is compiled for so many."""
_shelf = Shelf()


def lanes(cell: Cell) -> int:
    """How many seeds go into one call."""
    return MANY if in_room(cell) is None else FEW


def run(cell: Cell, record: tuple[str, ...], num_steps: int, seeds: range) -> Values:
    """What :func:`gyrostat.run` records for these seeds, with ``step`` and ``diverged``.

    >>> import gyrostat as gs
    >>> problem = gs.Problem(gs.RandomEnvironments(5, law=gs.TwoPoint(spread=6.0)), gs.Identity())
    >>> run((gs.HeteroSGD(0.05), problem), ("signal",), 100, range(2))["signal"].shape
    (2, 101)
    """
    there = in_room(cell)
    if there is None:
        found = simulate([cell], num_steps=num_steps, seeds=list(seeds), record=record, record_at=RECORDS)
        ends = {"diverged": found.ends["diverged"][0], "step": found.steps[0]}
        return {name: x[0] for name, x in found.values.items()} | ends
    grid = np.round(np.linspace(0, num_steps, RECORDS)).astype(int)
    with double():
        keys = jax.vmap(lambda i: jax.random.fold_in(jax.random.key(0), i))(jnp.asarray(list(seeds)))
        algorithm, problem = there
        tape = _shelf.tape(there, keys, seeds[0], num_steps)
        if tape is not None:
            seen: Any = problem.measurements
            problem = eqx.tree_at(lambda p: p.measurements, problem, TapedGaussian(seen.num_samples, seen.noise))
        # NumPy's scalars would be part of the program; arrays are what it is given.
        there = jax.tree.map(lambda x: jnp.asarray(x) if eqx.is_array_like(x) else x, (algorithm, problem))
        plan = Plan(resolve(record), Demand(0, algorithm.batches.mixes), Reduction(), False)
        out = _lanes(there, tape, keys, jnp.asarray(grid), plan)
        return {name: np.asarray(x) for name, x in out.items()} | {"step": grid}


@eqx.filter_jit
def _lanes(cell: Cell, tape: jax.Array | None, keys: jax.Array, grid: jax.Array, plan: Plan) -> dict[str, jax.Array]:
    def one(tape: jax.Array | None, key: jax.Array) -> dict[str, jax.Array]:
        algorithm, problem = cell
        if tape is not None:
            problem = eqx.tree_at(lambda p: p.measurements.tape, problem, tape, is_leaf=lambda x: x is None)
        return lane(algorithm, problem, key, grid, jnp.zeros(()), plan)

    # One after the other: products of this size are as fast alone as in a batch, and then they stay in the nearest cache.
    return jax.lax.map(lambda run: one(*run), (tape, keys))
