"""Missing cells of a table, filled with a low-rank matrix whose rank is found from the data."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from gyrostat import errors
from gyrostat.errors import GyrostatError
from gyrostat.estimators.environment_labels import environment_codes, known_environment_codes
from gyrostat.estimators.low_rank.column_units import WILD
from gyrostat.estimators.low_rank.solver import ObservedEntries, Options
from gyrostat.estimators.low_rank.solver.determined_rows import undetermined
from gyrostat.estimators.low_rank.solver.observed_entries import root_mean_square
from gyrostat.estimators.low_rank.table_cells import (
    cell_indices,
    column_groups,
    column_widths,
    empty_rows_and_columns,
    held_out_cells,
    observed_cells,
    r_squared,
    unusable,
    values_at,
)
from gyrostat.estimators.low_rank.table_model import (
    CellErrors,
    FittedForm,
    LowRankTable,
    TableSettings,
    best_completion,
    unseen_errors,
)

PATH = [("ridge", float), ("depth", float), ("rank", int), ("validation_error", float)]
NO_BETTER = 1.01
"""The error over that of the means of columns above which a warning is given."""
HIDDEN = 0.2
"""The share of the cells that ``score`` hides."""


class LowRankImputer(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
    """Fills missing cells with ``mean + row offset + column offset + F G^T``, where the rank of F G^T need not be known.

    Columns may have different units: they are first centred and divided by a robust spread where these differ.

    F and G minimise the squared error at the observed cells plus ``ridge * sum_i s_i^(2 / depth)``, where s are the singular
    values of F G^T: the lowest cost of representing it by a deep linear network (Wang, Jacot 2023). The ridge falls along a
    path with warm starts, components enter where they lower the penalised error, and the ridge with the lowest error at
    held-out cells is chosen. Then reweighted least squares look, rank by rank, for a matrix that fits every observed cell
    exactly. If such a matrix has fewer degrees of freedom than there are cells, this certifies the fit, and it is used.

    Parameters
    ----------
    depth : L of the ridge ``sum_i s_i^(2/L)``. 2 is the nuclear norm. A larger depth gives fewer components and shrinks
        these less. ``"auto"``: 3, and also 2 where 3 finds little.
    ridge : a number, for data of unit variance, or None to choose it on held-out cells.
    offsets : ``"auto"``, True or False. ``"auto"`` tries both, unless the held-out cells make the answer obvious; with more
        than a million cells, the held-out cells decide before the fit. Row offsets that do not reduce the error at held-out
        cells are left out.
    scale_columns : whether each column is first divided by its unit, a robust spread (the distance between its quartiles),
        so that a column of prices does not dominate a column of shares. Its median is subtracted if there are offsets, and
        cells more than 10 units from it count as if they were at that distance. ``"auto"``: yes if the largest spreads
        are more than 30 times the median spread, the smallest less than a thousandth of it, or levels differ by more than ten
        of these. Otherwise, if some spread is more than three times the median spread or less than a third of it, only if it
        lowers the product of two errors at held-out cells: that in standard deviations of each column, and that in one unit
        for all columns. A table of more than a million cells is not fitted twice: there, yes if spreads are more than a factor
        of 30 above or below the median, or by levels. The 2 % of columns with the largest and the smallest spreads and levels
        are not looked at.
    scale_rows : whether rows are divided by their standard deviation, too.
    exact : whether to look for an exact fit. ``"auto"`` looks for one if values do not repeat, as rounded values do, and if
        the search is affordable; True or False.
    max_rank : the most components at any time. None: twice the rank that the number of observed cells could determine.
    validation : the observed cells held out to choose the ridge: a share of them, chosen at random, or cells that you name
        (the latest, for instance) by a boolean mask of X's shape or by a pair (rows, columns). If they are 1000 or more, one
        half chooses the ridge and the other half is kept for intervals; otherwise all of them do both.
    column_groups : one label per column, or None. Cells of a row in columns of one label, such as the indicators of a category,
        are held out together, because each reveals the others.
    verbose : whether to print a line for each model tried. Ctrl-C ends a long fit and keeps the best model so far.
    random_state : for the choice of held-out cells.

    Attributes
    ----------
    rank_, singular_values_, left_, right_ : of ``F G^T``, in units of ``scale_`` (one per column, in the units of the data)
        and ``row_scale_`` (one per row).
    ridge_, depth_ : the chosen ridge (0 for an exact fit) and its depth.
    path_ : all models tried: ridge, depth, rank and validation error.
    validation_error_ : the root mean square error at the cells that chose the ridge, of the model that was not fitted to them;
        ``calibration_error_`` is the same at the cells kept for intervals. Both, and the errors of ``path_``, are in the units
        of the data or, if ``scaled_``, in those of each column (``column_units_``).
    relative_error_ : the error over that of filling with the mean of the column, at cells that the model has not seen. A
        warning is given if it is above one.
    column_errors_, column_mean_errors_ : both errors in each column, in its own units.
    scaled_, column_centres_, column_units_ : whether columns were scaled, and what was subtracted and divided by (0 and 1 if
        they were not).
    exact_, interrupted_ : whether the fit is exact and certified; whether Ctrl-C ended it.
    undetermined_rows_, undetermined_columns_ : for an exact fit, those with too few cells to be determined by it (a warning
        names them, and their intervals are infinite); otherwise those without any cell.
    mean_, row_offsets_, column_offsets_, scale_, row_scale_ : offsets (those of columns by environment), in the units of
        columns, and scales.
    environments_ : the labels, if any were given.

    Rows and columns without any observed cell are filled with their offsets only, and a warning names them. A column that
    holds one number is filled with it, if it has at least ten cells, and so many that chance would not make them equal.

    >>> rng = np.random.default_rng(0)
    >>> truth = rng.standard_normal((40, 2)) @ rng.standard_normal((2, 30))
    >>> holes = np.where(rng.random(truth.shape) < 0.5, np.nan, truth)
    >>> imputer = LowRankImputer(random_state=0)
    >>> filled = imputer.fit_transform(holes)
    >>> imputer.rank_, bool(np.abs(filled - truth).max() < 1e-6)
    (2, True)
    """

    def __init__(
        self,
        *,
        depth: float | str = "auto",
        ridge: float | None = None,
        offsets: str | bool = "auto",
        scale_columns: str | bool = "auto",
        scale_rows: bool = False,
        exact: str | bool = "auto",
        max_rank: int | None = None,
        validation: Any = 0.1,
        column_groups: Any = None,
        verbose: bool = False,
        random_state: Any = None,
    ):
        self.depth = depth
        self.ridge = ridge
        self.offsets = offsets
        self.scale_columns = scale_columns
        self.scale_rows = scale_rows
        self.exact = exact
        self.max_rank = max_rank
        self.validation = validation
        self.column_groups = column_groups
        self.verbose = verbose
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None, *, environments: Any = None) -> LowRankImputer:
        """Fit on a table with NaN, or on a sparse matrix whose absent entries are missing (explicit zeros are observed).

        ``environments`` holds one label per row. Each environment has its own column offsets; F G^T is shared.
        """
        errors.check_parameters(self)
        options = self._options()
        X = self._checked(X, reset=True)
        cells = observed_cells(X)
        if not len(cells):
            raise GyrostatError("X has no observed cell: there is nothing to learn from.")
        self.environments_, codes = environment_codes(environments, X.shape[0])
        names = getattr(self, "feature_names_in_", None)
        self.undetermined_rows_, self.undetermined_columns_ = empty_rows_and_columns(cells)
        _warn_of_empty(self.undetermined_rows_, self.undetermined_columns_, names)
        _warn_of_few_cells(cells)
        random = np.random.RandomState(check_random_state(self.random_state).randint(2**31 - 1))
        groups = column_groups(self.column_groups, X.shape[1])
        held = held_out_cells(self.validation, cells, random, groups)
        settings = TableSettings(
            environments=codes,
            options=options,
            offsets=None if isinstance(self.offsets, str) else bool(self.offsets),
            scale_columns=None if isinstance(self.scale_columns, str) else bool(self.scale_columns),
            scale_rows=bool(self.scale_rows),
            seed=random.randint(2**31 - 1),
            verbose=bool(self.verbose),
            groups=groups,
        )
        best = best_completion(cells, held, settings)
        self._keep(best, LowRankTable.fitted(best.found, best.base, cells, codes))
        self._keep_errors(unseen_errors(best, cells, held, settings), cells)
        _warn_of_wild_cells(best, cells, names, indicators=np.bincount(groups)[groups] > 1)
        _warn_of_large_error(self.relative_error_)
        if self.exact_:
            self.undetermined_rows_, self.undetermined_columns_ = undetermined(cells, self.rank_)
            _warn_of_undetermined(self.undetermined_rows_, self.undetermined_columns_, names)
        return self

    def transform(self, X: Any, *, environments: Any = None) -> np.ndarray:
        """The rows of ``X``, which may be new, with their missing cells filled. Observed cells are not changed."""
        check_is_fitted(self)
        X = self._checked(X, reset=False)
        if self.exact_:
            _warn_of_short_rows(observed_cells(X), self.rank_)
        return self._filled(X, environments)

    def fit_transform(self, X: Any, y: Any = None, *, environments: Any = None) -> np.ndarray:
        """``fit``, then ``transform`` of the same rows."""
        self.fit(X, environments=environments)
        return self._filled(self._checked(X, reset=False), environments)

    def predict(self, rows: Any, columns: Any = None, *, environments: Any = None) -> np.ndarray:
        """The model's values at single cells of the fitted table (numbers of rows and columns), observed or not.

        Without ``columns``, ``rows`` is a table as for ``transform``, and all of its cells are predicted, also the observed
        ones.
        """
        check_is_fitted(self)
        if columns is not None:
            return self._table.at(*cell_indices(rows, columns, (len(self.left_), len(self.right_))))
        if sparse.issparse(rows):
            raise GyrostatError(
                "predict writes out every cell of a table: for a sparse one, use predict(rows, columns)."
            )
        X = self._checked(rows, reset=False)
        return self._table.written_out(observed_cells(X), self._codes(environments, X.shape[0]))

    def predict_interval(self, rows: Any, columns: Any, coverage: float = 0.9) -> tuple[np.ndarray, np.ndarray]:
        """Lower and upper ends that hold the true cell with at least this probability (split conformal prediction).

        The width is a quantile of the errors in the cell's column at cells that the model has not seen (up to 50 000 cells:
        all of them, fold by fold; otherwise, and for an exact fit, the held-out cells). A column with too few of these takes
        the quantile of all columns, in units of the errors in each. The coverage assumes that missing cells are like observed
        ones (missing at random) and holds on average over the cells of a column, not for each one. The interval is a little
        wide, because the errors are those of a model that was fitted to fewer cells than the one that predicts, and a little
        narrow, because the ridge was chosen on some of the same cells. It is infinite in ``undetermined_rows_`` and
        ``undetermined_columns_``.
        """
        share = float(errors.number("coverage", coverage, above=0, most=1))
        value = self.predict(rows, columns)
        i, j = (np.atleast_1d(np.asarray(x)) for x in (rows, columns))
        free = np.isin(i, self.undetermined_rows_) | np.isin(j, self.undetermined_columns_)
        base = self._table.base
        widths = column_widths(self._errors.columns, self._errors.model, share, len(self.right_))
        width = np.where(free, np.inf, widths[j] * base.row_scale[i] * base.units.unit[j])
        return value - width, value + width

    def unseen_predictions(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Rows, columns and predictions of observed cells by a model that has not seen them.

        These are all cells, fold by fold, up to 50 000 of them; otherwise, and for an exact fit, the held-out cells.
        """
        check_is_fitted(self)
        return self._unseen

    def score(self, X: Any, y: Any = None, *, environments: Any = None) -> float:
        """R^2 at a fifth of the observed cells of ``X`` (rows may be new), which are hidden at random and then filled.

        If columns are scaled, cells are compared in column units.
        """
        check_is_fitted(self)
        X = self._checked(X, reset=False)
        cells = observed_cells(X)
        hidden = check_random_state(self.random_state).random_sample(len(cells)) < HIDDEN
        given, truth = cells.take(~hidden), cells.take(hidden)
        codes = self._codes(environments, X.shape[0])
        filled = truth.with_values(self._table.at_new_rows(given, truth.rows, truth.columns, codes))
        return r_squared(*map(self._table.base.units.standardised, (truth, filled)))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.sparse = True
        return tags

    def _options(self) -> Options:
        depth = None if self.depth == "auto" else float(errors.number("depth", self.depth, least=2))
        ridge = None if self.ridge is None else float(errors.number("ridge", self.ridge, above=0))
        most = None if self.max_rank is None else errors.integer("max_rank", self.max_rank, least=1)
        for name in ("offsets", "exact", "scale_columns"):
            if not isinstance(getattr(self, name), bool | np.bool_):
                errors.choice(name, getattr(self, name), ("auto",))
        return Options(depth, ridge, most, self.exact)

    def _checked(self, X: Any, *, reset: bool) -> Any:
        formats = ("csr", "csc", "coo")
        try:
            return validate_data(
                self, X, reset=reset, dtype=np.float64, accept_sparse=formats, ensure_all_finite="allow-nan"
            )
        except ValueError as error:
            raise (GyrostatError(message) if (message := unusable(X)) else error) from None

    def _filled(self, X: Any, environments: Any) -> np.ndarray:
        cells = observed_cells(X)
        full = self._table.written_out(cells, self._codes(environments, X.shape[0]))
        full[cells.rows, cells.columns] = cells.values
        return full

    def _codes(self, environments: Any, rows: int) -> np.ndarray:
        return known_environment_codes(environments, rows, self.environments_)

    def _keep(self, best: FittedForm, table: LowRankTable) -> None:
        (found, base), self._table = best[:2], table
        (self.left_, self.right_), self.singular_values_ = table.factors, table.singular_values
        self.rank_ = len(self.singular_values_)
        self.scaled_, common = best.form.scaled, 1.0 if best.form.scaled else float(base.units.unit[0])
        self.column_centres_, self.column_units_ = base.units.centre, base.units.unit / common
        self.mean_, self.row_offsets_, self.column_offsets_ = (x * common for x in (base.mean, base.rows, base.columns))
        self.scale_, self.row_scale_ = base.scale * base.units.unit, base.row_scale
        self.ridge_, self.depth_ = found.ridge, found.depth
        self.exact_, self.interrupted_ = found.exact, found.interrupted
        unit = base.scale * common * root_mean_square(base.row_scale)
        self.path_ = np.array([(*stage, error * unit) for *stage, error in found.path], dtype=PATH)
        self.validation_error_ = found.validation_error * unit
        self.calibration_error_ = root_mean_square(found.calibration.values) * unit

    def _keep_errors(self, errors: CellErrors, cells: ObservedEntries) -> None:
        varies = np.isnan(self._table.constants)[errors.columns]
        errors = errors._replace(model=np.where(varies, errors.model, 0.0))
        self._errors, self.relative_error_ = errors, errors.relative
        wrong = errors.model * errors.row_scale * errors.unit[errors.columns]
        self._unseen = errors.rows, errors.columns, values_at(cells, errors.rows, errors.columns) - wrong
        self.column_errors_, self.column_mean_errors_, _ = errors.by_column()


