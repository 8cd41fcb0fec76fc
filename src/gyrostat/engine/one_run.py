"""One run: a seed of an algorithm on a problem, from its draws to its last recording.

:meth:`OneRun.begin` draws everything that stays the same during a run, :meth:`OneRun.step` makes a step,
:meth:`OneRun.record` looks at the state, and :meth:`OneRun.ends` gives the numbers about the whole run. The loop over steps is
in ``program.py``.

Randomness: the key of a run is ``fold_in(key(seed), number of the run's seed)`` and the key of step t is derived from the
key of the run and t. Recording more often, or computing other runs in the same call, therefore never changes a run.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PRNGKeyArray

from gyrostat.algorithms.algorithm import Algorithm
from gyrostat.algorithms.events import Moment
from gyrostat.diagnostics.base import Diagnostic, Snapshot
from gyrostat.engine.reduction import Reduced, Reduction, reduced_run
from gyrostat.environments import Environments
from gyrostat.jax_tools.fast_random import fold_in, split
from gyrostat.jax_tools.sequential_lapack import in_sequence
from gyrostat.jax_tools.small_products import are_small, squared_norm
from gyrostat.measurements.base import Demand, Reading, Scene
from gyrostat.measurements.problem import Problem
from gyrostat.typing import Params

LIMIT = 1e8
"""A run whose parameters have a larger norm has diverged: its step is noted and its recorded values are NaN."""

EVENT_KEYS = 2**30
"""The keys of events fold in numbers from here on, far from the small numbers that batches fold into the same key."""


class Plan(NamedTuple):
    """What is fixed when a program is compiled, apart from its cells."""

    record: tuple[Diagnostic, ...]
    demand: Demand
    reduction: Reduction
    has_tolerance: bool


class State(NamedTuple):
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


class OneRun(eqx.Module):
    """What stays the same during a run. ``stated`` are the environments before the reduction, ``design`` is the state of
    measurements that never change it. ``is_small`` says whether many such runs gain from storing the axis of runs last.
    """

    algorithm: Algorithm
    problem: Problem
    stated: Environments
    reduced: Reduced
    design: Any
    step_key: PRNGKeyArray
    tolerance: Float[Array, ""]
    plan: Plan = eqx.field(static=True)
    is_small: bool = eqx.field(static=True)

    @staticmethod
    def begin(
        algorithm: Algorithm, problem: Problem, key: PRNGKeyArray, tolerance: Array, plan: Plan
    ) -> tuple[OneRun, State]:
        """Draw the environments, the measurements and the start, and reduce the run."""
        drawing, starting, measuring, stepping = split(key, 4)
        stated, space = problem.draw(drawing), algorithm.model.space(problem.shape)
        measured, first_gradient = (), None
        if not plan.reduction.rows or algorithm.start.needs_first_gradient:
            measured = problem.measurements.init(measuring, stated, space, plan.demand)
        if algorithm.start.needs_first_gradient:
            scene, zero = Scene(stated, space, jnp.zeros(problem.shape, dtype=float)), jnp.zeros((), dtype=int)
            reading, measured = algorithm.batches.read(problem.measurements, measured, zero, starting, starting, scene)
            first_gradient = reading.gradient
        params = algorithm.start(algorithm.model, problem.shape, starting, first_gradient)
        reduced, params = reduced_run(algorithm, stated, params, plan.reduction)
        keeps = problem.measurements.keeps_state
        small = problem.measurements.by_entries and are_small(reduced.environments.shape, params)
        run = OneRun(algorithm, problem, stated, reduced, measured if keeps else (), stepping, tolerance, plan, small)
        memory = algorithm.rule.init(reduced.model, params)
        events = tuple(event.init(reduced.model, params) for event in run.events)
        never = jnp.full((), -1)
        state = State(params, _sum_of_squares(params), memory, () if keeps else measured, events, never, never)
        return run, state

    @property
    def events(self) -> tuple[Any, ...]:
        """The events of the algorithm and those of the reduction."""
        return (*self.algorithm.events, *self.reduced.events)

    def data(self, state: State) -> Any:
        """The state of the measurements."""
        return self.design if self.problem.measurements.keeps_state else state.measured

    def step(self, t: Int[Array, ""], state: State) -> State:
        """The state after step number t: a step of the algorithm, and the events after it."""
        algorithm, model, environments = self.algorithm, self.reduced.model, self.reduced.environments
        measurements = self.problem.measurements
        eta, ridge = algorithm.schedule(t)
        key, space = fold_in(self.step_key, t), model.space(environments.shape)

        def scene_at(params: Params) -> Scene:
            return Scene(environments, space, model.product(params), lambda i, j: model.entry(params, i, j))

        def read(scene: Scene) -> tuple[Reading, Any]:
            return algorithm.batches.read(measurements, self.data(state), t, self.step_key, key, scene)

        def reading_at(params: Params) -> Reading:
            measurements.check_second_reading()
            # The state that comes back is dropped: the measurements go on from the reading of the step itself.
            elsewhere, _ = read(scene_at(params))
            return elsewhere._replace(at=reading_at)

        scene = scene_at(state.params)
        reading, measured = read(scene)
        reading = reading._replace(at=reading_at)
        after, memory = algorithm.rule.update(state.memory, model, state.params, reading, eta, ridge)
        states = []
        for i, (event, before) in enumerate(zip(self.events, state.events, strict=True)):
            moment = Moment(t, fold_in(key, EVENT_KEYS + i), eta, state.params, after, reading)
            after, own = event(before, model, moment)
            states.append(own)
            restarts = event.restarts_memory(before, own)
            if restarts is not False:
                fresh = algorithm.rule.init(model, after)
                memory = jax.tree.map(lambda new, old, now=restarts: jnp.where(now, new, old), fresh, memory)
        known = (
            None if self.events else algorithm.rule.squared_norm(state.square, model, state.params, reading, eta, ridge)
        )
        total = _sum_of_squares(after) if known is None else known
        # A diverged run continues and becomes NaN only where it is recorded, which saves a pass over all parameters.
        diverged = jnp.where((state.diverged < 0) & ~(total < LIMIT**2), t + 1, state.diverged)
        reached = self.reached(t, state, scene.product)
        return State(
            after, total, memory, () if measurements.keeps_state else measured, tuple(states), diverged, reached
        )

    def reached(self, t: Int[Array, ""], state: State, product: Array) -> Int[Array, ""]:
        """The first step at which ``||A - A_star||_F^2 / 2`` was below the tolerance, given the product at step t."""
        if not self.plan.has_tolerance:
            return state.reached
        below = squared_norm(product - self.reduced.environments.invariant) / 2 < self.tolerance
        return jnp.where((state.reached < 0) & (state.diverged < 0) & below, t, state.reached)

    def record(self, state: State) -> dict[str, Array]:
        """The diagnostics by name: NaN if the run has diverged, or if they compare with a truth that is unknown."""
        params = tuple(jnp.where(state.diverged < 0, p, jnp.nan) for p in state.params)
        model, reduced = self.algorithm.model, self.reduced
        seen = (self.problem.shape, self.problem.measurements, self.data(state))
        snapshots = {
            "small": Snapshot(reduced.environments, model, reduced.as_reduced(params), *seen),
            "product": Snapshot(self.stated, model, reduced.in_stated_coordinates(params), *seen),
            "stated": Snapshot(self.stated, model, reduced.as_stated(params), *seen),
        }

        def value(diagnostic: Diagnostic) -> Array:
            if not diagnostic.needs_truth or self.stated.knows_truth:
                return jnp.asarray(diagnostic.value(snapshots[diagnostic.sees]))
            unknown = diagnostic.function(snapshots[diagnostic.sees]) if diagnostic.dims else jnp.zeros((), dtype=float)
            return jnp.full_like(unknown, jnp.nan)

        return in_sequence(lambda: {d.name: value(d) for d in self.plan.record})

    def ends(self, state: State, last_step: Int[Array, ""]) -> dict[str, Array]:
        """The numbers about the run so far."""
        ends = {"diverged": state.diverged}
        if self.plan.has_tolerance:
            ends["reached"] = self.reached(last_step, state, self.reduced.model.product(state.params))
        for event, own in zip(self.events, state.events, strict=True):
            ends |= event.summary(own)
        return ends


def _sum_of_squares(params: Params) -> Float[Array, ""]:
    return sum(squared_norm(p) for p in params)  # type: ignore[return-value]
