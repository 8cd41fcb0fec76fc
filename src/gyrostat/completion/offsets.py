"""What is taken off entries before a matrix of low rank is fitted: a mean, offsets of rows and columns, and scales."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gyrostat.completion.observed import Observed

SHRINK = 5.0
"""An offset of a row or column with m entries is its mean residual times ``m / (m + SHRINK)``."""


class Baseline(NamedTuple):
    """``mean + row offset + column offset`` (one for each environment) and the scale of what is left."""

    mean: float
    rows: np.ndarray
    columns: np.ndarray
    scale: np.ndarray

    def at(self, rows: np.ndarray, columns: np.ndarray, environments: np.ndarray) -> np.ndarray:
        """The offsets of single cells; ``environments`` holds the number of every row's environment."""
        return self.mean + self.rows[rows] + self.columns[environments[rows], columns]

    def standard(self, seen: Observed, environments: np.ndarray) -> Observed:
        """The entries less their offsets, in units of their scale: what a matrix of low rank is fitted to."""
        left = seen.values - self.at(seen.rows, seen.columns, environments)
        return seen.with_values(left / self.scale[seen.columns])

    @property
    def unit(self) -> float:
        """The root mean square of the scales: what an error in standard units is worth in those of the data."""
        return float(np.sqrt(np.mean(self.scale**2)))

    def of_rows(self, seen: Observed, environments: np.ndarray) -> np.ndarray:
        """The offsets of rows that may be new, by the columns' own."""
        if not self.rows.any():
            return np.zeros(seen.shape[0])
        left = seen.values - self.mean - self.columns[environments[seen.rows], seen.columns]
        return _means(seen.rows, left, seen.shape[0])


def baseline(seen: Observed, environments: np.ndarray, *, offsets: bool, scales: bool) -> Baseline:
    """Offsets by alternating shrunken means, and the scales of columns (one number for all, if not ``scales``)."""
    count, (n, m) = int(environments.max(initial=0)) + 1, seen.shape
    a, b, mean = np.zeros(n), np.zeros((count, m)), 0.0
    e = environments[seen.rows]
    if offsets:
        mean = float(seen.values.mean())
        cells = e * m + seen.columns
        for _ in range(10):
            b = _means(cells, seen.values - mean - a[seen.rows], count * m).reshape(count, m)
            a = _means(seen.rows, seen.values - mean - b[e, seen.columns], n)
    left = seen.values - mean - a[seen.rows] - b[e, seen.columns]
    overall = float(np.sqrt(np.mean(left**2))) or 1.0
    scale = np.full(m, overall)
    if scales:
        squares, counts = (np.bincount(seen.columns, w, minlength=m) for w in (left**2, None))
        scale = np.sqrt((squares + SHRINK * overall**2) / (counts + SHRINK))
    return Baseline(mean, a, b, scale)


def _means(groups: np.ndarray, values: np.ndarray, count: int) -> np.ndarray:
    return np.bincount(groups, values, minlength=count) / (np.bincount(groups, minlength=count) + SHRINK)
