"""Regression on symmetric matrices: what holds in every environment."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import check_array, check_consistent_length, check_is_fitted, column_or_1d

from gyrostat.errors import GyrostatError
from gyrostat.estimators.environment_labels import rows_by_environment
from gyrostat.estimators.invariant.directions import OnMatrices
from gyrostat.estimators.invariant.sensing import Matrices
from gyrostat.models.symmetric_coordinates import svec


class InvariantMatrixRegressor(OnMatrices):
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
    matrix_, intercept_ : A and the intercept. Descent finds the directions; A is least squares on them.
    invariant_directions_ : (d, r), the directions that were learnt and whose mean effect is more than under 99 random signs.
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
        self.environments_, rows = rows_by_environment(environments, len(y), least=2)
        features = svec(X)
        self._fit([Matrices(features[mine], y[mine]) for mine in rows], np.eye(X.shape[1]))
        self.intercept_ = float(y.mean() - features.mean(axis=0) @ svec(self.matrix_))
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
