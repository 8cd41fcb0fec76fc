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
from gyrostat.estimators.low_rank.solver import Completion, ObservedEntries, Options
from gyrostat.estimators.low_rank.solver.determined_rows import undetermined
from gyrostat.estimators.low_rank.table_cells import (
    cell_indices,
    conformal_width,
    empty_rows_and_columns,
    held_out_cells,
    observed_cells,
    r_squared,
    unusable,
)
from gyrostat.estimators.low_rank.table_model import Baseline, LowRankTable, TableSettings, best_completion

PATH = [("ridge", float), ("depth", float), ("rank", int), ("validation_error", float)]
HIDDEN = 0.2
"""The share of the cells that ``score`` hides."""


class LowRankImputer(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
    """Fills missing cells with ``mean + row offset + column offset + F G^T``, where the rank of F G^T need not be known.

    F and G minimise the squared error at the observed cells plus ``ridge * sum_i s_i^(2 / depth)``, where s are the singular
    values of F G^T: the lowest cost of representing it by a deep linear network (Wang, Jacot 2023). The ridge falls along a
    path with warm starts, components enter where they lower the penalised error, and the ridge with the lowest error at
    held-out cells is chosen. Then reweighted least squares look, rank by rank, for a matrix that fits every observed cell
    exactly. If such a matrix has fewer degrees of freedom than there are cells, the fit is its own certificate, and it is
    taken.

    Parameters
    ----------
    depth : L of the ridge ``sum_i s_i^(2/L)``. 2 is the nuclear norm; the larger the depth, the fewer components, and the
        less these are shrunken. ``"auto"``: 3, and also 2 where 3 finds little.
    ridge : a number, for data of unit variance, or None to choose it on held-out cells.
    offsets : ``"auto"``, True or False. ``"auto"`` tries both unless the held-out cells make the answer obvious; with more than
        a million cells, these decide before the fit.
    scale_columns, scale_rows : whether columns, or rows, are first divided by their standard deviation.
    exact : whether to look for an exact fit. ``"auto"`` looks for one if values do not repeat, as rounded values do, and if
        the search is affordable; True or False.
    max_rank : the most components at any time. None: twice the rank that the number of observed cells could determine.
    validation : the observed cells held out to choose the ridge: a share of them, chosen at random, or cells that you name
        (the latest, for instance) by a boolean mask of X's shape or by a pair (rows, columns). If they are 1000 or more, one
        half chooses the ridge and the other half is kept for intervals; otherwise all of them do both.
    verbose : whether to print a line for each model tried. Ctrl-C ends a long fit and keeps the best model so far.
    random_state : for the choice of held-out cells.

    Attributes
    ----------
    rank_, singular_values_, left_, right_ : of ``F G^T``, in units of ``scale_`` (one per column) and ``row_scale_`` (one per
        row).
    ridge_, depth_ : the chosen ridge (0 for an exact fit) and its depth.
    path_ : all models tried: ridge, depth, rank and validation error.
    validation_error_ : the root mean square error, in the units of the data, at the cells that chose the ridge, of the model
        that was not fitted to them; ``calibration_error_`` is the same at the cells kept for intervals.
    exact_, interrupted_ : whether the fit is exact and certified; whether Ctrl-C ended it.
    undetermined_rows_, undetermined_columns_ : for an exact fit, those with too few cells to be determined by it (a warning
        names them, and their intervals are infinite); otherwise those without any cell.
    mean_, row_offsets_, column_offsets_, scale_, row_scale_ : offsets (those of columns by environment) and scales.
    environments_ : the labels, if any were given.

    Rows and columns without any observed cell are filled with their offsets only, and a warning names them.

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
        scale_columns: bool = False,
        scale_rows: bool = False,
        exact: str | bool = "auto",
        max_rank: int | None = None,
        validation: Any = 0.1,
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
        held = held_out_cells(self.validation, cells, random)
        offsets = (True if self.environments_ else None) if isinstance(self.offsets, str) else bool(self.offsets)
        settings = TableSettings(
            environments=codes,
            options=options,
            scale_columns=bool(self.scale_columns),
            scale_rows=bool(self.scale_rows),
            seed=random.randint(2**31 - 1),
            verbose=bool(self.verbose),
        )
        found, base = best_completion(cells, held, offsets, settings)
        self._keep(found, base, LowRankTable.fitted(found, base, cells, codes))
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

        The width is a quantile of the errors at calibration cells, in units of the cell's scale. The coverage assumes that
        missing cells are like observed ones (missing at random) and holds on average over cells, not for each one. The
        interval is a little wide, because the errors are those of a model that was fitted to fewer cells than the one that
        predicts. With fewer than 1000 held-out cells, the same cells also chose the ridge, which makes it a little narrow. It
        is infinite in ``undetermined_rows_`` and ``undetermined_columns_``.
        """
        share = float(errors.number("coverage", coverage, above=0, most=1))
        value = self.predict(rows, columns)
        i, j = (np.atleast_1d(np.asarray(x)) for x in (rows, columns))
        free = np.isin(i, self.undetermined_rows_) | np.isin(j, self.undetermined_columns_)
        width = np.where(free, np.inf, conformal_width(self._calibration, share) * self._table.base.scale_at(i, j))
        return value - width, value + width

    def score(self, X: Any, y: Any = None, *, environments: Any = None) -> float:
        """R^2 at a fifth of the observed cells of ``X`` (rows may be new), which are hidden at random and then filled."""
        check_is_fitted(self)
        X = self._checked(X, reset=False)
        cells = observed_cells(X)
        hidden = check_random_state(self.random_state).random_sample(len(cells)) < HIDDEN
        given, truth = cells.take(~hidden), cells.take(hidden)
        codes = self._codes(environments, X.shape[0])
        return r_squared(truth.values, self._table.at_new_rows(given, truth.rows, truth.columns, codes))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.sparse = True
        return tags

    def _options(self) -> Options:
        depth = None if self.depth == "auto" else float(errors.number("depth", self.depth, least=2))
        ridge = None if self.ridge is None else float(errors.number("ridge", self.ridge, above=0))
        most = None if self.max_rank is None else errors.integer("max_rank", self.max_rank, least=1)
        for name in ("offsets", "exact"):
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

    def _keep(self, found: Completion, base: Baseline, table: LowRankTable) -> None:
        self._table, self._calibration, unit = table, found.calibration, base.unit
        (self.left_, self.right_), self.singular_values_ = table.factors, table.singular_values
        self.rank_ = len(self.singular_values_)
        self.mean_, self.row_offsets_, self.column_offsets_ = base.mean, base.rows, base.columns
        self.scale_, self.row_scale_ = base.scale, base.row_scale
        self.ridge_, self.depth_ = found.ridge, found.depth
        self.exact_, self.interrupted_ = found.exact, found.interrupted
        self.path_ = np.array([(*stage, error * unit) for *stage, error in found.path], dtype=PATH)
        self.validation_error_ = found.validation_error * unit
        calibration = found.calibration * unit
        self.calibration_error_ = float(np.sqrt(np.mean(calibration**2))) if len(calibration) else float("nan")


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
