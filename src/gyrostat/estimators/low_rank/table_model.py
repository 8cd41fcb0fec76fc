"""A table as ``mean + row offset + column offset + F G^T * scale``.

:class:`Baseline` holds the mean, offsets and scales; :func:`best_completion` decides on offsets and fits the table;
:class:`LowRankTable` is the fitted table, which also fills rows that were not in the fit.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from gyrostat.errors import GyrostatError
from gyrostat.estimators.low_rank.solver import Completion, Factors, ObservedEntries, Options, refitted, searched
from gyrostat.estimators.low_rank.solver.observed_entries import balanced, root_mean_square
from gyrostat.estimators.low_rank.solver.ridge_path import Ridge, RidgeStage, ridge_regressions
from gyrostat.estimators.low_rank.solver.search import LARGE, values_repeat

SHRINK = 5.0
"""The offset of a row or column with m cells is its mean residual times ``m / (m + SHRINK)``."""
ENOUGH_HELD = 100
"""With at least this many held-out cells, these may decide on offsets before anything is fitted."""
USELESS, NEEDED = 0.95, 0.7
"""The error of offsets alone, as a share of the error without: above the first they are left out, below the second kept."""
MOST_CELLS = 200_000_000
"""The largest table that is written out in full."""


class Baseline(NamedTuple):
    """``mean + row offset + column offset`` (column offsets by environment), and the scales of the remainder."""

    mean: float
    rows: np.ndarray
    columns: np.ndarray
    scale: np.ndarray
    row_scale: np.ndarray
    scales_rows: bool

    def at(self, rows: np.ndarray, columns: np.ndarray, environments: np.ndarray) -> np.ndarray:
        """The offsets of single cells; ``environments`` holds the number of each row's environment."""
        return self.mean + self.rows[rows] + self.columns[environments[rows], columns]

    def scale_at(self, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
        """The scale of single cells."""
        return self.row_scale[rows] * self.scale[columns]

    def standardised(self, cells: ObservedEntries, environments: np.ndarray) -> ObservedEntries:
        """The cells minus their offsets, divided by their scales. The low-rank matrix is fitted to these."""
        remainder = cells.values - self.at(cells.rows, cells.columns, environments)
        return cells.with_values(remainder / self.scale_at(cells.rows, cells.columns))

    @property
    def unit(self) -> float:
        """The root mean square of the scales: it takes an error in standardised units to the units of the data."""
        return float(np.sqrt(np.mean(self.scale**2) * np.mean(self.row_scale**2)))

    def for_rows(self, cells: ObservedEntries, environments: np.ndarray) -> Baseline:
        """The baseline of other rows, whose offsets and scales are computed from those of the columns."""
        n = cells.shape[0]
        remainder = cells.values - self.mean - self.columns[environments[cells.rows], cells.columns]
        offsets = _shrunken_means(cells.rows, remainder, n) if self.rows.any() else np.zeros(n)
        scales = np.ones(n)
        if self.scales_rows:
            standard = (remainder - offsets[cells.rows]) / self.scale[cells.columns]
            scales = _shrunken_scales(cells.rows, standard, n, 1.0)
        return self._replace(rows=offsets, row_scale=scales)


def baseline(
    cells: ObservedEntries, environments: np.ndarray, *, offsets: bool, scale_columns: bool, scale_rows: bool = False
) -> Baseline:
    """Offsets as alternating shrunken means, and scales of columns (one number for all if not asked for) and of rows."""
    count, (n, m) = int(environments.max(initial=0)) + 1, cells.shape
    a, b, mean = np.zeros(n), np.zeros((count, m)), 0.0
    e = environments[cells.rows]
    if offsets:
        mean = float(cells.values.mean())
        column_of_environment = e * m + cells.columns
        for _ in range(10):
            remainder = cells.values - mean - a[cells.rows]
            b = _shrunken_means(column_of_environment, remainder, count * m).reshape(count, m)
            a = _shrunken_means(cells.rows, cells.values - mean - b[e, cells.columns], n)
    remainder = cells.values - mean - a[cells.rows] - b[e, cells.columns]
    overall = float(np.sqrt(np.mean(remainder**2))) or 1.0
    scale = _shrunken_scales(cells.columns, remainder, m, overall) if scale_columns else np.full(m, overall)
    base = Baseline(mean, a, b, scale, np.ones(n), scale_rows)
    return base._replace(row_scale=base.for_rows(cells, environments).row_scale) if scale_rows else base


def _shrunken_means(groups: np.ndarray, values: np.ndarray, count: int) -> np.ndarray:
    return np.bincount(groups, values, minlength=count) / (np.bincount(groups, minlength=count) + SHRINK)


def _shrunken_scales(groups: np.ndarray, values: np.ndarray, count: int, usual: float) -> np.ndarray:
    """The root mean square of each group, shrunken towards the usual one by their ratio: units may differ by any factor."""
    squares, counts = (np.bincount(groups, w, minlength=count) for w in (values**2, None))
    ratio = np.sqrt(squares / np.maximum(counts, 1)) / usual
    return usual * np.where(ratio > 1e-9, ratio, 1.0) ** (counts / (counts + SHRINK))


class TableSettings(NamedTuple):
    """How to fit a table. ``environments`` holds the number of each row's environment."""

    environments: np.ndarray
    options: Options
    scale_columns: bool
    scale_rows: bool
    seed: int
    verbose: bool

    def baseline(self, cells: ObservedEntries, offsets: bool) -> Baseline:
        """Offsets and scales from these cells."""
        scaled = {"scale_columns": self.scale_columns, "scale_rows": self.scale_rows}
        return baseline(cells, self.environments, offsets=offsets, **scaled)


def best_completion(
    cells: ObservedEntries, held: np.ndarray, offsets: bool | None, settings: TableSettings
) -> tuple[Completion, Baseline]:
    """The model with the least error at held-out cells, fitted to all cells, and its offsets.

    With ``offsets=None`` models with and without offsets are compared. The baseline of a model that is judged does not use
    the held-out cells either.
    """
    train = cells.take(~held)
    choices = _offset_choices(cells, held, train, settings) if offsets is None else (offsets,)
    tried: list[tuple[Completion, Baseline, bool]] = []
    for with_offsets in choices:
        base = settings.baseline(train, with_offsets)
        found = _searched(base.standardised(cells, settings.environments), held, with_offsets, settings)
        tried.append((found, base, with_offsets))
        if found.exact or found.interrupted:
            break
    found, base, with_offsets = tried[-1] if found.exact else min(tried, key=lambda one: _error(*one[:2]))
    if found.exact or found.interrupted:
        return found, base
    whole = settings.baseline(cells, with_offsets)
    return refitted(whole.standardised(cells, settings.environments), found), whole


def _offset_choices(
    cells: ObservedEntries, held: np.ndarray, train: ObservedEntries, settings: TableSettings
) -> Iterable[bool]:
    out = cells.take(held)
    bases = (settings.baseline(train, offsets) for offsets in (False, True))
    errors = (out.values - base.at(out.rows, out.columns, settings.environments) for base in bases)
    without, with_offsets = map(root_mean_square, errors)
    if len(out) >= ENOUGH_HELD and with_offsets > USELESS * without:
        return (False,)  # offsets are a matrix of rank two, so useless ones only add to the rank
    if len(out) >= ENOUGH_HELD and (len(cells) > LARGE or (with_offsets < NEEDED * without and values_repeat(cells))):
        return (True,)
    return False, True


def _searched(
    standardised: ObservedEntries, held: np.ndarray, with_offsets: bool, settings: TableSettings
) -> Completion:
    # Estimated offsets leave no exact fit to be found.
    inexact = with_offsets and settings.options.exact == "auto"
    options = settings.options._replace(exact=False) if inexact else settings.options
    report = _print_stage if settings.verbose else None
    return searched(standardised, held, options, np.random.RandomState(settings.seed), report)


def _error(found: Completion, base: Baseline) -> float:
    """The validation error in the units of the data; NaN counts as infinite."""
    value = found.validation_error * base.unit
    return np.inf if np.isnan(value) else value


def _print_stage(phase: str, stage: RidgeStage) -> None:
    settings = f"depth {stage.depth:g}, ridge {stage.ridge:.3g}, rank {stage.rank}"
    print(f"{phase}: {settings}, error {stage.validation_error:.4g}", file=sys.stderr, flush=True)


class LowRankTable(NamedTuple):
    """A fitted table: its baseline, the number of each row's environment, F and G, and the ridge for new rows."""

    base: Baseline
    environments: np.ndarray
    factors: Factors
    singular_values: np.ndarray
    ridge: Ridge

    @classmethod
    def fitted(
        cls, found: Completion, base: Baseline, cells: ObservedEntries, environments: np.ndarray
    ) -> LowRankTable:
        """The table of a completion. F is fitted to all rows once more, except in an exact fit."""
        factors, s = balanced(found.factors)
        table = cls(base, environments, factors, s, Ridge(found.ridge, found.depth))
        if found.exact:
            return table
        return table._replace(factors=Factors(table.row_factors(cells, environments), factors.right))

    def at(self, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
        """Single cells of the fitted table."""
        low_rank = self.factors.at(rows, columns)
        return self.base.at(rows, columns, self.environments) + low_rank * self.base.scale_at(rows, columns)

    def row_factors(self, cells: ObservedEntries, environments: np.ndarray) -> np.ndarray:
        """F of any rows, by ridge regressions on G."""
        if not len(self.singular_values):
            return np.zeros((cells.shape[0], 0))
        base = self.base.for_rows(cells, environments)
        w = np.maximum(self.ridge.weights(self.singular_values), 1e-9 * self.singular_values.max())
        return ridge_regressions(base.standardised(cells, environments), self.factors.right, w, transposed=False)

    def at_new_rows(
        self, given: ObservedEntries, rows: np.ndarray, columns: np.ndarray, environments: np.ndarray
    ) -> np.ndarray:
        """Single cells of any rows, from the given cells of these rows. Nothing is written out."""
        base = self.base.for_rows(given, environments)
        low_rank = Factors(self.row_factors(given, environments), self.factors.right).at(rows, columns)
        return base.at(rows, columns, environments) + low_rank * base.scale_at(rows, columns)

    def written_out(self, given: ObservedEntries, environments: np.ndarray) -> np.ndarray:
        """Every cell of any rows, from the given cells of these rows."""
        n, m = given.shape
        if n * m > MOST_CELLS:
            raise GyrostatError(f"X has {n} x {m} cells, too many to write out: use predict(rows, columns).")
        base = self.base.for_rows(given, environments)
        offsets = base.mean + base.rows[:, None] + base.columns[environments]
        low_rank = self.row_factors(given, environments) @ self.factors.right.T
        return offsets + low_rank * base.scale * base.row_scale[:, None]
