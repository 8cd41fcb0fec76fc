"""Runs of ``U U^T`` under fresh or infinitely many measurements, a block of steps at a time."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from gyrostat.algorithms.algorithm import Algorithm
from gyrostat.algorithms.batches import OneEnvironment, Pooled
from gyrostat.algorithms.initialisation import ScaledIdentity
from gyrostat.algorithms.update_rules import GradientStep
from gyrostat.engine.compile import Cell
from gyrostat.engine.numpy_backend.cached_draws import SEEDS_AT_ONCE, STEPS_AT_ONCE, as_arguments
from gyrostat.engine.numpy_backend.diagnostics import NUMPY_DIAGNOSTICS, NumpyView
from gyrostat.engine.numpy_backend.environments import DrawnEnvironments, drawn_environments
from gyrostat.engine.numpy_backend.gaussian_gradients import RandomGradients
from gyrostat.engine.numpy_backend.loop import DescentState, Recorder, descend
from gyrostat.engine.numpy_backend.models import NumpySymmetric
from gyrostat.engine.numpy_backend.update_rules import NumpyGradientStep
from gyrostat.engine.one_run import LIMIT
from gyrostat.engine.record import Values
from gyrostat.environments import Finite, Gaussian, RandomEnvironments, Uniform
from gyrostat.jax_tools.float64 import double
from gyrostat.measurements import FreshGaussian, Identity
from gyrostat.models import Symmetric

SCHEDULE_STEPS = 1000
"""The schedule is evaluated for this many steps at a time, so that one program serves all numbers of steps."""


def supports(cell: Cell, record: tuple[str, ...]) -> bool:
    """Whether :func:`simulate_blocks` can run this cell.

    >>> import gyrostat as gs
    >>> problem = gs.Problem(gs.RandomEnvironments(5, law=gs.TwoPoint(spread=6.0)), gs.FreshGaussian(400))
    >>> supports((gs.HeteroSGD(0.05), problem), ("signal",))
    True
    >>> supports((gs.HeteroSGD(0.05, model=gs.Asymmetric()), problem), ("signal",))
    False
    """
    algorithm, problem = cell
    model, recipe, measurements = algorithm.model, problem.environments, problem.measurements
    kinds = (type(model), type(algorithm.start), type(algorithm.rule), type(recipe))
    if kinds != (Symmetric, ScaledIdentity, GradientStep, RandomEnvironments) or algorithm.events:
        return False
    sampled = type(measurements) in (FreshGaussian, Identity) and isinstance(algorithm.batches, OneEnvironment | Pooled)
    noiseless = not float(getattr(measurements, "noise", 0.0)) > 0
    law: Any = recipe.law
    known_law = isinstance(law, Finite) or (isinstance(law, Uniform | Gaussian) and not law.independent)
    plain = model.width is None and recipe.placement == "orthogonal"  # type: ignore[attr-defined]
    return bool(sampled and noiseless and known_law and plain and set(record) <= set(NUMPY_DIAGNOSTICS))


def simulate_blocks(
    cell: Cell, record: tuple[str, ...], grid: np.ndarray, first_seed: int, seeds: int, dtype: type
) -> Iterator[Values | None]:
    """None after every block of steps, so that the caller may stop; at the end the recorded values and ``diverged``.

    ``grid`` lists the recorded steps, up to the last one. At most 16 seeds run at once.

    >>> import gyrostat as gs
    >>> problem = gs.Problem(gs.RandomEnvironments(5, law=gs.TwoPoint(spread=6.0)), gs.FreshGaussian(400))
    >>> *_, last = simulate_blocks((gs.HeteroSGD(0.05), problem), ("signal",), np.arange(0, 101, 20), 0, 2, float)
    >>> last["signal"].shape
    (2, 6)
    """
    assert seeds <= SEEDS_AT_ONCE
    algorithm, problem = cell
    environments = drawn_environments(problem.environments, first_seed, seeds, dtype)
    recorder = Recorder(grid, _look(record, environments))
    states, num_steps = (
        _states(algorithm, environments, RandomGradients(cell, environments, first_seed), grid),
        grid[-1],
    )
    for done in range(0, num_steps + 1, STEPS_AT_ONCE):
        # A diverged run continues, as in the compiled engine, and is NaN where it is recorded.
        with np.errstate(all="ignore"):
            for state in itertools.islice(states, STEPS_AT_ONCE):
                recorder(state)
        if done + STEPS_AT_ONCE <= num_steps:
            yield None
    yield {name: np.stack([x[name] for x in recorder.values], axis=1) for name in record} | {"diverged": state.diverged}


def _states(
    algorithm: Algorithm, environments: DrawnEnvironments, gradients: RandomGradients, grid: np.ndarray
) -> Iterator[DescentState]:
    start: Any = algorithm.start
    model, rule, num_steps = algorithm.model, algorithm.rule, int(grid[-1])
    seeds, d = environments.invariant.shape[:2]
    U = np.repeat(float(start.scale) * np.eye(d, dtype=environments.invariant.dtype)[None], seeds, axis=0)
    factor, decay = float(model.gradient_factor), float(rule.decay)  # type: ignore[attr-defined]
    schedule = _schedule(algorithm, num_steps)
    return descend(NumpySymmetric(factor), (U,), gradients, NumpyGradientStep(decay), schedule, num_steps, LIMIT)


def _look(record: tuple[str, ...], environments: DrawnEnvironments) -> Callable[[DescentState], Values]:
    """A function of states that gives the recorded values by name, with NaN for diverged runs."""

    def look(state: DescentState) -> Values:
        view = NumpyView(state.params[0], state.product, environments, state.spare[0])
        values = {name: NUMPY_DIAGNOSTICS[name](view).astype(float) for name in record}
        for x in values.values():
            x[state.diverged >= 0] = np.nan
        return values

    return look


def _schedule(algorithm: Algorithm, num_steps: int) -> Callable[[int], tuple[float, float]]:
    """The step sizes and ridges of all steps, evaluated in advance."""
    with double():
        schedule = as_arguments(algorithm.schedule)
        starts = range(0, num_steps, SCHEDULE_STEPS)
        parts = [_evaluated(schedule, start + jnp.arange(SCHEDULE_STEPS)) for start in starts]
    step_sizes, ridges = (np.concatenate(x).tolist() for x in zip(*parts, strict=True))
    return lambda step: (step_sizes[step], ridges[step])


@eqx.filter_jit
def _evaluated(schedule: Any, steps: jax.Array) -> Any:
    return jax.vmap(schedule)(steps)
