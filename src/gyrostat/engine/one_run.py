"""One run: a seed of an algorithm on a problem, stepped from recording to recording.

A run is made in parts, so that an interrupt finds Python between two of them. One compiled program makes parts of any length,
and the numbers do not depend on where a run is cut. What does not change during a run is made again in every part: that takes
less time than a second program would take to compile.

Randomness: the key of a run is ``fold_in(key(seed), number of the run's seed)`` and the key of step t is derived from the
key of the run and t. Recording more often, or computing other runs in the same call, therefore never changes a run.
"""

from __future__ import annotations

import dataclasses
from typing import Any, NamedTuple

import jax
import jax.extend.core as jex
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PRNGKeyArray

from gyrostat.algorithms.algorithm import Algorithm
from gyrostat.algorithms.events import Moment
from gyrostat.diagnostics.base import Diagnostic, Snapshot
from gyrostat.engine.reduction.choose import Reduction
from gyrostat.engine.reduction.reduced_run import ReducedRun, reduce_run
from gyrostat.environments import Environments
from gyrostat.jax_tools import runs_last_loop
from gyrostat.jax_tools.fast_random import fold_in, split
from gyrostat.jax_tools.sequential_lapack import SequentialLapack
from gyrostat.jax_tools.small_products import are_small, squared_norm
from gyrostat.measurements.base import Demand, Scene
from gyrostat.measurements.problem import Problem
from gyrostat.typing import Params

LIMIT = 1e8
"""A run whose parameters have a larger norm has diverged: its step is noted and its recorded values are NaN."""

EVENT_KEYS = 2**30
"""The keys of events fold in numbers from here on, far from the small numbers that batches fold into the same key."""


class RunState(NamedTuple):
    """What the next step needs, and the steps at which the run diverged and reached the tolerance (-1 for not yet).

    ``square`` is the sum of the squares of all parameters, ``memory`` is that of the update rule.
    """

    params: Params
    square: Float[Array, ""]
    memory: Any
    measured: Any
    events: tuple[Any, ...]
    diverged: Int[Array, ""]
    reached: Int[Array, ""]


class RunPlan(NamedTuple):
    """What is fixed when a program is compiled, apart from its cells."""

    record: tuple[Diagnostic, ...]
    demand: Demand
    reduction: Reduction
    has_tolerance: bool


class RunPart(NamedTuple):
    """A part of a run: from step ``start`` to step ``stop``, with the recordings ``first`` to ``last`` (excluded).

    If ``stop`` lies before the step of the last of these recordings, that one is made again by the next part.
    """

    start: Int[Array, ""]
    stop: Int[Array, ""]
    first: Int[Array, ""]
    last: Int[Array, ""]


class RunCarry(NamedTuple):
    """What a part hands to the next one: the parameters at the start, before any reduction, and the state."""

    start: Params
    state: RunState


def start_run(algorithm: Algorithm, problem: Problem, key: PRNGKeyArray, plan: RunPlan, dtype: Any) -> RunCarry:
    """A run before its first step; steps are counted in ``dtype``."""
    return _set_up(algorithm, problem, key, plan, dtype)[2]


def continue_run(
    algorithm: Algorithm,
    problem: Problem,
    key: PRNGKeyArray,
    grid: Int[Array, " records"],
    tolerance: Float[Array, ""],
    plan: RunPlan,
    carry: RunCarry,
    part: RunPart,
) -> tuple[RunCarry, dict[str, Array], dict[str, Array]]:
    """The run after a part, the diagnostics by name, and the numbers about the run so far by name.

    Diagnostics have an entry for each step of ``grid``; those of the part are filled. The numbers of ``carry`` do not matter
    in the part that begins with step 0.
    """
    stated, reduced, carry = _set_up(algorithm, problem, key, plan, grid.dtype, carry, part.start == 0)
    run = _Run(algorithm, problem, stated, reduced, split(key, 4)[3], tolerance, plan)
    program, shapes = jax.make_jaxpr(run.record, return_shape=True)(carry.state.params)

    def interval(j: Array, so_far: tuple[RunState, dict[str, Array]]) -> tuple[RunState, dict[str, Array]]:
        state, values = so_far
        lower = jnp.maximum(jnp.where(j > 0, grid[j - 1], 0), part.start)
        state = run.steps(state, lower, jnp.minimum(grid[j], part.stop))
        recorded = jax.tree.unflatten(jax.tree.structure(shapes), jex.jaxpr_as_fun(program)(*run.finite_params(state)))
        return state, {name: values[name].at[j].set(x) for name, x in recorded.items()}

    empty = {name: jnp.zeros((grid.size, *x.shape), dtype=x.dtype) for name, x in shapes.items()}
    state, values = jax.lax.fori_loop(part.first, part.last, interval, (carry.state, empty))
    return _with_strong_types(RunCarry(carry.start, state)), values, run.ends(state, grid[-1])


