"""What can be said of one direction: kept, removed, or cannot be told."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy import stats

from gyrostat.estimators.invariant.variation import differ_p, mean_differs_from_zero, spread, spread_interval

KEPT, REMOVED, UNCLEAR = "kept", "removed", "cannot be told"
FEW = 4
"""Fewer environments than this bound a spread so badly that they are the first thing to mend."""


class Evidence(NamedTuple):
    """All numbers of every direction, (d,) each: the mean effect over environments, the p-value that there is none and the
    standard error behind it, the spread without what
    errors add and its interval, the p-value (adjusted) that effects are the same, and the Lyapunov exponents per step.
    """

    mean: Any
    mean_p: Any
    mean_error: Any
    spread: Any
    spread_low: Any
    spread_high: Any
    differ_p: Any
    one_sign: Any
    lyapunov: Any
    lyapunov_amplified: Any


def evidence(
    effects: np.ndarray, errors: np.ndarray, kappa: np.ndarray, *, step_size: float, level: float, confidence: float
) -> Evidence:
    """From effects and standard errors (K, d) in standard deviations; ``level`` is that of tests.

    While it is small, a direction with mean effect m > 0 is multiplied by ``1 + eta (m + (1 + kappa) (effect_e - m))`` in
    environment e; its Lyapunov exponent is the mean of the logarithm (``kappa = 0``: the paper's own method).
    """
    mean = effects.mean(axis=0)
    low, high = spread_interval(effects, errors, 1 - confidence)
    clear = spread(effects, errors) / np.maximum(effects.std(axis=0), np.finfo(float).tiny)
    away = np.sign(mean) * clear * (effects - mean)

    def exponent(k: np.ndarray | float) -> np.ndarray:
        factors = np.abs(1 + step_size * (np.abs(mean) + (1 + k) * away))
        return np.log(np.maximum(factors, 1e-300)).mean(axis=0)

    return Evidence(
        mean,
        *mean_differs_from_zero(effects, errors, level),
        spread(effects, errors),
        low,
        high,
        differ_p(effects, errors),
        (np.sign(effects) == np.sign(mean)).all(axis=0),
        exponent(0.0),
        exponent(kappa),
    )


def verdicts(
    found: Evidence, removed: np.ndarray, *, environments: int, tolerance: float, level: float
) -> list[tuple[str, str]]:
    """A verdict and its reason for every direction; ``removed`` are those which the estimator leaves out."""
    return [
        _one(Evidence(*(x[j] for x in found)), bool(removed[j]), environments, tolerance, level)
        for j in range(len(found.mean))
    ]


def _one(x: Evidence, removed: bool, environments: int, tolerance: float, level: float) -> tuple[str, str]:
    if environments == 1:
        return UNCLEAR, "one environment: there is nothing to compare"
    size, differs = abs(x.mean), x.differ_p < level
    varies = f"effects differ (p {shown_p(x.differ_p)})"
    if removed:
        how = "and change sign" if not x.one_sign else "though all have one sign: it oscillates only when amplified"
        return REMOVED, f"{varies} by {_share(x.spread, size)} of their mean, {how}"
    if not differs and x.mean_p >= level:
        bound = stats.norm.isf(level / 2) * x.mean_error
        return UNCLEAR, f"no effect is seen: one of less than {bound:.2g} standard deviations would not be"
    if x.spread_high <= tolerance * size:
        return KEPT, f"effects vary by at most {_share(x.spread_high, size)} of their mean"
    if differs and x.one_sign:
        return UNCLEAR, f"{varies}, and all have one sign: nothing oscillates"
    if environments < FEW:
        most = _share(x.spread_high, size)
        return UNCLEAR, f"{environments} environments are too few: effects may vary by {most} of their mean"
    return UNCLEAR, f"too little data: effects may vary by {_share(x.spread_high, size)} of their mean"


def _share(part: float, whole: float) -> str:
    share = part / whole if whole > 0 else np.inf
    return f"{share:.0%}" if share < 10 else "more than 1000%"


def shown_p(value: float) -> str:
    """A p-value with its sign of comparison."""
    return f"= {value:.2g}" if value >= 1e-4 else "< 0.0001"
