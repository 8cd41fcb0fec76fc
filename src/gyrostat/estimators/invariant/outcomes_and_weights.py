"""What responses look like, and the weights of rows: checks before a fit."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from sklearn.utils.validation import _check_sample_weight

from gyrostat import errors
from gyrostat.errors import GyrostatError
from gyrostat.estimators.invariant.families import FAMILIES, outcome_kind

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


class OutcomeWarning(UserWarning):
    """The response looks like 0/1, counts, durations or amounts, and no family was given."""


def chosen_family(family: str | None, y: np.ndarray) -> str:
    """The family that was given, or "gaussian" with a warning if the response looks like something else."""
    if family is not None:
        return errors.choice("family", family, FAMILIES)
    if hint := HINTS.get(outcome_kind(y)):
        warnings.warn(hint, OutcomeWarning, stacklevel=3)
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
