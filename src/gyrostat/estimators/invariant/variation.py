"""Do numbers with known errors differ, and by how much? Effects (K environments, d directions) and their standard errors."""

from __future__ import annotations

import numpy as np
from scipy import stats


def _weights(errors: np.ndarray, tau2: np.ndarray | float = 0.0) -> np.ndarray:
    """Precisions; an effect without error (nothing varied there) has no say."""
    return np.divide(1.0, errors**2 + tau2, out=np.zeros_like(errors), where=errors > 0)


def cochran(effects: np.ndarray, errors: np.ndarray, tau2: np.ndarray | float = 0.0) -> tuple[np.ndarray, np.ndarray]:
    """Cochran's Q and its p-value: chi-square with K - 1 degrees of freedom if effects differ by ``tau2`` and errors only.

    >>> Q, p = cochran(np.array([[1.0], [3.0]]), np.array([[1.0], [1.0]]))
    >>> float(Q[0]), round(float(p[0]), 3)
    (2.0, 0.157)
    """
    w = _weights(errors, tau2)
    mean = (w * effects).sum(axis=0) / np.maximum(w.sum(axis=0), np.finfo(float).tiny)
    Q = (w * (effects - mean) ** 2).sum(axis=0)
    return Q, stats.chi2.sf(Q, np.maximum((w > 0).sum(axis=0) - 1, 1))


def differ_p(effects: np.ndarray, errors: np.ndarray) -> np.ndarray:
    """Cochran's p-values, adjusted for the number of directions looked at (Benjamini and Hochberg 1995)."""
    return stats.false_discovery_control(cochran(effects, errors)[1])


def mean_differs_from_zero(effects: np.ndarray, errors: np.ndarray, level: float) -> tuple[np.ndarray, np.ndarray]:
    """The p-value that there is no effect, and the standard error of the mean that it looks at.

    Where effects are not seen to differ at ``level``, that is the mean with the least error (weights are precisions); else the
    mean over these environments, each counted alike.
    """
    K, w = len(effects), _weights(errors)
    total = np.maximum(w.sum(axis=0), np.finfo(float).tiny)
    differ = differ_p(effects, errors) < level
    mean = np.where(differ, effects.mean(axis=0), (w * effects).sum(axis=0) / total)
    error = np.where(differ, np.sqrt(np.mean(errors**2, axis=0) / K), np.where(w.any(axis=0), total**-0.5, 0.0))
    return 2 * stats.norm.sf(np.divide(np.abs(mean), error, out=np.zeros_like(mean), where=error > 0)), error


def spread(effects: np.ndarray, errors: np.ndarray) -> np.ndarray:
    """The standard deviation over these environments, without what errors are expected to add to it.

    >>> spread(np.array([[1.0], [3.0]]), np.array([[0.5], [0.5]])).round(3).tolist()
    [0.935]
    """
    K = len(effects)
    return np.sqrt(np.maximum(effects.var(axis=0) - (K - 1) / K * np.mean(errors**2, axis=0), 0.0))


def shown_share(effects: np.ndarray, errors: np.ndarray) -> np.ndarray:
    """``spread`` over the standard deviation as it was seen."""
    seen = effects.std(axis=0)
    return np.divide(spread(effects, errors), seen, out=np.zeros_like(seen), where=seen > 0)


def spread_interval(effects: np.ndarray, errors: np.ndarray, level: float) -> tuple[np.ndarray, np.ndarray]:
    """An interval for the standard deviation tau of effects over places like these (Q-profile: Viechtbauer 2007).

    Those tau at which Cochran's Q with precisions ``1 / (error^2 + tau^2)`` is no surprise; Q falls as tau grows. Effects that
    agree better than their errors let expect would bound tau by zero: for the upper end they are spread out until Q is what
    errors alone give, K - 1.

    >>> low, high = spread_interval(np.array([[1.0], [3.0], [-2.0]]), np.full((3, 1), 0.1), 0.05)
    >>> round(float(low[0]), 2), round(float(high[0]), 1)
    (1.31, 15.8)
    """
    free = max(len(effects) - 1, 1)
    wide = _spread_out(effects, errors, free)
    return _solve(effects, errors, stats.chi2.ppf(1 - level / 2, free)), _solve(
        wide, errors, stats.chi2.ppf(level / 2, free)
    )


def _spread_out(effects: np.ndarray, errors: np.ndarray, least: float) -> np.ndarray:
    """Effects whose Q is at least ``least``: deviations grow by one factor, or alternate if there are none."""
    turns = np.where(np.arange(len(effects)) % 2, 1.0, -1.0)[:, None] * errors
    none = cochran(effects, errors)[0] < 1e-9 * least
    effects = np.where(none, effects.mean(axis=0) + turns, effects)
    Q = np.maximum(cochran(effects, errors)[0], np.finfo(float).tiny)
    centre = effects.mean(axis=0)
    return centre + np.maximum(np.sqrt(least / Q), 1.0) * (effects - centre)


def _solve(effects: np.ndarray, errors: np.ndarray, wanted: float) -> np.ndarray:
    """The tau at which Q is ``wanted``; zero where Q is below already."""
    low = np.zeros(effects.shape[1])
    # Q <= sum (b - mean)^2 / tau^2, so beyond this tau it is smaller than wanted.
    high = np.sqrt(np.maximum(np.sum((effects - effects.mean(axis=0)) ** 2, axis=0) / wanted, 1e-300))
    for _ in range(60):
        middle = (low + high) / 2
        above = cochran(effects, errors, middle**2)[0] > wanted
        low, high = np.where(above, middle, low), np.where(above, high, middle)
    return high * (cochran(effects, errors)[0] > wanted)
