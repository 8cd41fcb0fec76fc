"""Regression on symmetric matrices, and on the squares and products of features: what holds in every environment."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_array, check_consistent_length, check_is_fitted, column_or_1d, validate_data

from gyrostat import errors
from gyrostat.errors import GyrostatError
from gyrostat.estimators import sensing
from gyrostat.estimators.descent import orders
from gyrostat.estimators.moments import rows_of
from gyrostat.estimators.sensing import Sensed, sensed, smat, svec
from gyrostat.theory.transition import LEARNT

SHUFFLES = 99
"""Random relabellings that a direction's variation between environments is compared with: a test at level 0.01."""


class _OnMatrices(RegressorMixin, BaseEstimator):
    """What the two estimators share: options, and the fit to features that are symmetric matrices."""

    def __init__(
        self, *, tolerance: float = 0.5, step_size: float | str = "auto", num_steps: int | str = "auto",
        num_orders: int = 4, init_scale: float = 1e-2, random_state: Any = None,
    ):  # fmt: skip
        self.tolerance = tolerance
        self.step_size = step_size
        self.num_steps = num_steps
        self.num_orders = num_orders
        self.init_scale = init_scale
        self.random_state = random_state

    def _fit(self, features: np.ndarray, y: np.ndarray, environments: Any, whitening: np.ndarray) -> None:
        tolerance = float(errors.number("tolerance", self.tolerance, above=0))
        alpha = float(errors.number("init_scale", self.init_scale, above=0, most=0.1))
        count = errors.integer("num_orders", self.num_orders, least=1)
        self.environments_, rows = rows_of(environments, len(y), least=2)
        random = check_random_state(self.random_state)
        data = sensed(features, y, rows)
        eta = self._chosen("step_size", lambda: sensing.automatic_step(data))
        steps = int(self._chosen("num_steps", lambda: sensing.automatic_horizon(eta, alpha)))
        kappa = sensing.amplification(data, tolerance, step_size=eta, init_scale=alpha, num_steps=steps)
        turns = orders(len(rows), steps, count if len(rows) > 1 else 1, random)
        at, path, learnt = sensing.descend(data, turns, kappa, step_size=eta, init_scale=alpha)
        if not np.isfinite(learnt).all():
            raise GyrostatError(
                f"step_size={eta:g} makes the descent diverge: give a smaller one, such as {eta / 4:g}."
            )
        values, vectors = np.linalg.eigh(learnt)
        Q = vectors[:, np.abs(values) > LEARNT * max(1.0, np.abs(values).max())]
        A = _refitted(data, Q) * data.unit
        self.matrix_ = whitening @ A @ whitening
        self.intercept_ = float(y.mean() - features.mean(axis=0) @ svec(A))
        self.invariant_directions_ = _unit(whitening @ Q)
        self.spurious_directions_ = _unit(whitening @ _varying(data, Q, random))
        self.path_, self.path_steps_ = whitening @ path @ whitening * data.unit, at
        self.n_iter_, self.step_size_, self.amplification_ = steps, eta, kappa
        self.status_ = _status(path, Q, len(rows))

    def _chosen(self, name: str, automatic: Any) -> float:
        value = getattr(self, name)
        if isinstance(value, str):
            errors.choice(name, value, ("auto",))
            return automatic()
        if name == "num_steps":
            return errors.integer(name, value, least=4)
        return float(errors.number(name, value, above=0))