def _warn_of_wild_cells(best: FittedForm, cells: ObservedEntries, names: Any, *, indicators: np.ndarray) -> None:
    """Name the first of the cells that are so far from the rest of their column that they are moved inwards.

    The ones of an indicator are not wild, however few they are.
    """
    units = best.base.units
    if not units.clips:
        return
    away = np.abs(cells.values - units.centre[cells.columns])
    far = np.flatnonzero((away > WILD * units.unit[cells.columns]) & ~indicators[cells.columns])
    if far.size:
        i, j = int(cells.rows[far[0]]), int(cells.columns[far[0]])
        warnings.warn(
            f"{far.size} of {len(cells)} cells are more than {WILD:g} times the usual spread of their column from its median "
            f"(first: {cells.values[far[0]]:g} in row {i}, column {j if names is None else names[j]}): the fit counts them as "
            "if they were at that distance; correct them if they are wrong, or take the logarithm of a long-tailed column.",
            stacklevel=3,
        )


def _warn_of_large_error(relative: float) -> None:
    """Warn if the means of columns are better."""
    if relative > NO_BETTER:
        warnings.warn(
            f"At cells that the model has not seen, its error is {relative:.3g} times that of filling each column with its "
            "mean: do not rely on the filled cells, because this table has no low-rank structure that helps.",
            stacklevel=3,
        )


