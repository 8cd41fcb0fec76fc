"""Compiled programs: cells that share their structure run in one vmapped program, many runs to a call.

Two programs are compiled: ``begin`` draws the runs and ``advance`` makes steps and recordings. Steps are made in parts of a
fraction of a second, between which Python is asked whether it was interrupted.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import nullcontext
from typing import Any, TypeAlias

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from gyrostat.algorithms.algorithm import Algorithm
from gyrostat.diagnostics.base import Diagnostic
from gyrostat.engine.one_run import OneRun, Plan, State
from gyrostat.engine.progress import ProgressReport
from gyrostat.engine.reduction import Reduction, largest_array
from gyrostat.jax_tools.compile_cache import use_compile_cache
from gyrostat.jax_tools.fast_random import fold_in
from gyrostat.jax_tools.float64 import double
from gyrostat.jax_tools.sequential_lapack import in_sequence
from gyrostat.jax_tools.small_products import last_axis, runs_stored_last
from gyrostat.measurements.base import Demand
from gyrostat.measurements.problem import Problem

Cell: TypeAlias = tuple[Algorithm, Problem]
"""One setting: an algorithm and the problem that it is run on."""

RunIndex: TypeAlias = tuple[int, int]
"""A run of a program: the position of its cell in the program, and the number of its seed."""

LARGEST_COPIED = 4096
"""With ``reproducible_bits`` every run has its own copy of arrays with at most this many numbers; runs share larger ones."""

PART_SECONDS = 0.25
"""What a part takes at most, if steps and recordings take equally long: Ctrl-C is answered between two parts."""

GROWTH = 4
"""A part makes at most so many times the steps, and the recordings, of one that took this fraction of ``PART_SECONDS``."""

# Only this release line is known to have these options.
PLAIN: dict[str, Any] = (
    {"xla_cpu_use_fusion_emitters": False, "xla_backend_optimization_level": 0}
    if jax.__version__.startswith("0.10.")
    else {}
)
"""How ``begin`` is compiled where it runs once for many runs: in a third of the time, and it takes twice as long. Where every
run has large data of its own, drawing them is optimised."""


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


class NumberOfStepsMatters(Exception):
    """Measurements size their state by the number of readings."""


class AnyNumberOfSteps(Demand):
    """A demand that does not say how many readings a run takes, so that runs of every length share a program."""

    @property
    def queries(self) -> int:
        raise NumberOfStepsMatters


class Program:
    """Cells of one structure, compiled once: arrays that differ between cells get an axis of runs."""

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
        algorithm, problem = cells[0]
        vectorises = problem.measurements.vectorises
        readings = int(grid[-1]) + algorithm.start.needs_first_gradient
        self.demand = Demand(readings * algorithm.batches.queries(problem.environments.law), algorithm.batches.mixes)
        self.plan = Plan(record, AnyNumberOfSteps(0, algorithm.batches.mixes), reduction, tolerance is not None)
        self.grid, self.seed = grid, np.asarray(seed)
        self.tolerance = np.asarray(0.0 if tolerance is None else tolerance)
        self.most = runs_per_call(cells[0], reduction) if vectorises else 1
        self.begin = _begin_plainly if vectorises else _begin_fast
        self.pads = reproducible_bits

        def stacked(*leaves: Any) -> np.ndarray | None:
            # For reproducible bits the choice must not depend on which leaves happen to differ between these cells.
            if reproducible_bits:
                return np.stack(leaves) if np.size(leaves[0]) <= LARGEST_COPIED else None
            return None if all(x is leaves[0] or np.array_equal(x, leaves[0]) for x in leaves) else np.stack(leaves)

        self.own = jax.tree.map(stacked, *(eqx.filter(cell, eqx.is_array_like) for cell in cells))
        self.same = jax.tree.map(
            lambda own, x: x if own is None else None, self.own, cells[0], is_leaf=lambda x: x is None
        )

    def calls(
        self, runs: Sequence[RunIndex], report: ProgressReport | None = None
    ) -> Iterator[tuple[slice, dict[str, np.ndarray]]]:
        """The outcomes of all runs, a call at a time: which of the runs, and their values by name."""
        width = self.most if self.pads else min(self.most, len(runs))
        for start in range(0, len(runs), width):
            part = slice(start, start + width)
            yield part, self._call(list(runs[part]), width, report or ProgressReport())

    def _call(self, runs: list[RunIndex], width: int, report: ProgressReport) -> dict[str, np.ndarray]:
        # A call that is not full is padded with copies of its last run, so that nothing is compiled again for it.
        cells, seeds = np.array(runs + runs[-1:] * (width - len(runs))).T
        use_compile_cache()
        grid, start, total = self.grid, 0, int(self.grid[-1])
        steps = recordings = 1
        with double():
            own = jax.tree.map(lambda x: x[cells], self.own)
            with report.compiling():
                arguments = self.same, own, seeds, self.seed, self.tolerance, grid
                try:
                    runs_together, states, values = self.begin(self.plan, *arguments)
                except NumberOfStepsMatters:
                    self.plan = self.plan._replace(demand=self.demand)
                    runs_together, states, values = self.begin(self.plan, *arguments)
            while True:
                ahead = int(np.searchsorted(grid, start, "right"))
                stop = min(start + steps, int(grid[min(ahead + recordings, len(grid)) - 1]))
                # The last of these recordings may lie after the part, which then stops on the way to it.
                first, last = ahead if start else 0, int(np.searchsorted(grid, stop)) + 1
                began = time.perf_counter()
                with report.compiling() if start == 0 else nullcontext():
                    given = (runs_together, grid, *map(np.asarray, (start, stop, first, last)))
                    states, values, ends = jax.block_until_ready(advance(given, states, values))
                report.add(len(runs) * (stop - start) / total)
                if stop == total:
                    recorded = {name: np.swapaxes(np.asarray(x), 0, 1) for name, x in values.items()}
                    return {name: np.asarray(x)[: len(runs)] for name, x in (recorded | ends).items()}
                if time.perf_counter() - began < PART_SECONDS / GROWTH:
                    steps, recordings = max(steps, GROWTH * (stop - start)), max(recordings, GROWTH * (last - first))
                start = stop


class ManyRuns(eqx.Module):
    """Runs side by side: ``own`` holds the arrays that differ between them, with a first axis of runs, ``same`` the rest.

    Copies of a large design for every run would take memory, and cost the matrix product that all runs share. For a single
    run, ``own`` is empty.
    """

    own: OneRun
    same: OneRun

    def map(self, function: Callable[[OneRun, Any], Any], states: Any, axes: Any = 0) -> Any:
        """``function(run, state)`` for all runs and their states; ``axes`` are the axes of runs in states and results."""
        if not jax.tree.leaves(self.own):
            result = function(self.same, jax.tree.map(lambda x: x[0], states))
            return jax.tree.map(lambda x: jnp.asarray(x)[None], result)  # a diagnostic may be a number of Python

        def one(own: OneRun, state: Any) -> Any:
            return function(eqx.combine(own, self.same), state)

        own_axes = 0 if axes == 0 else jax.tree.map(last_axis, self.own)
        return jax.vmap(one, in_axes=(own_axes, axes), out_axes=axes)(self.own, states)

    def steps(self, start: Array, stop: Array, states: State) -> State:
        """The states after the steps from ``start`` to ``stop`` (excluded)."""

        def step(run: OneRun, t: Array, state: State) -> State:
            return in_sequence(lambda: run.step(t, state))

        def loop(runs: ManyRuns, states: State, axes: Any) -> State:
            def all_runs(t: Array, states: State) -> State:
                return runs.map(lambda run, state: step(run, t, state), states, axes)

            return jax.lax.fori_loop(start, stop, all_runs, states)

        if not (self.same.is_small and jax.tree.leaves(self.own)):
            return loop(self, states, 0)
        axes = jax.tree.map(last_axis, states)
        own, moved = (jax.tree.map(lambda x: jnp.moveaxis(x, 0, last_axis(x)), x) for x in (self.own, states))
        with runs_stored_last():
            moved = loop(ManyRuns(own, self.same), moved, axes)
        return jax.tree.map(lambda x, axis: jnp.moveaxis(x, axis, 0), moved, axes)


def begin(
    plan: Plan, same: Cell, own: Cell, numbers: Array, seed: Array, tolerance: Array, grid: Array
) -> tuple[ManyRuns, State, dict[str, Array]]:
    """The runs with these numbers, their states before the first step, and room for what they record."""
    shared: list[OneRun] = []

    def one(own: Cell, number: Array) -> tuple[OneRun, State]:
        # The key is made here: outside, JAX would compile a program for each operation.
        key = fold_in(jax.random.key(seed), number)
        run, state = in_sequence(lambda: OneRun.begin(*eqx.combine(own, same), key, tolerance, plan))
        differs = jax.tree.map(lambda x: eqx.is_array(x) and _differs_between_runs(x), run)
        own_part, shared_part = eqx.partition(run, differs)
        shared[:] = [shared_part]  # no value of a run is in it, so it may leave vmap by the side
        # Without JAX's weak types, for which the second part would be compiled again.
        return own_part, jax.tree.map(lambda x: jax.lax.convert_element_type(x, jnp.asarray(x).dtype), state)

    if len(numbers) > 1:
        own_parts, states = jax.vmap(one)(own, numbers)
    else:
        own_parts, state = one(*jax.tree.map(lambda x: x[0], (own, numbers)))
        states = jax.tree.map(lambda x: x[None], state)
    runs = ManyRuns(own_parts, shared[0])
    shapes = eqx.filter_eval_shape(runs.map, OneRun.record, states)
    return runs, states, {name: jnp.zeros((len(grid), *x.shape), x.dtype) for name, x in shapes.items()}


_begin_plainly, _begin_fast = (
    eqx.filter_jit(begin, compiler_options=options)  # type: ignore[call-overload]  # handed on to jax.jit
    for options in (PLAIN, PLAIN and PLAIN | {"xla_backend_optimization_level": 1})
)


def _differs_between_runs(x: Array) -> bool:
    """Whether an array has an axis of runs in the vmap that is being traced."""
    seen: list[Any] = []

    @jax.custom_batching.custom_vmap
    def look(x: Array) -> Array:
        return x

    @look.def_vmap
    def _seen(size: int, batched: Any, x: Array) -> tuple[Array, bool]:
        seen.append(x)
        return x, True

    look(x)
    return bool(seen)


@eqx.filter_jit(donate="all-except-first")
def advance(
    given: tuple[ManyRuns, Array, Array, Array, Array, Array], states: State, values: dict[str, Array]
) -> tuple[State, dict[str, Array], dict[str, Array]]:
    """The states and the recorded values after a part, and the numbers about the runs so far.

    The part goes from step ``start`` to ``stop``, towards the recordings ``first`` to ``last`` (excluded), the last of which
    may lie after ``stop`` and is then made by a later part.
    """
    runs, grid, start, stop, first, last = given

    def interval(j: Array, so_far: tuple[State, dict[str, Array]]) -> tuple[State, dict[str, Array]]:
        states, values = so_far
        lower = jnp.maximum(jnp.where(j > 0, grid[j - 1], 0), start)
        states = runs.steps(lower, jnp.minimum(grid[j], stop), states)

        def write(values: dict[str, Array]) -> dict[str, Array]:
            now = runs.map(OneRun.record, states)
            return {name: jax.lax.dynamic_update_index_in_dim(values[name], x, j, 0) for name, x in now.items()}

        # If every part made a recording, an expensive diagnostic would keep parts at one step.
        return states, jax.lax.cond(grid[j] <= stop, write, lambda values: values, values)

    states, values = jax.lax.fori_loop(first, last, interval, (states, values))
    return states, values, runs.map(lambda run, state: run.ends(state, grid[-1]), states)