def _with_strong_types(tree: Any) -> Any:
    """Without JAX's weak types, for which the next part would be traced again."""
    return jax.tree.map(lambda x: jax.lax.convert_element_type(x, x.dtype), tree)


def _set_up(
    algorithm: Algorithm,
    problem: Problem,
    key: PRNGKeyArray,
    plan: RunPlan,
    dtype: Any,
    before: RunCarry | None = None,
    is_first: Array | bool = True,
) -> tuple[Environments, ReducedRun, RunCarry]:
    """The environments, the reduced run, and the carry: that of the part ``before``, unless this is the first one."""
    drawing_key, start_key, measurement_key, _ = split(key, 4)
    in_order = SequentialLapack()
    stated = in_order(lambda: problem.draw(drawing_key))
    measured, first_gradient = (), None
    if not plan.reduction.rows or algorithm.start.needs_first_gradient:
        space = algorithm.model.space(problem.shape)

        def begin() -> Any:
            return SequentialLapack()(lambda: problem.measurements.init(measurement_key, stated, space, plan.demand))

        # Only once: designs can be large, and slow to draw.
        given = () if before is None else before.state.measured
        measured = in_order(lambda: jax.lax.cond(is_first, begin, lambda: given) if jax.tree.leaves(given) else begin())
    if algorithm.start.needs_first_gradient:
        first_gradient, after = _gradient_at_zero(algorithm, problem, stated, measured, start_key)
        measured = _chosen(is_first, after, measured)
    params = in_order.wait(in_order(lambda: algorithm.start(algorithm.model, problem.shape, start_key, first_gradient)))
    if before is not None:
        params = _chosen(is_first, params, before.start)
    reduced = reduce_run(algorithm, stated, params, plan.reduction)
    state = _initial_state(algorithm, reduced, measured, dtype)
    if before is not None:
        state = _chosen(is_first, state._replace(measured=()), before.state._replace(measured=()))
        state = state._replace(measured=measured)
    return stated, reduced, RunCarry(params, state)


def _chosen(is_first: Array | bool, fresh: Any, given: Any) -> Any:
    return jax.tree.map(lambda new, old: jnp.where(is_first, new, old), fresh, given)


def _gradient_at_zero(
    algorithm: Algorithm, problem: Problem, environments: Environments, measured: Any, key: PRNGKeyArray
) -> tuple[Array, Any]:
    """The gradient at a product of zero, for a start that depends on the data."""
    space = algorithm.model.space(problem.shape)
    scene = Scene(environments, space, jnp.zeros(problem.shape, dtype=float))
    first_step = jnp.zeros((), dtype=int)
    reading, measured = algorithm.batches.read(problem.measurements, measured, first_step, key, key, scene)
    return reading.gradient, measured


def _events(algorithm: Algorithm, reduced: ReducedRun) -> tuple[Any, ...]:
    return (*algorithm.events, *reduced.events)


def _initial_state(algorithm: Algorithm, reduced: ReducedRun, measured: Any, dtype: Any) -> RunState:
    params, never = reduced.params, jnp.full((), -1, dtype=dtype)
    memory = algorithm.rule.init(reduced.model, params)
    states = tuple(event.init(reduced.model, params) for event in _events(algorithm, reduced))
    return RunState(params, _sum_of_squares(params), memory, measured, states, never, never)


