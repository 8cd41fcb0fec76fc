"""One run: a seed of an algorithm on a problem, stepped from recording to recording.

Randomness: the key of a run is ``fold_in(key(seed), number of the run's seed)`` and the key of step t is derived from the
key of the run and t. Recording more often, or computing other runs in the same call, therefore never changes a run.
"""

from __future__ import annotations

import dataclasses
from typing import Any, NamedTuple

import jax
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

    ``square`` is the sum of the squares of all parameters.
    """

    params: Params
    square: Float[Array, ""]
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


def one_run(
    algorithm: Algorithm,
    problem: Problem,
    key: PRNGKeyArray,
    grid: Int[Array, " records"],
    tolerance: Float[Array, ""],
    plan: RunPlan,
) -> dict[str, Array]:
    """The diagnostics at the steps of ``grid``, and the numbers about the whole run by name."""
    drawing_key, start_key, measurement_key, step_key = split(key, 4)
    in_order = SequentialLapack()
    stated = in_order(lambda: problem.draw(drawing_key))
    measured, first_gradient = (), None
    if not plan.reduction.rows or algorithm.start.needs_first_gradient:
        space = algorithm.model.space(problem.shape)
        measured = in_order(lambda: problem.measurements.init(measurement_key, stated, space, plan.demand))
    if algorithm.start.needs_first_gradient:
        first_gradient, measured = _gradient_at_zero(algorithm, problem, stated, measured, start_key)
    params = in_order.wait(in_order(lambda: algorithm.start(algorithm.model, problem.shape, start_key, first_gradient)))
    run = _Run(
        algorithm, problem, stated, reduce_run(algorithm, stated, params, plan.reduction), step_key, tolerance, plan
    )
    state = run.initial_state(measured, grid.dtype)
    state, values = jax.lax.scan(run.segment, state, (jnp.concatenate([jnp.zeros_like(grid[:1]), grid[:-1]]), grid))
    return values | run.ends(state, grid[-1])


def _gradient_at_zero(
    algorithm: Algorithm, problem: Problem, environments: Environments, measured: Any, key: PRNGKeyArray
) -> tuple[Array, Any]:
    """The gradient at a product of zero, for a start that depends on the data."""
    space = algorithm.model.space(problem.shape)
    scene = Scene(environments, space, jnp.zeros(problem.shape, dtype=float))
    first_step = jnp.zeros((), dtype=int)
    reading, measured = algorithm.batches.read(problem.measurements, measured, first_step, key, key, scene)
    return reading.gradient, measured


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
        return (*self.algorithm.events, *self.reduced.events)

    def initial_state(self, measured: Any, dtype: Any) -> RunState:
        params, never = self.reduced.params, jnp.full((), -1, dtype=dtype)
        memories = tuple(event.init(self.reduced.model, params) for event in self.events)
        return RunState(params, _sum_of_squares(params), measured, memories, never, never)

    def segment(self, state: RunState, steps: tuple[Array, Array]) -> tuple[RunState, dict[str, Array]]:
        """The steps between two recordings, and the second recording."""
        small = are_small(self.reduced.environments.shape, self.reduced.params)
        loop = runs_last_loop.fori_loop if self.problem.measurements.by_entries and small else jax.lax.fori_loop
        state = loop(*steps, lambda t, state: SequentialLapack()(lambda: self.step(t, state)), state)
        params = tuple(jnp.where(state.diverged < 0, p, jnp.nan) for p in state.params)
        return state, self.record(params)

    def record(self, params: Params) -> dict[str, Array]:
        model, shape, reduced = self.algorithm.model, self.problem.shape, self.reduced
        snapshots = {
            "small": Snapshot(reduced.environments, model, reduced.as_reduced(params), shape),
            "product": Snapshot(self.stated, model, reduced.in_stated_coordinates(params), shape),
            "stated": Snapshot(self.stated, model, reduced.as_stated(params), shape),
        }
        return SequentialLapack()(lambda: {d.name: d.function(snapshots[d.sees]) for d in self.plan.record})

    def step(self, t: Int[Array, ""], state: RunState) -> RunState:
        algorithm, model, environments = self.algorithm, self.reduced.model, self.reduced.environments
        eta, ridge = algorithm.schedule(t)
        key, space = fold_in(self.step_key, t), model.space(environments.shape)
        scene = Scene(environments, space, model.product(state.params), lambda i, j: model.entry(state.params, i, j))
        reading, measured = algorithm.batches.read(
            self.problem.measurements, state.measured, t, self.step_key, key, scene
        )
        after = algorithm.rule(model, state.params, reading, eta, ridge)
        memories = []
        for i, event in enumerate(self.events):
            moment = Moment(t, fold_in(key, EVENT_KEYS + i), eta, state.params, after, reading)
            after, memory = event(state.events[i], model, moment)
            memories.append(memory)
        known = (
            None if self.events else algorithm.rule.squared_norm(state.square, model, state.params, reading, eta, ridge)
        )
        total = _sum_of_squares(after) if known is None else known
        diverged = jnp.where((state.diverged < 0) & ~(total < LIMIT**2), t + 1, state.diverged)
        # A diverged run continues and becomes NaN only where it is recorded, which saves a pass over all parameters.
        return RunState(after, total, measured, tuple(memories), diverged, self.reached(t, state, scene.product))

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
        for event, memory in zip(self.events, state.events, strict=True):
            ends |= event.summary(memory)
        return ends


def _sum_of_squares(params: Params) -> Float[Array, ""]:
    return sum(squared_norm(p) for p in params)  # type: ignore[return-value]
