"""What every compared method gives: a linear predictor. Predictions that are not finite are refused."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gyrostat.errors import GyrostatError


class LinearPredictor(NamedTuple):
    """A fitted linear predictor ``X @ coef + intercept``, and the status that its method reports."""

    coef: np.ndarray
    intercept: float
    status: str = ""

    def __call__(self, X: np.ndarray) -> np.ndarray:
        return X @ self.coef + self.intercept


def finite_predictions(values: np.ndarray, complete: np.ndarray | bool = True) -> np.ndarray:
    """The same predictions; refused if one of the complete rows has none because its numbers are too large.

    >>> finite_predictions(np.array([1.0, np.nan]), np.array([True, False])).tolist()
    [1.0, nan]
    """
    odd = np.flatnonzero(complete & ~np.isfinite(values))
    if len(odd):
        raise GyrostatError(
            f"X holds numbers that are too large: {len(odd)} predictions, the first in row {odd[0] + 1}, are not finite; check "
            "the units of its columns."
        )
    return values


def predictor(w: np.ndarray) -> LinearPredictor:
    """The predictor with these weights, the intercept first."""
    return LinearPredictor(w[1:], float(w[0]))
