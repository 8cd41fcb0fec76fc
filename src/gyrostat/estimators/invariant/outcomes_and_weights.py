"""What responses look like, and the weights of rows: checks before a fit."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from sklearn.utils.validation import _check_sample_weight

from gyrostat import errors
from gyrostat.errors import GyrostatError
from gyrostat.estimators.environment_labels import rows_by_environment
from gyrostat.estimators.invariant.families import FAMILIES, outcome_kind
from gyrostat.estimators.invariant.random_effects import effects_differ_p

HINTS = {
    "binary": "y holds only 0 and 1: use family='binomial' or InvariantLogisticClassifier, whose verdicts do not follow base "
    "rates, or family='gaussian' to take them as numbers.",
    "two values": "y holds only two values: recode them as 0 and 1 and use family='binomial', or use "
    "InvariantLogisticClassifier, whose verdicts do not follow base rates, or family='gaussian' to take them as numbers.",
    "count": "y looks like counts: use family='poisson', whose verdicts do not follow base rates, or family='gaussian' to take "
    "them as numbers.",
    "skewed": "y is never below zero and has a long tail, as durations and amounts have: take its logarithm, or use "
    "family='poisson', for relative effects, whose verdicts do not follow the levels of environments; or family='gaussian' to "
    "take it as it is. Censored durations need survival analysis.",
}
"""What is said of responses that are not measured on a line, if no family was given."""


SHARE_FACTOR = 2.5
"""Shares are told of if m (1 - m), where m is their mean, is this many times as large in some environments as in others.

