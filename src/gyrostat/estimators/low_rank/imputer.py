"""Missing cells of a table, filled with a matrix of low rank whose rank is found from the data."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from gyrostat import errors
from gyrostat.errors import GyrostatError
from gyrostat.estimators.low_rank.cells import empty, environments_of, known_environments, observed, unusable
from gyrostat.estimators.low_rank.fitted_table import LowRankTable
from gyrostat.estimators.low_rank.held_cells import cells, conformal_width, explained, held_cells
from gyrostat.estimators.low_rank.offset_choice import Choice
from gyrostat.estimators.low_rank.solver import Baseline, Completion, Options
from gyrostat.estimators.low_rank.solver.determined import undetermined
from gyrostat.estimators.low_rank.table_warnings import warn_if_few, warn_of_empty, warn_of_free, warn_of_short

PATH = [("ridge", float), ("depth", float), ("rank", int), ("validation_error", float)]
HIDDEN = 0.2
"""The share of the cells that ``score`` hides."""


class LowRankImputer(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
    """Fills missing cells with ``mean + row offset + column offset + F G^T``; nobody needs to know the rank of F G^T.

    F and G minimise the squared error at the observed cells plus ``ridge * sum_i s_i^(2 / depth)``, s the singular values of
    F G^T: the least cost of representing it by a deep linear network (Wang, Jacot 2023). The ridge falls along a path with warm
    starts, components come in where they are worth their cost, and the ridge with the least error at held-out cells is
    taken. Then ranks are tried by reweighted least squares for a matrix that fits every observed cell exactly: if it has
    fewer degrees of freedom than there are cells, that is a certificate, and it is taken.

    Parameters
    ----------
    depth : L of the ridge ``sum_i s_i^(2/L)``: 2 is the nuclear norm; the larger, the fewer and less shrunken components.
        ``"auto"``: 3, and 2 too where that finds little.
    ridge : a number, for data of unit variance, or None to choose it on held-out cells.
    offsets : ``"auto"`` (with and without are tried unless held-out cells make it plain; from a million cells on they decide
        beforehand), True or False.
    scale_columns, scale_rows : whether columns, or rows, are brought to equal variance first.
    exact : whether to look for an exact fit: ``"auto"`` does if values do not repeat as rounded ones do, and if that is
        affordable; True or False.
    max_rank : the most components at any time; None: twice what the number of observed cells could determine.
    validation : the observed cells held out to choose the ridge: a share of them, taken at random; or those you name (the
        latest, say), by a mask of True and False of X's shape or a pair (rows, columns). If they are 1000 or more, one half
        chooses the ridge and the other is kept for intervals; else all do both.
    verbose : whether to print a line for each stage. Ctrl-C ends a long fit and keeps the best model so far.
    random_state : for the cells held out.

    Attributes
    ----------
    rank_, singular_values_, left_, right_ : of ``F G^T`` (in units of ``scale_`` and ``row_scale_``, one for each column and
        each row).
    ridge_, depth_, path_ : the ridge taken (0: exact fit) and its depth; all that were tried, with rank and validation error.
    validation_error_ : the root mean square error, in the units of the data, at the cells that chose the ridge, of the model
        that did not see them; ``calibration_error_`` at the cells kept for intervals.
    exact_, interrupted_ : whether the fit is exact and certified; whether Ctrl-C ended it.
    undetermined_rows_, undetermined_columns_ : those with too few cells: for an exact fit to determine them (a warning names
        them, and their intervals are infinite), else those without any.
    mean_, row_offsets_, column_offsets_, scale_, row_scale_ : the offsets, those of columns by environment, and scales.
    environments_ : the labels given, if any.

    Rows and columns without any observed cell get their offsets only, with a warning that names them.

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
        """Fit on a table with NaN, or a sparse matrix whose absent entries are missing (explicit zeros are observed).

        ``environments`` holds one label per row: every environment gets column offsets of its own, F G^T is shared.
        """
        options = self._options()
        X = self._checked(X, reset=True)
        seen = observed(X)
        if not len(seen):
            raise GyrostatError("X has no observed cell: there is nothing to learn from.")
        self.environments_, codes = environments_of(environments, X.shape[0])
        names = getattr(self, "feature_names_in_", None)
        self.undetermined_rows_, self.undetermined_columns_ = empty(seen)
        warn_of_empty(self.undetermined_rows_, self.undetermined_columns_, names)
        warn_if_few(seen)
        random = np.random.RandomState(check_random_state(self.random_state).randint(2**31 - 1))
        held = held_cells(self.validation, seen, random)
        offsets = (True if self.environments_ else None) if isinstance(self.offsets, str) else bool(self.offsets)
        scales = bool(self.scale_columns), bool(self.scale_rows)
        choice = Choice(codes, options, *scales, random.randint(2**31 - 1), bool(self.verbose))
        found, base = choice.best(seen, held, offsets)
        self._keep(found, base, LowRankTable.of(found, base, seen, codes))
        if self.exact_:
            self.undetermined_rows_, self.undetermined_columns_ = undetermined(seen, self.rank_)
            warn_of_free(self.undetermined_rows_, self.undetermined_columns_, names)
        return self

    def transform(self, X: Any, *, environments: Any = None) -> np.ndarray:
        """The rows with their missing cells filled; rows may be new. Observed cells stay as they are."""
        check_is_fitted(self)
        X = self._checked(X, reset=False)
        if self.exact_:
            warn_of_short(observed(X), self.rank_)
        return self._filled(X, environments)

    def fit_transform(self, X: Any, y: Any = None, *, environments: Any = None) -> np.ndarray:
        """``fit`` and then ``transform`` of the same rows."""
        self.fit(X, environments=environments)
        return self._filled(self._checked(X, reset=False), environments)

    def predict(self, rows: Any, columns: Any = None, *, environments: Any = None) -> np.ndarray:
        """The model's values at single cells (numbers of rows and columns of the table fitted), observed or not.

        Without ``columns``, ``rows`` is a table as for ``transform``, and all its cells are predicted, the observed ones too.
        """
        check_is_fitted(self)
        if columns is not None:
            return self._table.at(*cells(rows, columns, (len(self.left_), len(self.right_))))
        if sparse.issparse(rows):
            raise GyrostatError(
                "predict writes out every cell of a table: of a sparse one ask for predict(rows, columns)."
            )
        X = self._checked(rows, reset=False)
        return self._table.written_out(observed(X), self._codes(environments, X.shape[0]))

    def predict_interval(self, rows: Any, columns: Any, coverage: float = 0.9) -> tuple[np.ndarray, np.ndarray]:
        """Lower and upper ends that hold the true cell with at least this probability (split conformal prediction).

        The width is a quantile of the errors at calibration cells, in units of the cell's scale. It assumes that missing
        cells are like observed ones (missing at random), holds on average over cells rather than for each, and is a little
        wide: the errors are those of a model that saw fewer cells than the one that predicts. With fewer than 1000 cells
        held out the same cells chose the ridge, which makes it a little narrow. It is infinite in ``undetermined_rows_`` and
        ``undetermined_columns_``.
        """
        share = float(errors.number("coverage", coverage, above=0, most=1))
        value = self.predict(rows, columns)
        i, j = (np.atleast_1d(np.asarray(x)) for x in (rows, columns))
        free = np.isin(i, self.undetermined_rows_) | np.isin(j, self.undetermined_columns_)
        width = np.where(free, np.inf, conformal_width(self._calibration, share) * self._table.base.spread(i, j))
        return value - width, value + width

    def score(self, X: Any, y: Any = None, *, environments: Any = None) -> float:
        """R^2 at a fifth of the observed cells of ``X`` (rows may be new), hidden at random and then filled."""
        check_is_fitted(self)
        X = self._checked(X, reset=False)
        seen = observed(X)
        hidden = check_random_state(self.random_state).random_sample(len(seen)) < HIDDEN
        given, truth = seen.take(~hidden), seen.take(hidden)
        filled = self._table.of_new(given, truth.rows, truth.columns, self._codes(environments, X.shape[0]))
        return explained(truth.values, filled)

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
            raise (GyrostatError(sentence) if (sentence := unusable(X)) else error) from None

    def _filled(self, X: Any, environments: Any) -> np.ndarray:
        seen = observed(X)
        full = self._table.written_out(seen, self._codes(environments, X.shape[0]))
        full[seen.rows, seen.columns] = seen.values
        return full

    def _codes(self, environments: Any, rows: int) -> np.ndarray:
        return known_environments(environments, rows, self.environments_)

    def _keep(self, found: Completion, base: Baseline, table: LowRankTable) -> None:
        self._table, self._calibration, unit = table, found.calibration, base.unit
        (self.left_, self.right_), self.singular_values_ = table.factors, table.singular_values
        self.rank_ = len(self.singular_values_)
        self.mean_, self.row_offsets_, self.column_offsets_, self.scale_, self.row_scale_, _ = base
        self.ridge_, self.depth_, self.exact_, self.interrupted_ = (
            found.ridge,
            found.depth,
            found.exact,
            found.interrupted,
        )
        self.path_ = np.array([(*stage, wrong * unit) for *stage, wrong in found.path], dtype=PATH)
        self.validation_error_ = found.validation_error * unit
        calibration = found.calibration * unit
        self.calibration_error_ = float(np.sqrt(np.mean(calibration**2))) if len(calibration) else float("nan")
