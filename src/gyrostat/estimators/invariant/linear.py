"""Linear regression on the effects that hold in every environment."""

from __future__ import annotations

import warnings
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from gyrostat import errors
from gyrostat.errors import GyrostatError
from gyrostat.estimators.environment_labels import cluster_codes, rows_by_environment
from gyrostat.estimators.invariant.collinear_features import collinear_groups
from gyrostat.estimators.invariant.common_effects import FEWEST_ENVIRONMENTS, common_effects
from gyrostat.estimators.invariant.effects import (
    CONSTANT,
    Effects,
    MeasuredEffects,
    RowDesign,
    Rows,
    RowsInMemory,
    effects_of_rows,
    principal_directions,
    refuse_small_environments,
)
from gyrostat.estimators.invariant.families import (
    FAMILIES,
    LinkFamily,
    LinkRows,
    fitted_intercept,
    link_rows,
    outcome_kind,
)
from gyrostat.estimators.invariant.hetero_sgd import (
    WEAKEST_EFFECT,
    effect_amplification,
    effect_descent,
    effect_num_steps,
    effect_step,
    environment_orders,
)
from gyrostat.estimators.invariant.partial_pooling import same_kind_weights
from gyrostat.estimators.invariant.pooled_coefficients import PooledFit, pooled_gaussian, pooled_link
from gyrostat.estimators.invariant.random_effects import between_effects, random_effects
from gyrostat.estimators.invariant.rows_in_parts import DaskParts, RowsInParts, is_dask, part_source
from gyrostat.estimators.invariant.score_covariance import LEAST_CLUSTERS
from gyrostat.estimators.invariant.worst_case import worst_case_weights
from gyrostat.estimators.linear_predictor import finite_predictions
from gyrostat.estimators.squared_losses import Risks
from gyrostat.theory.transition import LEARNT

SPARE = 2
"""Environments beyond those that determine the removed principal directions: k directions pass through any k + 1 of them."""
PART = 0.1
"""A feature belongs to a direction if its entry in the unit vector is larger than this."""
LEAST_FREE = 3
"""The fewest environments beyond the coefficients between environments and a mean."""
PURPOSES = ("everywhere", "same-kind", "worst-case")
"""What a prediction is for: what holds in any environment; new environments of the same kind; the worst environment."""
HINTS = {
    "binary": "y holds only 0 and 1: use family='binomial' or InvariantLogisticClassifier, whose verdicts do not follow base "
    "rates, or family='gaussian' to take them as numbers.",
    "count": "y looks like counts: use family='poisson', whose verdicts do not follow base rates, or family='gaussian' to take "
    "them as numbers.",
}
"""What is said of responses that are not measured on a line, if no family was given."""


class OutcomeWarning(UserWarning):
    """The response looks like 0/1 or counts, and no family was given."""


class Limits(NamedTuple):
    """The tolerance of variation, the level of tests, and the size of the start."""

    tolerance: float
    level: float
    alpha: float


class Descent(NamedTuple):
    """Recorded steps, the path at them, the mean coefficients over its last half; the number of steps, the step, kappa."""

    steps: np.ndarray
    path: np.ndarray
    learnt: np.ndarray
    num_steps: int
    step_size: float
    amplification: np.ndarray


class Decision(NamedTuple):
    """What was decided on each direction: found by the descent, present, removed, kept; the fit to the kept ones."""

    along: MeasuredEffects
    descent: Descent
    found: np.ndarray
    present: np.ndarray
    removed: np.ndarray
    kept: np.ndarray
    fit: PooledFit | None


class Pooling(NamedTuple):
    """Squared losses of environments in standard deviations, and what takes weights back to units of the data."""

    risks: Risks
    directions: np.ndarray
    response: float

    @classmethod
    def of(cls, measured: MeasuredEffects) -> Pooling:
        """The losses along the basis of measured effects; the means of all rows are subtracted."""
        return cls(_losses(measured), measured.basis * measured.units[:, None], measured.scales[1])

    def in_units(self, weights: np.ndarray) -> tuple[np.ndarray, float]:
        """Coefficients, and how far predictions lie above the mean of all rows where features have their means."""
        return self.directions @ weights[1:], float(self.response * weights[0])


