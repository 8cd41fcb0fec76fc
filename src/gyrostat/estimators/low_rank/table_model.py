"""A table as ``centre + unit * (mean + row offset + column offset + F G^T * scale)``, with a centre and a unit per column.

:class:`Baseline` holds all but F and G; :func:`best_completion` decides on units and offsets and fits the table;
:class:`LowRankTable` is the fitted table, which also fills rows that were not in the fit.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from gyrostat.errors import LARGEST, GyrostatError
from gyrostat.estimators.low_rank.column_units import ColumnUnits, column_units
from gyrostat.estimators.low_rank.solver import Completion, Factors, ObservedEntries, Options, refitted, searched
from gyrostat.estimators.low_rank.solver.observed_entries import balanced, root_mean_square
from gyrostat.estimators.low_rank.solver.ridge_path import LARGE, Ridge, RidgeStage, ridge_regressions
from gyrostat.estimators.low_rank.solver.search import values_repeat
from gyrostat.estimators.low_rank.table_cells import constant_columns, grouped_cells, values_at

SHRINK = 5.0
"""The offset of a row or column with m cells is its mean residual times ``m / (m + SHRINK)``."""
ENOUGH_HELD = 100
"""With at least this many held-out cells, these may decide on offsets before anything is fitted."""
USELESS, NEEDED = 0.95, 0.7
"""The error of offsets alone, as a share of the error without: above the first they are left out, below the second kept."""
MOST_CELLS = 200_000_000
"""The largest table that is written out in full."""
FOLDS, MOST_FOLDED = 5, 50_000
"""Up to this many cells, the errors behind intervals are those of all cells, each predicted by a model of the other folds."""


class TableForm(NamedTuple):
    """Which parts a table has: offsets of columns, offsets of rows, and units of columns."""

    columns: bool
    rows: bool
    scaled: bool


class Baseline(NamedTuple):
    """``mean + row offset + column offset`` (column offsets by environment) and the scale of the remainder, in column units."""

    units: ColumnUnits
    mean: float
    rows: np.ndarray
    columns: np.ndarray
    scale: float
    row_scale: np.ndarray
    scales_rows: bool

    def at(self, rows: np.ndarray, columns: np.ndarray, environments: np.ndarray) -> np.ndarray:
        """The offsets of single cells, in the units of the data; ``environments`` holds the number of each row's."""
        offsets = self.mean + self.rows[rows] + self.columns[environments[rows], columns]
        return self.units.centre[columns] + self.units.unit[columns] * offsets

    def scale_at(self, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
        """The scale of single cells, in the units of the data."""
        return self.row_scale[rows] * self.scale * self.units.unit[columns]

    def standardised(self, cells: ObservedEntries, environments: np.ndarray) -> ObservedEntries:
        """The cells minus their offsets, divided by their scales. The low-rank matrix is fitted to these."""
        e = environments[cells.rows]
        offsets = self.mean + self.rows[cells.rows] + self.columns[e, cells.columns]
        remainder = self.units.standardised(cells) - offsets
        return cells.with_values(remainder / (self.row_scale[cells.rows] * self.scale))

    def for_rows(self, cells: ObservedEntries, environments: np.ndarray) -> Baseline:
        """The baseline of other rows, whose offsets and scales are computed from those of the columns."""
        n = cells.shape[0]
        remainder = self.units.standardised(cells) - self.mean - self.columns[environments[cells.rows], cells.columns]
        offsets = _shrunken_means(cells.rows, remainder, n) if self.rows.any() else np.zeros(n)
        scales = np.ones(n)
        if self.scales_rows:
            scales = _shrunken_scales(cells.rows, (remainder - offsets[cells.rows]) / self.scale, n)
        return self._replace(rows=offsets, row_scale=scales)


def baseline(
    cells: ObservedEntries, environments: np.ndarray, form: TableForm, own: ColumnUnits, *, scale_rows: bool = False
) -> Baseline:
    """Offsets as alternating shrunken means in column units, and the scales of the remainder; ``own`` as in these cells."""
    count, (n, m) = int(environments.max(initial=0)) + 1, cells.shape
    units = own.used(form.scaled, centred=form.columns)
    values, e = units.standardised(cells), environments[cells.rows]
    _refuse_extremes(values, cells)
    a, b, mean = np.zeros(n), np.zeros((count, m)), 0.0
    if form.columns:
        mean = float(values.mean())
        column_of_environment = e * m + cells.columns
        for _ in range(10 if form.rows else 1):
            remainder = values - mean - a[cells.rows]
            b = _shrunken_means(column_of_environment, remainder, count * m).reshape(count, m)
            if form.rows:
                a = _shrunken_means(cells.rows, values - mean - b[e, cells.columns], n)
    remainder = values - mean - a[cells.rows] - b[e, cells.columns]
    base = Baseline(units, mean, a, b, root_mean_square(remainder) or 1.0, np.ones(n), scale_rows)
    return base._replace(row_scale=base.for_rows(cells, environments).row_scale) if scale_rows else base


def _refuse_extremes(values: np.ndarray, cells: ObservedEntries) -> None:
    """Refuse cells whose squares are too large in the units of the table, which happens only if columns are not scaled."""
    if np.abs(values).max(initial=0.0) > LARGEST:
        far = int(np.argmax(np.abs(values)))
        raise GyrostatError(
            f"X holds {cells.values[far]:g} in row {cells.rows[far]}, column {cells.columns[far]}, too large a number beside "
            "the other columns: use scale_columns='auto', or give the column in a larger unit."
        )


def _shrunken_means(groups: np.ndarray, values: np.ndarray, count: int) -> np.ndarray:
    return np.bincount(groups, values, minlength=count) / (np.bincount(groups, minlength=count) + SHRINK)


def _shrunken_scales(groups: np.ndarray, values: np.ndarray, count: int) -> np.ndarray:
    """The root mean square of each group, shrunken towards one by its logarithm: units may differ by any factor."""
    squares, counts = (np.bincount(groups, w, minlength=count) for w in (values**2, None))
    ratio = np.sqrt(squares / np.maximum(counts, 1))
    return np.where(ratio > 1e-9, ratio, 1.0) ** (counts / (counts + SHRINK))


class TableSettings(NamedTuple):
    """How to fit a table. ``environments`` holds the number of each row's environment, ``groups`` that of each column's group.

    Offsets or scales that are None are decided on at held-out cells.
    """

    environments: np.ndarray
    options: Options
    offsets: bool | None
    scale_columns: bool | None
    scale_rows: bool
    seed: int
    verbose: bool
    groups: np.ndarray

    def baseline(self, cells: ObservedEntries, form: TableForm, own: ColumnUnits) -> Baseline:
        """Offsets and scales from these cells, whose own units are given."""
        return baseline(cells, self.environments, form, own, scale_rows=self.scale_rows)


class FittedForm(NamedTuple):
    """A completion, its baseline and its form.

    ``own_error`` is that at held-out cells in each column's own unit, ``common_error`` that in one unit for all columns, and
    ``judged`` is the baseline without these cells.
    """

    found: Completion
    base: Baseline
    form: TableForm
    own_error: float
    common_error: float
    judged: Baseline

    @property
    def error(self) -> float:
        """The error in the units of the fit."""
        return self.own_error if self.form.scaled else self.common_error

    def no_worse(self, other: FittedForm) -> bool:
        """Whether what is gained in one kind of unit is at least what is lost in the other, as a factor.

        Each error alone is in favour of the fit in its own units: one fit minimises the one, the other fit the other.
        """
        return self.own_error * self.common_error <= other.own_error * other.common_error

    @property
    def final(self) -> bool:
        """Whether nothing else is to be tried: the fit is exact, or Ctrl-C ended it."""
        return self.found.exact or self.found.interrupted


def best_completion(cells: ObservedEntries, held: np.ndarray, settings: TableSettings) -> FittedForm:
    """The model with the least error at held-out cells, fitted to all cells.

    The baseline of a model that is judged does not use the held-out cells either.
    """
    train, own = cells.take(~held), column_units(cells.take(~held))
    scaled = own.differ(large=len(cells) > LARGE) if settings.scale_columns is None else settings.scale_columns
    pairs = _offset_choices(cells.take(held), train, scaled is not False, settings, own)
    as_it_is: FittedForm | None = None
    # Where units are in doubt, an exact fit without them needs no other.
    if scaled is None and pairs[0] == (False, False):
        as_it_is = _fitted_form(cells, held, TableForm(False, False, False), settings, own)
        if as_it_is.final:
            return as_it_is
    choices = [TableForm(columns, rows, scaled is not False) for columns, rows in pairs]
    tried: list[FittedForm] = []
    for form in choices:
        tried.append(_fitted_form(cells, held, form, settings, own))
        if tried[-1].final:
            break
    best = tried[-1] if tried[-1].final else min(tried, key=lambda one: one.error)
    if scaled is None and not best.final:  # units may differ, or columns of one unit may vary more or less: try both
        form = best.form._replace(scaled=False)
        known = as_it_is if as_it_is and as_it_is.form == form else None
        other = known or _fitted_form(cells, held, form, settings, own)
        best = other if other.final or other.no_worse(best) else best
    if best.final:
        return best
    whole = settings.baseline(cells, best.form, column_units(cells))
    return best._replace(found=refitted(whole.standardised(cells, settings.environments), best.found), base=whole)


def _fitted_form(
    cells: ObservedEntries, held: np.ndarray, form: TableForm, settings: TableSettings, own: ColumnUnits
) -> FittedForm:
    base = settings.baseline(cells.take(~held), form, own)
    standardised = base.standardised(cells, settings.environments)
    # Estimated offsets leave no exact fit to be found.
    inexact = form.columns and settings.options.exact == "auto"
    options = settings.options._replace(exact=False) if inexact else settings.options
    report = _print_stage if settings.verbose else None
    found = searched(standardised, held, options, np.random.RandomState(settings.seed), report)
    return FittedForm(found, base, form, *_judged_errors(found.judged, cells, held, base, settings.environments), base)


def _judged_errors(
    judged: ObservedEntries, cells: ObservedEntries, held: np.ndarray, base: Baseline, environments: np.ndarray
) -> tuple[float, float]:
    """Errors in standard deviations of each column, wild cells moved inwards, and in one unit; infinite if not known.

    Not in robust units: a column of few events has a small one beside its errors, and would stand for all others. Not from
    residuals alone: those of a fit in column units do not contain what was cut off wild cells.
    """
    i, j = judged.rows, judged.columns
    truth = judged.with_values(values_at(cells, i, j))
    model = base.standardised(truth, environments).values - judged.values
    predicted = truth.with_values(base.at(i, j, environments) + model * base.scale_at(i, j))
    own = column_units(cells.take(~held), robust=False)
    errors = []
    for units in (own._replace(clips=True), own.used(False, centred=False)):
        error = root_mean_square(units.standardised(predicted) - units.standardised(truth))
        errors.append(np.inf if np.isnan(error) else error)
    return errors[0], errors[1]


def _offset_choices(
    out: ObservedEntries, train: ObservedEntries, scaled: bool, settings: TableSettings, own: ColumnUnits
) -> list[tuple[bool, bool]]:
    """Pairs (column offsets, row offsets) to try. Row offsets are taken if they help at held-out cells."""
    if settings.offsets is not None:
        return [(settings.offsets, settings.offsets)]
    forms = [TableForm(*pair, scaled) for pair in ((False, False), (True, False), (True, True))]

    def error(form: TableForm) -> float:
        base = settings.baseline(train, form, own)
        return root_mean_square(base.standardised(out, settings.environments).values * base.scale)

    without, by_column, by_both = map(error, forms)
    with_offsets = (True, not by_both > by_column)
    if settings.environments.any():  # each environment has offsets of its own
        return [with_offsets]
    least = min(by_column, by_both)
    if len(out) >= ENOUGH_HELD and least > USELESS * without:
        return [(False, False)]  # offsets are a matrix of rank two, so useless ones only add to the rank
    if len(out) >= ENOUGH_HELD and (len(train) > LARGE or (least < NEEDED * without and values_repeat(train))):
        return [with_offsets]
    return [(False, False), with_offsets]


# --- errors at cells that a model has not seen ----------------------------------------------------


class CellErrors(NamedTuple):
    """Errors at cells, of the model and of the means of columns: ``unit`` takes them to the units of the data.

    ``row_scale`` is the scale of each cell's row; errors of the model are divided by it.
    """

    rows: np.ndarray
    columns: np.ndarray
    model: np.ndarray
    means: np.ndarray
    row_scale: np.ndarray
    unit: np.ndarray

    @property
    def relative(self) -> float:
        """The error of the model over that of the means of columns, over all cells; NaN if none.

        Errors are in units of the error of the mean of each column, so that a column with a long tail, whose robust unit is
        small beside its errors, does not stand for all others.
        """
        counts, squares = (np.bincount(self.columns, w, minlength=len(self.unit)) for w in (None, self.means**2))
        if not squares.any():
            return float("nan")
        typical = np.median(squares[squares > 0] / counts[squares > 0])
        sizes = np.sqrt((squares + SHRINK * typical) / (counts + SHRINK))[self.columns]
        own, means = (root_mean_square(x / sizes) for x in (self.model * self.row_scale, self.means))
        return own / means

    def by_column(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Root mean square errors of the model and of the means in each column, in its units, and the number of cells."""
        counts = np.bincount(self.columns, minlength=len(self.unit))

        def size(x: np.ndarray) -> np.ndarray:
            squares = np.bincount(self.columns, x**2, minlength=len(self.unit))
            return np.sqrt(np.divide(squares, counts, out=np.full(len(counts), np.nan), where=counts > 0)) * self.unit

        return size(self.model * self.row_scale), size(self.means), counts


def unseen_errors(best: FittedForm, cells: ObservedEntries, held: np.ndarray, settings: TableSettings) -> CellErrors:
    """Errors of the model at cells that it was not fitted to.

    These are all cells, fold by fold, if there are not too many of them, and otherwise, or if the fit is exact or was
    interrupted, the cells held out for it.
    """
    unit = best.base.units.unit
    if best.final or len(cells) > MOST_FOLDED:
        return _errors(best.judged, best.found.calibration, cells, cells.take(~held), unit)
    parts = zip(*(part[:5] for part in _fold_errors(best, cells, settings, unit)), strict=True)
    rows, columns, model, means, row_scale = map(np.concatenate, parts)
    return CellErrors(rows, columns, model, means, row_scale, unit)


def _fold_errors(
    best: FittedForm, cells: ObservedEntries, settings: TableSettings, unit: np.ndarray
) -> Iterator[CellErrors]:
    whole, number = grouped_cells(cells, settings.groups)
    fold = (np.random.RandomState(settings.seed).permutation(len(whole)) % FOLDS)[number]
    # A column of fewer cells than folds would have no unit where all of them are left out.
    enough = np.bincount(cells.columns, minlength=cells.shape[1])[cells.columns] >= FOLDS
    for k in range(FOLDS):
        train, out = cells.take((fold != k) | ~enough), cells.take((fold == k) & enough)
        base = settings.baseline(train, best.form, column_units(train))
        factors = refitted(base.standardised(train, settings.environments), best.found).factors
        residual = base.standardised(out, settings.environments).residual(factors)
        yield _errors(base, out.with_values(residual), cells, train, unit)


def _errors(
    base: Baseline, residuals: ObservedEntries, cells: ObservedEntries, train: ObservedEntries, unit: np.ndarray
) -> CellErrors:
    """Standardised residuals, and the errors of the means of ``train``, in the given units of columns.

    What is cut off wild cells is part of the error, as it is part of that of the means. A column that holds one number in
    ``train`` is filled with it, as in :class:`LowRankTable`.
    """
    i, j = residuals.rows, residuals.columns
    truth = residuals.with_values(values_at(cells, i, j))
    cut = base.units._replace(clips=False).standardised(truth) - base.units.standardised(truth)
    model = (residuals.values * base.scale + cut / base.row_scale[i]) * base.units.unit[j] / unit[j]
    constants = constant_columns(train)[j]
    model = np.where(np.isnan(constants), model, (truth.values - constants) / (unit[j] * base.row_scale[i]))
    means = (truth.values - _column_means(train)[j]) / unit[j]
    return CellErrors(i, j, model, means, base.row_scale[i], unit)


def _column_means(cells: ObservedEntries) -> np.ndarray:
    """The mean of each column, or of all cells where it has none."""
    count = np.bincount(cells.columns, minlength=cells.shape[1])
    peak = float(np.abs(cells.values).max(initial=0.0)) or 1.0  # sums of the largest numbers would be infinite
    total = np.bincount(cells.columns, cells.values / peak, minlength=cells.shape[1])
    return np.where(count > 0, total / np.maximum(count, 1), np.mean(cells.values / peak)) * peak


def _print_stage(phase: str, stage: RidgeStage) -> None:
    settings = f"depth {stage.depth:g}, ridge {stage.ridge:.3g}, rank {stage.rank}"
    print(f"{phase}: {settings}, error {stage.validation_error:.4g}", file=sys.stderr, flush=True)


class LowRankTable(NamedTuple):
    """A fitted table: its baseline, the number of each row's environment, F and G, and the ridge for new rows.

    ``constants`` holds the numbers of columns that have no other, which are filled with them, and NaN for all other columns.
    """

    base: Baseline
    environments: np.ndarray
    factors: Factors
    singular_values: np.ndarray
    ridge: Ridge
    constants: np.ndarray

    @classmethod
    def fitted(
        cls, found: Completion, base: Baseline, cells: ObservedEntries, environments: np.ndarray
    ) -> LowRankTable:
        """The table of a completion. F is fitted to all rows once more, except in an exact fit."""
        factors, s = balanced(found.factors)
        table = cls(base, environments, factors, s, Ridge(found.ridge, found.depth), constant_columns(cells))
        if found.exact:
            return table
        return table._replace(factors=Factors(table.row_factors(cells, environments), factors.right))

    def at(self, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
        """Single cells of the fitted table."""
        low_rank = self.factors.at(rows, columns)
        return self._possible(
            columns, self.base.at(rows, columns, self.environments) + low_rank * self.base.scale_at(rows, columns)
        )

    def _possible(self, columns: np.ndarray, values: np.ndarray) -> np.ndarray:
        """Values at cells, or the only number of their column."""
        return np.where(np.isnan(self.constants[columns]), values, self.constants[columns])

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
        return self._possible(columns, base.at(rows, columns, environments) + low_rank * base.scale_at(rows, columns))

    def written_out(self, given: ObservedEntries, environments: np.ndarray) -> np.ndarray:
        """Every cell of any rows, from the given cells of these rows."""
        n, m = given.shape
        if n * m > MOST_CELLS:
            raise GyrostatError(f"X has {n} x {m} cells, too many to write out: use predict(rows, columns).")
        base = self.base.for_rows(given, environments)
        offsets = base.mean + base.rows[:, None] + base.columns[environments]
        low_rank = self.row_factors(given, environments) @ self.factors.right.T
        every = base.units.centre + base.units.unit * (offsets + low_rank * base.scale * base.row_scale[:, None])
        return self._possible(np.arange(m), every)
