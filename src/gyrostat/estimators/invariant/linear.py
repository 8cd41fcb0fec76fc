"""Linear regression on what holds in every environment."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from gyrostat import errors
from gyrostat.errors import GyrostatError
from gyrostat.estimators.environment_labels import rows_by_environment
from gyrostat.estimators.invariant.descent import WEAKEST, amplification, chosen_horizon, chosen_step, descend, orders
from gyrostat.estimators.invariant.effects import Effects, measured, refuse_small
from gyrostat.estimators.invariant.principal import principal_directions
from gyrostat.theory.transition import LEARNT

PART = 0.1
"""A direction has part in a feature if this much of its unit length lies along it."""


class InvariantLinearRegressor(RegressorMixin, BaseEstimator):
    """Coefficients that hold in every environment: HeteroSGD on the diagonal model, with amplified heterogeneity.

    Descent on ``beta = u * u - v * v`` from a small start sees one environment per step. A feature whose effect varies over
    environments is multiplied up and down in turns, which in the long run shrinks it, while one with the same effect
    everywhere grows: the data of all environments together would keep both. What is not shown to vary is kept, so that
    without heterogeneity this is least squares.

    Parameters
    ----------
    tolerance : how much an effect may vary between environments (its standard deviation over its mean) and still count as
        invariant. Variation that errors of estimation explain does not count.
    level : of the tests whether effects differ (Cochran's, with standard errors that allow for uneven noise) and whether there
        is an effect at all. A feature is removed only if it differs at this level.
    adjust : whether the effect of a feature is that beside all others (least squares within an environment, so give it more
        rows than features), or that of the feature alone. Neither solves IRM's example, in which a feature is an effect of
        the response and only variances change: ``gyrostat.heterogeneity`` recognises it.
    step_size : ``"auto"`` or a number; the step on features and response of unit variance. ``"auto"`` takes 0.1, or less
        where effects ask for less: steps stay stable if ``2 step_size sum |effects| <= 1`` in every environment. What the
        transition predictor says at that step decides the amplification, feature by feature.
    num_steps : ``"auto"`` or a number; ``"auto"`` is twice what an effect of 0.05 standard deviations needs to be learnt, and
        is refused, with advice, where that is more than 50000.
    num_orders : over how many random orders of the environments the result is averaged.
    init_scale : the size of u and v at the start.
    refit : whether the coefficients of the features kept are those of least squares on them, all rows counted alike and
        every environment with a baseline of its own. Descent itself leaves them shrunk, by about
        ``1 - (variation / tolerance)^2``.
    directions : ``"features"``: each feature is kept or removed. ``"principal"``: so are the principal directions in which
        effects vary between environments (in standard deviations), for a spurious part that is a combination of features.
    standardize : whether features are divided by their standard deviation within environments.
    fit_intercept : whether means are taken out. They are taken out of each environment: a place where all responses are
        higher has another baseline, not another effect. ``intercept_`` fits the mean over all rows.
    random_state : for the orders.

    Attributes
    ----------
    coef_, intercept_ : the prediction is ``X @ coef_ + intercept_``, in any environment. All features have a coefficient but
        those that were removed; with ``adjust=False`` or ``refit=False`` also those too weak to be learnt have none.
    invariant_features_ : the numbers of the features that were learnt and whose mean effect is not zero at ``level``.
    spurious_features_ : those that were removed: forgotten by the descent, and different between environments at ``level``.
        A feature in neither list has too small an effect, or too uncertain a one, to be told.
    invariant_directions_, spurious_directions_ : the same as unit vectors in standard deviations, (features, how many); with
        ``directions="principal"`` this is what was decided on, and the lists of features are those with any part in them.
    effects_, effect_errors_ : the effect of each feature in each environment, and its standard error.
    environments_ : the labels, in the order of their first rows.
    path_, path_steps_ : coefficients along the way (before ``refit``), the mean over orders, and the steps.
    n_iter_, step_size_, amplification_ : the number of steps, the step, and the kappa of each feature.
    status_ : ``"settled"``; ``"moving"`` if a clear effect of 0.05 standard deviations or more that was not removed is
        not learnt yet, or still changed by a tenth over the last two quarters of the path (give more ``num_steps``);
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
        tolerance = float(errors.number("tolerance", self.tolerance, above=0))
        level = float(errors.number("level", self.level, above=0, most=0.5))
        alpha = float(errors.number("init_scale", self.init_scale, above=0))
        X, y = validate_data(self, X, y, dtype=np.float64, y_numeric=True, ensure_min_samples=2)
        self.environments_, rows = rows_by_environment(environments, len(X), least=2 if self.fit_intercept else 1)
        if self.adjust:
            refuse_small(self.environments_, rows, X.shape[1])
        options = {"adjust": self.adjust, "standardize": self.standardize, "centred": self.fit_intercept}
        data, seen, units = measured(X, y, rows, **options)
        W, varies = self._basis(seen, level)
        turned = seen.turned(W)
        path, learnt = self._descend(turned.shown(varies), tolerance, alpha)
        found = np.abs(learnt) > np.maximum(LEARNT * np.abs(turned.mean), 10 * alpha**2)  # more than the start, too
        removed = ~found & varies
        present = turned.present(level) if len(rows) > 1 else np.ones_like(found)
        # Beside each other, least squares can estimate weak effects too; alone, the small start decides what is weak.
        kept = ~removed if self.adjust else found
        coefficients = data.turned(W).least_squares(kept) if self.refit else np.where(found, learnt, 0.0)
        self.coef_ = W @ coefficients * units
        self.intercept_ = float(y.mean() - X.mean(axis=0) @ self.coef_) if self.fit_intercept else 0.0
        self.invariant_directions_, self.spurious_directions_ = W[:, found & present], W[:, removed]
        self.invariant_features_, self.spurious_features_ = (
            np.flatnonzero(np.abs(V).max(axis=1, initial=0.0) > PART)
            for V in (self.invariant_directions_, self.spurious_directions_)
        )
        self.effects_, self.effect_errors_ = seen.effects * units, seen.errors * units
        self.path_ = path @ W.T * units
        self.status_ = "nothing invariant" if removed.all() else _status(path, turned, found, present & ~removed)
        return self

    def _basis(self, seen: Effects, level: float) -> tuple[np.ndarray, np.ndarray]:
        """The directions that are decided on, as columns, and which of them vary."""
        if errors.choice("directions", self.directions, ("features", "principal")) == "features":
            varies = seen.differ(level) if len(seen.effects) > 1 else np.zeros(len(seen.mean), bool)
            return np.eye(len(varies)), varies
        return principal_directions(seen, level)

    def _descend(self, seen: Effects, tolerance: float, alpha: float) -> tuple[np.ndarray, np.ndarray]:
        """The path, and what the last half of it learnt, in standard deviations."""
        count = errors.integer("num_orders", self.num_orders, least=1)
        eta = chosen_step(self.step_size, seen)
        steps = chosen_horizon(self.num_steps, eta, alpha)
        kappa = amplification(seen, tolerance, step_size=eta, init_scale=alpha, num_steps=steps)
        environments = len(seen.effects)
        turns = orders(environments, steps, count if environments > 1 else 1, check_random_state(self.random_state))
        self.path_steps_, path, late = descend(seen.amplified(kappa), turns, step_size=eta, init_scale=alpha)
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


def _status(path: np.ndarray, seen: Effects, found: np.ndarray, wanted: np.ndarray) -> str:
    if len(seen.effects) == 1:
        return "one environment"
    n, m = len(path), np.abs(seen.mean)
    moved = np.abs(path[3 * n // 4 :].mean(axis=0) - path[n // 2 : 3 * n // 4].mean(axis=0)) > LEARNT * m
    return "moving" if (wanted & (m >= WEAKEST) & (moved | ~found)).any() else "settled"
