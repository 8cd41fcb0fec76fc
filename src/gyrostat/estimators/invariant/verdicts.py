"""The evidence on how effects along each direction differ between environments, and the verdict that follows from it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from gyrostat.estimators.invariant.influence import KEPT, REMOVED, UNCLEAR
from gyrostat.estimators.invariant.random_effects import (
    effects_differ_p,
    known_effects,
    mean_effect_p,
    mean_of_environments,
    shrunken,
    spread_interval,
)

FEW_ENVIRONMENTS = 4
"""With fewer environments than this, the bound on a spread is so wide that more environments are needed first."""


class Evidence(NamedTuple):
    """The numbers behind the verdicts, each an array (d,) over directions.

    ``mean``: the mean of the random-effects model, with its error and the ends of its interval; ``mean_p``, the p-value of no
    effect; ``visible``, the smallest effect that the test would see. ``spread``: the standard deviation of effects without the
    part that errors add, with the ends of its interval. ``differ_p``: the adjusted p-value that effects are the same.
    ``one_sign``: whether all effects, without their errors, have the sign of the mean. ``known``: the number of environments
    with a known effect, and ``only``, the last of these. ``lyapunov``, ``lyapunov_amplified``: Lyapunov exponents per step.
    """

    mean: Any
    mean_error: Any
    mean_low: Any
    mean_high: Any
    mean_p: Any
    visible: Any
    spread: Any
    spread_low: Any
    spread_high: Any
    differ_p: Any
    one_sign: Any
    known: Any
    only: Any
    lyapunov: Any
    lyapunov_amplified: Any


def evidence(
    effects: np.ndarray, errors: np.ndarray, kappa: np.ndarray, *, step_size: float, level: float, confidence: float
) -> Evidence:
    """The evidence from effects and standard errors (K, d) in standard deviations; ``level`` is that of the tests.

    While it is small, a direction with mean effect m > 0 is multiplied by ``1 + eta (m + (1 + kappa) (effect_e - m))`` in
    environment e. Its Lyapunov exponent is the mean of the logarithm (``kappa = 0``: the paper's own method).
    """
    model, real = mean_of_environments(effects, errors), shrunken(effects, errors)
    mean_p, visible = mean_effect_p(effects, errors, level)
    low, high = spread_interval(effects, errors, 1 - confidence)
    deviations = np.sign(model.mean) * (real - model.mean)
    known = known_effects(errors)

    def exponent(k: np.ndarray | float) -> np.ndarray:
        factors = np.abs(1 + step_size * (np.abs(model.mean) + (1 + k) * deviations))
        return np.log(np.maximum(factors, 1e-300)).mean(axis=0)

    mean_low, mean_high = model.interval(confidence)
    visible = np.maximum(visible, (mean_high - mean_low) / 2)  # what holds elsewhere is known no better than that
    return Evidence(
        mean=model.mean,
        mean_error=model.error,
        mean_low=mean_low,
        mean_high=mean_high,
        mean_p=mean_p,
        visible=visible,
        spread=model.spread,
        spread_low=low,
        spread_high=high,
        differ_p=effects_differ_p(effects, errors),
        one_sign=(np.sign(real) == np.sign(model.mean)).all(axis=0),
        known=known.sum(axis=0),
        only=np.argmax(known, axis=0),
        lyapunov=exponent(0.0),
        lyapunov_amplified=exponent(kappa),
    )


def verdicts(
    found: Evidence, removed: np.ndarray, environment_names: Sequence[str], *, tolerance: float, level: float
) -> list[tuple[str, str]]:
    """A verdict and its reason for each direction; ``removed`` marks the directions that the estimator leaves out."""
    return [
        _verdict(Evidence(*(x[j] for x in found)), bool(removed[j]), environment_names, tolerance, level)
        for j in range(len(found.mean))
    ]


def _verdict(
    x: Evidence, removed: bool, environment_names: Sequence[str], tolerance: float, level: float
) -> tuple[str, str]:
    environments = len(environment_names)
    if environments == 1:
        return UNCLEAR, "one environment: there is nothing to compare"
    if x.known == 0:
        return (
            UNCLEAR,
            "it does not vary within any environment, or a single row or cluster decides on its effect there",
        )
    if x.known == 1:
        return UNCLEAR, f"it varies in {environment_names[x.only]} only: there is nothing to compare"
    size, differs = abs(x.mean), x.differ_p < level
    varies = f"effects differ (p {shown_p(x.differ_p)})"
    if removed:
        how = "and change sign" if not x.one_sign else "though all have one sign: it oscillates only when amplified"
        return REMOVED, f"{varies} by {_share(x.spread, size)} of their mean, {how}"
    if not differs and x.mean_p >= level:
        unseen = f"no effect is seen at the level {level:g} (p {shown_p(x.mean_p)})"
        return UNCLEAR, f"{unseen}: the data cannot show one smaller than {x.visible:.2g} SD"
    if x.spread_high <= tolerance * size:
        return KEPT, f"effects vary by at most {_share(x.spread_high, size)} of their mean"
    if differs and x.one_sign:
        return UNCLEAR, f"{varies}, and all have one sign: nothing oscillates"
    if x.known < FEW_ENVIRONMENTS:
        most = _share(x.spread_high, size)
        return UNCLEAR, f"{x.known} environments are too few: effects may vary by up to {most} of their mean"
    return UNCLEAR, f"too little data: effects may vary by up to {_share(x.spread_high, size)} of their mean"


def _share(part: float, whole: float) -> str:
    share = part / whole if whole > 0 else np.inf
    return f"{share:.0%}" if share < 10 else "more than 1000%"


def shown_p(value: float) -> str:
    """A p-value as text, such as ``= 0.03`` or ``< 0.0001``."""
    return f"= {value:.2g}" if value >= 1e-4 else "< 0.0001"