class InvariantLinearModel(BaseEstimator):
    """The common part of the regressor and the classifier: from rows to coefficients."""

    tolerance: float
    level: float
    adjust: bool
    directions: str
    step_size: float | str
    num_steps: int | str
    num_orders: int
    init_scale: float
    refit: bool
    standardize: bool
    fit_intercept: bool
    random_state: Any

    def _fit_rows(
        self, X: np.ndarray, y: np.ndarray, family: str, environments: Any, cluster: Any, sample_weight: Any
    ) -> np.ndarray:
        """Set the attributes of a fit to checked arrays, except for the intercept; returns the coefficients (d,)."""
        errors.check_parameters(self)
        self.environments_, rows = rows_by_environment(environments, len(X), least=2 if self.fit_intercept else 1)
        clusters = cluster_codes(cluster, len(X), self.environments_, rows, least=LEAST_CLUSTERS)
        if self.adjust:
            refuse_small_environments(self.environments_, list(map(len, rows)), X.shape[1])
        names = getattr(self, "feature_names_in_", None)
        design = RowDesign(rows, sample_weight, clusters, self.fit_intercept, names)
        link = None if family == "gaussian" else self._link_rows(X, y, design, LinkFamily(family))
        return self._fit_effects(RowsInMemory(X, y, design), link)

    def _fit_effects(self, rows: Rows, link: LinkRows | None = None) -> np.ndarray:
        """The same for rows wherever they are; ``link`` for families other than the Gaussian."""
        tolerance = float(errors.number("tolerance", self.tolerance, above=0))
        level = float(errors.number("level", self.level, above=0, most=0.5))
        alpha = float(errors.number("init_scale", self.init_scale, above=0))
        units = {"adjust": self.adjust, "standardize": self.standardize}
        measured = effects_of_rows(rows, **units) if link is None else link.measured()
        limits = Limits(tolerance, level, alpha)
        chosen = self._decide(rows, link, measured, self.directions, limits)
        self._set_fit(chosen, measured)
        self.combined_ = self._may_combine(chosen) and self._combine(rows, link, measured, chosen, limits)
        nothing_kept = not (chosen.kept & chosen.along.effects.known.any(axis=0)).any()
        if nothing_kept and chosen.along.effects.known.any() and not self.combined_:
            self.status_ = "nothing invariant"
        self._measured, self._removed_directions = measured, chosen.removed
        self._set_between(chosen.along, chosen.fit, level)
        self._set_same_kind(measured, link, level)
        return self._coefficients

    def _decide(
        self, rows: Rows, link: LinkRows | None, measured: MeasuredEffects, directions: str, limits: Limits
    ) -> Decision:
        """Keep or remove each direction, and fit the kept ones."""
        tolerance, level, alpha = limits
        W, varies = _basis(measured.effects, directions, level)
        rotated = measured.effects.rotated(W)
        model = random_effects(rotated.effects, rotated.errors)
        descent = self._descend(rotated.denoised(varies), tolerance, alpha)
        learnt = descent.learnt
        found = np.abs(learnt) > np.maximum(LEARNT * np.abs(model.mean), 10 * alpha**2)  # and above the start
        # A weak effect may not be learnt in these steps although it hardly varies, which is no reason to remove it.
        removed = ~found & varies & (model.spread > tolerance * np.abs(model.mean))
        present = rotated.present(level) if len(rotated.effects) > 1 else np.ones_like(found)
        # Joint least squares can estimate weak effects too. For features alone, the small start decides what is weak.
        kept = ~removed if self.adjust else found
        along = measured.along(W)
        fit = self._pooled(rows, along, link.along(W) if link else None, kept, level) if self.refit else None
        return Decision(along, descent, found, present, removed, kept, fit)

    def _set_fit(self, chosen: Decision, measured: MeasuredEffects) -> None:
        """The attributes that follow from the decision, except for the coefficients between environments."""
        along, descent, effects = chosen.along, chosen.descent, chosen.along.effects
        self._set_coefficients(along, chosen.fit, chosen.kept, np.where(chosen.found, descent.learnt, 0.0))
        self._set_features(along, chosen.found & chosen.present, chosen.removed)
        self.effects_, self.effect_errors_ = measured.feature_effects
        self.path_, self.path_steps_ = descent.path @ along.basis.T * measured.units, descent.steps
        self.n_iter_, self.step_size_, self.amplification_ = descent.num_steps, descent.step_size, descent.amplification
        self.status_ = _status(descent.path, effects, chosen.found, chosen.present & ~chosen.removed)

    def _link_rows(self, X: np.ndarray, y: np.ndarray, design: RowDesign, family: LinkFamily) -> LinkRows:
        if not (self.adjust and self.fit_intercept):
            raise GyrostatError(f"family={family.name!r} needs adjust=True and fit_intercept=True.")
        return link_rows(X, y, design, family, standardize=self.standardize)

    def _descend(self, measured: Effects, tolerance: float, alpha: float) -> Descent:
        """The descent on the effects along some directions, in standard deviations."""
        count = errors.integer("num_orders", self.num_orders, least=1)
        eta = effect_step(self.step_size, measured)
        steps = effect_num_steps(self.num_steps, eta, alpha)
        kappa = effect_amplification(measured, tolerance, step_size=eta, init_scale=alpha, num_steps=steps)
        environments, random = len(measured.effects), check_random_state(self.random_state)
        orders = environment_orders(environments, steps, count if environments > 1 else 1, random)
        path_steps, path, late = effect_descent(measured.amplified(kappa), orders, step_size=eta, init_scale=alpha)
        if not np.isfinite(late).all():
            raise GyrostatError(
                f"step_size={eta:g} makes the descent diverge: give a smaller one, such as {eta / 4:g}."
            )
        return Descent(path_steps, path, late.mean(axis=0), steps, eta, kappa)

    def _pooled(
        self,
        rows: Rows,
        along: MeasuredEffects,
        link: LinkRows | None,
        kept: np.ndarray,
        level: float,
    ) -> PooledFit:
        if link is not None:
            return pooled_link(link, along, kept, level)
        return pooled_gaussian(rows, along, kept, level, own=self.adjust)

    def _set_coefficients(
        self, along: MeasuredEffects, fit: PooledFit | None, kept: np.ndarray, learnt: np.ndarray
    ) -> None:
        """Coefficients and their standard errors in units of the data."""
        directions = along.basis * along.units[:, None]
        if fit is None:
            self._coefficients = directions @ learnt
            self.coef_se_, self.coef_dof_ = (np.full(len(learnt), np.nan) for _ in range(2))
            return
        used = directions[:, kept]
        self._coefficients = used @ fit.coef
        variances = np.einsum("ij,jk,ik->i", used, fit.covariance, used)
        self.coef_se_ = np.where(variances > 0, np.sqrt(np.maximum(variances, 0.0)), np.nan)
        belongs = np.where(np.abs(used) > 0, fit.free, np.inf).min(axis=1, initial=np.inf)
        self.coef_dof_ = np.where(variances > 0, belongs, np.nan)

    def _may_combine(self, chosen: Decision) -> bool:
        """Whether combinations of features may be decided on: some feature was removed, and there are environments enough."""
        effects = chosen.along.effects
        wanted = self.directions == "auto" and self.adjust and chosen.fit is not None and chosen.removed.any()
        return bool(wanted and len(effects.effects) >= FEWEST_ENVIRONMENTS and effects.known.all())

    def _identified(self, chosen: Decision, limits: Limits) -> bool:
        """Whether what is left holds everywhere: there is something, and without the removed directions it does not vary."""
        fit, removed = chosen.fit, chosen.removed
        if fit is None or removed.all():
            return False
        model = random_effects(fit.effects.effects, fit.effects.errors)
        new = ~chosen.along.effects.differ(limits.level)[~removed]  # with the removed ones in the model they were alike
        beyond = model.spread > limits.tolerance * np.abs(model.mean)
        return not (fit.effects.differ(limits.level) & (new | beyond)).any()

    def _combine(
        self, rows: Rows, link: LinkRows | None, measured: MeasuredEffects, chosen: Decision, limits: Limits
    ) -> bool:
        """Set coefficients of combinations of features, if features do not do; says whether this was done."""
        identified = self._identified(chosen, limits)
        directions = int(_basis(measured.effects, "principal", limits.level)[1].sum())
        spare = len(measured.effects.effects) - 1 - directions >= SPARE
        if spare and (not identified or directions < chosen.removed.sum()):
            principal = self._decide(rows, link, measured, "principal", limits)
            if principal.removed.any() and self._identified(principal, limits):
                learnt = np.where(principal.found, principal.descent.learnt, 0.0)
                self._set_coefficients(principal.along, principal.fit, principal.kept, learnt)
                return True
        if not identified:
            self._set_common(chosen.along, limits.level)
        return not identified

    def _set_common(self, along: MeasuredEffects, level: float) -> None:
        """Coefficients that the environments have in common."""
        common = common_effects(along.effects, along.data.gram, level)
        directions = along.basis * along.units[:, None]
        tau = random_effects(along.effects.effects, along.effects.errors).tau
        covariance = common.covariance + np.diag(tau**2 * np.sum(common.weights**2))
        self._coefficients = directions @ common.coef
        self.coef_se_ = np.sqrt(np.einsum("ij,jk,ik->i", directions, covariance, directions))
        self.coef_dof_ = np.full(len(self.coef_se_), float(len(common.weights) - 1))

    def _set_same_kind(self, measured: MeasuredEffects, link: LinkRows | None, level: float) -> None:
        """The coefficients that predict best in new environments of the same kind: all features, pooled in part."""
        self._same_kind, self._same_kind_level, self._pooling = self._coefficients, 0.0, None
        if link is not None:
            everything = np.ones(len(measured.basis), bool)
            fit = pooled_link(link, measured, everything, level)
            self._same_kind = (measured.basis * measured.units[:, None]) @ fit.coef
        elif self.adjust and self.fit_intercept:
            self._pooling = Pooling.of(measured)
            self._same_kind, self._same_kind_level = self._pooling.in_units(same_kind_weights(self._pooling.risks))

    def _set_features(self, along: MeasuredEffects, invariant: np.ndarray, removed: np.ndarray) -> None:
        """The lists of features and directions."""
        unit = along.basis / np.linalg.norm(along.basis, axis=0)
        self.invariant_directions_, self.spurious_directions_ = unit[:, invariant], unit[:, removed]
        groups = collinear_groups(along.gram) if self.adjust else []
        self.collinear_features_ = groups
        lead = leading_directions(len(unit), groups)
        if self.directions != "principal":
            self.invariant_features_, self.spurious_features_ = (np.flatnonzero(m[lead]) for m in (invariant, removed))
        else:
            self.invariant_features_, self.spurious_features_ = (
                np.flatnonzero(np.abs(V).max(axis=1, initial=0.0) > PART)
                for V in (self.invariant_directions_, self.spurious_directions_)
            )

    def _set_between(self, along: MeasuredEffects, fit: PooledFit | None, level: float) -> None:
        """The coefficients of features that are constant within environments, if there are environments enough."""
        means, levels = along.means, along.levels
        size = np.abs(means).max(axis=0)
        site = (np.diagonal(along.gram) == 0) & (np.ptp(means, axis=0) > CONSTANT * size)
        self.site_level_features_ = np.flatnonzero(site)
        chosen = means[:, site]
        Z = (chosen - chosen.mean(axis=0)) / np.where(chosen.std(axis=0) > 0, chosen.std(axis=0), 1.0)
        if not site.any() or fit is None or len(means) < Z.shape[1] + 1 + LEAST_FREE:
            return
        if np.linalg.matrix_rank(Z, tol=1e-6) < Z.shape[1]:
            return
        away = means - means.mean(axis=0)
        left = levels - away @ self._coefficients
        variances = np.nan_to_num(self.coef_se_) ** 2
        found = between_effects(left, np.sqrt(along.level_errors**2 + away**2 @ variances), Z)
        scale = chosen.std(axis=0)
        self._coefficients[site] = found.coefficients / scale
        self.coef_se_[site], self.coef_dof_[site] = found.errors / scale, found.free


