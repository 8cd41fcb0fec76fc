"""Linear regression on the effects that hold in every environment."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from gyrostat import errors
from gyrostat.errors import GyrostatError
from gyrostat.estimators.environment_labels import rows_by_environment
from gyrostat.estimators.invariant.effects import (
    Effects,
    measured_effects,
    principal_directions,
    refuse_small_environments,
)
from gyrostat.estimators.invariant.hetero_sgd import (
    WEAKEST_EFFECT,
    effect_amplification,
    effect_descent,
    effect_num_steps,
    effect_step,
    environment_orders,
)
from gyrostat.theory.transition import LEARNT

PART = 0.1
"""A feature belongs to a direction if its entry in the unit vector is larger than this."""


class InvariantLinearRegressor(RegressorMixin, BaseEstimator):
    """Coefficients that hold in every environment: HeteroSGD on the diagonal model, with amplified heterogeneity.

    Descent on ``beta = u * u - v * v`` from a small start uses one environment per step. A feature whose effect varies over
    environments grows in some steps and shrinks in others, which shrinks it in the long run, while a feature with the same
    effect everywhere grows. Descent on the pooled data would keep both. Features that are not shown to vary are kept, so that
    the result is least squares if there is no heterogeneity.

    Parameters
    ----------
    tolerance : how much an effect may vary between environments (its standard deviation over its mean) and still count as
        invariant. Variation that estimation errors explain does not count.
    level : the level of the tests of whether effects differ (Cochran's, with standard errors that allow for uneven noise) and
        of whether there is an effect at all. A feature is removed only if its effects differ at this level.
    adjust : whether the effect of a feature is adjusted for all others (least squares within an environment, which then
        needs more rows than features) or is that of the feature alone. Neither solves IRM's example, in which a feature is a
        consequence of the response and only variances change; ``gyrostat.heterogeneity`` recognises it.
    step_size : ``"auto"`` or a number; the step for features and responses of unit variance. ``"auto"`` is 0.1, or less if
        the effects require it: steps are stable if ``2 step_size sum |effects| <= 1`` in every environment. The
        amplification of each feature follows from the transition predictor at that step.
    num_steps : ``"auto"`` or a number; ``"auto"`` is twice the number that an effect of 0.05 standard deviations needs to be
        learnt. If this is more than 50000, it is refused with advice.
    num_orders : the number of random orders of the environments over which the result is averaged.
    init_scale : the size of u and v at the start.
    refit : whether the coefficients of the kept features are refitted by least squares, with equal weight for all rows and
        an intercept for each environment. Descent itself shrinks them, by about ``1 - (variation / tolerance)^2``.
    directions : ``"features"``: each feature is kept or removed. ``"principal"``: principal directions in which effects vary
        between environments (in standard deviations) are kept or removed, for spurious combinations of features.
    standardize : whether features are divided by their standard deviation within environments.
    fit_intercept : whether means are subtracted. They are subtracted within each environment: an environment in which all
        responses are higher has another baseline, not another effect. ``intercept_`` fits the mean over all rows.
    random_state : for the orders.

    Attributes
    ----------
    coef_, intercept_ : the prediction is ``X @ coef_ + intercept_``, in any environment. The coefficients of removed features
        are zero; with ``adjust=False`` or ``refit=False``, so are those of features too weak to be learnt.
    invariant_features_ : the numbers of the features that were learnt and whose mean effect is not zero at ``level``.
    spurious_features_ : the numbers of the removed features: forgotten by the descent, and different between environments at
        ``level``. A feature in neither list has an effect that is too small or too uncertain for a decision.
    invariant_directions_, spurious_directions_ : the same as unit vectors in standard deviations, (features, count). With
        ``directions="principal"`` the decision was on these, and the lists of features hold all features that belong to them.
    effects_, effect_errors_ : the effect of each feature in each environment, and its standard error.
    environments_ : the labels, in the order of their first rows.
    path_, path_steps_ : coefficients during the descent (before ``refit``), averaged over orders, and the steps.
    n_iter_, step_size_, amplification_ : the number of steps, the step, and the kappa of each feature.
    status_ : ``"settled"``; ``"moving"`` if a clear effect of 0.05 standard deviations or more that was not removed is
        not yet learnt, or still changed by a tenth over the last two quarters of the path (increase ``num_steps``);
        ``"nothing invariant"`` if every feature was removed, so that predictions are constant; ``"one environment"`` if there
        was nothing to compare, so that nothing can be found spurious.

    >>> rng = np.random.default_rng(0)
    >>> X, site = rng.standard_normal((600, 3)), np.repeat(["a", "b", "c"], 200)
    >>> y = X[:, 0] + np.repeat([1.0, -1.0, 0.6], 200) * X[:, 1] + 0.1 * rng.standard_normal(600)
    >>> model = InvariantLinearRegressor().fit(X, y, environments=site)
    >>> model.invariant_features_.tolist(), model.spurious_features_.tolist()
    ([0], [1])
    """

    def __init__(
        self,
        *,
        tolerance: float = 0.5,
        level: float = 0.01,
        adjust: bool = True,
        directions: str = "features",
        step_size: float | str = "auto",
        num_steps: int | str = "auto",
        num_orders: int = 8,
        init_scale: float = 1e-3,
        refit: bool = True,
        standardize: bool = True,
        fit_intercept: bool = True,
        random_state: Any = None,
    ):
        self.tolerance = tolerance
        self.level = level
        self.adjust = adjust
        self.directions = directions
        self.step_size = step_size
        self.num_steps = num_steps
        self.num_orders = num_orders
        self.init_scale = init_scale
        self.refit = refit
        self.standardize = standardize
        self.fit_intercept = fit_intercept
        self.random_state = random_state

    def fit(self, X: Any, y: Any, *, environments: Any = None) -> InvariantLinearRegressor:
        """Fit on rows ``X``, responses ``y`` and one label per row; without labels all rows are one environment."""
        errors.check_parameters(self)
        tolerance = float(errors.number("tolerance", self.tolerance, above=0))
        level = float(errors.number("level", self.level, above=0, most=0.5))
        alpha = float(errors.number("init_scale", self.init_scale, above=0))
        X, y = validate_data(self, X, y, dtype=np.float64, y_numeric=True, ensure_min_samples=2)
        self.environments_, rows = rows_by_environment(environments, len(X), least=2 if self.fit_intercept else 1)
        if self.adjust:
            refuse_small_environments(self.environments_, rows, X.shape[1])
        options = {"adjust": self.adjust, "standardize": self.standardize, "centred": self.fit_intercept}
        data, measured, units = measured_effects(X, y, rows, **options)
        W, varies = self._basis(measured, level)
        rotated = measured.rotated(W)
        path, learnt = self._descend(rotated.denoised(varies), tolerance, alpha)
        found = np.abs(learnt) > np.maximum(LEARNT * np.abs(rotated.mean), 10 * alpha**2)  # and above the start
        removed = ~found & varies
        present = rotated.present(level) if len(rows) > 1 else np.ones_like(found)
        # Joint least squares can estimate weak effects too. For features alone, the small start decides what is weak.
        kept = ~removed if self.adjust else found
        coefficients = data.rotated(W).least_squares(kept) if self.refit else np.where(found, learnt, 0.0)
        self.coef_ = W @ coefficients * units
        self.intercept_ = float(y.mean() - X.mean(axis=0) @ self.coef_) if self.fit_intercept else 0.0
        self.invariant_directions_, self.spurious_directions_ = W[:, found & present], W[:, removed]
        self.invariant_features_, self.spurious_features_ = (
            np.flatnonzero(np.abs(V).max(axis=1, initial=0.0) > PART)
            for V in (self.invariant_directions_, self.spurious_directions_)
        )
        self.effects_, self.effect_errors_ = measured.effects * units, measured.errors * units
        self.path_ = path @ W.T * units
        self.status_ = "nothing invariant" if removed.all() else _status(path, rotated, found, present & ~removed)
        return self

    def _basis(self, measured: Effects, level: float) -> tuple[np.ndarray, np.ndarray]:
        """The directions to decide on, as columns, and a mask of those that vary."""
        if errors.choice("directions", self.directions, ("features", "principal")) == "features":
            varies = measured.differ(level) if len(measured.effects) > 1 else np.zeros(len(measured.mean), bool)
            return np.eye(len(varies)), varies
        return principal_directions(measured, level)

    def _descend(self, measured: Effects, tolerance: float, alpha: float) -> tuple[np.ndarray, np.ndarray]:
        """The path, and the mean coefficients over its last half, in standard deviations."""
        count = errors.integer("num_orders", self.num_orders, least=1)
        eta = effect_step(self.step_size, measured)
        steps = effect_num_steps(self.num_steps, eta, alpha)
        kappa = effect_amplification(measured, tolerance, step_size=eta, init_scale=alpha, num_steps=steps)
        environments, random = len(measured.effects), check_random_state(self.random_state)
        orders = environment_orders(environments, steps, count if environments > 1 else 1, random)
        amplified = measured.amplified(kappa)
        self.path_steps_, path, late = effect_descent(amplified, orders, step_size=eta, init_scale=alpha)
        if not np.isfinite(late).all():
            raise GyrostatError(
                f"step_size={eta:g} makes the descent diverge: give a smaller one, such as {eta / 4:g}."
            )
        self.n_iter_, self.step_size_, self.amplification_ = steps, eta, kappa
        return path, late.mean(axis=0)

    def predict(self, X: Any) -> np.ndarray:
        """Predictions for rows of any environment."""
        check_is_fitted(self)
        X = validate_data(self, X, dtype=np.float64, reset=False)
        return X @ self.coef_ + self.intercept_


def _status(path: np.ndarray, measured: Effects, found: np.ndarray, wanted: np.ndarray) -> str:
    if len(measured.effects) == 1:
        return "one environment"
    n, m = len(path), np.abs(measured.mean)
    moved = np.abs(path[3 * n // 4 :].mean(axis=0) - path[n // 2 : 3 * n // 4].mean(axis=0)) > LEARNT * m
    return "moving" if (wanted & (m >= WEAKEST_EFFECT) & (moved | ~found)).any() else "settled"
