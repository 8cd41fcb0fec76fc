"""Regression on the squares and products of features: what holds in every environment."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted, validate_data

from gyrostat import errors
from gyrostat.estimators.environment_labels import rows_by_environment
from gyrostat.estimators.invariant.directions import OnMatrices
from gyrostat.estimators.invariant.sensing import Squares


class InvariantQuadraticRegressor(OnMatrices):
    """``y = x^T A x + intercept`` with the A that holds in every environment (Xu 2024, section 3.3: quadratic activation).

    The matrices ``x x^T`` do not satisfy the restricted isometry property: they add a trace, which Algorithm 4 takes away by a
    shrinkage. Here features are whitened and ``x x^T`` is taken about its mean in each environment, which is that
    correction with the trace as measured rather than as expected, and exact for Gaussian features:
    ``E <x x^T - I, M> (x x^T - I) = 2 M``. Features should have mean zero (``StandardScaler``), as there is no linear term.
    ``truncation`` is the algorithm's R, in units of the strongest effect (None, or at least 12): rows with larger predictions
    do not count while descending. Other parameters and attributes are those of
    :class:`~gyrostat.estimators.InvariantMatrixRegressor`; directions are those of x, of unit length.

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
        R = None if self.truncation is None else float(errors.number("truncation", self.truncation, least=12))
        X, y = validate_data(self, X, y, dtype=np.float64, y_numeric=True, ensure_min_samples=2)
        y = y.astype(np.float64)
        self.environments_, rows = rows_by_environment(environments, len(y), least=2)
        values, vectors = np.linalg.eigh(X.T @ X / len(X))
        roots = np.where(values > 1e-10 * values.max(), np.maximum(values, 1e-300), np.inf) ** -0.5
        whitening = vectors * roots @ vectors.T
        self._fit([Squares(X[mine] @ whitening, y[mine], R) for mine in rows], whitening)
        self.intercept_ = float(y.mean() - np.mean(np.sum((X @ self.matrix_) * X, axis=1)))
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
