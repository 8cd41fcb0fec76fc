"""A matrix of unknown rank from linear measurements: the estimator, and the choice of its rank."""

from __future__ import annotations

import warnings
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from gyrostat import errors
from gyrostat.errors import GyrostatError
from gyrostat.estimators.environment_labels import environment_codes
from gyrostat.estimators.low_rank.measurement_operators import (
    Responses,
    ScaledOperator,
    measurement_operator,
    sees_symmetric_part,
)
from gyrostat.estimators.low_rank.sensing_descent import (
    SOLVERS,
    SensedFactors,
    actual_rate,
    predicted_rate,
    stable_descent,
)
from gyrostat.estimators.representable_squares import squarable

PATH = [("rank", int), ("validation_error", float)]
HELD_OUT = 0.15
"""The share of measurements held out while the rank is chosen."""
CLOSE, TINY = 1.02, 1e-6
"""The smallest rank is taken whose validation error is at most ``CLOSE`` times the best plus ``TINY`` times the data."""
ZERO = 1e-6
"""Singular values below this share of the largest count as zero."""
SHORT = 30
"""If the last descent has fewer steps, it had little left to do, and rates are those of the first one, with all columns."""
MOSTLY_SHARED = 0.5
"""If less than this share of the squares of X is left without means and shared components, only this part sets the unit."""
FIRST_STEP = 0.5
"""The first step that "auto" tries."""
NOISY = 1e-4
"""No rate is predicted if more than this share of the first loss is left at the end, because the rest may be noise."""
MOST_COLUMNS = 1500
"""The widest Jacobian from which a rate is predicted."""


