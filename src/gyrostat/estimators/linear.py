"""Linear regression on what holds in every environment."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from gyrostat import errors
from gyrostat.errors import GyrostatError
from gyrostat.estimators.descent import amplification, descend, orders
from gyrostat.estimators.effects import Effects, effects_of
from gyrostat.estimators.moments import Moments, moments, rows_of
from gyrostat.theory.transition import LEARNT

LARGEST_STEP, MOST_STEPS = 0.1, 20_000
WEAKEST = 0.05
"""The smallest effect (standard deviations of y per standard deviation of a feature) that the run is long enough for."""
SURE = 0.01
"""The level of the tests whether a feature has an effect at all, and whether it differs between environments."""


class InvariantLinearRegressor(RegressorMixin, BaseEstimator):
    """Coefficients that hold in every environment: HeteroSGD on the diagonal model, with amplified heterogeneity.

    Descent on ``beta = u * u - v * v`` from a small start sees one environment per step. A feature whose effect varies over
    environments is multiplied up and down in turns, which in the long run shrinks it, while one with the same effect
    everywhere grows: the data of all environments together would keep both.

    Parameters
    ----------
    tolerance : how much an effect may vary between environments (its standard deviation over its mean) and still count as
        invariant. Noise of estimation counts as variation too: few rows per environment make it look larger.
    adjust : whether the effect of a feature is that beside all others (least squares within an environment, so give it more
        rows than features), or that of the feature alone. Neither solves IRM's example, in which a feature is an effect of
        the response and only variances change: there all effects beside others vary, and ``status_`` says so.
    step_size : ``"auto"`` or a number; the step on features and response of unit variance. ``"auto"`` takes 0.1, or less
        where effects ask for less: steps stay stable if ``2 step_size sum |effects| <= 1`` in every environment.
    num_steps : ``"auto"`` or a number; ``"auto"`` is long enough for an effect of 0.05 standard deviations to be learnt (and at
        most 20000).
    num_orders : over how many random orders of the environments the result is averaged.
    init_scale : the size of u and v at the start.
    refit : whether the coefficients of the features kept are those of least squares on them (every environment counted
        alike). Descent itself leaves them shrunk: by about ``1 - (variation / tolerance)^2``.
    standardize : whether features are divided by their standard deviation within environments.
    fit_intercept : whether means are taken out. They are taken out of each environment: a place where all responses are
        higher has another baseline, not another effect. ``intercept_`` fits the mean over all rows.
    random_state : for the orders.

    Attributes
    ----------
    coef_, intercept_ : the prediction is ``X @ coef_ + intercept_``, in any environment.
    invariant_directions_ : the features that were kept: learnt by the descent, with a mean effect that is not zero (at
        level 0.01; not asked when there is one environment only).
    spurious_directions_ : the features that were not, although their effects do differ (Cochran's test at level 0.01).
        A feature in neither list has too small an effect, or too uncertain a one, to be told.
    effects_, effect_errors_ : the effect of each feature in each environment, and its standard error.
    environments_ : the labels, in the order of their first rows.
    path_, path_steps_ : coefficients along the way (before ``refit``), the mean over orders, and the steps.
    n_iter_, step_size_, amplification_ : the number of steps, the step, and the kappa of each feature.
    status_ : ``"settled"``; ``"moving"`` if a kept coefficient still changed by a tenth over the last two quarters of the path
        (give more ``num_steps``); ``"nothing invariant"`` if no feature was kept, so that predictions are constant;
        ``"one environment"`` if there was nothing to compare, so that nothing can be found spurious.

    >>> rng = np.random.default_rng(0)
    >>> X, site = rng.standard_normal((600, 3)), np.repeat(["a", "b", "c"], 200)
    >>> y = X[:, 0] + np.repeat([1.0, -1.0, 0.6], 200) * X[:, 1] + 0.1 * rng.standard_normal(600)
    >>> model = InvariantLinearRegressor().fit(X, y, environments=site)
    >>> model.invariant_directions_.tolist(), model.spurious_directions_.tolist()
    ([0], [1])
    """

    def __init__(
        self, *, tolerance: float = 0.5, adjust: bool = True, step_size: float | str = "auto", num_steps: int | str = "auto",
        num_orders: int = 8, init_scale: float = 1e-3, refit: bool = True, standardize: bool = True,
        fit_intercept: bool = True, random_state: Any = None,
    ):  # fmt: skip
        self.tolerance = tolerance
        self.adjust = adjust
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
        alpha = float(errors.number("init_scale", self.init_scale, above=0))
        count = errors.integer("num_orders", self.num_orders, least=1)
        X, y = validate_data(self, X, y, dtype=np.float64, y_numeric=True, ensure_min_samples=2)
        self.environments_, rows = rows_of(environments, len(X), least=2 if self.fit_intercept else 1)
        self._refuse(rows, X.shape[1])
        raw = moments(X, y.astype(np.float64), rows, centred=self.fit_intercept)
        features, response = _scales(raw, self.standardize)
        data = raw.scaled(features, response)
        seen = effects_of(data, adjust=self.adjust)
        eta = self._step(seen)
        steps = self._horizon(eta, alpha)
        kappa = amplification(seen, tolerance, step_size=eta, init_scale=alpha, num_steps=steps)
        turns = orders(len(rows), steps, count if len(rows) > 1 else 1, check_random_state(self.random_state))
        at, path, late = descend(seen.amplified(kappa), turns, step_size=eta, init_scale=alpha)
        if not np.isfinite(late).all():
            raise GyrostatError(
                f"step_size={eta:g} makes the descent diverge: give a smaller one, such as {eta / 4:g}."
            )
        learnt = late.mean(axis=0)
        kept = np.abs(learnt) > LEARNT * np.abs(seen.mean)
        if len(rows) > 1:
            kept &= seen.present(SURE)
        self.invariant_directions_ = np.flatnonzero(kept)
        self.spurious_directions_ = np.flatnonzero(~kept & seen.differ(SURE))
        self.coef_ = (data.least_squares(kept) if self.refit else np.where(kept, learnt, 0.0)) * response / features
        self.intercept_ = float(y.mean() - X.mean(axis=0) @ self.coef_) if self.fit_intercept else 0.0
        self.effects_, self.effect_errors_ = (x * response / features for x in (seen.effects, seen.errors))
        self.path_, self.path_steps_, self.n_iter_ = path * response / features, at, steps
        self.step_size_, self.amplification_ = eta, kappa
        self.status_ = _status(path, seen, kept)
        return self

    def predict(self, X: Any) -> np.ndarray:
        """Predictions for rows of any environment."""
        check_is_fitted(self)
        X = validate_data(self, X, dtype=np.float64, reset=False)
        return X @ self.coef_ + self.intercept_

    def _refuse(self, rows: list[np.ndarray], features: int) -> None:
        e = int(np.argmin([len(mine) for mine in rows]))
        if self.adjust and len(rows) > 1 and len(rows[e]) < features + 3:
            raise GyrostatError(
                f"adjust=True estimates {features} effects beside each other in every environment, which takes at least "
                f"{features + 3} rows; {errors.shown(self.environments_[e])} has {len(rows[e])}: use adjust=False, fewer "
                "features, or larger environments."
            )

    def _step(self, seen: Effects) -> float:
        if isinstance(self.step_size, str):
            errors.choice("step_size", self.step_size, ("auto",))
            return min(LARGEST_STEP, 0.5 / max(np.abs(seen.effects).sum(axis=1).max(), 1e-12))
        return float(errors.number("step_size", self.step_size, above=0))

    def _horizon(self, eta: float, alpha: float) -> int:
        if isinstance(self.num_steps, str):
            errors.choice("num_steps", self.num_steps, ("auto",))
            # An effect m grows as exp(eta m t) from alpha to sqrt(m); once more as long for averages to settle.
            needed = 2 * np.log(np.sqrt(WEAKEST) / alpha) / np.log1p(eta * WEAKEST)
            return int(np.clip(np.ceil(needed), 100, MOST_STEPS))
        return errors.integer("num_steps", self.num_steps, least=4)


def _scales(raw: Moments, standardize: bool) -> tuple[np.ndarray, float]:
    """The standard deviations within environments of every feature and of the response; one where there is none."""
    features = np.sqrt(np.diagonal(raw.gram)) if standardize else np.ones(len(raw.cross))
    response = float(np.sqrt(raw.energies.mean()))
    return np.where(features > 0, features, 1.0), response if response > 0 else 1.0


def _status(path: np.ndarray, seen: Effects, kept: np.ndarray) -> str:
    if len(seen.effects) == 1:
        return "one environment"
    if not kept.any():
        return "nothing invariant"
    n = len(path)
    earlier, later = path[n // 2 : 3 * n // 4, kept].mean(axis=0), path[3 * n // 4 :, kept].mean(axis=0)
    return "moving" if (np.abs(later - earlier) > LEARNT * np.abs(seen.mean[kept])).any() else "settled"
