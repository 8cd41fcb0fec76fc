"""Curves for a screen: fewer points that draw the same picture, and numbers no longer than an eye can tell."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

COLUMNS = 1000
"""Columns of pixels that a panel has at most; four points in each are as good as any number."""


def visible(x: np.ndarray, *curves: np.ndarray) -> np.ndarray:
    """The indices worth drawing: of each column of pixels the first, the last, and the extremes of every curve.

    ``x`` is in the scale of its axis. Curves that are short already, or that go back and forth in x, are kept whole.

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
    return np.unique(np.concatenate([*kept, *(_runs(gap) for gap in gaps)]))


def _runs(indices: np.ndarray) -> np.ndarray:
    """The first index of each run of consecutive ones: one gap interrupts a line as well as many."""
    return indices[np.flatnonzero(np.diff(indices, prepend=-2) != 1)]


def short(values: Any, digits: int = 6) -> Any:
    """Numbers for JSON with so many significant digits; what is not finite becomes None.

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
