"""Classification by the effects on the log-odds that hold in every environment."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import special
from sklearn.base import ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from gyrostat import errors
from gyrostat.errors import GyrostatError
from gyrostat.estimators.invariant.families import fitted_intercept
from gyrostat.estimators.invariant.linear_model import InvariantLinearModel
from gyrostat.estimators.invariant.outcomes_and_weights import row_weights, rows_with_weight
from gyrostat.estimators.invariant.purposes import LEAST_SQUARES, PURPOSES
from gyrostat.estimators.linear_predictor import finite_predictions


class InvariantLogisticClassifier(ClassifierMixin, InvariantLinearModel):
    """Two classes, with coefficients on the log-odds that hold in every environment.

    The same as :class:`~gyrostat.estimators.InvariantLinearRegressor` with ``family="binomial"``, as a classifier: effects are
    log odds ratios by logistic regression in each environment (with Firth's penalty, so that separated classes have finite
    estimates with large errors), so that a base rate that differs between environments is not a difference of effects.

    Parameters
    ----------
    tolerance, level, directions, step_size, num_steps, num_orders, init_scale, refit, standardize, random_state : as for
        :class:`~gyrostat.estimators.InvariantLinearRegressor`. Effects are always adjusted for all other features, and there
        is always an intercept.

    Attributes
    ----------
    classes_ : the two labels; probabilities and coefficients are of the second.
    coef_, intercept_ : shapes (1, d) and (1,), as in scikit-learn. The intercept is such that the mean of the predicted
        probabilities is that of all rows.
    same_kind_coef_, same_kind_intercept_ : the same for the purpose ``"same-kind"``.
    coef_se_, coef_dof_ : standard errors of ``coef_`` and their degrees of freedom, shape (d,).
    effects_, effect_errors_ : log odds ratios by environment and feature, and their standard errors.

    Other attributes are those of :class:`~gyrostat.estimators.InvariantLinearRegressor`.

    >>> rng = np.random.default_rng(0)
    >>> X, site = rng.standard_normal((3000, 2)), np.repeat(["a", "b", "c"], 1000)
    >>> base = np.repeat([-3.0, 0.0, 1.0], 1000)
    >>> y = np.where(rng.random(3000) < 1 / (1 + np.exp(-base - X[:, 0])), "ill", "well")
    >>> model = InvariantLogisticClassifier(random_state=0).fit(X, y, environments=site)
    >>> model.classes_.tolist(), model.invariant_features_.tolist(), model.spurious_features_.tolist()
    (['ill', 'well'], [0], [])
    """

    adjust = True
    fit_intercept = True
    family_ = "binomial"

    def __init__(
        self,
        *,
        tolerance: float = 0.5,
        level: float = 0.01,
        directions: str = "auto",
        step_size: float | str = "auto",
        num_steps: int | str = "auto",
        num_orders: int = 8,
        init_scale: float = 1e-3,
        refit: bool = True,
        standardize: bool = True,
        random_state: Any = None,
    ):
        self.tolerance = tolerance
        self.level = level
        self.directions = directions
        self.step_size = step_size
        self.num_steps = num_steps
        self.num_orders = num_orders
        self.init_scale = init_scale
        self.refit = refit
        self.standardize = standardize
        self.random_state = random_state

    def fit(
        self, X: Any, y: Any, *, environments: Any = None, cluster: Any = None, sample_weight: Any = None
    ) -> InvariantLogisticClassifier:
        """Fit on rows ``X``, labels ``y`` of two classes and one environment per row.

        ``environments``, ``cluster`` and ``sample_weight`` are those of
        :meth:`gyrostat.estimators.InvariantLinearRegressor.fit`.
        """
        X, y = validate_data(self, X, y, dtype=np.float64, ensure_min_samples=2)
        check_classification_targets(y)
        weights = row_weights(sample_weight, X)
        X, y, environments, cluster, weights = rows_with_weight(weights, X, y, environments, cluster, weights)
        self.classes_, codes = np.unique(y, return_inverse=True)
        if len(self.classes_) > 2:
            raise GyrostatError(
                "Only binary classification is supported. y must hold two classes; "
                f"got {len(self.classes_)}: compare one class with the others."
            )
        if len(self.classes_) == 1:
            raise GyrostatError("Classifier can't train when only one class is present: y must hold two classes.")
        events = codes.astype(np.float64)
        coef = self._fit_rows(X, events, "binomial", environments, cluster, weights)
        both = (coef, self._same_kind)
        (self.coef_, self.intercept_), (self.same_kind_coef_, self.same_kind_intercept_) = (
            (c[None], np.array([fitted_intercept(X @ c, events, weights, "binomial")])) for c in both
        )
        return self

    def decision_function(self, X: Any, purpose: str = "best") -> np.ndarray:
        """The log-odds of the second class, for a ``purpose`` of :meth:`InvariantLinearRegressor.predict`.

        ``"best"`` and ``"worst-case"``, which are about squared errors, are the same as ``"everywhere"`` here, and there is no
        ``"least-squares"``.
        """
        check_is_fitted(self)
        X = validate_data(self, X, dtype=np.float64, reset=False)
        same = errors.choice("purpose", purpose, [p for p in PURPOSES if p != LEAST_SQUARES]) == "same-kind"
        coef, level = (self.same_kind_coef_, self.same_kind_intercept_) if same else (self.coef_, self.intercept_)
        with np.errstate(over="ignore", invalid="ignore"):
            return finite_predictions(X @ coef[0] + level[0])

    def predict_proba(self, X: Any, purpose: str = "best") -> np.ndarray:
        """The probabilities (n, 2) of both classes."""
        p = special.expit(self.decision_function(X, purpose))
        return np.column_stack([1 - p, p])

    def predict(self, X: Any, purpose: str = "best") -> np.ndarray:
        """The class with the larger probability."""
        second = self.decision_function(X, purpose) > 0
        return self.classes_[second.astype(int)]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags
