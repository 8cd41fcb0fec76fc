"""The random-effects model of effects in several environments: mean, spread, tests and intervals.

An estimated effect is ``b_e = mean + u_e + error_e``, where u_e has variance tau^2 over environments like these, and error_e
has a known variance. Effects and standard errors are arrays (K environments, d directions). An effect without a standard
error (zero or infinite: nothing varied there) is unknown and has weight zero.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy import special, stats

TINY = np.finfo(float).tiny


def known_effects(errors: np.ndarray) -> np.ndarray:
    """Which effects have a standard error."""
    return (errors > 0) & np.isfinite(errors)


def _weights(errors: np.ndarray, tau2: np.ndarray | float = 0.0) -> np.ndarray:
    """Precisions; zero for an unknown effect."""
    return np.divide(1.0, errors**2 + tau2, out=np.zeros_like(errors), where=known_effects(errors))


def _weighted_mean(effects: np.ndarray, w: np.ndarray) -> np.ndarray:
    return np.sum(w * np.where(w > 0, effects, 0.0), axis=0) / np.maximum(w.sum(axis=0), TINY)


def _free(errors: np.ndarray) -> np.ndarray:
    """The number of known effects minus one, at least one."""
    return np.maximum(known_effects(errors).sum(axis=0) - 1, 1)


def cochran(effects: np.ndarray, errors: np.ndarray, tau2: np.ndarray | float = 0.0) -> tuple[np.ndarray, np.ndarray]:
    """Cochran's Q and its p-value.

    Q is chi-square with K - 1 degrees of freedom if effects differ only by errors and by a variance ``tau2``.

    >>> Q, p = cochran(np.array([[1.0], [3.0]]), np.array([[1.0], [1.0]]))
    >>> float(Q[0]), round(float(p[0]), 3)
    (2.0, 0.157)
    """
    Q = _q(effects, errors, tau2)
    return Q, stats.chi2.sf(Q, _free(errors))


def _q(effects: np.ndarray, errors: np.ndarray, tau2: np.ndarray | float = 0.0) -> np.ndarray:
    w = _weights(errors, tau2)
    return np.sum(w * np.where(w > 0, effects - _weighted_mean(effects, w), 0.0) ** 2, axis=0)


def effects_differ_p(effects: np.ndarray, errors: np.ndarray, families: int = 1) -> np.ndarray:
    """Cochran's p-values, adjusted for the number of directions (Benjamini and Hochberg 1995).

    Directions with fewer than two known effects are not tested: their p-value is one, and they do not count. With several
    ``families``, the directions are as many blocks of the same length, each adjusted by itself.
    """
    p, tested = cochran(effects, errors)[1], known_effects(errors).sum(axis=0) > 1
    found = np.ones_like(p)
    for block in np.split(np.arange(len(p)), families):
        if (mine := block[tested[block]]).size:
            found[mine] = stats.false_discovery_control(p[mine])
    return found


class RandomEffects(NamedTuple):
    """The random-effects model of each direction, arrays (d,).

    ``tau``: the standard deviation of effects over environments like these (Paule and Mandel). ``mean``: the mean with
    weights ``1 / (error^2 + tau^2)``. ``error``: its standard error (Hartung and Knapp), to be compared with Student's t with
    ``free`` degrees of freedom: the number of known effects minus one.
    """

    mean: np.ndarray
    error: np.ndarray
    tau: np.ndarray
    free: np.ndarray

    @property
    def spread(self) -> np.ndarray:
        """The standard deviation over the environments at hand, ``tau sqrt((K - 1) / K)``, without what errors add."""
        return self.tau * np.sqrt(self.free / (self.free + 1))

    def interval(self, confidence: float) -> tuple[np.ndarray, np.ndarray]:
        """The interval of the mean over environments like these."""
        half = stats.t.isf((1 - confidence) / 2, self.free) * self.error
        return self.mean - half, self.mean + half


def random_effects(effects: np.ndarray, errors: np.ndarray) -> RandomEffects:
    """Fit the model to each direction. One environment gives its own effect and error.

    Hartung and Knapp multiply the error by the root of ``Q / (K - 1)`` at tau. This is one if tau is above zero, by the
    definition of tau, and is not taken below one otherwise.

    >>> found = random_effects(np.array([[1.0], [3.0], [50.0]]), np.array([[0.1], [0.1], [100.0]]))
    >>> found.mean.round(1).tolist(), found.tau.round(1).tolist()
    ([2.0], [1.1])
    """
    tau = _tau_at(effects, errors, _free(errors))
    w = _weights(errors, tau**2)
    total = w.sum(axis=0)
    error = np.where(total > 0, np.maximum(total, TINY) ** -0.5, 0.0)
    return RandomEffects(_weighted_mean(effects, w), error, tau, _free(errors))


def averaged_error(effects: np.ndarray, errors: np.ndarray, centre: np.ndarray) -> np.ndarray:
    """The standard error of means ``centre`` (d,), averaged over what tau may be. At least two effects must be known.

    If few environments, or mostly one of them, decide, the estimate of tau is often zero, and with it the mean of these
    environments looks like that of all. So tau is averaged over: by its likelihood, and by half of a Cauchy distribution with
    the median error as its scale. Given tau, the mean is normal. The error is the one with which Student's t, with the number
    of known effects minus one degrees of freedom, gives the averaged interval of 95 %.

    >>> effects, errors = np.array([[1.0], [1.2], [0.9], [1.1]]), np.array([[0.01], [0.2], [0.2], [0.2]])
    >>> random_effects(effects, errors).error.round(3).tolist()
    [0.01]
    >>> averaged_error(effects, errors, np.array([1.0])).round(3).tolist()
    [0.061]
    """
    known = known_effects(errors)
    scale = np.nanmedian(np.where(known, errors, np.nan), axis=0)
    furthest = scale + np.where(known, np.abs(effects - centre), 0.0).max(axis=0)
    tau = 0.01 * scale * (1e4 * furthest / scale) ** np.linspace(0, 1, 200)[:, None]
    w = np.where(known, 1 / (np.where(known, errors, 1.0) ** 2 + tau[:, None] ** 2), 0.0)
    total = w.sum(axis=1)
    mean = (w * effects).sum(axis=1) / total
    fit = np.log(np.where(known, w, 1.0)).sum(axis=1) - np.log(total) - (w * (effects - mean[:, None]) ** 2).sum(axis=1)
    log_density = fit / 2 - np.log1p((tau / scale) ** 2) + np.log(tau)  # tau: the grid is even in its logarithm
    share = special.softmax(log_density, axis=0)
    low, high = np.zeros_like(scale), 1e3 * furthest
    for _ in range(60):
        half = (low + high) / 2
        ends = (centre + half - mean) * np.sqrt(total), (centre - half - mean) * np.sqrt(total)
        inside = np.sum(share * (special.ndtr(ends[0]) - special.ndtr(ends[1])), axis=0)
        low, high = np.where(inside < 0.95, half, low), np.where(inside < 0.95, high, half)
    return high / stats.t.isf(0.025, _free(errors))


def mean_of_environments(effects: np.ndarray, errors: np.ndarray) -> RandomEffects:
    """The model of :func:`random_effects`, with errors of means that are not below :func:`averaged_error`."""
    model, several = random_effects(effects, errors), known_effects(errors).sum(axis=0) > 1
    error = model.error.copy()
    averaged = averaged_error(effects[:, several], errors[:, several], model.mean[several])
    error[several] = np.maximum(error[several], averaged)
    return model._replace(error=error)


def mean_effect_p(
    effects: np.ndarray, errors: np.ndarray, level: float, families: int = 1
) -> tuple[np.ndarray, np.ndarray]:
    """The p-value of no effect, and the smallest effect that the test would see (at ``level``).

    If effects do not differ at ``level``, the common effect is tested, whose error is smaller than that of the mean over
    environments like these; otherwise that mean is, with Student's t. ``families`` is that of :func:`effects_differ_p`.
    """
    model, w = random_effects(effects, errors), _weights(errors)
    common = np.where(w.any(axis=0), np.maximum(w.sum(axis=0), TINY) ** -0.5, 0.0)
    differ = effects_differ_p(effects, errors, families) < level
    mean, error = np.where(differ, model.mean, _weighted_mean(effects, w)), np.where(differ, model.error, common)
    ratio = np.divide(np.abs(mean), error, out=np.zeros_like(mean), where=error > 0)
    p = 2 * np.where(differ, stats.t.sf(ratio, model.free), stats.norm.sf(ratio))
    limit = np.where(differ, stats.t.isf(level / 2, model.free), stats.norm.isf(level / 2))
    return p, limit * error


def shrunken(effects: np.ndarray, errors: np.ndarray) -> np.ndarray:
    """Effects without their errors: their mean is that of the model, and their standard deviation is its spread.

    A deviation from the mean is multiplied by its reliability ``tau^2 / (tau^2 + error^2)``, so that an uncertain effect moves
    to the mean. This leaves too little spread over environments, which is why all are then stretched by one factor (Louis
    1984).

    >>> shrunken(np.array([[1.0], [3.0], [50.0]]), np.array([[0.1], [0.1], [100.0]])).round(1).ravel().tolist()
    [0.9, 3.1, 2.0]
    """
    model = random_effects(effects, errors)
    w = _weights(errors, model.tau**2)
    away = model.tau**2 * w * np.where(w > 0, effects - model.mean, 0.0)
    away -= away.mean(axis=0)
    size = np.sqrt(np.mean(away**2, axis=0))
    return model.mean + np.divide(model.spread, size, out=np.zeros_like(size), where=size > 0) * away


def spread_interval(effects: np.ndarray, errors: np.ndarray, level: float) -> tuple[np.ndarray, np.ndarray]:
    """An interval for the standard deviation tau of effects over environments like these.

    Lower end: the tau at which Cochran's Q with precisions ``1 / (error^2 + tau^2)`` is not surprisingly large (Q-profile:
    Viechtbauer 2007). Upper end: the tau at which Q with the fixed weights of the model is surprisingly small (Jackson 2013);
    it is compared with the scaled chi-square of the same mean and variance, which is exact if all errors are the same. An
    environment that says little then does not widen the interval. Effects that agree better than their errors suggest would
    give an upper end of zero: Q is not taken below the value that errors alone give. With fewer than two known effects there is
    no upper end.

    >>> low, high = spread_interval(np.array([[1.0], [3.0], [-2.0]]), np.full((3, 1), 0.1), 0.05)
    >>> round(float(low[0]), 2), round(float(high[0]), 1)
    (1.31, 15.8)
    """
    free, known = _free(errors), known_effects(errors)
    low = _tau_at(effects, errors, stats.chi2.ppf(1 - level / 2, free))
    w = _weights(errors, random_effects(effects, errors).tau ** 2)
    s2 = np.where(known, errors, 0.0) ** 2
    Q = np.sum(w * np.where(known, effects - _weighted_mean(effects, w), 0.0) ** 2, axis=0)
    Q = np.maximum(Q, _mean_and_variance_of_q(w, s2)[0])

    def surprising(tau: np.ndarray) -> np.ndarray:
        mean, variance = _mean_and_variance_of_q(w, s2 + known * tau**2)
        return special.gammainc(mean**2 / variance, Q * mean / variance) < level / 2

    several = known.sum(axis=0) > 1
    return low, np.where(several, _first_tau(surprising, np.sqrt(np.maximum(s2.max(axis=0), 1e-200))), np.inf)


def _mean_and_variance_of_q(w: np.ndarray, variances: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Of ``sum w (b - weighted mean)^2`` if the effects b have these variances."""
    total = np.maximum(w.sum(axis=0), TINY)
    once = (w**2 * variances).sum(axis=0)
    mean = (w * variances).sum(axis=0) - once / total
    square = (w**2 * variances**2).sum(axis=0) - 2 * (w**3 * variances**2).sum(axis=0) / total + (once / total) ** 2
    return np.maximum(mean, 1e-200), np.maximum(2 * square, 1e-200)