def _warn_of_few_cells(cells: ObservedEntries) -> None:
    """Warn if there are fewer cells than degrees of freedom of a matrix of rank one."""
    if len(cells) < (least := cells.degrees_of_freedom(1)):
        warnings.warn(
            f"X has {len(cells)} observed cells, fewer than the {least} degrees of freedom of a {cells.shape[0]} x "
            f"{cells.shape[1]} matrix of rank one: expect little beyond offsets.",
            stacklevel=3,
        )


def _warn_of_empty(rows: np.ndarray, columns: np.ndarray, names: Any) -> None:
    """Name the rows and columns without any observed cell."""
    if empty := " and in ".join(_rows_and_columns(rows, columns, names)):
        warnings.warn(
            f"Nothing is observed in {empty}: they are filled with offsets only (the mean of the rest of their row or column "
            "with offsets, else zero).",
            stacklevel=3,
        )


def _warn_of_undetermined(rows: np.ndarray, columns: np.ndarray, names: Any) -> None:
    """Name the rows and columns that an exact fit does not determine."""
    if free := " and ".join(_rows_and_columns(rows, columns, names)):
        warnings.warn(
            f"The fit is exact, but {free} have too few cells to be determined by it: do not rely on those.",
            stacklevel=3,
        )


def _warn_of_short_rows(cells: ObservedEntries, rank: int) -> None:
    """Name the rows with fewer cells than the rank of an exact fit."""
    short = np.flatnonzero(np.bincount(cells.rows, minlength=cells.shape[0]) < rank)
    if short.size:
        warnings.warn(
            f"rows {_enumerated(short)} have fewer cells than the rank {rank}: their missing cells are not determined.",
            stacklevel=3,
        )


def _rows_and_columns(rows: np.ndarray, columns: np.ndarray, names: Any) -> list[str]:
    parts = [f"rows {_enumerated(rows)}"] if rows.size else []
    if columns.size:
        parts.append(f"columns {_enumerated(columns if names is None else np.asarray(names)[columns])}")
    return parts


def _enumerated(names: np.ndarray, most: int = 8) -> str:
    shown = ", ".join(map(str, names[:most]))
    return shown if len(names) <= most else f"{shown} and {len(names) - most} more"
