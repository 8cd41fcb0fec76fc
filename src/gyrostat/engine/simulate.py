"""The only loop. Every algorithm of every paper runs through it, many seeds and many settings at once.

Randomness: the key of a run is ``fold_in(key(seed), index)`` and the key of step t is ``fold_in(key of the run, t)``,
so that recording more often, or running other seeds beside it, never changes a run.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Hashable, Sequence
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, PRNGKeyArray

from gyrostat import errors
from gyrostat.algorithms.algorithm import Algorithm
from gyrostat.algorithms.events import Moment
from gyrostat.diagnostics.signals import Diagnostic, View, resolve
from gyrostat.engine.reduction import subspace as exact
from gyrostat.errors import GyrostatError
from gyrostat.jax_tools import runs_last_loop
from gyrostat.jax_tools.float64 import double
from gyrostat.jax_tools.lapack_order import SequentialLapack
from gyrostat.jax_tools.random_streams import fold_in, split
from gyrostat.jax_tools.small_products import are_small, squared_norm
from gyrostat.measurements.base import Demand, Scene
from gyrostat.measurements.problem import Problem
from gyrostat.typing import Params

LIMIT = 1e8
"""A run whose parameters exceed this has left the finite range: it is marked with the step and becomes NaN."""

FEW = 4096
"""In a steady program arrays of at most so many numbers have a copy for every run; larger ones are shared."""

DEFAULT_RECORD = ("signal", "spurious", "error", "distance")

Cell = tuple[Algorithm, Problem]
Progress = Callable[[int, int], None]


class State(NamedTuple):
    """What the next step needs, and the steps at which the run diverged and reached the tolerance (-1 for not yet).

    ``square`` is the sum of the squares of all parameters.
    """

    params: Params
    square: Float[Array, ""]
    measured: Any
    events: tuple[Any, ...]
    diverged: Int[Array, ""]
    reached: Int[Array, ""]


class Plan(NamedTuple):
    """What is fixed when a program is compiled, beside its cells."""

    record: tuple[Diagnostic, ...]
    demand: Demand
    reduction: exact.Reduction
    watches: bool


@dataclasses.dataclass(frozen=True)
class Trajectories:
    """Recorded values of many runs: arrays with leading dimensions (cell, seed, record).

    ``ends`` holds numbers about whole runs, with dimensions (cell, seed): the step at which a run diverged, the step at
    which it reached the tolerance, what its events say. ``notes`` are sentences that a reader should not miss.
    """

    values: dict[str, np.ndarray]
    dims: dict[str, tuple[str, ...]]
    ends: dict[str, np.ndarray]
    notes: list[str]
    steps: np.ndarray
    seeds: np.ndarray


def simulate(
    cells: Sequence[Cell],
    *,
    num_steps: int | Sequence[int],
    seeds: int | Sequence[int] = 1,
    seed: int = 0,
    record: Sequence[str | Diagnostic] = DEFAULT_RECORD,
    record_at: int | Sequence[int] = 101,
    record_from: Sequence[int] | None = None,
    tolerance: float | None = None,
    reduction: str = "auto",
    steady: bool = False,
    progress: Progress | None = None,
) -> Trajectories:
    """Run every cell (an algorithm on a problem) for every seed and record diagnostics along the way.

    ``record_at`` is a number of recording points spread evenly from step 0 to the last, or the steps themselves;
    ``record_from`` moves the first point of each cell.
    ``num_steps`` may differ from cell to cell. Cells that share their static structure run in one compiled program.
    ``tolerance`` asks for the first step at which ``||A - A_star||_F^2 / 2`` is below it, looked at in every step.
    ``reduction`` runs in a small exact subspace when that is possible (``"auto"``), never, or always.
    ``steady`` makes every bit of a run independent of the cells and seeds that are asked for beside it: the compiled program
    is then the same for all companies, at the price of some idle lanes in small ones.
    """
    cells = list(cells)
    if not cells:
        raise GyrostatError("cells is empty: give at least one (algorithm, problem) pair.")
    horizons = _horizons(num_steps, len(cells))
    lanes = _lanes(seeds)
    chosen = resolve(record)
    seed = errors.integer("seed", seed)
    grids = _grids(record_at, horizons, [0] * len(cells) if record_from is None else list(record_from))
    for algorithm, problem in cells:
        check(algorithm, problem)
    level = _tolerance(tolerance, cells)
    reductions = [exact.decide(reduction, *cell) for cell in cells]
    limit = exact.LEAKS["layers" if any(d.sees == "stated" for d in chosen) else "product"]
    total, done = len(cells) * len(lanes), 0
    rows: dict[int, dict[str, np.ndarray]] = {}
    for group in groups(cells, horizons, steady=steady):
        made = ([cells[i] for i in group], chosen, grids[group[0]], seed, level)
        program = _Program(*made, reductions[group[0]], steady=steady)
        jobs = [(j, lane) for j in range(len(group)) for lane in lanes]
        outcome: list[dict[str, np.ndarray]] = []
        width = program.width(len(jobs))
        for at in range(0, len(jobs), width):
            part = jobs[at : at + width]
            found = program(part, width)
            if "leak" in found:
                found = _exactly(found, part, limit, reduction, functools.partial(_Program, *made, exact.Reduction()))
            outcome.append(found)
            done += len(part)
            if progress is not None:
                progress(done, total)
        merged = {name: np.concatenate([o[name] for o in outcome]) for name in outcome[0]}
        for j, i in enumerate(group):
            rows[i] = {name: x[j * len(lanes) : (j + 1) * len(lanes)] for name, x in merged.items()}
    values = {d.name: _stack([rows[i][d.name] for i in range(len(cells))]) for d in chosen}
    ends = _ends([rows[i] for i in range(len(cells))], {d.name for d in chosen})
    notes = [note for event in _events(cells) for note in event.notes(_gathered(rows))]
    return Trajectories(values, {d.name: d.dims for d in chosen}, ends, notes, grids, np.asarray(lanes))


def _exactly(
    found: dict[str, np.ndarray], jobs: list[tuple[int, int]], limit: float, mode: str, plain: Callable[[], _Program]
) -> dict[str, np.ndarray]:
    """What was found, with the runs of which something leaked out of the reduced space made again without it."""
    (leaked,) = np.nonzero(found.pop("leak") > limit)
    if leaked.size == 0:
        return found
    if mode == "always":
        raise GyrostatError(
            f"reduction='always' is not exact here: {leaked.size} of {len(jobs)} runs left the Krylov spaces of the hidden "
            "layers; use reduction='auto' or 'never'."
        )
    program = plain()
    width = program.width(leaked.size)
    for at in range(0, leaked.size, width):
        part = leaked[at : at + width]
        for name, x in program([jobs[i] for i in part], width).items():
            found[name] = found[name].copy()
            found[name][part] = x
    return found


def check(algorithm: Algorithm, problem: Problem) -> None:
    """Refuse, before any compilation, parts that do not fit together."""
    if not isinstance(algorithm, Algorithm):
        got = errors.shown(algorithm)
        raise GyrostatError(f"algorithm must be HeteroSGD, PooledSGD, ... or an Algorithm; got {got}.")
    if not isinstance(problem, Problem):
        raise GyrostatError(f"problem must be a Problem(environments, measurements); got {errors.shown(problem)}.")
    space = algorithm.model.space(problem.shape)
    algorithm.model.shapes(problem.shape)
    algorithm.start.check(algorithm.model, problem.shape)
    algorithm.rule.check(algorithm.model, problem.shape)
    algorithm.batches.check(problem.environments.law)
    problem.measurements.check(problem.environments, space, algorithm.batches.mixes)
    for event in algorithm.events:
        event.check(algorithm, problem)


def _tolerance(tolerance: float | None, cells: Sequence[Cell]) -> float | None:
    """The tolerance as a number, refused where the model cannot reach the truth."""
    if tolerance is None:
        return None
    for algorithm, problem in cells:
        limit, rank = algorithm.model.rank_limit(problem.shape), exact.rank_of(problem.environments)
        if rank == 0:
            raise GyrostatError(
                "tolerance asks how near the truth is, which Observed places do not know: leave it out."
            )
        if rank is not None and limit < rank:
            raise GyrostatError(
                f"tolerance asks for exact recovery, but {type(algorithm.model).__name__} makes rank {limit} at most and the "
                f"truth has rank {rank}: raise width to at least {rank}, or leave tolerance out."
            )
    return float(errors.number("tolerance", tolerance, above=0))


def lane(
    algorithm: Algorithm,
    problem: Problem,
    key: PRNGKeyArray,
    grid: Int[Array, " records"],
    tolerance: Float[Array, ""],
    plan: Plan,
) -> dict[str, Array]:
    """One run of one seed: the values of the diagnostics at the steps of ``grid``."""
    drawing, starting, measuring, stepping = split(key, 4)
    in_turn, space = SequentialLapack(), algorithm.model.space(problem.shape)
    stated = in_turn(lambda: problem.draw(drawing))
    measured, seen = (), None
    if not plan.reduction.rows or algorithm.start.needs_first_gradient:
        measured = in_turn(lambda: problem.measurements.init(measuring, stated, space, plan.demand))
    if algorithm.start.needs_first_gradient:
        seen, measured = _first_look(algorithm, problem, stated, measured, starting)
    params = in_turn.wait(in_turn(lambda: algorithm.start(algorithm.model, problem.shape, starting, seen)))
    stage = exact.stage(algorithm, stated, params, plan.reduction)
    environments, model, params = stage.environments, stage.model, stage.params
    space = model.space(environments.shape)
    happening = (*algorithm.events, *stage.events)
    events = tuple(event.init(model, params) for event in happening)

    def step(t: Int[Array, ""], state: State) -> State:
        eta, ridge = algorithm.schedule(t)
        key = fold_in(stepping, t)
        scene = Scene(environments, space, model.product(state.params), lambda i, j: model.entry(state.params, i, j))
        reading, measured = algorithm.batches.read(problem.measurements, state.measured, t, stepping, key, scene)
        after = algorithm.rule(model, state.params, reading, eta, ridge)
        memories = []
        for i, event in enumerate(happening):
            # Far from the small numbers that batches fold into the same key.
            moment = Moment(t, fold_in(key, 2**30 + i), eta, state.params, after, reading)
            after, memory = event(state.events[i], model, moment)
            memories.append(memory)
        known = (
            None if happening else algorithm.rule.squared_norm(state.square, model, state.params, reading, eta, ridge)
        )
        total = _square(after) if known is None else known
        diverged = jnp.where((state.diverged < 0) & ~(total < LIMIT**2), t + 1, state.diverged)
        # What has left the finite range goes on, and is NaN where it is looked at: a pass over all numbers saved.
        return State(after, total, measured, tuple(memories), diverged, watch(t, state, scene.product))

    def watch(t: Int[Array, ""], state: State, product: Array) -> Int[Array, ""]:
        if not plan.watches:
            return state.reached
        there = squared_norm(product - environments.invariant) / 2 < tolerance
        return jnp.where((state.reached < 0) & (state.diverged < 0) & there, t, state.reached)

    def segment(state: State, until: tuple[Array, Array]) -> tuple[State, dict[str, Array]]:
        state = loop(*until, lambda t, state: SequentialLapack()(lambda: step(t, state)), state)
        params = tuple(jnp.where(state.diverged < 0, p, jnp.nan) for p in state.params)
        views = {
            "small": View(environments, algorithm.model, stage.show(params), problem.shape),
            "product": View(stated, algorithm.model, stage.unturn(params), problem.shape),
            "stated": View(stated, algorithm.model, stage.lift(params), problem.shape),
        }
        return state, SequentialLapack()(lambda: {d.name: d.function(views[d.sees]) for d in plan.record})

    beside = problem.measurements.by_entries and are_small(environments.shape, params)
    loop = runs_last_loop.fori_loop if beside else jax.lax.fori_loop
    never = jnp.full((), -1, dtype=grid.dtype)
    state = State(params, _square(params), measured, events, never, never)
    state, values = jax.lax.scan(segment, state, (jnp.concatenate([jnp.zeros_like(grid[:1]), grid[:-1]]), grid))
    ends = {"diverged": state.diverged}
    if plan.watches:
        ends["reached"] = watch(grid[-1], state, model.product(state.params))
    for event, memory in zip(happening, state.events, strict=True):
        ends |= event.summary(memory)
    return values | ends


def _square(params: Params) -> Float[Array, ""]:
    """The sum of all squares."""
    return sum(squared_norm(p) for p in params)  # type: ignore[return-value]


def _first_look(
    algorithm: Algorithm, problem: Problem, environments: Any, measured: Any, key: PRNGKeyArray
) -> tuple[Array, Any]:
    """The gradient at a product of zero, for a start that depends on the data."""
    space = algorithm.model.space(problem.shape)
    scene = Scene(environments, space, jnp.zeros(problem.shape, dtype=float))
    first = jnp.zeros((), dtype=int)
    reading, measured = algorithm.batches.read(problem.measurements, measured, first, key, key, scene)
    return reading.gradient, measured


class _Program:
    """Cells of one structure, compiled once: leaves that differ between cells become a batch axis."""

    def __init__(
        self,
        cells: list[Cell],
        record: tuple[Diagnostic, ...],
        grid: np.ndarray,
        seed: int,
        tolerance: float | None,
        reduction: exact.Reduction,
        *,
        steady: bool = False,
    ):
        self.seed, self.grid, self.steady = seed, grid, steady
        algorithm, problem = cells[0]
        self.vectorises = problem.measurements.vectorises
        readings = 0 if self.vectorises else int(grid[-1]) + algorithm.start.needs_first_gradient
        demand = Demand(readings * algorithm.batches.queries(problem.environments.law), algorithm.batches.mixes)
        self.plan = Plan(record, demand, reduction, tolerance is not None)
        self.tolerance = np.asarray(0.0 if tolerance is None else tolerance)
        leaves = [jax.tree.flatten(eqx.filter(cell, eqx.is_array_like))[0] for cell in cells]
        columns = list(zip(*leaves, strict=True))
        # The same leaves for every company: which of them happen to differ in this one would change the program.
        self.varies = tuple(
            np.size(column[0]) <= FEW if steady else not all(_same(column[0], x) for x in column[1:])
            for column in columns
        )
        self.columns = [np.stack(c) if v else c[0] for c, v in zip(columns, self.varies, strict=True)]
        arrays, self.static = eqx.partition(cells[0], eqx.is_array_like)
        self.structure = jax.tree.structure(arrays)
        self.lanes = lanes_of(cells[0], reduction)

    def width(self, jobs: int) -> int:
        """How many runs go into one call."""
        return self.lanes if self.steady else min(self.lanes, jobs)

    def __call__(self, jobs: list[tuple[int, int]], width: int) -> dict[str, np.ndarray]:
        # The last call of many is filled up with copies of its last run, so that nothing is compiled anew for it.
        padded = jobs + jobs[-1:] * (width - len(jobs))
        cells, lanes = (np.array(x) for x in zip(*padded, strict=True))
        arguments = (self.static, self.structure, self.varies, self.plan)
        with double():
            leaves = [c[cells] if v else c for c, v in zip(self.columns, self.varies, strict=True)]
            keys = jax.vmap(lambda i: jax.random.fold_in(jax.random.key(self.seed), i))(jnp.asarray(lanes))
            grid = (jnp.asarray(self.grid), jnp.asarray(self.tolerance))
            if self.vectorises and width > 1:
                out = _run_many(arguments, leaves, keys, *grid)
            else:
                single = [leaf[0] if v else leaf for leaf, v in zip(leaves, self.varies, strict=True)]
                out = {name: x[None] for name, x in _run_one(arguments, single, keys[0], *grid).items()}
            return {name: np.asarray(x)[: len(jobs)] for name, x in out.items()}


def _one(arguments: tuple, leaves: list, key: PRNGKeyArray, grid: Array, tolerance: Array) -> dict[str, Array]:
    static, structure, _, plan = arguments
    algorithm, problem = eqx.combine(jax.tree.unflatten(structure, leaves), static)
    return lane(algorithm, problem, key, grid, tolerance, plan)


def _many(arguments: tuple, leaves: list, keys: PRNGKeyArray, grid: Array, tolerance: Array) -> dict[str, Array]:
    axes = [0 if v else None for v in arguments[2]]
    return jax.vmap(lambda ls, key: _one(arguments, ls, key, grid, tolerance), in_axes=(axes, 0))(leaves, keys)


_run_one = eqx.filter_jit(_one)
_run_many = eqx.filter_jit(_many)


def lanes_of(cell: Cell, reduction: exact.Reduction) -> int:
    """How many runs of this cell go well into one call."""
    algorithm, problem = cell
    return problem.measurements.lanes(exact.size(algorithm, problem, reduction), algorithm.batches.mixes)


def groups(cells: Sequence[Cell], horizons: Sequence[Hashable], *, steady: bool = False) -> list[list[int]]:
    """Indices of cells that can share a program: same static parts, same shapes, same number of steps, same large data."""
    found: dict[Any, list[int]] = {}
    for i, cell in enumerate(cells):
        arrays, static = eqx.partition(cell, eqx.is_array_like)
        leaves = jax.tree.leaves(arrays)
        shapes = tuple(np.shape(x) for x in leaves)
        large = tuple(np.asarray(x).tobytes() for x in leaves if np.size(x) > FEW) if steady else ()
        signature = (jax.tree.structure(arrays), tuple(jax.tree.leaves(static)), jax.tree.structure(static))
        found.setdefault((signature, shapes, horizons[i], cell[1].measurements.apart, large), []).append(i)
    return list(found.values())


def _ends(rows: list[dict[str, np.ndarray]], recorded: set[str]) -> dict[str, np.ndarray]:
    """The numbers about whole runs; cells that do not have one (an event of others) get -1, or NaN for a real number."""

    def missing(like: np.ndarray) -> np.ndarray:
        return np.full(like.shape, -1 if np.issubdtype(like.dtype, np.integer) else np.nan, dtype=like.dtype)

    found = {name: x for row in rows for name, x in row.items() if name not in recorded}
    return {name: np.stack([row.get(name, missing(x)) for row in rows]) for name, x in sorted(found.items())}


def _gathered(rows: dict[int, dict[str, np.ndarray]]) -> dict[str, np.ndarray]:
    """Every value over the runs of those cells that have it."""
    names = {name for row in rows.values() for name in row}
    return {name: np.concatenate([row[name].ravel() for row in rows.values() if name in row]) for name in names}


def _events(cells: Sequence[Cell]) -> list[Any]:
    """One event of each kind that occurs."""
    return list({type(event): event for algorithm, _ in cells for event in algorithm.events}.values())


def _same(a: Any, b: Any) -> bool:
    return a is b or (np.shape(a) == np.shape(b) and bool(np.array_equal(a, b)))


def _stack(arrays: list[np.ndarray]) -> np.ndarray:
    """Stack values of cells; where their last dimensions differ (a number of singular values), pad with NaN."""
    shape = np.max([a.shape for a in arrays], axis=0)
    out = np.full((len(arrays), *shape), np.nan)
    for i, a in enumerate(arrays):
        out[i][tuple(slice(n) for n in a.shape)] = a
    return out


def _horizons(num_steps: int | Sequence[int], count: int) -> list[int]:
    if isinstance(num_steps, Sequence | np.ndarray):
        if len(num_steps) != count:
            raise GyrostatError(f"num_steps lists {len(num_steps)} numbers for {count} settings: give one each.")
        return [errors.integer("num_steps", T, least=1) for T in num_steps]
    return [errors.integer("num_steps", num_steps, least=1)] * count


def _lanes(seeds: int | Sequence[int]) -> list[int]:
    if isinstance(seeds, Sequence | np.ndarray):
        if len(seeds) == 0:
            raise GyrostatError("seeds is empty: give a number of seeds or at least one seed.")
        return [errors.integer("seeds", s) for s in seeds]
    return list(range(errors.integer("seeds", seeds, least=1)))


def _grids(record_at: int | Sequence[int], horizons: list[int], starts: list[int]) -> np.ndarray:
    """The recorded steps of every cell, as many for each."""
    if isinstance(record_at, Sequence | np.ndarray):
        if len(set(horizons)) > 1:
            raise GyrostatError("record_at must be a number of points, not a list, when num_steps differs by setting.")
        return np.stack([_listed(record_at, horizons[0])] * len(horizons))
    # No more points than the shortest run has steps, so that no step is recorded twice.
    lengths = [T - start for start, T in zip(starts, horizons, strict=True)]
    points = min(errors.integer("record_at", record_at, least=1), min(lengths) + 1)
    first = 0 if points > 1 else 1
    parts = [np.round(np.linspace(first * T, T, points)).astype(int) for T in lengths]
    return np.stack([start + part for start, part in zip(starts, parts, strict=True)])


def _listed(record_at: Sequence[int] | np.ndarray, num_steps: int) -> np.ndarray:
    steps = np.array([errors.integer("record_at", s, most=num_steps, most_because=", num_steps") for s in record_at])
    if steps.size == 0 or (np.diff(steps) <= 0).any():
        raise GyrostatError("record_at must list at least one step, in increasing order.")
    # The run goes on to num_steps even when the last recording is earlier, so that divergence is seen.
    return steps if steps[-1] == num_steps else np.append(steps, num_steps)