def _basis(measured: Effects, directions: str, level: float) -> tuple[np.ndarray, np.ndarray]:
    """The directions to decide on, as columns, and a mask of those that vary."""
    if errors.choice("directions", directions, ("auto", "features", "principal")) != "principal":
        varies = measured.differ(level) if len(measured.effects) > 1 else np.zeros(len(measured.mean), bool)
        return np.eye(len(varies)), varies
    return principal_directions(measured, level)


def _losses(measured: MeasuredEffects) -> Risks:
    """The squared losses of environments along the basis, in standard deviations; means of all rows are subtracted."""
    data = measured.data
    counts = data.sizes * (data.counts.sum() / data.sizes.sum())
    means, levels = (x - counts @ x / counts.sum() for x in (data.means, data.levels))
    centres = np.column_stack([np.ones(len(means)), means])
    grams = centres[:, :, None] * centres[:, None, :]
    grams[:, 1:, 1:] += data.grams
    crosses = centres * levels[:, None]
    crosses[:, 1:] += data.crosses
    return Risks(grams, crosses, data.energies + levels**2, counts)


def leading_directions(d: int, groups: list[np.ndarray]) -> np.ndarray:
    """The direction that decides on each feature: its own, or the largest combination of its collinear group."""
    lead = np.arange(d)
    for group in groups:
        lead[group] = group[0]
    return lead


