"""The unit of each column of a table: its median and a robust spread, and whether these differ enough to matter."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gyrostat.estimators.low_rank.solver.observed_entries import ObservedEntries

QUARTILES = 1.349
"""The distance of the quartiles of a normal distribution, in standard deviations."""
ALIKE, APART, FAR_BELOW, LEVELS = 3.0, 30.0, 1000.0, 10.0
"""Columns whose spreads are within the first factor of the median spread have one unit. If spreads are more than the second
factor above it, or more than the third below it, they have not, and the same holds if levels differ by more than the last
number of spreads. Otherwise held-out cells decide: the columns of a low-rank matrix in one unit may well differ by a factor of
ten, and a small spread may be that of a column in which little happens, such as a pixel at the edge of an image that is nearly
always black."""
EXTREME, FEW = 0.02, 10
"""The share of the columns at either end that is not looked at, nor are columns of fewer cells: their spreads are far off by
chance."""
WILD = 10.0
"""Cells further than this many units from the median of their column count as if they were at that distance."""


class ColumnUnits(NamedTuple):
    """The centre, the unit and the number of cells of each column; ``clips``: whether cells far outside are moved inwards."""

    centre: np.ndarray
    unit: np.ndarray
    counts: np.ndarray
    clips: bool = False

    def standardised(self, cells: ObservedEntries) -> np.ndarray:
        """The values of cells in column units."""
        values = (cells.values - self.centre[cells.columns]) / self.unit[cells.columns]
        return np.clip(values, -WILD, WILD) if self.clips else values

    def differ(self, *, large: bool) -> bool | None:
        """Whether columns have different units or levels; None if held-out cells should decide.

        A large table is not fitted twice: only spreads that differ by more than ``APART``, up or down, are units there.
        """
        sure = self.counts >= min(FEW, self.counts.max())
        low, usual, high = np.exp(np.quantile(np.log(self.unit[sure]), [EXTREME, 0.5, 1 - EXTREME]))
        bottom, top = np.quantile(self.centre[sure], [EXTREME, 1 - EXTREME])
        above, below = high / usual, usual / low
        below_limit = APART if large else FAR_BELOW
        if above > APART or below > below_limit or top / usual - bottom / usual > LEVELS:
            return True
        return False if max(above, below) <= ALIKE or large else None

    def used(self, scaled: bool, *, centred: bool) -> ColumnUnits:
        """These units if ``scaled`` (without centres unless ``centred``), otherwise one unit for all columns."""
        if scaled:
            return self._replace(centre=self.centre if centred else np.zeros_like(self.centre), clips=centred)
        return self._replace(centre=np.zeros_like(self.centre), unit=np.full_like(self.unit, np.median(self.unit)))


def column_units(cells: ObservedEntries, *, robust: bool = True) -> ColumnUnits:
    """The median of each column, and the distance of its quartiles as a standard deviation.

    If the quartiles agree, as in a column of zeros and a few ones, or if the unit is not to be ``robust``, it is the standard
    deviation. Columns without any spread, or without cells, take the median of the other units.

    >>> cells = ObservedEntries((4, 2), *np.indices((4, 2)).reshape(2, -1), np.outer([1.0, 2.0, 3.0, 1e9], [1, 100]).ravel())
    >>> units = column_units(cells)
    >>> (units.unit / units.unit[0]).round(6).tolist()
    [1.0, 100.0]
    """
    counts = np.bincount(cells.columns, minlength=cells.shape[1])
    peak = np.zeros(cells.shape[1])  # squares of the largest numbers would be infinite
    np.maximum.at(peak, cells.columns, np.abs(cells.values))
    peak[peak == 0] = 1.0
    values = cells.values / peak[cells.columns]
    low, centre, high = _quantiles(cells.columns, values, counts, (0.25, 0.5, 0.75))
    spread = (high - low) / QUARTILES
    spread = np.where(robust & (spread > 1e-12), spread, _deviations(cells.columns, values, counts))
    unit = np.where(spread > 1e-12, spread * peak, 0.0)
    known = unit > 0
    unit[~known] = np.median(unit[known]) if known.any() else 1.0
    return ColumnUnits(centre * peak, unit, counts)


def _quantiles(
    columns: np.ndarray, values: np.ndarray, counts: np.ndarray, shares: tuple[float, ...]
) -> list[np.ndarray]:
    """Quantiles of each column, between the two nearest values; zero for a column without cells."""
    ordered = np.append(values[np.lexsort((values, columns))], 0.0)
    first, last = np.cumsum(counts) - counts, np.cumsum(counts) - 1
    found = []
    for share in shares:
        place = share * (counts - 1)
        below = first + np.floor(place).astype(int)
        left, right = ordered[np.maximum(below, 0)], ordered[np.minimum(below + 1, last)]
        found.append(np.where(counts > 0, left + (place % 1) * (right - left), 0.0))
    return found


def _deviations(columns: np.ndarray, values: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """The standard deviation of each column."""
    least = np.maximum(counts, 1)
    means = np.bincount(columns, values, minlength=len(counts)) / least
    return np.sqrt(np.bincount(columns, (values - means[columns]) ** 2, minlength=len(counts)) / least)
