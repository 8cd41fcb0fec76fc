"""Features, or principal directions of variation, are kept or removed, after a descent on their effects."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from sklearn.utils import check_random_state

from gyrostat import errors
from gyrostat.errors import GyrostatError
from gyrostat.estimators.invariant.common_effects import FEWEST_ENVIRONMENTS
from gyrostat.estimators.invariant.effects import (
    Effects,
    MeasuredEffects,
    Rows,
    inverse_moments,
    principal_directions,
)
from gyrostat.estimators.invariant.families import LinkRows
from gyrostat.estimators.invariant.hetero_sgd import (
    WEAKEST_EFFECT,
    effect_amplification,
    effect_descent,
    effect_num_steps,
    effect_step,
    environment_orders,
)
from gyrostat.estimators.invariant.pooled_coefficients import PooledFit, pooled_gaussian, pooled_link
from gyrostat.estimators.invariant.random_effects import random_effects
from gyrostat.theory.ours.transition import LEARNT

SPARE = 2
"""Environments beyond those that determine the removed principal directions: k directions pass through any k + 1 of them."""


class DecisionOptions(NamedTuple):
    """The parameters of an estimator that decisions depend on, checked where they are numbers."""

    tolerance: float
    level: float
    init_scale: float
    step_size: float | str
    num_steps: int | str
    num_orders: int
    random_state: Any
    directions: str
    adjust: bool
    refit: bool

    @classmethod
    def of(cls, model: Any) -> DecisionOptions:
        """Those of an estimator."""
        return cls(
            float(errors.number("tolerance", model.tolerance, above=0)),
            float(errors.number("level", model.level, above=0, most=0.5)),
            float(errors.number("init_scale", model.init_scale, above=0)),
            *(getattr(model, name) for name in cls._fields[3:]),
        )


class Descent(NamedTuple):
    """Recorded steps, the path at them, the mean coefficients over its last half; the number of steps, the step, kappa."""

    steps: np.ndarray
    path: np.ndarray
    learnt: np.ndarray
    num_steps: int
    step_size: float
    amplification: np.ndarray


class Decision(NamedTuple):
    """What was decided on each direction: found by the descent, present, removed, kept; the fit to the kept ones."""

    along: MeasuredEffects
    descent: Descent
    found: np.ndarray
    present: np.ndarray
    removed: np.ndarray
    kept: np.ndarray
    fit: PooledFit | None


def decide(
    rows: Rows, link: LinkRows | None, measured: MeasuredEffects, directions: str, options: DecisionOptions
) -> Decision:
    """Keep or remove each direction, and fit the kept ones."""
    tolerance, level, alpha = options.tolerance, options.level, options.init_scale
    W, varies = basis(measured.effects, directions, level)
    rotated = measured.effects.rotated(W)
    model = random_effects(rotated.effects, rotated.errors)
    descent = descend(rotated.denoised(varies), options)
    learnt = descent.learnt
    found = np.abs(learnt) > np.maximum(LEARNT * np.abs(model.mean), 10 * alpha**2)  # and above the start
    # A weak effect may not be learnt in these steps although it hardly varies, which is no reason to remove it.
    removed = ~found & varies & (model.spread > tolerance * np.abs(model.mean))
    present = rotated.present(level) if len(rotated.effects) > 1 else np.ones_like(found)
    along = measured.along(W)
    # Joint least squares can estimate weak effects too. For features alone, the small start decides what is weak.
    kept = (~removed if options.adjust else found) & ~constant_directions(along, options.adjust)
    fit = pooled(rows, along, link.along(W) if link else None, kept, options) if options.refit else None
    return Decision(along, descent, found, present, removed, kept, fit)


def constant_directions(measured: MeasuredEffects, adjust: bool) -> np.ndarray:
    """A mask of the directions that do not vary within any environment: rows say nothing about their effects."""
    return np.asarray(inverse_moments(measured.data, adjust)[0].all(axis=0))


def basis(measured: Effects, directions: str, level: float) -> tuple[np.ndarray, np.ndarray]:
    """The directions to decide on, as columns, and a mask of those that vary."""
    if errors.choice("directions", directions, ("auto", "features", "principal")) != "principal":
        varies = measured.differ(level) if len(measured.effects) > 1 else np.zeros(len(measured.mean), bool)
        return np.eye(len(varies)), varies
    return principal_directions(measured, level)


def descend(measured: Effects, options: DecisionOptions) -> Descent:
    """The descent on the effects along some directions, in standard deviations."""
    count = errors.integer("num_orders", options.num_orders, least=1)
    alpha, eta = options.init_scale, effect_step(options.step_size, measured)
    steps = effect_num_steps(options.num_steps, eta, alpha)
    kappa = effect_amplification(measured, options.tolerance, step_size=eta, init_scale=alpha, num_steps=steps)
    environments, random = len(measured.effects), check_random_state(options.random_state)
    orders = environment_orders(environments, steps, count if environments > 1 else 1, random)
    path_steps, path, late = effect_descent(measured.amplified(kappa), orders, step_size=eta, init_scale=alpha)
    if not np.isfinite(late).all():
        raise GyrostatError(f"step_size={eta:g} makes the descent diverge: give a smaller one, such as {eta / 4:g}.")
    return Descent(path_steps, path, late.mean(axis=0), steps, eta, kappa)


def pooled(
    rows: Rows,
    along: MeasuredEffects,
    link: LinkRows | None,
    kept: np.ndarray,
    options: DecisionOptions,
) -> PooledFit:
    """The fit to the kept directions."""
    if link is not None:
        return pooled_link(link, along, kept, options.level)
    return pooled_gaussian(rows, along, kept, options.level, own=options.adjust)


def may_combine(chosen: Decision, options: DecisionOptions) -> bool:
    """Whether combinations of features may be decided on: some feature was removed, and there are environments enough.

    Effects must be known in every environment, except for directions that do not vary within any of them.
    """
    known = chosen.along.effects.known
    wanted = options.directions == "auto" and options.adjust and chosen.fit is not None and chosen.removed.any()
    usable = known.all(axis=0) | constant_directions(chosen.along, options.adjust)
    return bool(wanted and len(known) >= FEWEST_ENVIRONMENTS and usable.all())


def identified(chosen: Decision, options: DecisionOptions) -> bool:
    """Whether what is left holds everywhere: there is something, and without the removed directions it does not vary."""
    fit, kept = chosen.fit, chosen.kept
    if fit is None or not kept.any():
        return False
    model = random_effects(fit.effects.effects, fit.effects.errors)
    new = ~chosen.along.effects.differ(options.level)[kept]  # with the removed ones in the model they were alike
    beyond = model.spread > options.tolerance * np.abs(model.mean)
    return not (fit.effects.differ(options.level) & (new | beyond)).any()


def principal_instead(
    rows: Rows,
    link: LinkRows | None,
    measured: MeasuredEffects,
    chosen: Decision,
    options: DecisionOptions,
) -> Decision | None:
    """The decision on principal directions, if it is to replace that on features; None if it is not.

    It is not if no effect is seen along the directions that would be kept, as where all effects grow together.
    """
    directions = int(basis(measured.effects, "principal", options.level)[1].sum())
    spare = len(measured.effects.effects) - 1 - directions >= SPARE
    if not spare or (identified(chosen, options) and directions >= chosen.removed.sum()):
        return None
    principal = decide(rows, link, measured, "principal", options)
    if principal.fit is None or not principal.fit.seen(options.level).any():
        return None
    return principal if principal.removed.any() and identified(principal, options) else None


def leading_directions(d: int, groups: list[np.ndarray]) -> np.ndarray:
    """The direction that decides on each feature: its own, or the largest combination of its collinear group."""
    lead = np.arange(d)
    for group in groups:
        lead[group] = group[0]
    return lead


def descent_status(path: np.ndarray, measured: Effects, found: np.ndarray, wanted: np.ndarray) -> str:
    """Whether the descent came to an end: "settled", "moving" or "one environment"."""
    if len(measured.effects) == 1:
        return "one environment"
    n, m = len(path), np.abs(measured.mean)
    moved = np.abs(path[3 * n // 4 :].mean(axis=0) - path[n // 2 : 3 * n // 4].mean(axis=0)) > LEARNT * m
    return "moving" if (wanted & (m >= WEAKEST_EFFECT) & (moved | ~found)).any() else "settled"
