"""A matrix of unknown rank from linear measurements."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from gyrostat import errors
from gyrostat.errors import GyrostatError
from gyrostat.estimators.low_rank.cells import environments_of
from gyrostat.estimators.low_rank.factored import Responses, SensedFactors, sensing_descent
from gyrostat.estimators.low_rank.measured import operator
from gyrostat.estimators.low_rank.rates import actual_rate, predicted_rate
from gyrostat.estimators.low_rank.sensing_ranks import Scaled, ranked, strength

SOLVERS = ("auto", "gd", "imbalance", "scaled", "prec")
PATH = [("rank", int), ("validation_error", float)]
HELD = 0.15
"""The share of measurements held out while the rank is chosen."""
RANK = 1e-6
"""Singular values below this share of the largest count as zero."""
SHORT = 30
"""A last descent with fewer steps had little left to do: rates are then those of the first, with all columns."""
NOISY = 1e-4
"""The share of the first loss left at the end above which no rate is predicted: what is left may be noise."""
MOST_COLUMNS = 1500
"""The widest Jacobian from which a rate is predicted."""


class MatrixSensingRegressor(RegressorMixin, BaseEstimator):
    """The matrix A of ``y_i = <X_i, A> + intercept``, of low but unknown rank.

    Descent on ``A = F G^T`` with more columns than the rank (Xiong, Ding, Du 2024) from a small start; then every rank up to
    that width is refined and judged on held-out measurements, the smallest good one is taken and fitted to all.
    Two factors are used for symmetric matrices too: one factor converges at 1/T^2 only when it is too wide (their Theorem
    3.1), and makes no indefinite matrices.

    Parameters
    ----------
    measurements : ``"dense"`` (X is (m, n1, n2), or (m, n1 * n2) with ``shape``), ``"rank-one"`` (X is a pair of arrays (m, n1)
        and (m, n2), the u and v of ``u^T A v``; or one array for ``x^T A x``) or ``"entries"`` (X lists (row, column) pairs).
    shape : (n1, n2), where X does not tell.
    symmetric : whether A is symmetric.
    solver : ``"gd"``; ``"imbalance"`` (one change of the factors at 2 % of the first residual, after which the rate does not
        depend on the start); ``"scaled"`` (ScaledGD); ``"prec"`` (PrecGD); ``"auto"``: imbalance if the singular values are
        within a factor of two, else prec.
    width : columns of F and G; None: as many as measurements could determine, and no more than 20.
    step_size : for data scaled to a largest singular value of one; ``"auto"`` is 0.5, halved while descent diverges.
    init_scale, max_iter, tol : the start; the most steps of a descent; the share of the response's deviation (or of the loss,
        in ten steps) at which it has converged.
    fit_intercept, random_state : whether responses have an intercept; for the start and the held-out measurements.

    Attributes
    ----------
    matrix_, intercept_, rank_, singular_values_ : what was found.
    n_iter_, converged_, solver_, step_size_ : steps of the two descents on the way, how they ended, and what did it.
    predicted_rate_, actual_rate_ : by which the loss falls in a late step (natural log): from the curvature at the point
        reached, and as observed in the last tenth of the steps. The first is NaN where the Jacobian is too large to write
        out, where steps are at the edge of stability, and where a loss is left that may be noise.
    validation_error_, path_ : the root mean square error at held-out measurements, for the rank taken and for all.
    environments_ : labels; with them every environment has an intercept of its own and all are counted alike
        (``intercept_`` is then their mean).

    >>> rng = np.random.default_rng(0)
    >>> A, X = np.outer(np.arange(4.0), np.ones(5)), rng.standard_normal((100, 4, 5))
    >>> model = MatrixSensingRegressor(random_state=0).fit(X, np.einsum("mij,ij->m", X, A))
    >>> model.rank_, model.converged_, bool(np.abs(model.matrix_ - A).max() < 1e-3)
    (1, True, True)
    """

    def __init__(
        self,
        *,
        measurements: str = "dense",
        shape: tuple[int, int] | None = None,
        symmetric: bool = False,
        solver: str = "auto",
        width: int | None = None,
        step_size: float | str = "auto",
        init_scale: float = 1e-2,
        max_iter: int = 5000,
        tol: float = 1e-6,
        fit_intercept: bool = True,
        random_state: Any = None,
    ):
        self.measurements = measurements
        self.shape = shape
        self.symmetric = symmetric
        self.solver = solver
        self.width = width
        self.step_size = step_size
        self.init_scale = init_scale
        self.max_iter = max_iter
        self.tol = tol
        self.fit_intercept = fit_intercept
        self.random_state = random_state

    def fit(self, X: Any, y: Any, *, environments: Any = None) -> MatrixSensingRegressor:
        """Fit on measurements ``X``, responses ``y`` and, if they come from several places, one label for each."""
        errors.choice("solver", self.solver, SOLVERS)
        seen = operator(X, self.measurements, self.shape, self.symmetric)
        y = errors.array("y", y, ndim=1)
        if len(y) != len(seen) or len(y) < 4:
            raise GyrostatError(
                f"y must hold one response for each of at least 4 measurements; got {len(y)} (n_samples={len(seen)})."
            )
        self.environments_, groups = environments_of(environments, len(y))
        random = check_random_state(self.random_state)
        unit = 1 / np.sqrt(seen.size())  # with measurements of unit size, sum_i w_i y_i X_i estimates A
        data = Responses(Scaled(seen, unit), y, groups, bool(self.fit_intercept))
        size = strength(data, random) or 1.0
        data = data._replace(y=y / size)
        held = random.random_sample(len(y)) < HELD
        wide = self._from_small_start(data.take(~held), random)
        best = ranked(data, held, wide, self.step_size_)
        self.validation_error_ = best.error * unit * size
        self.path_ = np.array([(r + 1, x * unit * size) for r, x in enumerate(best.errors)], dtype=PATH)
        last = self._descend(data, best.F, best.G, solver="prec" if wide.solver == "auto" else wide.solver)
        A = last.F @ last.G.T * unit * size
        self.matrix_ = (A + A.T) / 2 if self.symmetric else A
        # The symmetric part of a matrix of rank r may have rank 2 r: one column each makes a positive and a negative value.
        s = np.linalg.svd(self.matrix_, compute_uv=False)
        self.singular_values_ = s[s > RANK * max(s[0], np.finfo(float).tiny)]
        self.rank_ = len(self.singular_values_)
        left = y - seen.see(self.matrix_, np.eye(self.matrix_.shape[1]))
        self.intercept_ = float(data.weights @ left) if self.fit_intercept else 0.0
        self.n_iter_ = len(wide.losses) + len(last.losses)
        self.converged_, self.solver_ = bool(last.converged), last.solver
        self._keep_rates(*((data.take(~held), wide) if len(last.losses) < SHORT else (data, last)))
        return self

    def predict(self, X: Any) -> np.ndarray:
        """The responses to measurements of the same kind."""
        check_is_fitted(self)
        seen = operator(X, self.measurements, self.shape or self.matrix_.shape, self.symmetric)
        if seen.shape != self.matrix_.shape:
            raise GyrostatError(f"X must measure matrices of shape {self.matrix_.shape}, as in fit; got {seen.shape}.")
        return seen.see(self.matrix_, np.eye(self.matrix_.shape[1])) + self.intercept_

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array, tags.input_tags.three_d_array = False, True
        return tags

    def _keep_rates(self, data: Responses, found: SensedFactors) -> None:
        narrow = found.F.shape[1] * sum(data.operator.shape) <= MOST_COLUMNS
        noisy = found.losses[-1] > NOISY * float(data.weights @ data.centre(data.y) ** 2)
        known = narrow and not noisy and len(found.losses) >= SHORT
        self.predicted_rate_ = predicted_rate(data, found, self.step_size_) if known else float("nan")
        self.actual_rate_ = actual_rate(found.losses)

    def _width(self, data: Responses) -> int:
        n1, n2 = data.operator.shape
        if self.width is not None:
            return errors.integer("width", self.width, least=1, most=min(n1, n2))
        room = (n1 + n2) ** 2 - 4 * len(data.y)
        most = min(n1, n2) if room <= 0 else int((n1 + n2 - np.sqrt(room)) / 2)
        return int(np.clip(most, 1, min(n1, n2, 20)))

    def _from_small_start(self, data: Responses, random: np.random.RandomState) -> SensedFactors:
        alpha, k = float(errors.number("init_scale", self.init_scale, above=0)), self._width(data)
        # F three times as large as G: the imbalance that makes descent exact (Xiong 2024, eq. 4.6)
        n1, n2 = data.operator.shape
        F, G = (a * random.standard_normal((n, k)) / np.sqrt(n) for a, n in ((alpha, n1), (alpha / 3, n2)))
        if not isinstance(self.step_size, str):
            self.step_size_ = float(errors.number("step_size", self.step_size, above=0))
            return self._descend(data, F, G, solver=self.solver)
        errors.choice("step_size", self.step_size, ("auto",))
        for halvings in range(12):
            self.step_size_ = 0.5 ** (halvings + 1)
            found = self._descend(data, F, G, solver=self.solver)
            if np.isfinite(found.losses[-1]) and found.losses[-1] <= found.losses[0]:
                break
        return found

    def _descend(self, data: Responses, F: np.ndarray, G: np.ndarray, *, solver: str) -> SensedFactors:
        limit = errors.integer("max_iter", self.max_iter, least=1)
        tol = float(errors.number("tol", self.tol, above=0))
        with np.errstate(over="ignore", invalid="ignore"):  # divergence is for the caller to see
            return sensing_descent(data, F, G, solver=solver, step_size=self.step_size_, limit=limit, tolerance=tol)