def chosen_family(family: str | None, y: np.ndarray) -> str:
    """The family that was given, or "gaussian" with a warning if the response looks like something else."""
    if family is not None:
        return errors.choice("family", family, FAMILIES)
    if hint := HINTS.get(outcome_kind(y)):
        warnings.warn(hint, OutcomeWarning, stacklevel=3)
    return "gaussian"


def row_weights(sample_weight: Any, X: np.ndarray) -> np.ndarray | None:
    """The weights of the rows, or None if all are the same."""
    if sample_weight is None:
        return None
    wanted = "sample_weight must hold one finite number of at least 0 for each row"
    try:
        found = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
    except (TypeError, ValueError, OverflowError) as error:
        raise GyrostatError(f"{wanted}: {' '.join(str(error).split()).rstrip('.')}.") from None
    if not np.isfinite(found).all():  # scikit-learn takes one infinite number for all rows
        raise GyrostatError(f"{wanted}; got {errors.shown(sample_weight)}.")
    return found


def rows_with_weight(weights: np.ndarray | None, *arrays: Any) -> list[Any]:
    """The rows of arrays and labels whose weight is not zero; None stays None."""
    if weights is None or weights.all():
        return list(arrays)
    on = np.flatnonzero(weights)
    return [None if a is None else a[on] if isinstance(a, np.ndarray) else [list(a)[i] for i in on] for a in arrays]


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
    family : ``"gaussian"``: least squares. ``"binomial"``: y is 0 or 1, and effects are log odds ratios. ``"poisson"``: y is
        a count, or any amount of at least zero, and effects are on its logarithm. None: least squares, with a warning if y
        looks like 0/1 or counts. The other families need ``adjust`` and ``fit_intercept``; for classes see
        :class:`~gyrostat.estimators.InvariantLogisticClassifier`.
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
    refit : whether the coefficients of the kept features are refitted, with an intercept for each environment: by least
        squares, where an environment with more noise has less weight (if a test sees noise differ), and environments
        have more equal weights for effects that differ. Descent itself shrinks them, by about ``1 - (variation /
        tolerance)^2``.
    directions : ``"auto"``: each feature is kept or removed; if features do not identify what holds everywhere (without the
        removed ones, effects of others begin to vary or vary beyond the tolerance, or no feature is left), and there are at
        least three environments, combinations of features are decided on. If the principal directions that vary stand the
        same test, and there are at least three more environments than such directions, these are removed; also if features
        do, but more of them than there are directions. Otherwise coefficients are what the effects of all environments have
        in common: their combination nearest to none (maximin effects: Meinshausen and Bühlmann 2015). ``"features"``: each
        feature is kept or removed. ``"principal"``: principal directions in which effects vary between environments (in
        standard deviations) are kept or removed.
    standardize : whether features are divided by their standard deviation within environments.
    fit_intercept : whether means are subtracted. They are subtracted within each environment: an environment in which all
        responses are higher has another baseline, not another effect. ``intercept_`` fits the mean over all rows.
    random_state : for the orders.

    Attributes
    ----------
    coef_, intercept_ : the prediction is ``X @ coef_ + intercept_``, in any environment (its inverse link, for other
        families). The coefficients of removed features are zero; with ``adjust=False`` or ``refit=False``, so are those of
        features too weak to be learnt. A feature that is constant within environments has a coefficient from the comparison of
        environments, if there are at least four more of them than of such features, and otherwise zero.
    same_kind_coef_, same_kind_intercept_ : the same for the purpose ``"same-kind"``: no feature is removed, effects and
        levels are pooled in part (half a mixed model with random slopes, half fixed effects, moved towards least squares as
        far as levels follow the means of features). With ``adjust=False`` or ``fit_intercept=False`` the same as ``coef_``.
    combined_ : whether ``coef_`` belongs to combinations of features (see ``directions``); the lists of features below still
        say what was decided on each feature.
    coef_se_, coef_dof_ : standard errors of ``coef_``, for environments like these: they allow for uneven noise, for clusters,
        and for the variation of effects over environments. ``coef_ +- t * coef_se_`` is an interval, with Student's t of
        ``coef_dof_`` degrees of freedom. NaN where a coefficient was not estimated.
    collinear_features_ : groups of features that nearly repeat each other within environments. Decisions are on combinations.
    site_level_features_ : the numbers of the features that are constant within environments, but not between them.
    family_ : the family.
    invariant_features_ : the numbers of the features that were learnt and whose mean effect is not zero at ``level``.
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
        family = chosen_family(self.family, y)
        X, y, environments, cluster, weights = rows_with_weight(weights, X, y, environments, cluster, weights)
        self.coef_ = self._fit_rows(X, y, family, environments, cluster, weights)
        self.family_, self.intercept_, self.same_kind_coef_, self.same_kind_intercept_ = (
            family,
            0.0,
            self._same_kind,
            0.0,
        )
        if self.fit_intercept:
            self.intercept_ = fitted_intercept(X @ self.coef_, y, weights, family)
            level = fitted_intercept(X @ self.same_kind_coef_, y, weights, family)
            self.same_kind_intercept_ = level + self._same_kind_level
            self._feature_means = np.average(X, axis=0, weights=weights)
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
        family = chosen_family(self.family, rows.responses)
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
        self.family_, self.intercept_ = family, 0.0
        self.same_kind_coef_, self.same_kind_intercept_ = self._same_kind, 0.0
        if self.fit_intercept:
            share = np.array(counts) / sum(counts)
            means = share @ np.stack([found.means for found in rows.sums.values()])
            self.intercept_ = float(means[-1] - means[:-1] @ self.coef_)
            self.same_kind_intercept_ = float(means[-1] - means[:-1] @ self.same_kind_coef_) + self._same_kind_level
            self._feature_means = means[:-1]
        return self

    def coefficients(self, purpose: str = "everywhere") -> tuple[np.ndarray, float]:
        """The coefficients and the intercept that :meth:`predict` uses for a purpose.

        Those for ``"worst-case"`` are computed here, since they take longer than a fit.
        """
        check_is_fitted(self)
        errors.choice("purpose", purpose, PURPOSES)
        if purpose == "same-kind":
            return self.same_kind_coef_, self.same_kind_intercept_
        if purpose == "everywhere" or self._pooling is None:
            return self.coef_, self.intercept_
        coef, level = self._pooling.in_units(worst_case_weights(self._pooling.risks))
        return coef, float(self.intercept_ + self._feature_means @ (self.coef_ - coef) + level)

    def predict(self, X: Any, purpose: str = "everywhere") -> np.ndarray:
        """Predictions for rows of environments without a label: the mean of the response.

        Parameters
        ----------
        X : the rows.
        purpose : ``"everywhere"``: by the effects that hold in every environment. ``"same-kind"``: by effects that were
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


def _status(path: np.ndarray, measured: Effects, found: np.ndarray, wanted: np.ndarray) -> str:
    if len(measured.effects) == 1:
        return "one environment"
    n, m = len(path), np.abs(measured.mean)
    moved = np.abs(path[3 * n // 4 :].mean(axis=0) - path[n // 2 : 3 * n // 4].mean(axis=0)) > LEARNT * m
    return "moving" if (wanted & (m >= WEAKEST_EFFECT) & (moved | ~found)).any() else "settled"
