"""Regression on symmetric matrices, and on squares and products of features: the effects that hold in every environment."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy import stats
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import (
    check_array,
    check_consistent_length,
    check_is_fitted,
    column_or_1d,
    validate_data,
)

from gyrostat import errors
from gyrostat.errors import GyrostatError
from gyrostat.estimators.environment_labels import rows_by_environment
from gyrostat.estimators.invariant.environment_rows import EnvironmentRows, MatrixRows, SquareRows
from gyrostat.estimators.invariant.hetero_sgd import (
    environment_orders,
    matrix_amplification,
    matrix_descent,
    matrix_num_steps,
    matrix_step,
    scaled_environments,
)
from gyrostat.estimators.linear_predictor import finite_predictions
from gyrostat.estimators.representable_squares import squarable
from gyrostat.models.symmetric_coordinates import smat, svec
from gyrostat.theory.ours.transition import LEARNT

HALVINGS = 10
"""The number of steps that "auto" tries, each half as long as the one before, until descent does not diverge."""
MUCH, MOST_COORDINATES = 0.1, 1000
"""A warning is given if more than this share of what least squares explains is left out. It is looked for if a matrix has at
most so many coordinates."""
SHUFFLES, BLOCKS = 99, 1000
"""Effects and their variation are compared with those under this many random signs and relabellings of blocks of rows (tests
at level 0.01), and the rows are divided into about this many blocks."""


class _InvariantOnMatrices(RegressorMixin, BaseEstimator):
    """The common part of both estimators: parameters, and the fit to rows that are symmetric matrices."""

    def __init__(
        self,
        *,
        tolerance: float = 0.5,
        step_size: float | str = "auto",
        num_steps: int | str = "auto",
        num_orders: int = 4,
        init_scale: float = 1e-2,
        random_state: Any = None,
    ):
        self.tolerance = tolerance
        self.step_size = step_size
        self.num_steps = num_steps
        self.num_orders = num_orders
        self.init_scale = init_scale
        self.random_state = random_state

    def _fit(self, parts: Sequence[EnvironmentRows], back: np.ndarray) -> None:
        """Find A from the rows of each environment; ``back`` maps directions to those of the data."""
        tolerance = float(errors.number("tolerance", self.tolerance, above=0))
        alpha = float(errors.number("init_scale", self.init_scale, above=0, most=0.1))
        count = errors.integer("num_orders", self.num_orders, least=1)
        random = check_random_state(self.random_state)
        blocks, nothing = _block_means(parts, random), np.zeros((len(back), 0))
        data = scaled_environments(parts)
        if _varying(blocks, nothing, random).shape[1] == 0:  # what differs is chance, and would only be amplified
            data = data.pooled()
        first = matrix_step(self.step_size, data)
        tries = HALVINGS if isinstance(self.step_size, str) else 1
        for eta in first * 0.5 ** np.arange(tries):
            steps = matrix_num_steps(self.num_steps, eta, alpha)
            kappa = matrix_amplification(data, tolerance, step_size=eta, init_scale=alpha, num_steps=steps)
            orders = environment_orders(len(data.effects), steps, count if len(data.effects) > 1 else 1, random)
            with np.errstate(over="ignore", invalid="ignore"):  # divergence is what is looked for
                descent = matrix_descent(data, orders, kappa, step_size=eta, init_scale=alpha)
            if np.isfinite(descent[-1]).all():
                break
        recorded_steps, path, learnt = descent
        if not np.isfinite(learnt).all():
            raise GyrostatError(
                f"step_size={eta:g} makes the descent diverge: give a smaller one, such as {eta / 4:g}."
            )
        values, vectors = np.linalg.eigh(learnt)
        Q = _present(blocks, vectors[:, np.abs(values) > LEARNT * max(1.0, np.abs(values).max())], random)
        self.matrix_ = back @ _refitted(parts, Q) @ back
        self.invariant_directions_ = _unit(back @ Q)
        varying = _varying(blocks, Q, random)
        self.spurious_directions_ = _unit(back @ varying)
        _warn_of_what_is_left_out(parts, Q, varying)
        self.path_, self.path_steps_ = back @ path @ back * data.unit, recorded_steps
        self.n_iter_, self.step_size_, self.amplification_ = steps, float(eta), kappa
        self.status_ = _status(path, Q, len(parts))


class InvariantMatrixRegressor(_InvariantOnMatrices):
    """``y = <X, A> + intercept`` with the A that holds in every environment; each X is a symmetric matrix.

    HeteroSGD (Xu 2024, Algorithm 3) on ``U U^T - V V^T``, with amplified heterogeneity: directions along which the effect
    varies between environments grow in some steps and shrink in others, and are forgotten. Connectivity or covariance matrices
    from several sites are data of this kind. Means are subtracted within each environment. If environments differ by no more
    than chance (99 random relabellings of the rows), they are pooled for the descent. No array of size d^2 x d^2 is made
    unless an environment has more rows than that.

    Parameters
    ----------
    tolerance : how much an effect may vary between environments (its standard deviation, as a share of the strongest mean
        effect) and still count as invariant. Weaker effects may vary more, by the inverse root of their strength.
    step_size : a number or ``"auto"``: 0.1, or less if some directions of X have far more variance than others, halved while
        descent diverges.
    num_steps : a number or ``"auto"``: the number that an effect of a fifth of the strongest needs.
    num_orders : the number of orders of the environments to average over.
    init_scale : the size of U and V at the start.
    random_state : for the orders and the tests.

    Attributes
    ----------
    matrix_, intercept_ : A and the intercept. Descent finds the directions; A is least squares on these.
    invariant_directions_ : (d, r), the directions that were learnt and whose mean effect is larger than under 99 random signs.
    spurious_directions_ : (d, r), other directions in which effects differ between environments by more than under
        99 random relabellings of the rows.
    path_, path_steps_, n_iter_, step_size_, amplification_, environments_ : records of the descent.
    status_ : ``"settled"``, ``"moving"`` (increase ``num_steps``), ``"nothing invariant"`` or ``"one environment"``.

    >>> rng = np.random.default_rng(0)
    >>> X, site = rng.standard_normal((2000, 4, 4)), np.repeat([0, 1], 1000)
    >>> X = (X + np.swapaxes(X, 1, 2)) / 2
    >>> y = X[:, 0, 0] + np.where(site, -1.0, 1.6) * X[:, 1, 1]
    >>> model = InvariantMatrixRegressor(random_state=0).fit(X, y, environments=site)
    >>> np.diag(model.matrix_).round(1).tolist()
    [1.0, 0.0, 0.0, 0.0]
    """

    def fit(self, X: Any, y: Any, *, environments: Any = None) -> InvariantMatrixRegressor:
        """Fit on matrices ``X``, stacked (n, d, d) or flattened (n, d * d), responses ``y`` and one label per row."""
        errors.check_parameters(self)
        X = _matrices(X, least=2)
        y = column_or_1d(check_array(y, ensure_2d=False, dtype=np.float64), warn=True)
        check_consistent_length(X, y)
        squarable("X", X.reshape(-1))
        squarable("y", y)
        self.n_features_in_ = X.shape[1] ** 2
        self.environments_, rows = rows_by_environment(environments, len(y), least=2)
        features = svec(X)
        self._fit([MatrixRows(features[mine], y[mine]) for mine in rows], np.eye(X.shape[1]))
        self.intercept_ = float(y.mean() - features.mean(axis=0) @ svec(self.matrix_))
        return self

    def predict(self, X: Any) -> np.ndarray:
        """Predictions for matrices of any environment."""
        check_is_fitted(self)
        X = _matrices(X)
        if X.shape[1:] != self.matrix_.shape:
            raise GyrostatError(f"X must hold matrices of shape {self.matrix_.shape}, as in fit; got {X.shape[1:]}.")
        with np.errstate(over="ignore", invalid="ignore"):
            return finite_predictions(svec(X) @ svec(self.matrix_) + self.intercept_)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array, tags.input_tags.three_d_array = False, True
        return tags


class InvariantQuadraticRegressor(_InvariantOnMatrices):
    """``y = x^T A x + intercept`` with the A that holds in every environment (Xu 2024, section 3.3: quadratic activation).

    The matrices ``x x^T`` do not satisfy the restricted isometry property: they add a trace, which Algorithm 4 removes by a
    shrinkage. Here features are whitened and the mean of ``x x^T`` in each environment is subtracted. This is the same
    correction with the measured trace in place of the expected one, and it is exact for Gaussian features:
    ``E <x x^T - I, M> (x x^T - I) = 2 M``. Features should have mean zero (``StandardScaler``), because there is no linear
    term. ``truncation`` is the R of the algorithm, in units of the strongest effect (None, or at least 12): rows with larger
    predictions are left out during the descent. Other parameters and attributes are those of
    :class:`~gyrostat.estimators.InvariantMatrixRegressor`; directions are those of x, of unit length.

    Parameters
    ----------
    tolerance
        As in :class:`~gyrostat.estimators.InvariantMatrixRegressor`.
    step_size
        The step of the descent, or ``"auto"``, the largest stable one.
    num_steps
        The number of steps, or ``"auto"``.
    num_orders
        The number of random orders of the environments to average over.
    init_scale
        The scale of the start.
    truncation
        The R of the algorithm, in units of the strongest effect: rows with larger predictions are left out. None, or at
        least 12.
    random_state
        The seed of the orders.

    >>> rng = np.random.default_rng(0)
    >>> X, site = rng.standard_normal((2000, 4)), np.repeat(["a", "b"], 1000)
    >>> y = X[:, 0] ** 2 + np.where(site == "a", -1.0, 1.6) * X[:, 1] ** 2
    >>> model = InvariantQuadraticRegressor(random_state=0).fit(X, y, environments=site)
    >>> model.invariant_directions_.shape, bool(abs(model.invariant_directions_[0, 0]) > 0.95)
    ((4, 1), True)
    """

    def __init__(
        self,
        *,
        tolerance: float = 0.5,
        step_size: float | str = "auto",
        num_steps: int | str = "auto",
        num_orders: int = 4,
        init_scale: float = 1e-2,
        truncation: float | None = None,
        random_state: Any = None,
    ):
        super().__init__(
            tolerance=tolerance,
            step_size=step_size,
            num_steps=num_steps,
            num_orders=num_orders,
            init_scale=init_scale,
            random_state=random_state,
        )
        self.truncation = truncation

    def fit(self, X: Any, y: Any, *, environments: Any = None) -> InvariantQuadraticRegressor:
        """Fit on rows ``X``, responses ``y`` and one label per row; without labels all rows are one environment."""
        errors.check_parameters(self)
        R = None if self.truncation is None else float(errors.number("truncation", self.truncation, least=12))
        X, y = validate_data(self, X, y, dtype=np.float64, y_numeric=True, ensure_min_samples=2)
        squarable("X", X, getattr(self, "feature_names_in_", None))
        squarable("y", y)
        y = y.astype(np.float64)
        self.environments_, rows = rows_by_environment(environments, len(y), least=2)
        values, vectors = np.linalg.eigh(X.T @ X / len(X))
        roots = np.where(values > 1e-10 * values.max(), np.maximum(values, 1e-300), np.inf) ** -0.5
        whitening = vectors * roots @ vectors.T
        self._fit([SquareRows(X[mine] @ whitening, y[mine], R) for mine in rows], whitening)
        self.intercept_ = float(y.mean() - np.mean(np.sum((X @ self.matrix_) * X, axis=1)))
        return self

    def predict(self, X: Any) -> np.ndarray:
        """Predictions for rows of any environment."""
        check_is_fitted(self)
        X = validate_data(self, X, dtype=np.float64, reset=False)
        with np.errstate(over="ignore", invalid="ignore"):
            return finite_predictions(np.sum((X @ self.matrix_) * X, axis=1) + self.intercept_)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.regressor_tags.poor_score = True  # the checks of scikit-learn use a linear response
        return tags


def _matrices(X: Any, least: int = 1) -> np.ndarray:
    X = check_array(X, allow_nd=True, dtype=np.float64, ensure_min_samples=least)
    if X.ndim == 2 and (d := round(np.sqrt(X.shape[1]))) ** 2 == X.shape[1]:
        X = X.reshape(len(X), d, d)
    if X.ndim != 3 or X.shape[1] != X.shape[2]:
        raise GyrostatError(
            f"X must hold square matrices, stacked (n, d, d) or flattened (n, d * d); got shape {X.shape}."
        )
    gap = np.abs(X - np.swapaxes(X, 1, 2)).max()
    if gap > 1e-8 * np.abs(X).max():
        raise GyrostatError(
            f"X must hold symmetric matrices; they differ from their transposes by {gap:.2g}: pass (X + X.swapaxes(1, 2)) / 2."
        )
    return X


def _refitted(parts: Sequence[EnvironmentRows], Q: np.ndarray) -> np.ndarray:
    """Least squares over the matrices ``Q C Q^T``, with equal weight for all rows."""
    r = Q.shape[1]
    if r == 0:
        return np.zeros((len(Q), len(Q)))
    X, y = np.concatenate([part.inside(Q) for part in parts]), np.concatenate([part.responses for part in parts])
    return Q @ smat(np.linalg.lstsq(X, y, rcond=1e-10)[0]) @ Q.T


def _warn_of_what_is_left_out(parts: Sequence[EnvironmentRows], Q: np.ndarray, varying: np.ndarray) -> None:
    """Warn if directions that were not found to vary explain much of the response, and the fit does without them."""
    others = np.linalg.svd(varying, full_matrices=True)[0][:, varying.shape[1] :]  # all directions but those that vary
    r, D = Q.shape[1], others.shape[1] * (others.shape[1] + 1) // 2
    y = np.concatenate([part.responses for part in parts])
    freedom = len(y) - D - len(parts)
    if D > MOST_COORDINATES or freedom < D or not y.any():
        return

    def explained(directions: np.ndarray) -> float:
        X = np.concatenate([part.inside(directions) for part in parts])
        return 1 - float(np.sum((y - X @ np.linalg.lstsq(X, y, rcond=1e-10)[0]) ** 2) / np.sum(y**2))

    own, all_of_them = explained(Q) if r else 0.0, explained(others)
    more = D - r * (r + 1) // 2
    chance = stats.f.isf(0.001, max(more, 1), freedom) * (1 - all_of_them) * more / freedom
    if all_of_them - own > max(chance, MUCH * all_of_them):
        warnings.warn(
            f"The fit explains {own:.2f} of the variance within environments, and least squares along all directions that were "
            f"not found to vary {all_of_them:.2f}: the rows do not suffice to tell what is left out from what varies. Use more "
            "rows in each environment, a larger tolerance, or features without long tails.",
            stacklevel=4,
        )


def _block_means(parts: Sequence[EnvironmentRows], random: np.random.RandomState) -> list[np.ndarray]:
    """The mean of ``y_i X_i`` over random blocks of rows of each environment, as coordinates.

    Tests then shuffle blocks instead of rows, which has the same null distribution and reads the data only once.
    """
    size = max(1, sum(len(part.responses) for part in parts) // BLOCKS)

    def split(n: int) -> list[np.ndarray]:
        return np.array_split(random.permutation(n), max(1, n // size))  # no row is left out

    return [part.means(part.responses, split(len(part.responses))) for part in parts]


def _present(blocks: list[np.ndarray], Q: np.ndarray, random: np.random.RandomState) -> np.ndarray:
    """The directions in Q whose mean effect is larger than any effect under random signs of blocks."""

    def mean(sign: Any) -> np.ndarray:
        return smat(np.mean([np.mean(sign(len(m)) * m, axis=0) for m in blocks], axis=0))

    flipped = (mean(lambda n: random.choice([-1.0, 1.0], (n, 1))) for _ in range(SHUFFLES))
    chance = max(np.linalg.norm(E, 2) for E in flipped)
    strength = np.abs(np.einsum("ir,ij,jr->r", Q, mean(lambda n: 1.0), Q))
    return Q[:, strength > chance]


def _varying(blocks: list[np.ndarray], Q: np.ndarray, random: np.random.RandomState) -> np.ndarray:
    """Directions outside Q along which environments differ by more than under random relabellings of blocks."""
    if len(blocks) == 1:
        return np.zeros((len(Q), 0))
    outside = np.eye(len(Q)) - Q @ Q.T
    pooled, cuts = np.concatenate(blocks), np.cumsum([len(m) for m in blocks])[:-1]

    def variation(order: np.ndarray) -> np.ndarray:
        effects = smat(np.stack([part.mean(axis=0) for part in np.split(pooled[order], cuts)]))
        away = effects - effects.mean(axis=0)
        return outside @ (away @ away).mean(axis=0) @ outside

    chance = max(np.linalg.norm(variation(random.permutation(len(pooled))), 2) for _ in range(SHUFFLES))
    values, vectors = np.linalg.eigh(variation(np.arange(len(pooled))))
    return vectors[:, values > chance]


def _unit(directions: np.ndarray) -> np.ndarray:
    return directions / np.linalg.norm(directions, axis=0)


def _status(path: np.ndarray, Q: np.ndarray, environments: int) -> str:
    if environments == 1:
        return "one environment"
    if Q.shape[1] == 0:
        return "nothing invariant"
    n = len(path)
    inside = Q.T @ path @ Q
    moved = inside[n // 2 : 3 * n // 4].mean(axis=0) - inside[3 * n // 4 :].mean(axis=0)
    return "moving" if np.abs(moved).max() > LEARNT else "settled"