class InvariantMatrixRegressor(_OnMatrices):
    """``y = <X, A> + intercept`` with the A that holds in every environment; each X is a symmetric matrix.

    HeteroSGD (Xu 2024, Algorithm 3) on ``U U^T - V V^T``, with amplified heterogeneity: directions along which the effect
    varies between environments go up and down in turns and are forgotten. Connectivity or covariance matrices from several
    sites are such data. Means are taken out of each environment; nothing of size d^2 x d^2 is made unless an environment
    has more rows than that.

    Parameters
    ----------
    tolerance : how much an effect may vary between environments (its standard deviation, as a share of the strongest mean
        effect) and still count as invariant. Weaker effects are allowed more: by the inverse root of their strength.
    step_size, num_steps : numbers or ``"auto"``: 0.1 or less if some directions of X have far more variance than others,
        and as long as an effect of a fifth of the strongest needs.
    num_orders, init_scale, random_state : orders of the environments to average over, the start, and the seed of orders.

    Attributes
    ----------
    matrix_, intercept_ : A and the intercept. Descent finds the directions; A is least squares on them, environments alike.
    invariant_directions_ : (d, r), the directions that were learnt.
    spurious_directions_ : (d, r), other directions in which effects differ between environments by more than under
        99 random relabellings of the rows.
    path_, path_steps_, n_iter_, step_size_, amplification_, environments_ : how the descent went.
    status_ : ``"settled"``, ``"moving"`` (give more ``num_steps``), ``"nothing invariant"`` or ``"one environment"``.

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
        X = _matrices(X, least=2)
        y = column_or_1d(check_array(y, ensure_2d=False, dtype=np.float64), warn=True)
        check_consistent_length(X, y)
        self.n_features_in_ = X.shape[1] ** 2
        self._fit(svec(X), y, environments, np.eye(X.shape[1]))
        return self

    def predict(self, X: Any) -> np.ndarray:
        """Predictions for matrices of any environment."""
        check_is_fitted(self)
        X = _matrices(X)
        if X.shape[1:] != self.matrix_.shape:
            raise GyrostatError(f"X must hold matrices of shape {self.matrix_.shape}, as in fit; got {X.shape[1:]}.")
        return svec(X) @ svec(self.matrix_) + self.intercept_

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array, tags.input_tags.three_d_array = False, True
        return tags


class InvariantQuadraticRegressor(_OnMatrices):
    """``y = x^T A x + intercept`` with the A that holds in every environment (Xu 2024, section 3.3: quadratic activation).

    The matrices ``x x^T`` do not satisfy the restricted isometry property, and the paper's Algorithm 4 takes out the trace
    that they add. Here features are whitened and ``x x^T`` is taken about its mean in each environment, which does the same
    exactly for Gaussian features: ``E <x x^T - I, M> (x x^T - I) = 2 M``. Features should have mean zero
    (``StandardScaler``), as there is no linear term. Everything else is as in :class:`InvariantMatrixRegressor`; directions
    are those of x, of unit length.

    >>> rng = np.random.default_rng(0)
    >>> X, site = rng.standard_normal((2000, 4)), np.repeat(["a", "b"], 1000)
    >>> y = X[:, 0] ** 2 + np.where(site == "a", -1.0, 1.6) * X[:, 1] ** 2
    >>> model = InvariantQuadraticRegressor(random_state=0).fit(X, y, environments=site)
    >>> model.invariant_directions_.shape, bool(abs(model.invariant_directions_[0, 0]) > 0.95)
    ((4, 1), True)
    """

    def fit(self, X: Any, y: Any, *, environments: Any = None) -> InvariantQuadraticRegressor:
        """Fit on rows ``X``, responses ``y`` and one label per row; without labels all rows are one environment."""
        X, y = validate_data(self, X, y, dtype=np.float64, y_numeric=True, ensure_min_samples=2)
        values, vectors = np.linalg.eigh(X.T @ X / len(X))
        roots = np.where(values > 1e-10 * values.max(), np.maximum(values, 1e-300), np.inf) ** -0.5
        whitening = vectors * roots @ vectors.T
        white = X @ whitening
        features = svec(white[:, :, None] * white[:, None, :])
        self._fit(features, y.astype(np.float64), environments, whitening)
        return self

    def predict(self, X: Any) -> np.ndarray:
        """Predictions for rows of any environment."""
        check_is_fitted(self)
        X = validate_data(self, X, dtype=np.float64, reset=False)
        return np.sum((X @ self.matrix_) * X, axis=1) + self.intercept_

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.regressor_tags.poor_score = True  # scikit-learn tries a linear response, which has no quadratic part
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
            f"X must hold symmetric matrices; they are off by {gap:.2g}: pass (X + X.swapaxes(1, 2)) / 2."
        )
    return X


def _refitted(data: Sensed, Q: np.ndarray) -> np.ndarray:
    """Least squares over the matrices ``Q C Q^T``, every environment counted alike."""
    r = Q.shape[1]
    if r == 0:
        return np.zeros((len(Q), len(Q)))
    within = svec(Q @ smat(np.eye(r * (r + 1) // 2)) @ Q.T).T
    X = np.concatenate([x @ within / np.sqrt(len(x)) for x in data.features])
    y = np.concatenate([v / np.sqrt(len(v)) for v in data.responses])
    return Q @ smat(np.linalg.lstsq(X, y, rcond=1e-10)[0]) @ Q.T


def _varying(data: Sensed, Q: np.ndarray, random: np.random.RandomState) -> np.ndarray:
    """Directions outside Q along which environments differ by more than under random relabellings."""
    if len(data.responses) == 1:
        return np.zeros((len(Q), 0))
    outside = np.eye(len(Q)) - Q @ Q.T
    products = np.concatenate([x * v[:, None] for x, v in zip(data.features, data.responses, strict=True)])
    cuts = np.cumsum([len(v) for v in data.responses])[:-1]

    def variation(order: np.ndarray) -> np.ndarray:
        effects = smat(np.stack([part.mean(axis=0) for part in np.split(products[order], cuts)]))
        away = effects - effects.mean(axis=0)
        return outside @ (away @ away).mean(axis=0) @ outside

    chance = max(np.linalg.norm(variation(random.permutation(len(products))), 2) for _ in range(SHUFFLES))
    values, vectors = np.linalg.eigh(variation(np.arange(len(products))))
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