def _first_tau(beyond: Callable[[np.ndarray], np.ndarray], start: np.ndarray) -> np.ndarray:
    """The tau at which a condition begins to hold: doubling from ``start``, then bisection."""
    high = start.copy()
    for _ in range(200):
        if (done := beyond(high)).all():
            break
        high = np.where(done, high, 2 * high)
    low = np.zeros_like(high)
    for _ in range(60):
        middle = (low + high) / 2
        done = beyond(middle)
        low, high = np.where(done, low, middle), np.where(done, middle, high)
    return high


def _tau_at(effects: np.ndarray, errors: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """The tau at which Q is ``wanted``, by bisection; zero if Q is already lower at tau = 0."""
    low = np.zeros(effects.shape[1])
    # Q <= sum (b - centre)^2 / tau^2 for any centre, so that Q is below the wanted value beyond this tau.
    away = np.where(known_effects(errors), effects - _weighted_mean(effects, _weights(errors)), 0.0)
    high = np.sqrt(np.maximum(np.sum(away**2, axis=0) / wanted, 1e-300))
    for _ in range(60):
        middle = (low + high) / 2
        above = _q(effects, errors, middle**2) > wanted
        low, high = np.where(above, middle, low), np.where(above, high, middle)
    return high * (_q(effects, errors) > wanted)


# --- between environments -------------------------------------------------------------------------


class BetweenEffects(NamedTuple):
    """Coefficients (q,) of features that are constant within environments, their standard errors and degrees of freedom."""

    coefficients: np.ndarray
    errors: np.ndarray
    free: int


def between_effects(levels: np.ndarray, errors: np.ndarray, Z: np.ndarray) -> BetweenEffects:
    """Random-effects regression of the levels of K environments, with known errors, on their features Z (K, q).

    ``level_e = intercept + Z_e . coefficients + u_e + error_e``, with the variance of u_e by Paule and Mandel and errors of
    coefficients by Hartung and Knapp.

    >>> Z = np.arange(6.0)[:, None]
    >>> between_effects(1 + 2 * Z[:, 0], np.full(6, 0.1), Z).coefficients.round(6).tolist()
    [2.0]
    """
    design = np.column_stack([np.ones(len(Z)), Z - Z.mean(axis=0)])
    free = len(Z) - design.shape[1]

    def fit(tau2: float) -> tuple[np.ndarray, np.ndarray, float]:
        root = (errors**2 + tau2) ** -0.5
        inverse = np.linalg.inv((design * root[:, None]).T @ (design * root[:, None]))
        beta = inverse @ (design.T @ (root**2 * levels))
        return beta, inverse, float(np.sum((root * (levels - design @ beta)) ** 2))

    low, high = 0.0, float(np.var(levels) * len(Z)) + TINY
    for _ in range(80):
        middle = (low + high) / 2
        low, high = (middle, high) if fit(middle)[2] > free else (low, middle)
    beta, inverse, Q = fit(high if fit(0.0)[2] > free else 0.0)
    scale = max(Q / free, 1.0)
    return BetweenEffects(beta[1:], np.sqrt(scale * np.diagonal(inverse)[1:]), free)
