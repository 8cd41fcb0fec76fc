"""Linear regression on the effects that hold in every environment."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from gyrostat import errors
from gyrostat.errors import GyrostatError
from gyrostat.estimators.invariant.effects import refuse_small_environments
from gyrostat.estimators.invariant.families import LinkFamily, fitted_intercept
from gyrostat.estimators.invariant.linear_model import InvariantLinearModel
from gyrostat.estimators.invariant.outcomes_and_weights import (
    chosen_family,
    environment_means,
    row_weights,
    rows_with_weight,
    warn_of_proportional_effects,
)
from gyrostat.estimators.invariant.purposes import EVERYWHERE, LEAST_SQUARES, PURPOSES
from gyrostat.estimators.invariant.rows_in_parts import DaskParts, RowsInParts, is_dask, part_source
from gyrostat.estimators.invariant.worst_case import worst_case_weights
from gyrostat.estimators.linear_predictor import finite_predictions


class InvariantLinearRegressor(RegressorMixin, InvariantLinearModel):
    """Coefficients that hold in every environment: HeteroSGD on the diagonal model, with amplified heterogeneity.

    Descent on ``beta = u * u - v * v`` from a small start uses one environment per step. A feature whose effect varies over
    environments grows in some steps and shrinks in others, which shrinks it in the long run, while a feature with the same
    effect everywhere grows. Descent on the pooled data would keep both. Features that are not shown to vary are kept, so that
    the result is least squares if there is no heterogeneity.

    Parameters
    ----------
    tolerance : how much an effect may vary between environments (its standard deviation over its mean) and still count as
        invariant. Variation that estimation errors explain does not count.
    family : ``"gaussian"``: least squares. ``"binomial"``: y is 0 or 1, or a share from 0 to 1 (give denominators as
        ``sample_weight``, if they are known), and effects are log odds ratios; predictions are probabilities or shares.
        ``"poisson"``: y is a count, or any amount of at least zero, and effects are on its logarithm (for rates, give
        exposures as ``sample_weight``). None: least squares, with a warning if y has two values, looks like counts, durations
        or amounts, or is between 0 and 1 (or 100) with means so unequal that the same odds ratio moves it 2.5 times as much in
        some environments as in others; or if effects differ in proportion to the means of y. The other families need ``adjust``
        and ``fit_intercept``; for classes see :class:`~gyrostat.estimators.InvariantLogisticClassifier`.
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
    refit : whether the coefficients of the kept features are fitted again by weighted least squares, with an intercept for
        each environment. An environment with more noise has less weight (if a test finds that the noise differs); for
        effects that differ, the weights are more equal. Without it coefficients are too small, because descent multiplies
        them by about ``1 - (variation / tolerance)^2``.
    directions : ``"auto"``: each feature is kept or removed, if that identifies what holds everywhere. It does not if,
        without the removed features, the effects of others begin to vary or vary beyond the tolerance, or if no feature is
        left. Then, with at least three environments, the decision is about combinations of features. The principal
        directions that vary are removed if they pass the same test and there are at least three more environments than such
        directions; they are also removed if features pass, but more features than directions would go. Otherwise the
        coefficients are what the effects of all environments have in common: their combination nearest to zero (maximin
        effects: Meinshausen and Bühlmann 2015). ``"features"``: each feature is kept or removed. ``"principal"``: principal
        directions in which effects vary between environments (in standard deviations) are kept or removed.
    standardize : whether features are divided by their standard deviation within environments.
    fit_intercept : whether means are subtracted. They are subtracted within each environment: an environment in which all
        responses are higher has another baseline, not another effect. ``intercept_`` fits the mean over all rows.
    random_state : for the orders.

    Attributes
    ----------
    coef_, intercept_ : what holds everywhere: ``X @ coef_ + intercept_`` (its inverse link, for other families) is the
        prediction for the purpose ``"everywhere"``. :meth:`predict` uses it by default only if it predicts environments left
        out as well as least squares does (see ``best_purpose_``). The coefficients of removed features are zero; with
        ``adjust=False`` or ``refit=False``, so are those of features too weak to be learnt. A feature that is constant within
        environments has a coefficient from the comparison of environments, if there are at least four more of them than of such
        features, and otherwise zero.
    mean_effects_, mean_effect_se_, mean_effect_dof_ : the mean effect of each feature over environments like these, whether
        it varies or not; its standard error and degrees of freedom. ``mean_effects_ +- t * mean_effect_se_`` is an interval,
        with Student's t. NaN where no environment has an effect. That of a site-level feature is its coefficient.
    left_out_errors_ : root mean square errors in environments left out (one at a time, or in 12 parts if there are more), of
        ``"everywhere"`` (with the features or directions that the whole fit keeps) and of ``"least-squares"``. Empty with
        fewer than three environments, for other families, and with ``refit=False``.
    best_purpose_ : what :meth:`predict` uses by default: ``"least-squares"`` if its mean square error in environments left out
        is smaller by more than one percent, and otherwise ``"everywhere"``.
    same_kind_coef_, same_kind_intercept_ : as ``coef_`` and ``intercept_``, for the purpose ``"same-kind"``: no feature is
        removed, and effects and levels are partially pooled (the mean of a mixed model with random slopes and of fixed effects,
        moved towards least squares as far as levels follow the means of features). With ``adjust=False`` or
        ``fit_intercept=False`` the same as ``coef_``.
    combined_ : whether ``coef_`` belongs to combinations of features (see ``directions``); the lists of features below still
        say what was decided on each feature.
    coef_se_, coef_dof_ : standard errors of ``coef_`` and their degrees of freedom, given which features are kept. They allow
        for uneven noise, for clusters, and for the variation of kept effects over environments, but not for the choice: where
        several effects vary, ``coef_ +- t * coef_se_`` is too short an interval. Use ``mean_effects_``. NaN where a coefficient
        was not estimated.
    environment_weights_ : the weight of each environment in each coefficient (environments, features), with sum one. NaN where
        a coefficient was not estimated within environments.
    collinear_features_ : groups of features that nearly repeat each other within environments. Decisions are on combinations.
    site_level_features_ : the numbers of the features that are constant within environments (or vary there by less than 1e-4
        of what they vary between them), but not between them.
    family_ : the family.
    invariant_features_ : the numbers of the features that were learnt, whose mean effect in these environments is not zero at
        ``level``, and that vary in more than one environment (if there is more than one). The interval of the mean effect, for
        other environments too, may still contain zero, mostly with two or three environments.
    spurious_features_ : the numbers of the removed features: forgotten by the descent, and different between environments at
        ``level``. A feature in neither list has an effect that is too small or too uncertain for a decision.
    invariant_directions_, spurious_directions_ : the same as unit vectors in standard deviations, (features, count). With
        ``directions="principal"`` the decision was on these, and the lists of features hold all features that belong to them.
    effects_, effect_errors_ : the effect of each feature in each environment, and its standard error; NaN where it does not
        vary.
    environments_ : the labels, in the order of their first rows.
    path_, path_steps_ : coefficients during the descent (before ``refit``), averaged over orders, and the steps.
    n_iter_, step_size_, amplification_ : the number of steps, the step, and the kappa of each feature.
    status_ : ``"settled"``; ``"moving"`` if a clear effect of 0.05 standard deviations or more that was not removed is
        not yet learnt, or still changed by a tenth over the last two quarters of the path (increase ``num_steps``);
        ``"nothing invariant"`` if every feature was removed, so that what holds everywhere predicts a constant; ``"one
        environment"`` if there was nothing to compare, so that nothing can be found spurious.

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
        family: str | None = None,
        level: float = 0.01,
        adjust: bool = True,
        directions: str = "auto",
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
        self.family = family
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

    def fit(
        self, X: Any, y: Any, *, environments: Any = None, cluster: Any = None, sample_weight: Any = None
    ) -> InvariantLinearRegressor:
        """Fit on rows ``X``, responses ``y`` and one label per row; without labels all rows are one environment.

        Rows with the same label in ``cluster`` (a patient, a class) depend on each other within an environment.
        ``sample_weight`` weighs rows; only relative sizes matter, and rows of weight zero are left out.

        ``X`` (numbers), ``y`` and ``environments`` may be columns of one Dask dataframe, which is then read in partitions: see
        :meth:`fit_parts`.
        """
        if is_dask(X):
            for name, given in (("cluster", cluster), ("sample_weight", sample_weight)):
                if given is not None:
                    raise GyrostatError(
                        f"{name} needs the rows in memory: call compute() on X, y and environments first."
                    )
            return self._fit_dask(X, y, environments)
        X, y = validate_data(self, X, y, dtype=np.float64, y_numeric=True, ensure_min_samples=2)
        weights = row_weights(sample_weight, X)
        X, y, environments, cluster, weights = rows_with_weight(weights, X, y, environments, cluster, weights)
        family = chosen_family(self.family, y, lambda: environment_means(y, environments))
        self.coef_ = self._fit_rows(X, y, family, environments, cluster, weights)
        if self.family is None:
            warn_of_proportional_effects(y, self.effects_, self.effect_errors_, self._measured.levels, self.level)
        self.family_, self.intercept_, self._feature_means = family, 0.0, np.zeros(X.shape[1])
        self.same_kind_coef_, self.same_kind_intercept_ = self._same_kind, 0.0
        if self.fit_intercept:
            self._feature_means = np.average(X, axis=0, weights=weights)
            self.intercept_, level = (
                float(np.average(y, weights=weights) - self._feature_means @ coef)
                if family == "gaussian"
                else fitted_intercept(X @ coef, y, weights, family)
                for coef in (self.coef_, self.same_kind_coef_)
            )
            self.same_kind_intercept_ = level + self._same_kind_level
        return self

    def fit_parts(self, parts: Any) -> InvariantLinearRegressor:
        """Fit on rows that do not fit into memory: least squares only, without clusters and weights.

        The first reading gives second moments, and with them all effects. Standard errors that allow for uneven noise, and the
        row with the largest influence, need the residuals: a second reading, and a third one if a feature is removed. Nothing
        is written, and memory is needed for one part at a time. The numbers equal those of ``fit``, up to rounding.

        Parameters
        ----------
        parts : a function without arguments that returns the parts of the table one after another, as tuples (X, y,
            environments) of arrays, each time it is called; or what :func:`gyrostat.tables.table_parts.table_parts` makes of
            a Parquet file or a Dask dataframe with its columns of words and dates.

        >>> rng = np.random.default_rng(0)
        >>> X, site = rng.standard_normal((600, 3)), np.tile(["a", "b", "c"], 200)
        >>> y = X[:, 0] + np.tile([1.0, -1.0, 0.6], 200) * X[:, 1] + 0.1 * rng.standard_normal(600)
        >>> parts = [(X[i : i + 100], y[i : i + 100], site[i : i + 100]) for i in range(0, 600, 100)]
        >>> model = InvariantLinearRegressor(random_state=0).fit_parts(lambda: iter(parts))
        >>> whole = InvariantLinearRegressor(random_state=0).fit(X, y, environments=site)
        >>> bool(np.abs(model.coef_ - whole.coef_).max() < 1e-12)
        True
        """
        return self._fit_read(parts if isinstance(parts, RowsInParts) else RowsInParts(part_source(parts)))

    def _fit_dask(self, X: Any, y: Any, environments: Any) -> InvariantLinearRegressor:
        for name, column in (("y", y), ("environments", environments)):
            if not is_dask(column):
                raise GyrostatError(f"{name} must be a column of the Dask dataframe X; got {errors.shown(column)}.")
        self._fit_read(RowsInParts(DaskParts(X, y, environments)))
        self.feature_names_in_ = np.asarray([str(name) for name in X.columns], dtype=object)
        return self

    def _fit_read(self, rows: RowsInParts) -> InvariantLinearRegressor:
        """Fit on rows that are read in parts; ``rows`` may have been read before."""
        errors.check_parameters(self)
        rows.centred = bool(self.fit_intercept)
        if hasattr(self, "feature_names_in_"):  # of an earlier fit
            del self.feature_names_in_
        family = chosen_family(self.family, rows.responses, rows.response_means)
        if family != "gaussian":
            raise GyrostatError(
                f"family={family!r} reads rows many times: fit it to rows in memory, or to gyrostat.tables.rows_on_disk."
            )
        counts = [found.count for found in rows.sums.values()]
        rows.refuse_fewer_than(2 if self.fit_intercept else 1)
        self.n_features_in_, self.environments_ = rows.num_features, rows.environments
        if self.adjust:
            refuse_small_environments(self.environments_, counts, self.n_features_in_)
        self.coef_ = self._fit_effects(rows)
        if self.family is None:
            levels = self._measured.levels
            warn_of_proportional_effects(rows.responses, self.effects_, self.effect_errors_, levels, self.level)
        self.family_, self.intercept_, self._feature_means = family, 0.0, np.zeros(self.n_features_in_)
        self.same_kind_coef_, self.same_kind_intercept_ = self._same_kind, 0.0
        if self.fit_intercept:
            share = np.array(counts) / sum(counts)
            means = share @ np.stack([found.means for found in rows.sums.values()])
            self.intercept_ = float(means[-1] - means[:-1] @ self.coef_)
            self.same_kind_intercept_ = float(means[-1] - means[:-1] @ self.same_kind_coef_) + self._same_kind_level
            self._feature_means = means[:-1]
        return self

    def coefficients(self, purpose: str = "best") -> tuple[np.ndarray, float]:
        """The coefficients and the intercept that :meth:`predict` uses for a purpose.

        Those for ``"worst-case"`` are computed only here, because they take longer than a fit.
        """
        check_is_fitted(self)
        if errors.choice("purpose", purpose, PURPOSES) == "best":
            purpose = self.best_purpose_
        if purpose == "same-kind":
            return self.same_kind_coef_, self.same_kind_intercept_
        if purpose == LEAST_SQUARES:
            if self._least_squares is None:
                raise GyrostatError(f"purpose={purpose!r} needs family='gaussian'; this model has {self.family_!r}.")
            coef, level = self._least_squares, 0.0
        elif purpose == EVERYWHERE or self._pooling is None:
            return self.coef_, self.intercept_
        else:
            coef, level = self._pooling.in_units(worst_case_weights(self._pooling.risks))
        return coef, float(self.intercept_ + self._feature_means @ (self.coef_ - coef) + level)

    def predict(self, X: Any, purpose: str = "best") -> np.ndarray:
        """Predictions for rows of environments without a label: the mean of the response.

        Parameters
        ----------
        X : the rows.
        purpose : ``"best"``: by ``best_purpose_``, the one of the next two that had less error in environments left out.
            ``"everywhere"``: by the effects that hold in every environment, ``X @ coef_ + intercept_``. ``"least-squares"``: by
            a regression on all rows together, without regard to environments. ``"same-kind"``: by effects that were
            pooled in part, for new environments of the same kind. ``"worst-case"``: by weights whose error in the worst
            environment is least, for environments that may be unlike those of the fit; with ``adjust=False``,
            ``fit_intercept=False`` or another family than the Gaussian the same as ``"everywhere"``.
        """
        check_is_fitted(self)
        X = validate_data(self, X, dtype=np.float64, reset=False)
        coef, intercept = self.coefficients(purpose)
        with np.errstate(over="ignore", invalid="ignore"):
            eta = X @ coef + intercept
            return finite_predictions(eta if self.family_ == "gaussian" else LinkFamily(self.family_).mean(eta))