Effects on shares are proportional to it. If it is 3 times as large in half of the environments, effects vary by half of their
mean, which is the default tolerance.
"""


PROPORTIONAL = 0.1
"""Effects that differ are in proportion to levels if the p-value of equal relative effects is above this."""


class OutcomeWarning(UserWarning):
    """The response looks like 0/1, counts, durations, amounts, or shares of unequal levels, and no family was given."""


class UnequalShares(NamedTuple):
    """Responses from 0 to ``top`` (1 or 100) whose level differs: means where m (1 - m) is small and large, and its ratio."""

    top: int
    low: float
    high: float
    ratio: float

    def sentence(self, name: str, option: str) -> str:
        """What happens and what to do; ``name`` is the response, and ``option`` is how a family is given.

        >>> UnequalShares(100, 3.0, 50.0, 8.6).sentence("y", "--family {}")[:86]
        'y is between 0 and 100, and its mean is 3 in some environments and 50 in others: if it'
        """
        kind, first = ("share", "use") if self.top == 1 else ("percentage", "divide it by 100 and use")
        times = f"{self.ratio:.2g}" if self.ratio < 100 else "over 100"
        return (
            f"{name} is between 0 and {self.top}, and its mean is {self.low:.2g} in some environments and {self.high:.2g} in "
            f"others: if it is a {kind}, the same odds ratio moves it {times} times as much in the latter, and verdicts follow "
            f"these levels; {first} {option.format('binomial')}, whose verdicts do not, or {option.format('gaussian')} to take "
            "it as it is."
        )


def unequal_shares(y: np.ndarray, means: Callable[[], np.ndarray]) -> UnequalShares | None:
    """Shares (from 0 to 1) or percentages (to 100, and some above 50) with means so unequal that effects differ by
    ``SHARE_FACTOR``; None otherwise, and for two values and counts.

    ``means`` gives the mean of each environment. Of more than ten environments, a tenth at each end does not count.

    >>> unequal_shares(np.array([0.1, 0.3, 0.4, 0.6]), lambda: np.array([0.2, 0.5])) is None  # 0.25 is 1.6 times 0.16
    True
    >>> unequal_shares(np.array([0.0, 0.0, 0.4, 0.6]), lambda: np.array([0.0, 0.5]))
    UnequalShares(top=1, low=0.0, high=0.5, ratio=inf)
    """
    if outcome_kind(y) not in ("", "skewed") or len(y) < 3 or y.min() < 0 or y.max() > 100 or 1 < y.max() <= 50:
        return None
    top, levels = (1 if y.max() <= 1 else 100), np.asarray(means())
    variances = levels * (top - levels)
    order, skipped = np.argsort(variances), (len(levels) - 1) // 10
    low, high = order[skipped], order[-1 - skipped]
    if variances[high] <= SHARE_FACTOR * variances[low]:
        return None
    ratio = variances[high] / variances[low] if variances[low] > 0 else np.inf
    return UnequalShares(top, float(levels[low]), float(levels[high]), float(ratio))


def proportional_to_levels(effects: np.ndarray, errors: np.ndarray, levels: np.ndarray, level: float) -> np.ndarray:
    """Effects (K, d) that differ at ``level``, but not as shares of the mean response of each environment, ``levels`` (K,).

    >>> effects, levels = np.array([[1.0, 1.0], [2.0, 4.0], [3.0, 1.0]]), np.array([10.0, 20.0, 30.0])
    >>> proportional_to_levels(effects, np.full((3, 2), 0.1), levels, 0.01).tolist()
    [True, False]
    """
    if len(levels) < 3 or not (levels > 0).all():
        return np.zeros(effects.shape[1], bool)
    b, s = np.nan_to_num(effects), np.nan_to_num(errors)
    relative = effects_differ_p(b / levels[:, None], s / levels[:, None])
    return (effects_differ_p(b, s) < level) & (relative > PROPORTIONAL)


def warn_of_proportional_effects(
    y: np.ndarray, effects: np.ndarray, errors: np.ndarray, levels: np.ndarray, level: float
) -> None:
    """Warn if effects on a response that is never negative differ in proportion to its level."""
    if y.min() >= 0 and proportional_to_levels(effects, errors, levels, level).any():
        warnings.warn(
            "effects differ between environments in proportion to the mean of y, as for counts, amounts and rates, and "
            "verdicts follow these means: use family='poisson', or the logarithm of y, for relative effects; or "
            "family='gaussian' to take y as it is.",
            OutcomeWarning,
            stacklevel=3,
        )


def environment_means(y: np.ndarray, environments: Any) -> np.ndarray:
    """The mean of ``y`` in each environment.

    >>> environment_means(np.array([1.0, 2.0, 4.0]), ["a", "a", "b"])
    array([1.5, 4. ])
    """
    return np.array([y[mine].mean() for mine in rows_by_environment(environments, len(y), least=1)[1]])


def chosen_family(family: str | None, y: np.ndarray, means: Callable[[], np.ndarray]) -> str:
    """The family that was given, or "gaussian" with a warning if the response looks like something else.

    ``means`` gives the mean response of each environment.
    """
    if family is not None:
        return errors.choice("family", family, FAMILIES)
    shares = unequal_shares(y, means)
    if (hint := HINTS.get(outcome_kind(y))) and (shares is None or shares.top > 1):
        warnings.warn(hint, OutcomeWarning, stacklevel=3)
    if shares:
        warnings.warn(shares.sentence("y", "family='{}'"), OutcomeWarning, stacklevel=3)
    return "gaussian"


def row_weights(sample_weight: Any, X: np.ndarray) -> np.ndarray | None:
    """The weights of the rows, or None if all are the same."""
    if sample_weight is None:
        return None
    wanted = "sample_weight must hold one finite number of at least 0 for each row"
    try:
        found = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
    except (TypeError, ValueError, OverflowError) as error:
        raise GyrostatError(f"{wanted}: {' '.join(str(error).split()).rstrip('.')}.") from None
    if not np.isfinite(found).all():  # scikit-learn takes one infinite number for all rows
        raise GyrostatError(f"{wanted}; got {errors.shown(sample_weight)}.")
    return found


def rows_with_weight(weights: np.ndarray | None, *arrays: Any) -> list[Any]:
    """The rows of arrays and labels whose weight is not zero; None stays None."""
    if weights is None or weights.all():
        return list(arrays)
    on = np.flatnonzero(weights)
    return [None if a is None else a[on] if isinstance(a, np.ndarray) else [list(a)[i] for i in on] for a in arrays]
