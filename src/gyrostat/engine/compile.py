"""Compiled programs: cells that share their structure run in one vmapped program, many runs to a call.

A call makes its steps in parts of a fraction of a second, between which Python is asked whether it was interrupted.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeAlias

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from gyrostat.algorithms.algorithm import Algorithm
from gyrostat.diagnostics.base import Diagnostic
from gyrostat.engine.one_run import RunCarry, RunPart, RunPlan, continue_run, start_run
from gyrostat.engine.pace import Pace
from gyrostat.engine.reduction.choose import Reduction, largest_array
from gyrostat.jax_tools.compile_cache import use_compile_cache
from gyrostat.jax_tools.fast_random import fold_in
from gyrostat.jax_tools.float64 import double
from gyrostat.measurements.base import Demand
from gyrostat.measurements.problem import Problem

Cell: TypeAlias = tuple[Algorithm, Problem]
"""One setting: an algorithm and the problem that it is run on."""

RunIndex: TypeAlias = tuple[int, int]
"""A run of a program: the position of its cell in the program, and the number of its seed."""

LARGEST_COPIED = 4096
"""With ``reproducible_bits`` every run has its own copy of arrays with at most this many numbers; runs share larger ones."""


def group_cells(
    cells: Sequence[Cell], horizons: Sequence[Hashable], *, reproducible_bits: bool = False
) -> list[list[int]]:
    """Indices of cells that can share a program: same static parts, shapes, numbers of steps, and large data."""
    groups: dict[Any, list[int]] = {}
    for i, cell in enumerate(cells):
        arrays, static = eqx.partition(cell, eqx.is_array_like)
        leaves = jax.tree.leaves(arrays)
        shapes = tuple(np.shape(x) for x in leaves)
        shared = [x for x in leaves if np.size(x) > LARGEST_COPIED] if reproducible_bits else []
        large = tuple(np.asarray(x).tobytes() for x in shared)
        signature = (jax.tree.structure(arrays), tuple(jax.tree.leaves(static)), jax.tree.structure(static))
        groups.setdefault((signature, shapes, horizons[i], cell[1].measurements.group_key, large), []).append(i)
    return list(groups.values())


def runs_per_call(cell: Cell, reduction: Reduction) -> int:
    """The number of runs of this cell that fit well into one call."""
    algorithm, problem = cell
    return problem.measurements.runs_per_call(largest_array(algorithm, problem, reduction), algorithm.batches.mixes)


class Program:
    """Cells of one structure, compiled once: leaves that differ between cells get a batch axis."""

    def __init__(
        self,
        cells: list[Cell],
        record: tuple[Diagnostic, ...],
        grid: np.ndarray,
        seed: int,
        tolerance: float | None,
        reduction: Reduction,
        *,
        reproducible_bits: bool = False,
    ):
        self.seed, self.grid, self.reproducible_bits = seed, grid, reproducible_bits
        algorithm, problem = cells[0]
        self.vectorises = problem.measurements.vectorises
        readings = 0 if self.vectorises else int(grid[-1]) + algorithm.start.needs_first_gradient
        demand = Demand(readings * algorithm.batches.queries(problem.environments.law), algorithm.batches.mixes)
        self.plan = RunPlan(record, demand, reduction, tolerance is not None)
        self.tolerance = np.asarray(0.0 if tolerance is None else tolerance)
        leaves = [jax.tree.flatten(eqx.filter(cell, eqx.is_array_like))[0] for cell in cells]
        columns = list(zip(*leaves, strict=True))
        # For reproducible bits the choice must not depend on which leaves happen to differ between these cells.
        self.varies = tuple(
            np.size(column[0]) <= LARGEST_COPIED
            if reproducible_bits
            else not all(_same(column[0], x) for x in column[1:])
            for column in columns
        )
        self.columns = [np.stack(c) if v else c[0] for c, v in zip(columns, self.varies, strict=True)]
        arrays, self.static = eqx.partition(cells[0], eqx.is_array_like)
        self.structure = jax.tree.structure(arrays)
        self.most = runs_per_call(cells[0], reduction)
        self.pace = self._pace()

    def _pace(self) -> Pace:
        """The pace of the compiled program, which other objects of this class may have used before."""
        static = (tuple(jax.tree.leaves(self.static)), jax.tree.structure(self.static))
        shapes = tuple(np.shape(column) for column in self.columns)
        known = (static, self.structure, self.varies, self.plan, shapes, len(self.grid))
        if len(PACES) >= MOST_PACES:
            PACES.clear()
        return PACES.setdefault(known, Pace())

    def calls(
        self, runs: Sequence[RunIndex], report: Callable[[float], Any] = lambda runs: None
    ) -> Iterator[tuple[slice, dict[str, np.ndarray]]]:
        """The outcomes of all runs, a call at a time: which of the runs, and their values by name.

        ``report`` is called with the runs that are newly done, in fractions while a call is under way.
        """
        width = self.most if self.reproducible_bits else min(self.most, len(runs))
        for start in range(0, len(runs), width):
            part = slice(start, start + width)
            yield part, self._call(list(runs[part]), width, report)

    def _call(self, runs: list[RunIndex], width: int, report: Callable[[float], Any]) -> dict[str, np.ndarray]:
        # A call that is not full is padded with copies of its last run, so that nothing is compiled again for it.
        padded = runs + runs[-1:] * (width - len(runs))
        cells, seeds = (np.array(x) for x in zip(*padded, strict=True))
        fixed = (self.static, self.structure, self.varies, self.plan)
        use_compile_cache()
        with double(), _garbage_kept():
            leaves = [c[cells] if v else c for c, v in zip(self.columns, self.varies, strict=True)]
            many = self.vectorises and width > 1
            programs: tuple[Any, Any] = (_start_many, _continue_many) if many else (_start_one, _continue_one)
            start, go_on = programs
            if not many:
                leaves, seeds = [x[0] if v else x for x, v in zip(leaves, self.varies, strict=True)], seeds[0]
            # Keys are made in the program: out here, JAX would compile a program for each operation.
            moving: tuple[Any, ...] = (leaves, seeds, np.asarray(self.seed), self.grid, self.tolerance)
            # Traced, once, and never compiled: the program makes the start itself.
            like = eqx.filter_eval_shape(lambda *given: start(fixed, *given), *moving)
            carry: Any = jax.tree.map(lambda x: np.zeros(x.shape, x.dtype), like)
            values: dict[str, np.ndarray] = {}
            for part in self.pace.parts(self.grid):
                carry, recorded, ends = go_on(fixed, *moving, carry, jax.tree.map(jnp.asarray, part))
                new = slice(int(part.first), int(part.last))
                for name, x in _by_run(recorded, many).items():
                    values.setdefault(name, np.empty_like(x))[:, new] = x[:, new]
                report(len(runs) * float(part.stop - part.start) / int(self.grid[-1]))
            return {name: x[: len(runs)] for name, x in (values | _by_run(ends, many)).items()}


PACES: dict[Hashable, Pace] = {}
"""The paces of the programs of this process: a program that runs many times learns once how fast it is."""

MOST_PACES = 1000
"""So many paces are kept."""


def _by_run(values: dict[str, Array], many: bool) -> dict[str, np.ndarray]:
    """Values with a first axis of runs, which a single run has not."""
    return {name: np.asarray(x) if many else np.asarray(x)[None] for name, x in values.items()}


@contextmanager
def _garbage_kept() -> Iterator[None]:
    """No search for cyclic garbage in this block, which would take a sixth of the time of tracing and find little."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def _cell(fixed: tuple, leaves: list) -> Cell:
    static, structure, _, _ = fixed
    return eqx.combine(jax.tree.unflatten(structure, leaves), static)


