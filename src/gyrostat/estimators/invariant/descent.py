"""HeteroSGD with amplified heterogeneity on the effects of features: the kernel of the linear estimator.

With ``beta = u * u - v * v`` and a step on environment e,

    g = G_e + kappa * (G_e - mean of G),     G_e = map_e beta - effects_e,
    u <- (1 - eta g) u,                      v <- (1 + eta g) v,

where kappa has one number per feature. All of it is linear, so amplification is done to maps and effects, once.
"""

from __future__ import annotations

import numpy as np

from gyrostat import errors
from gyrostat.engine.numpy_backend.loop import DescentState, constant, descend, path_and_late_mean
from gyrostat.engine.numpy_backend.models import NumpyDiagonal
from gyrostat.engine.numpy_backend.update_rules import NumpyGradientStep, NumpyReading
from gyrostat.errors import GyrostatError
from gyrostat.estimators.invariant.effects import Effects
from gyrostat.theory.transition import LEARNT, critical_spread

RECORDS = 100
"""Recorded points of a path."""
LARGEST_STEP, MOST_STEPS = 0.1, 50_000
WEAKEST = 0.05
"""The smallest effect (standard deviations of y per standard deviation of a feature) that a run is long enough for."""


def chosen_step(step_size: float | str, seen: Effects) -> float:
    """A given step, or the largest up to 0.1 that is stable in every environment: ``2 eta sum |effects| <= 1``."""
    if not isinstance(step_size, str):
        return float(errors.number("step_size", step_size, above=0))
    errors.choice("step_size", step_size, ("auto",))
    return min(LARGEST_STEP, 0.5 / max(np.abs(seen.effects).sum(axis=1).max(), 1e-12))


def chosen_horizon(num_steps: int | str, step_size: float, init_scale: float) -> int:
    """A given number of steps, or twice what the weakest effect worth learning needs."""
    if not isinstance(num_steps, str):
        return errors.integer("num_steps", num_steps, least=4)
    errors.choice("num_steps", num_steps, ("auto",))
    # An effect m grows as exp(eta m t) from alpha to sqrt(m); once more as long for averages to settle.
    needed = 2 * np.log(max(np.sqrt(WEAKEST) / init_scale, 1.0)) / np.log1p(step_size * WEAKEST)
    if needed > MOST_STEPS:
        raise GyrostatError(
            f"num_steps='auto' would be {needed:.0f}, as effects of this size are stable only up to step_size={step_size:.2g}: "
            "leave out features that nearly repeat each other, use adjust=False, or set num_steps to accept fewer."
        )
    return max(int(np.ceil(needed)), 100)


def amplification(
    seen: Effects, tolerance: float, *, step_size: float, init_scale: float, num_steps: int
) -> np.ndarray:
    """The kappa of every feature for which the Lyapunov rule changes its mind at a spread of ``tolerance`` times the mean.

    A feature with mean effect m is forgotten when its amplified spread exceeds the M* of :func:`critical_spread`, so that
    ``1 + kappa = M* / (tolerance m)``. Features that vary more are forgotten with less, and take no more than what leaves
    ``1 - eta |g|`` positive: beyond that, steps overshoot zero and grow.
    """
    eta, kappas = step_size, []
    for m, largest in zip(np.abs(seen.mean), np.abs(seen.effects - seen.mean).max(axis=0), strict=True):
        if m <= 0 or largest <= 1e-12 * m:
            kappas.append(0.0)
            continue
        star = critical_spread(eta, init_scale=init_scale, num_steps=num_steps, mean=m, threshold=LEARNT * m)
        room = (1 - eta * m) / (eta * largest)
        kappas.append(max(min(star / (tolerance * m), room) - 1, 0.0))
    return np.array(kappas)


def orders(environments: int, steps: int, count: int, random: np.random.RandomState) -> np.ndarray:
    """``count`` sequences of environments: rounds in which each occurs once, in random order."""
    rounds = -(-steps // environments)
    return random.random_sample((count, rounds, environments)).argsort(axis=-1).reshape(count, -1)[:, :steps]


def effect_descent(
    seen: Effects, turns: np.ndarray, *, step_size: float, init_scale: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """One descent for each row of ``turns``, the environments of its steps.

    Returns the recorded steps, the mean ``beta`` over the runs there, and every run's mean over the second half of the steps.
    """
    (runs, num_steps), plain = turns.shape, seen.plain
    start = np.full((runs, len(seen.mean)), init_scale)

    def sense(state: DescentState) -> NumpyReading:
        e, beta = turns[:, state.step], state.product
        # One product for each run: indexing the maps by run would copy them at every step.
        mapped = beta if plain else np.stack([seen.maps[k] @ b for k, b in zip(e, beta, strict=True)])
        return NumpyReading(mapped - seen.effects[e])

    states = descend(NumpyDiagonal(), (start, start), sense, NumpyGradientStep(), constant(step_size), num_steps)
    return path_and_late_mean(states, num_steps, RECORDS)
