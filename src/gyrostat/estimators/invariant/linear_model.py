"""From rows to coefficients: the common part of the linear estimators."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from gyrostat import errors
from gyrostat.errors import GyrostatError
from gyrostat.estimators.environment_labels import cluster_codes, rows_by_environment
from gyrostat.estimators.invariant.collinear_features import collinear_groups
from gyrostat.estimators.invariant.common_effects import common_effects
from gyrostat.estimators.invariant.direction_decisions import (
    Decision,
    DecisionOptions,
    decide,
    descent_status,
    identified,
    leading_directions,
    may_combine,
    principal_instead,
)
from gyrostat.estimators.invariant.effects import (
    CONSTANT,
    Effects,
    MeasuredEffects,
    RowDesign,
    Rows,
    RowsInMemory,
    effects_of_rows,
    refuse_small_environments,
)
from gyrostat.estimators.invariant.families import LinkFamily, LinkRows, link_rows
from gyrostat.estimators.invariant.partial_pooling import same_kind_weights
from gyrostat.estimators.invariant.pooled_coefficients import PooledFit, pooled_link
from gyrostat.estimators.invariant.purposes import Pooling, best_purpose
from gyrostat.estimators.invariant.random_effects import (
    BetweenEffects,
    between_effects,
    known_effects,
    mean_of_environments,
    random_effects,
)
from gyrostat.estimators.invariant.score_covariance import LEAST_CLUSTERS

PART = 0.1
"""A feature belongs to a direction if its entry in the unit vector is larger than this."""
LEAST_FREE = 3
"""The fewest environments beyond the coefficients between environments and a mean."""


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
        options = DecisionOptions.of(self)
        units = {"adjust": self.adjust, "standardize": self.standardize}
        measured = effects_of_rows(rows, **units) if link is None else link.measured()
        chosen = decide(rows, link, measured, self.directions, options)
        self._set_fit(chosen, measured)
        used = self._combine(rows, link, measured, chosen, options) if may_combine(chosen, options) else chosen
        self.combined_ = used is not chosen
        nothing_kept = not (chosen.kept & chosen.along.effects.known.any(axis=0)).any()
        if nothing_kept and chosen.along.effects.known.any() and not self.combined_:
            self.status_ = "nothing invariant"
        self._measured, self._removed_directions = measured, chosen.removed
        self._set_between(chosen.along, chosen.fit)
        self._set_same_kind(measured, link, options.level)
        self._set_best(measured, link, used, options.level)
        return self._coefficients

    def _set_fit(self, chosen: Decision, measured: MeasuredEffects) -> None:
        """The attributes that follow from the decision, except for the coefficients between environments."""
        along, descent, effects = chosen.along, chosen.descent, chosen.along.effects
        self._set_coefficients(along, chosen.fit, chosen.kept, np.where(chosen.found, descent.learnt, 0.0))
        # Nothing shows that an effect known in one environment holds in others.
        compared = effects.known.sum(axis=0) >= min(2, len(self.environments_))
        self._set_features(along, chosen.found & chosen.present & compared, chosen.removed)
        self.effects_, self.effect_errors_ = measured.feature_effects
        self._set_mean_effects(measured.units)
        self.path_, self.path_steps_ = descent.path @ along.basis.T * measured.units, descent.steps
        self.n_iter_, self.step_size_, self.amplification_ = descent.num_steps, descent.step_size, descent.amplification
        self.status_ = descent_status(descent.path, effects, chosen.found, chosen.present & ~chosen.removed)

    def _set_mean_effects(self, units: np.ndarray) -> None:
        """The mean effects over environments like these; unknown where no environment has an effect."""
        effects, errors_ = (np.nan_to_num(x / units) for x in (self.effects_, self.effect_errors_))
        mean, known = mean_of_environments(effects, errors_), known_effects(errors_).any(axis=0)
        self.mean_effects_, self.mean_effect_se_, self.mean_effect_dof_ = (
            np.where(known, x, np.nan) for x in (mean.mean * units, mean.error * units, mean.free)
        )

    def _link_rows(self, X: np.ndarray, y: np.ndarray, design: RowDesign, family: LinkFamily) -> LinkRows:
        if not (self.adjust and self.fit_intercept):
            raise GyrostatError(f"family={family.name!r} needs adjust=True and fit_intercept=True.")
        return link_rows(X, y, design, family, standardize=self.standardize)

    def _set_coefficients(
        self, along: MeasuredEffects, fit: PooledFit | None, kept: np.ndarray, learnt: np.ndarray
    ) -> None:
        """Coefficients and their standard errors in units of the data."""
        directions = along.basis * along.units[:, None]
        if fit is None:
            self._coefficients = directions @ learnt
            self.coef_se_, self.coef_dof_ = (np.full(len(learnt), np.nan) for _ in range(2))
            self.environment_weights_ = np.full((len(self.environments_), len(learnt)), np.nan)
            return
        used = directions[:, kept]
        self._coefficients = used @ fit.coef
        variances = np.einsum("ij,jk,ik->i", used, fit.covariance, used)
        self.coef_se_ = np.where(variances > 0, np.sqrt(np.maximum(variances, 0.0)), np.nan)
        belongs = np.where(np.abs(used) > 0, fit.free, np.inf).min(axis=1, initial=np.inf)
        self.coef_dof_ = np.where(variances > 0, belongs, np.nan)
        self.environment_weights_ = np.full((len(self.environments_), len(used)), np.nan)
        if kept.any():  # of a combination of directions, that of the largest
            self.environment_weights_[:, variances > 0] = fit.shares[:, np.abs(used).argmax(axis=1)[variances > 0]]

    def _combine(
        self,
        rows: Rows,
        link: LinkRows | None,
        measured: MeasuredEffects,
        chosen: Decision,
        options: DecisionOptions,
    ) -> Decision | None:
        """Set coefficients of combinations of features, if features do not do.

        The decision that is used: that on features, another on principal directions, or None for what is common.
        """
        principal = principal_instead(rows, link, measured, chosen, options)
        if principal is not None:
            learnt = np.where(principal.found, principal.descent.learnt, 0.0)
            self._set_coefficients(principal.along, principal.fit, principal.kept, learnt)
            return principal
        if identified(chosen, options):
            return chosen
        self._set_common(chosen.along, options.level)
        return None

    def _set_common(self, along: MeasuredEffects, level: float) -> None:
        """Coefficients that the environments have in common."""
        common = common_effects(along.effects, along.data.gram, level)
        directions = along.basis * along.units[:, None]
        tau = random_effects(along.effects.effects, along.effects.errors).tau
        covariance = common.covariance + np.diag(tau**2 * np.sum(common.weights**2))
        variances = np.einsum("ij,jk,ik->i", directions, covariance, directions)
        self._coefficients = directions @ common.coef
        self.coef_se_ = np.where(variances > 0, np.sqrt(np.maximum(variances, 0.0)), np.nan)
        self.coef_dof_ = np.where(variances > 0, float(len(common.weights) - 1), np.nan)
        self.environment_weights_ = np.where(variances > 0, common.weights[:, None], np.nan)

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

    def _set_best(self, measured: MeasuredEffects, link: LinkRows | None, used: Decision | None, level: float) -> None:
        """Least squares of all rows, and the errors in environments left out, which say what predicts better."""
        self._least_squares, self.left_out_errors_ = None, {}
        if link is None:
            pooling = Pooling.of(measured)
            self._least_squares = pooling.in_units(pooling.risks.least(pooling.risks.shares))[0]
            if used is None or used.fit is not None:
                self.left_out_errors_ = pooling.left_out_errors(
                    lambda chosen: self._coefficients_of(chosen, measured, used, level)
                )
        self.best_purpose_ = best_purpose(self.left_out_errors_)

    def _coefficients_of(
        self, chosen: np.ndarray, measured: MeasuredEffects, used: Decision | None, level: float
    ) -> np.ndarray:
        """The coefficients of the chosen environments; what all environments decided stays."""
        if used is None or used.fit is None:
            effects = Effects(*(x[chosen] for x in measured.effects))
            coef = measured.basis * measured.units[:, None] @ common_effects(effects, measured.data.gram, level).coef
        else:
            coef = (used.along.basis * used.along.units[:, None])[:, used.kept] @ used.fit.coef_of(chosen)
        if (found := self._between(measured, coef, chosen)) is not None:
            coef[self.site_level_features_] = found.coefficients
        return coef

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

    def _set_between(self, along: MeasuredEffects, fit: PooledFit | None) -> None:
        """The effects of features that are constant within environments, if there are environments enough."""
        means = along.means
        site = (np.diagonal(along.gram) == 0) & (np.ptp(means, axis=0) > CONSTANT * np.abs(means).max(axis=0))
        self.site_level_features_ = np.flatnonzero(site)
        if fit is None or (found := self._between(along, self._coefficients, np.ones(len(means), bool))) is None:
            return
        for effects in (self._coefficients, self.mean_effects_):
            effects[site] = found.coefficients
        for errors_, free in ((self.coef_se_, self.coef_dof_), (self.mean_effect_se_, self.mean_effect_dof_)):
            errors_[site], free[site] = found.errors, found.free

    def _between(self, along: MeasuredEffects, coef: np.ndarray, on: np.ndarray) -> BetweenEffects | None:
        """The effects of site-level features from the environments ``on``; those of the other features are ``coef``."""
        site = self.site_level_features_
        means, levels, level_errors = along.means[on], along.levels[on], along.level_errors[on]
        chosen = means[:, site]
        scale = np.where(chosen.std(axis=0) > 0, chosen.std(axis=0), 1.0)
        Z = (chosen - chosen.mean(axis=0)) / scale
        if not len(site) or len(means) < len(site) + 1 + LEAST_FREE or np.linalg.matrix_rank(Z, tol=1e-6) < len(site):
            return None
        others = np.delete(means - means.mean(axis=0), site, axis=1)
        left = levels - others @ np.delete(coef, site)
        variances = np.nan_to_num(np.delete(self.coef_se_, site)) ** 2
        found = between_effects(left, np.sqrt(level_errors**2 + others**2 @ variances), Z)
        return found._replace(coefficients=found.coefficients / scale, errors=found.errors / scale)