@dataclasses.dataclass(frozen=True)
class _Run:
    """What stays the same during a run. ``stated`` are the environments before the reduction."""

    algorithm: Algorithm
    problem: Problem
    stated: Environments
    reduced: ReducedRun
    step_key: PRNGKeyArray
    tolerance: Float[Array, ""]
    plan: RunPlan

    @property
    def events(self) -> tuple[Any, ...]:
        """The events of the algorithm and those of the reduction."""
        return _events(self.algorithm, self.reduced)

    def steps(self, state: RunState, first: Int[Array, ""], last: Int[Array, ""]) -> RunState:
        """The state after the steps from ``first`` to ``last`` (excluded)."""
        small = are_small(self.reduced.environments.shape, self.reduced.params)
        loop = runs_last_loop.fori_loop if self.problem.measurements.by_entries and small else jax.lax.fori_loop
        return loop(first, last, lambda t, state: SequentialLapack()(lambda: self.step(t, state)), state)

    def finite_params(self, state: RunState) -> Params:
        """The parameters, NaN if the run has diverged."""
        return tuple(jnp.where(state.diverged < 0, p, jnp.nan) for p in state.params)

    def record(self, params: Params) -> dict[str, Array]:
        model, shape, reduced = self.algorithm.model, self.problem.shape, self.reduced
        snapshots = {
            "small": Snapshot(reduced.environments, model, reduced.as_reduced(params), shape),
            "product": Snapshot(self.stated, model, reduced.in_stated_coordinates(params), shape),
            "stated": Snapshot(self.stated, model, reduced.as_stated(params), shape),
        }
        return SequentialLapack()(lambda: {d.name: self._value(d, snapshots[d.sees]) for d in self.plan.record})

    def _value(self, diagnostic: Diagnostic, snapshot: Snapshot) -> Array:
        """The value of a diagnostic; NaN where it compares with a truth that is unknown."""
        if not diagnostic.needs_truth or self.stated.knows_truth:
            return diagnostic.value(snapshot)
        if not diagnostic.dims:
            return jnp.full((), jnp.nan, dtype=float)
        return jnp.full_like(diagnostic.function(snapshot), jnp.nan)

    def step(self, t: Int[Array, ""], state: RunState) -> RunState:
        algorithm, model, environments = self.algorithm, self.reduced.model, self.reduced.environments
        eta, ridge = algorithm.schedule(t)
        key, space = fold_in(self.step_key, t), model.space(environments.shape)
        scene = Scene(environments, space, model.product(state.params), lambda i, j: model.entry(state.params, i, j))
        reading, measured = algorithm.batches.read(
            self.problem.measurements, state.measured, t, self.step_key, key, scene
        )
        after, memory = algorithm.rule.update(state.memory, model, state.params, reading, eta, ridge)
        states = []
        for i, event in enumerate(self.events):
            moment = Moment(t, fold_in(key, EVENT_KEYS + i), eta, state.params, after, reading)
            after, own = event(state.events[i], model, moment)
            memory = self.restarted(memory, after, event.restarts_memory(state.events[i], own))
            states.append(own)
        known = (
            None if self.events else algorithm.rule.squared_norm(state.square, model, state.params, reading, eta, ridge)
        )
        total = _sum_of_squares(after) if known is None else known
        diverged = jnp.where((state.diverged < 0) & ~(total < LIMIT**2), t + 1, state.diverged)
        # A diverged run continues and becomes NaN only where it is recorded, which saves a pass over all parameters.
        reached = self.reached(t, state, scene.product)
        return RunState(after, total, memory, measured, tuple(states), diverged, reached)

    def restarted(self, memory: Any, params: Params, restarts: Array | bool) -> Any:
        """The memory of the rule, or that of a first step if an event has restarted it."""
        if restarts is False:
            return memory
        first = self.algorithm.rule.init(self.reduced.model, params)
        return jax.tree.map(lambda new, old: jnp.where(restarts, new, old), first, memory)

    def reached(self, t: Int[Array, ""], state: RunState, product: Array) -> Int[Array, ""]:
        """The first step at which ``||A - A_star||_F^2 / 2`` was below the tolerance, given the product at step t."""
        if not self.plan.has_tolerance:
            return state.reached
        below = squared_norm(product - self.reduced.environments.invariant) / 2 < self.tolerance
        return jnp.where((state.reached < 0) & (state.diverged < 0) & below, t, state.reached)

    def ends(self, state: RunState, last_step: Int[Array, ""]) -> dict[str, Array]:
        """The numbers about the whole run."""
        ends = {"diverged": state.diverged}
        if self.plan.has_tolerance:
            ends["reached"] = self.reached(last_step, state, self.reduced.model.product(state.params))
        for event, own in zip(self.events, state.events, strict=True):
            ends |= event.summary(own)
        return ends


def _sum_of_squares(params: Params) -> Float[Array, ""]:
    return sum(squared_norm(p) for p in params)  # type: ignore[return-value]
