"""Compiled programs: cells that share their structure run in one vmapped program, many runs to a call."""

from __future__ import annotations

import gc
from collections.abc import Hashable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeAlias

import equinox as eqx
import jax
import numpy as np
from jaxtyping import Array

from gyrostat.algorithms.algorithm import Algorithm
from gyrostat.diagnostics.base import Diagnostic
from gyrostat.engine.one_run import RunPlan, one_run
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

    def calls(self, runs: Sequence[RunIndex]) -> Iterator[tuple[slice, dict[str, np.ndarray]]]:
        """The outcomes of all runs, a call at a time: which of the runs, and their values by name."""
        width = self.most if self.reproducible_bits else min(self.most, len(runs))
        for start in range(0, len(runs), width):
            part = slice(start, start + width)
            yield part, self._call(list(runs[part]), width)

    def _call(self, runs: list[RunIndex], width: int) -> dict[str, np.ndarray]:
        # A call that is not full is padded with copies of its last run, so that nothing is compiled again for it.
        padded = runs + runs[-1:] * (width - len(runs))
        cells, seeds = (np.array(x) for x in zip(*padded, strict=True))
        fixed = (self.static, self.structure, self.varies, self.plan)
        use_compile_cache()
        with double(), _garbage_kept():
            leaves = [c[cells] if v else c for c, v in zip(self.columns, self.varies, strict=True)]
            # Keys are made in the program: out here, JAX would compile a program for each operation.
            shared = (np.asarray(self.seed), self.grid, self.tolerance)
            if self.vectorises and width > 1:
                values = _compiled_many(fixed, leaves, seeds, *shared)
            else:
                single = [leaf[0] if v else leaf for leaf, v in zip(leaves, self.varies, strict=True)]
                values = {name: x[None] for name, x in _compiled_one(fixed, single, seeds[0], *shared).items()}
            return {name: np.asarray(x)[: len(runs)] for name, x in values.items()}


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


def _one(fixed: tuple, leaves: list, number: Any, seed: Any, grid: Any, tolerance: Any) -> dict[str, Array]:
    static, structure, _, plan = fixed
    algorithm, problem = eqx.combine(jax.tree.unflatten(structure, leaves), static)
    return one_run(algorithm, problem, fold_in(jax.random.key(seed), number), grid, tolerance, plan)


def _many(fixed: tuple, leaves: list, numbers: Any, *shared: Any) -> dict[str, Array]:
    axes = [0 if varies else None for varies in fixed[2]]
    return jax.vmap(lambda own, number: _one(fixed, own, number, *shared), in_axes=(axes, 0))(leaves, numbers)


_compiled_one = eqx.filter_jit(_one)
_compiled_many = eqx.filter_jit(_many)


def _same(a: Any, b: Any) -> bool:
    return a is b or (np.shape(a) == np.shape(b) and bool(np.array_equal(a, b)))
