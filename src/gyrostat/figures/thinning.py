"""Fewer points and shorter numbers for curves on a screen, without a visible difference."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

COLUMNS = 1000
"""Columns of pixels that a panel has at most. Four points in each column draw the same picture as all points."""


def visible(x: np.ndarray, *curves: np.ndarray) -> np.ndarray:
    """The indices that suffice to draw: in each column of pixels the first, the last, and the extremes of every curve.

    ``x`` is in the scale of its axis. Curves with few points, and curves on which x decreases somewhere, are kept whole.

    >>> x = np.linspace(0, 1, 100_000)
    >>> wave = np.sin(2000 * x)
    >>> kept = visible(x, wave)
    >>> kept.size <= 4 * COLUMNS, bool(wave[kept].max() == wave.max())
    (True, True)
    """
    everything = np.arange(x.size)
    if x.size <= 4 * COLUMNS or not (np.diff(x) >= 0).all() or not np.ptp(x):
        return everything
    column = np.minimum((x - x[0]) / np.ptp(x) * COLUMNS, COLUMNS - 1).astype(int)
    starts = np.flatnonzero(np.diff(column, prepend=-1))
    kept = [starts, np.append(starts[1:], x.size) - 1]
    for y in curves:
        order = np.lexsort((y, column))
        # A gap (NaN) sorts last in its column, so the greatest number is found in the negative.
        kept += [order[starts], np.lexsort((-y, column))[starts]]
    gaps = [np.flatnonzero(~np.isfinite(y)) for y in curves]
    return np.unique(np.concatenate([*kept, *(_first_of_groups(gap) for gap in gaps)]))


def _first_of_groups(indices: np.ndarray) -> np.ndarray:
    """The first of each group of consecutive indices: one missing point interrupts a line as well as many."""
    return indices[np.flatnonzero(np.diff(indices, prepend=-2) != 1)]


def short(values: Any, digits: int = 6) -> Any:
    """Numbers for JSON, rounded to ``digits`` significant digits; a number that is not finite becomes None.

    >>> short([1 / 3, 2.0, float("nan"), 1.23456789e-20])
    [0.333333, 2, None, 1.23457e-20]
    """
    if np.ndim(values):
        return [short(value, digits) for value in values]
    value = float(values)
    if not math.isfinite(value):
        return None
    rounded = float(f"{value:.{digits}g}")
    return int(rounded) if rounded.is_integer() and abs(rounded) < 1e15 else rounded