class MatrixSensingRegressor(RegressorMixin, BaseEstimator):
    """The matrix A of ``y_i = <X_i, A> + intercept``, of low but unknown rank.

    Gradient descent on ``A = F G^T`` with more columns than the rank (Xiong, Ding, Du 2024) starts near zero. Then each rank up
    to that width is refined and judged on held-out measurements, and the smallest good rank is fitted to all measurements.
    Two factors are used also for symmetric matrices: a single factor that is too wide converges only at 1/T^2 (their Theorem
    3.1), and cannot represent indefinite matrices.

    Parameters
    ----------
    measurements : ``"dense"`` (X is (m, n1, n2), or (m, n1 * n2) with ``shape``), ``"rank-one"`` (X is a pair of arrays (m, n1)
        and (m, n2), the u and v of ``u^T A v``; or one array for ``x^T A x``) or ``"entries"`` (X lists (row, column) pairs).
    shape : (n1, n2), if it does not follow from X.
    symmetric : whether A is symmetric. ``"auto"``: yes if all X_i are symmetric, because they then contain no information
        about the rest of A.
    solver : ``"gd"``; ``"imbalance"`` (the factors are changed once, when the residual has fallen to 2 % of the first one;
        after this the rate does not depend on the start); ``"scaled"`` (ScaledGD); ``"prec"`` (PrecGD); ``"auto"``: imbalance
        if the singular values are within a factor of two, else prec.
    width : the number of columns of F and G. None: as many as the measurements could determine, at most 20.
    step_size : for data scaled to a largest singular value of one. ``"auto"`` is 0.5, halved while descent diverges. Components
        that all X_i share (such as a mean that is far larger than the differences) are made smaller first: steps that are
        stable along these would be too short along all others.
    init_scale : the size of the start.
    max_iter : the most steps of one descent.
    tol : descent has converged when the residual is this share of the response's deviation, or when the loss falls by less
        than this share of itself in ten steps.
    fit_intercept : whether the responses have an intercept.
    random_state : for the start and the choice of held-out measurements.

    Attributes
    ----------
    matrix_, intercept_, rank_, singular_values_ : the estimate.
    symmetric_, shared_components_ : whether A was taken for symmetric, and the number of components that all X_i share.
    n_iter_, converged_, solver_, step_size_ : the number of steps of the first and the last descent, whether the last one
        converged, and the solver and step size that were used.
    predicted_rate_, actual_rate_ : the decrease of the log loss in a late step: from the curvature at the point reached, and as
        observed in the last tenth of the steps. The prediction is NaN if the Jacobian is too large to write out, if the steps
        are at the edge of stability, or if the remaining loss may be noise.
    validation_error_, path_ : the root mean square error at held-out measurements, for the chosen rank and for all ranks.
    environments_ : the labels. With labels each environment has its own intercept, and all environments have the same weight
        (``intercept_`` is then the mean of the intercepts).

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
        symmetric: bool | str = "auto",
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
        """Fit on measurements ``X``, responses ``y`` and, if they come from several environments, one label for each."""
        errors.check_parameters(self)
        errors.choice("solver", self.solver, SOLVERS)
        operator = measurement_operator(X, self.measurements, self.shape, self.symmetric is True)
        if not isinstance(self.symmetric, bool):
            errors.choice("symmetric", self.symmetric, ("auto",))
        self.symmetric_ = self.symmetric is True or (self.symmetric == "auto" and sees_symmetric_part(operator))
        y = errors.array("y", y, ndim=1)
        squarable("y", y)
        if len(y) != len(operator) or len(y) < 4:
            raise GyrostatError(
                f"y must hold one response for each of at least 4 measurements; got {len(y)} (n_samples={len(operator)})."
            )
        self.environments_, groups = environment_codes(environments, len(y))
        random = check_random_state(self.random_state)
        data, unit = _of_unit_size(operator, y, groups, bool(self.fit_intercept))
        self.shared_components_ = 0 if data.shared is None else len(data.shared.factors)
        size = _largest_singular_value(data, random) or 1.0
        data = data._replace(y=y / size)
        held = random.random_sample(len(y)) < HELD_OUT
        train = data.take(~held).with_shared_components()
        wide = self._from_small_start(train, random)
        best = _best_rank(train, data.take(held) if held.any() else train, wide, self.step_size_)
        self.validation_error_ = best.error * unit * size
        self.path_ = np.array([(r + 1, x * unit * size) for r, x in enumerate(best.errors)], dtype=PATH)
        last = self._descend(data, best.F, best.G, solver="prec" if wide.solver == "auto" else wide.solver)
        A = last.F @ last.G.T * unit * size
        self.matrix_ = (A + A.T) / 2 if self.symmetric_ else A
        # The symmetric part of a matrix of rank r may have rank 2 r: each column adds a positive and a negative eigenvalue.
        s = np.linalg.svd(self.matrix_, compute_uv=False)
        self.singular_values_ = s[s > ZERO * max(s[0], np.finfo(float).tiny)]
        self.rank_ = len(self.singular_values_)
        residual = y - operator.measure(self.matrix_, np.eye(self.matrix_.shape[1]))
        self.intercept_ = float(data.weights @ residual) if self.fit_intercept else 0.0
        self.n_iter_ = len(wide.losses) + len(last.losses)
        self.converged_, self.solver_ = bool(last.converged), last.solver
        self._keep_rates(*((train, wide) if len(last.losses) < SHORT else (data, last)))
        _warn_of_bad_fit(residual - self.intercept_, y, bool(self.fit_intercept))
        _warn_of_no_use(best.error, data.take(held))
        if not self.converged_:
            _warn_of_the_limit(len(last.losses))
        return self

    def predict(self, X: Any) -> np.ndarray:
        """The responses to measurements of the same kind."""
        check_is_fitted(self)
        operator = measurement_operator(X, self.measurements, self.shape or self.matrix_.shape, self.symmetric_)
        if operator.shape != self.matrix_.shape:
            raise GyrostatError(
                f"X must measure matrices of shape {self.matrix_.shape}, as in fit; got {operator.shape}."
            )
        return operator.measure(self.matrix_, np.eye(self.matrix_.shape[1])) + self.intercept_

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array, tags.input_tags.three_d_array = False, True
        return tags

    def _keep_rates(self, data: Responses, found: SensedFactors) -> None:
        narrow = found.F.shape[1] * sum(data.operator.shape) <= MOST_COLUMNS
        noisy = found.losses[-1] > NOISY * data.loss(data.centre(data.y))
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
        if isinstance(self.step_size, str):
            errors.choice("step_size", self.step_size, ("auto",))
            self.step_size_ = FIRST_STEP
        else:
            self.step_size_ = float(errors.number("step_size", self.step_size, above=0))
        return self._descend(data, F, G, solver=self.solver)

    def _descend(self, data: Responses, F: np.ndarray, G: np.ndarray, *, solver: str) -> SensedFactors:
        """Descend; a step that was not given is halved while descent diverges, and one that was given is refused."""
        limit = errors.integer("max_iter", self.max_iter, least=1)
        tol = float(errors.number("tol", self.tol, above=0))
        found, step = stable_descent(data, F, G, solver=solver, step_size=self.step_size_, limit=limit, tolerance=tol)
        if step < self.step_size_ and not isinstance(self.step_size, str):
            raise GyrostatError(
                f"step_size={self.step_size_:g} makes the descent diverge: use step_size={step:g} or 'auto'."
            )
        self.step_size_ = step
        return found


class _BestRank(NamedTuple):
    """The chosen rank: the start of the last descent, its validation error, and the validation errors of all ranks."""

    F: np.ndarray
    G: np.ndarray
    error: float
    errors: np.ndarray


def _of_unit_size(operator: Any, y: np.ndarray, groups: np.ndarray, centred: bool) -> tuple[Responses, float]:
    """Responses to measurements divided by the size of their entries, and the factor.

    ``sum_i w_i y_i X_i`` then estimates A. Components that all measurements share do not count.
    """
    unit = 1 / np.sqrt(operator.mean_square() or 1.0)
    data = Responses(ScaledOperator(operator, unit), y, groups, centred).with_shared_components()
    left = data.mean_square() if data.shared is None else data.shared.size**2
    if not 0 < left < MOSTLY_SHARED:
        return data, float(unit)
    unit = float(unit / np.sqrt(left))
    return Responses(ScaledOperator(operator, unit), y, groups, centred).with_shared_components(), unit


def _best_rank(train: Responses, test: Responses, wide: SensedFactors, step_size: float) -> _BestRank:
    """Refine each rank up to the width without the held-out measurements, judge it on them, and choose one."""
    U, s, Vt = np.linalg.svd(wide.F @ wide.G.T, full_matrices=False)
    tried = []
    for rank in range(1, min(wide.F.shape[1], len(s)) + 1):
        root = np.sqrt(np.maximum(s[:rank], 1e-12 * s[0]))
        F, G = U[:, :rank] * root, Vt[:rank].T * root
        step = min(step_size, FIRST_STEP)
        found, _ = stable_descent(train, F, G, solver="prec", step_size=step, limit=100, tolerance=1e-9)
        wrong = test.residual(found.F, found.G)
        tried.append((float(np.sqrt(np.mean(wrong**2))), found.F, found.G))
    errors = np.array([error for error, *_ in tried])
    errors[~np.isfinite(errors)] = np.inf
    chosen = int(np.argmax(errors <= CLOSE * errors.min() + TINY))
    return _BestRank(*tried[chosen][1:], float(errors[chosen]), errors)


def _warn_of_bad_fit(residual: np.ndarray, y: np.ndarray, centred: bool) -> None:
    """Warn if the responses are further from the fit than from their mean, or from zero without an intercept."""
    if not np.sum(residual**2) <= np.sum((y - (y.mean() if centred else 0.0)) ** 2):
        warnings.warn(
            "The fit is worse than a constant on the measurements that it was fitted to: do not use it; increase max_iter, or "
            "look for measurements that are far larger than the others.",
            stacklevel=3,
        )


def _warn_of_no_use(error: float, held: Responses) -> None:
    """Warn if the error at held-out measurements is no smaller than that of their mean."""
    constant = float(np.sqrt(np.mean(held.centre(held.y) ** 2))) if len(held.y) else np.inf
    if error >= constant > 0:
        warnings.warn(
            f"At measurements that were held out, the error is {error / constant:.2g} times that of a constant: these "
            "measurements do not determine the matrix; give more of them, or a smaller width.",
            stacklevel=3,
        )


def _warn_of_the_limit(steps: int) -> None:
    """Warn that the last descent was cut off."""
    warnings.warn(
        f"The descent has not converged after {steps} steps: matrix_ may be far off where measurements are small, even if "
        "predictions are good; increase max_iter, or give the entries of X one unit.",
        ConvergenceWarning,
        stacklevel=3,
    )


def _largest_singular_value(data: Responses, random: np.random.RandomState) -> float:
    """The largest singular value of ``sum_i w_i y_i X_i``, by power iteration."""
    # The left vector is drawn although it is not needed, so that all later random numbers stay the same.
    _, v = (random.standard_normal((n, 1)) for n in data.operator.shape)
    M, size = data.gradient(data.centre(data.y)), 0.0
    for _ in range(30):
        u = M @ v
        u = u / (np.linalg.norm(u) or 1.0)
        v = M.mT @ u
        size = float(np.linalg.norm(v))
        v = v / (size or 1.0)
    return size
