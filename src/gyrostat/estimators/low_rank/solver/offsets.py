"""What is taken off entries before a matrix of low rank is fitted: a mean, offsets of rows and columns, and scales."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gyrostat.estimators.low_rank.solver.observed import Observed

SHRINK = 5.0
"""An offset of a row or column with m entries is its mean residual times ``m / (m + SHRINK)``."""


class Baseline(NamedTuple):
    """``mean + row offset + column offset`` (one for each environment) and the scales of what is left."""

    mean: float
    rows: np.ndarray
    columns: np.ndarray
    scale: np.ndarray
    row_scale: np.ndarray
    scales_rows: bool

    def at(self, rows: np.ndarray, columns: np.ndarray, environments: np.ndarray) -> np.ndarray:
        """The offsets of single cells; ``environments`` holds the number of every row's environment."""
        return self.mean + self.rows[rows] + self.columns[environments[rows], columns]

    def standard(self, seen: Observed, environments: np.ndarray) -> Observed:
        """The entries less their offsets, in units of their scale: what a matrix of low rank is fitted to."""
        left = seen.values - self.at(seen.rows, seen.columns, environments)
        return seen.with_values(left / self.spread(seen.rows, seen.columns))

    def spread(self, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
        """The scale of single cells."""
        return self.row_scale[rows] * self.scale[columns]

    @property
    def unit(self) -> float:
        """The root mean square of the scales: what an error in standard units is worth in those of the data."""
        return float(np.sqrt(np.mean(self.scale**2) * np.mean(self.row_scale**2)))

    def for_rows(self, seen: Observed, environments: np.ndarray) -> Baseline:
        """The same of rows that may be new, whose offsets and scales follow from those of the columns."""
        n = seen.shape[0]
        left = seen.values - self.mean - self.columns[environments[seen.rows], seen.columns]
        offsets = _means(seen.rows, left, n) if self.rows.any() else np.zeros(n)
        scales = np.ones(n)
        if self.scales_rows:
            scales = _sizes(seen.rows, (left - offsets[seen.rows]) / self.scale[seen.columns], n, 1.0)
        return self._replace(rows=offsets, row_scale=scales)


def baseline(
    seen: Observed, environments: np.ndarray, *, offsets: bool, scale_columns: bool, scale_rows: bool = False
) -> Baseline:
    """Offsets by alternating shrunken means, and the scales of columns (one number for all, if not asked for) and of rows."""
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
    scale = _sizes(seen.columns, left, m, overall) if scale_columns else np.full(m, overall)
    found = Baseline(mean, a, b, scale, np.ones(n), scale_rows)
    return found._replace(row_scale=found.for_rows(seen, environments).row_scale) if scale_rows else found


def _means(groups: np.ndarray, values: np.ndarray, count: int) -> np.ndarray:
    return np.bincount(groups, values, minlength=count) / (np.bincount(groups, minlength=count) + SHRINK)


def _sizes(groups: np.ndarray, values: np.ndarray, count: int, usual: float) -> np.ndarray:
    """The root mean square of each group, shrunken to the usual one by their ratio: units may differ by any factor."""
    squares, counts = (np.bincount(groups, w, minlength=count) for w in (values**2, None))
    ratio = np.sqrt(squares / np.maximum(counts, 1)) / usual
    return usual * np.where(ratio > 1e-9, ratio, 1.0) ** (counts / (counts + SHRINK))