def _key(seed: Array, number: Array) -> PRNGKeyArray:
    """The key of a run."""
    return fold_in(jax.random.key(seed), number)


@eqx.filter_jit
def _start_one(fixed: tuple, leaves: list, number: Array, seed: Array, grid: Array, tolerance: Array) -> RunCarry:
    return start_run(*_cell(fixed, leaves), _key(seed, number), fixed[3], grid.dtype)


@eqx.filter_jit
def _continue_one(
    fixed: tuple,
    leaves: list,
    number: Array,
    seed: Array,
    grid: Array,
    tolerance: Array,
    carry: RunCarry,
    part: RunPart,
) -> tuple[RunCarry, dict[str, Array], dict[str, Array]]:
    return continue_run(*_cell(fixed, leaves), _key(seed, number), grid, tolerance, fixed[3], carry, part)


@eqx.filter_jit
def _start_many(fixed: tuple, leaves: list, numbers: Array, seed: Array, grid: Array, tolerance: Array) -> SplitCarry:
    common: list[Any] = []

    def one(own: list, number: Array) -> RunCarry:
        return _split(start_run(*_cell(fixed, own), _key(seed, number), fixed[3], grid.dtype), common)

    return jax.vmap(one, in_axes=(_axes(fixed), 0))(leaves, numbers), common[0]


@eqx.filter_jit
def _continue_many(
    fixed: tuple,
    leaves: list,
    numbers: Array,
    seed: Array,
    grid: Array,
    tolerance: Array,
    carry: SplitCarry,
    part: RunPart,
) -> tuple[SplitCarry, dict[str, Array], dict[str, Array]]:
    common: list[Any] = []

    def one(own: list, number: Array, mine: RunCarry) -> tuple[RunCarry, dict[str, Array], dict[str, Array]]:
        whole = _joined(mine, carry[1])
        after, values, ends = continue_run(
            *_cell(fixed, own), _key(seed, number), grid, tolerance, fixed[3], whole, part
        )
        return _split(after, common), values, ends

    mine, values, ends = jax.vmap(one, in_axes=(_axes(fixed), 0, 0))(leaves, numbers, carry[0])
    return (mine, common[0]), values, ends


def _axes(fixed: tuple) -> list[int | None]:
    return [0 if varies else None for varies in fixed[2]]


# Between two parts, every run has its own state, but for large arrays of measurements that all runs share (one design for all,
# given rows): copies of those for every run would take memory, and cost the matrix product that all runs share.

SplitCarry: TypeAlias = tuple[RunCarry, Any]
"""The carry of every run, and the part of their measurements that they share."""


def _split(carry: RunCarry, common: list[Any]) -> RunCarry:
    """The carry without what runs share, which is put into ``common``: it has no axis of runs, and so is known outside."""
    measured = carry.state.measured
    is_own = jax.tree.map(lambda x: np.size(x) <= LARGEST_COPIED or _differs_between_runs(x), measured)
    own, shared = eqx.partition(measured, is_own)
    common[:] = [shared]
    return carry._replace(state=carry.state._replace(measured=own))


def _joined(mine: RunCarry, shared: Any) -> RunCarry:
    return mine._replace(state=mine.state._replace(measured=eqx.combine(mine.state.measured, shared)))


def _differs_between_runs(x: Array) -> bool:
    """Whether an array has an axis of runs in the vmap that is being traced."""
    found: list[Any] = []

    @jax.custom_batching.custom_vmap
    def look(x: Array) -> Array:
        return x

    @look.def_vmap
    def _seen(size: int, batched: Any, x: Array) -> tuple[Array, bool]:
        found.append(x)
        return x, True

    look(x)
    return bool(found)


def _same(a: Any, b: Any) -> bool:
    return a is b or (np.shape(a) == np.shape(b) and bool(np.array_equal(a, b)))
