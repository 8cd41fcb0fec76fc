"""Missing cells of a table, filled with a matrix of low rank whose rank is found from the data."""

from __future__ import annotations

import sys
import warnings
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from gyrostat import errors
from gyrostat.completion import Completion, Observed, Options, complete
from gyrostat.completion.fit import LARGE
from gyrostat.completion.observed import balanced
from gyrostat.completion.reweighted import undetermined
from gyrostat.completion.ridge import Ridge, solved
from gyrostat.errors import GyrostatError
from gyrostat.estimators.cells import Baseline, baseline, environments_of, observed, warn_of_empty, warn_of_free

MOST_CELLS = 200_000_000
"""The largest table that is ever written out in full."""
PATH = [("ridge", float), ("rank", int), ("validation_error", float)]


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
    ridge : a number, for data of unit variance, or None to choose it on held-out cells.
    offsets : ``"auto"`` (with and without are tried; with, from a million cells on), True or False.
    scale_columns : whether columns are brought to equal variance first.
    exact : whether to look for an exact fit: ``"auto"`` does if values do not repeat as rounded ones do, and if that is
        affordable; True or False.
    max_rank : the most components at any time; None: twice what the number of observed cells could determine.
    validation : the share of observed cells held out. If they are 1000 or more, one half chooses the ridge and the other is
        kept for intervals; else all do both.
    verbose : whether to print a line for each stage. Ctrl-C ends a long fit and keeps the best model so far.
    random_state : for the cells held out.

    Attributes
    ----------
    rank_, singular_values_, left_, right_ : of ``F G^T`` (in units of ``scale_``, one for each column).
    ridge_, path_ : the ridge taken (0: exact fit); all that were tried, with rank and validation error.
    validation_error_ : the root mean square error, in the units of the data, at the cells that chose the ridge, of the model
        that did not see them; ``calibration_error_`` at the cells kept for intervals.
    exact_, interrupted_ : whether the fit is exact and certified (a warning names rows and columns with too few cells to be
        determined by it); whether Ctrl-C ended it.
    mean_, row_offsets_, column_offsets_, scale_ : the offsets, those of columns by environment.
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
        self, *, depth: float = 3.0, ridge: float | None = None, offsets: str | bool = "auto", scale_columns: bool = False,
        exact: str | bool = "auto", max_rank: int | None = None, validation: float = 0.1, verbose: bool = False,
        random_state: Any = None,
    ):  # fmt: skip
        self.depth = depth
        self.ridge = ridge
        self.offsets = offsets
        self.scale_columns = scale_columns
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
        warn_of_empty(seen, getattr(self, "feature_names_in_", None))
        self._say_if_few(seen)
        seed = check_random_state(self.random_state).randint(2**31 - 1)
        best = None
        for offsets in self._choices(len(seen), bool(self.environments_)):
            base = baseline(seen, codes, offsets=offsets, scales=bool(self.scale_columns))
            left = (seen.values - base.at(seen.rows, seen.columns, codes)) / base.scale[seen.columns]
            # Offsets that are estimated leave nothing exact to find.
            chosen = options._replace(exact=False) if offsets and self.exact == "auto" else options
            found = complete(seen.with_values(left), chosen, np.random.RandomState(seed), self._say)
            if best is None or _judged(found, base) < _judged(*best):
                best = found, base
            if found.exact or found.interrupted:
                break
        assert best is not None
        self._keep(*best, seen, codes)
        if self.exact_:
            warn_of_free(*undetermined(seen, self.rank_), getattr(self, "feature_names_in_", None))
        return self

    def transform(self, X: Any, *, environments: Any = None) -> np.ndarray:
        """The rows with their missing cells filled; rows may be new. Observed cells stay as they are."""
        check_is_fitted(self)
        X = self._checked(X, reset=False)
        seen = observed(X)
        full = self._table(X, environments)
        full[seen.rows, seen.columns] = seen.values
        return full

    def fit_transform(self, X: Any, y: Any = None, *, environments: Any = None) -> np.ndarray:
        """``fit`` and then ``transform`` of the same rows."""
        return self.fit(X, environments=environments).transform(X, environments=environments)

    def predict(self, rows: Any, columns: Any = None, *, environments: Any = None) -> np.ndarray:
        """The model's values at single cells (numbers of rows and columns of the table fitted), observed or not.

        Without ``columns``, ``rows`` is a table as for ``transform``, and all its cells are predicted, the observed ones too.
        """
        check_is_fitted(self)
        if columns is None:
            if sparse.issparse(rows):
                raise GyrostatError("predict writes out every cell of a table: of a sparse one ask for predict(rows, columns).")
            return self._table(self._checked(rows, reset=False), environments)
        i, j = self._cells(rows, columns)
        low = np.einsum("ek,ek->e", self.left_[i], self.right_[j])
        return self._baseline.at(i, j, self._fitted_codes) + low * self.scale_[j]

    def predict_interval(self, rows: Any, columns: Any, coverage: float = 0.9) -> tuple[np.ndarray, np.ndarray]:
        """Lower and upper ends that hold the true cell with at least this probability (split conformal prediction).

        The width is a quantile of the errors at calibration cells, in units of the column's scale. It assumes that missing
        cells are like observed ones (missing at random), holds on average over cells rather than for each, and is a little
        wide: the errors are those of a model that saw fewer cells than the one that predicts. With fewer than 1000 cells
        held out the same cells chose the ridge, which makes it a little narrow.
        """
        share = float(errors.number("coverage", coverage, above=0, most=1))
        value, count = self.predict(rows, columns), len(self._calibration)
        at = int(np.ceil((count + 1) * share))
        half = np.sort(np.abs(self._calibration))[at - 1] if at <= count else np.inf
        width = half * self.scale_[np.asarray(columns, dtype=int)]
        return value - width, value + width

    def score(self, X: Any, y: Any = None, *, environments: Any = None) -> float:
        """R^2 at a fifth of the observed cells of ``X`` (rows may be new), hidden at random before ``transform``."""
        check_is_fitted(self)
        X = self._checked(X, reset=False)
        seen = observed(X)
        random = check_random_state(self.random_state)
        hidden = random.random_sample(len(seen)) < 0.2
        given = np.full(X.shape, np.nan)
        given[seen.rows[~hidden], seen.columns[~hidden]] = seen.values[~hidden]
        filled = self.transform(given, environments=environments)
        truth = seen.values[hidden]
        left = np.sum((filled[seen.rows[hidden], seen.columns[hidden]] - truth) ** 2)
        total = np.sum((truth - truth.mean()) ** 2) if len(truth) else 0.0
        return float(1 - left / total) if total > 0 else float("nan")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.sparse = True
        return tags

    def _options(self) -> Options:
        depth = float(errors.number("depth", self.depth, least=2))
        ridge = None if self.ridge is None else float(errors.number("ridge", self.ridge, above=0))
        most = None if self.max_rank is None else errors.integer("max_rank", self.max_rank, least=1)
        share = float(errors.number("validation", self.validation, above=0, most=0.5))
        for name in ("offsets", "exact"):
            if not isinstance(getattr(self, name), bool | np.bool_):
                errors.choice(name, getattr(self, name), ("auto",))
        return Options(depth, ridge, None, share, most, self.exact)

    def _choices(self, count: int, several: bool) -> tuple[bool, ...]:
        if self.offsets == "auto":
            return (True,) if count > LARGE or several else (False, True)
        return (bool(self.offsets),)

    def _checked(self, X: Any, *, reset: bool) -> Any:
        return validate_data(
            self, X, reset=reset, dtype=np.float64, accept_sparse=("csr", "csc", "coo"), ensure_all_finite="allow-nan"
        )

    def _say_if_few(self, seen: Observed) -> None:
        if len(seen) < (least := seen.freedom(1)):
            warnings.warn(
                f"X has {len(seen)} observed cells, fewer than the {least} degrees of freedom of a {seen.shape[0]} x "
                f"{seen.shape[1]} matrix of rank one: expect little beyond offsets.",
                stacklevel=3,
            )

    def _say(self, what: str, stage: Any) -> None:
        if self.verbose:
            text = f"{what}: ridge {stage.ridge:.3g}, rank {stage.rank}, validation error {stage.validation_error:.4g}"
            print(text, file=sys.stderr, flush=True)

    def _keep(self, found: Completion, base: Baseline, seen: Observed, codes: np.ndarray) -> None:
        factors, s = balanced(found.factors)
        self._baseline, self._fitted_codes, self._calibration = base, codes, found.calibration
        self.right_, self.singular_values_, self.rank_ = factors.right, s, len(s)
        self.mean_, self.row_offsets_, self.column_offsets_, self.scale_ = base
        self.ridge_, self.exact_, self.interrupted_ = found.ridge, found.exact, found.interrupted
        unit = float(np.sqrt(np.mean(base.scale**2)))
        self.path_ = np.array([(p.ridge, p.rank, p.validation_error * unit) for p in found.path], dtype=PATH)
        self.validation_error_ = found.validation_error * unit
        calibration = found.calibration * unit
        self.calibration_error_ = float(np.sqrt(np.mean(calibration**2))) if len(calibration) else float("nan")
        self.left_ = factors.left if found.exact else self._rows(seen, codes)

    def _table(self, X: Any, environments: Any) -> np.ndarray:
        if X.shape[0] * X.shape[1] > MOST_CELLS:
            raise GyrostatError(
                f"X has {X.shape[0]} x {X.shape[1]} cells, too many to write out: use predict(rows, columns)."
            )
        seen, codes = observed(X), self._codes(environments, X.shape[0])
        offsets = self._baseline.mean + self._baseline.of_rows(seen, codes)[:, None] + self._baseline.columns[codes]
        return offsets + self._rows(seen, codes) @ self.right_.T * self.scale_

    def _rows(self, seen: Observed, codes: np.ndarray) -> np.ndarray:
        """F of rows that may be new: ridge regressions on G."""
        if self.rank_ == 0:
            return np.zeros((seen.shape[0], 0))
        offsets = self._baseline._replace(rows=self._baseline.of_rows(seen, codes)).at(seen.rows, seen.columns, codes)
        scaled = seen.with_values((seen.values - offsets) / self.scale_[seen.columns])
        w = Ridge(self.ridge_, self.depth).weights(self.singular_values_)
        return solved(scaled, self.right_, np.maximum(w, 1e-9 * self.singular_values_.max()), transposed=False)

    def _codes(self, environments: Any, rows: int) -> np.ndarray:
        if not self.environments_:
            return np.zeros(rows, dtype=int)
        if environments is None:
            raise GyrostatError("environments is missing: fit was given one label for each row, so transform needs them too.")
        names, codes = environments_of(environments, rows)
        if unknown := [name for name in names if name not in self.environments_]:
            raise GyrostatError(f"environments holds {errors.shown(unknown[0])}, which fit has not seen.")
        return np.array([self.environments_.index(name) for name in names])[codes]

    def _cells(self, rows: Any, columns: Any) -> tuple[np.ndarray, np.ndarray]:
        i, j = np.atleast_1d(np.asarray(rows)), np.atleast_1d(np.asarray(columns))
        for name, at, size in (("rows", i, len(self.left_)), ("columns", j, len(self.right_))):
            inside = at.ndim == 1 and (at.size == 0 or 0 <= at.min() <= at.max() < size)
            if not np.issubdtype(at.dtype, np.integer) or not inside:
                raise GyrostatError(f"{name} must list numbers from 0 to {size - 1}; got {errors.shown(at)}.")
        if len(i) != len(j):
            raise GyrostatError(f"rows and columns must be equally long; got {len(i)} and {len(j)}.")
        return i, j


def _judged(found: Completion, base: Baseline) -> float:
    """The validation error in the units of the data; any number beats NaN."""
    value = found.validation_error * float(np.sqrt(np.mean(base.scale**2)))
    return np.inf if np.isnan(value) else value
