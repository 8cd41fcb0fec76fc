"""Effects by environment, of features and of principal directions, with their verdicts, as labelled arrays."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr
from scipy import stats

from gyrostat.estimators.invariant.advice_sentences import listed
from gyrostat.estimators.invariant.direction_decisions import leading_directions
from gyrostat.estimators.invariant.effects import Effects, principal_directions
from gyrostat.estimators.invariant.hetero_sgd import effect_amplification
from gyrostat.estimators.invariant.influence import UNCLEAR, without_each
from gyrostat.estimators.invariant.linear import InvariantLinearRegressor
from gyrostat.estimators.invariant.random_effects import known_effects
from gyrostat.estimators.invariant.verdicts import evidence, verdicts
from gyrostat.theory.ours.transition import LEARNT


def feature_dataset(
    model: InvariantLinearRegressor, environment_names: list[str], names: list[str], options: dict[str, Any]
) -> xr.Dataset:
    """The labelled arrays of the features. Collinear features have the verdict on their largest combination."""
    measured = model._measured
    effects, errors_ = (x / measured.units for x in (model.effects_, model.effect_errors_))
    removed = np.isin(np.arange(len(names)), model.spurious_features_)
    data = _dataset(
        effects, errors_, model.amplification_, removed, environment_names, ("feature", names), measured.units, options
    )
    words = list(zip(data.verdict.values.tolist(), data.reason.values.tolist(), strict=True))
    lead = leading_directions(len(names), model.collinear_features_)
    if model.collinear_features_:
        combined = measured.effects
        judged = _dataset(
            combined.effects,
            combined.errors,
            model.amplification_,
            model._removed_directions,
            environment_names,
            ("feature", names),
            np.ones(len(names)),
            options,
        )
        data = data.assign(differ_p=("feature", judged.differ_p.values[lead]))  # the decisions are on these
        for group in model.collinear_features_:
            for j in group:
                others = listed([names[i] for i in group if i != j])
                reason = f"nearly repeats {others}, judged together: {judged.reason.values[group[0]]}"
                words[j] = (str(judged.verdict.values[group[0]]), reason)
    for j in model.site_level_features_:
        words[j] = (UNCLEAR, _site_level_reason(model, int(j)))
    data = data.assign(
        verdict=("feature", [word for word, _ in words]), reason=("feature", [reason for _, reason in words])
    )
    return with_coefficients(data, model, options["confidence"])


def with_coefficients(features: xr.Dataset, model: InvariantLinearRegressor, confidence: float) -> xr.Dataset:
    """The labelled arrays with the mean effects of a model and their intervals, and with its coefficients."""
    half = stats.t.isf((1 - confidence) / 2, model.mean_effect_dof_) * model.mean_effect_se_
    return features.assign(
        mean=("feature", model.mean_effects_),
        mean_error=("feature", model.mean_effect_se_),
        mean_low=("feature", model.mean_effects_ - half),
        mean_high=("feature", model.mean_effects_ + half),
        coefficient=("feature", model.coef_),
        environment_weight=(("environment", "feature"), model.environment_weights_),
    )


def _site_level_reason(model: InvariantLinearRegressor, j: int) -> str:
    K = len(model.environments_)
    if np.isnan(model.coef_se_[j]):
        return f"the same for all rows of an environment, and {K} environments are too few to estimate its effect"
    return f"the same for all rows of an environment: its effect is estimated by comparing {K} environments"


def _dataset(
    effects: np.ndarray,
    standard_errors: np.ndarray,
    kappa: np.ndarray,
    removed: np.ndarray,
    environment_names: list[str],
    along: tuple[str, list[str]],
    units: np.ndarray,
    options: dict[str, Any],
) -> xr.Dataset:
    """The labelled arrays of some directions."""
    dim, names = along
    known = known_effects(standard_errors)
    effects, standard_errors = np.where(known, effects, 0.0), np.where(known, standard_errors, 0.0)
    tests = {key: options[key] for key in ("step_size", "level", "confidence")}
    found = evidence(effects, standard_errors, kappa, **tests)
    words = verdicts(found, removed, environment_names, tolerance=options["tolerance"], level=options["level"])
    rule = {key: options[key] for key in ("tolerance", "level", "confidence")}
    without = without_each(effects, standard_errors, **rule)
    half = stats.norm.isf((1 - options["confidence"]) / 2) * standard_errors
    both, size = ("environment", dim), np.maximum(np.abs(found.mean), np.finfo(float).tiny)
    shown = {"effect": effects, "error": standard_errors, "low": effects - half, "high": effects + half}
    data: dict[str, Any] = {name: (both, np.where(known, x, np.nan) * units) for name, x in shown.items()}
    data |= {
        "effect_sd": (both, np.where(known, effects, np.nan)),
        "mean": (dim, found.mean * units),
        "mean_error": (dim, found.mean_error * units),
        "mean_low": (dim, found.mean_low * units),
        "mean_high": (dim, found.mean_high * units),
        "mean_p": (dim, found.mean_p),
        "spread": (dim, found.spread * units),
        "variation": (dim, found.spread / size),
        "variation_low": (dim, found.spread_low / size),
        "variation_high": (dim, found.spread_high / size),
        "differ_p": (dim, found.differ_p),
        "one_sign": (dim, found.one_sign),
        "amplification": (dim, kappa),
        "lyapunov": (dim, found.lyapunov),
        "lyapunov_amplified": (dim, found.lyapunov_amplified),
        "mean_without": (both, without.means * units),
        "verdict_without": (
            both,
            np.where(without.whole == [w for w, _ in words], without.verdicts, [w for w, _ in words]),
        ),
        "verdict": (dim, [word for word, _ in words]),
        "reason": (dim, [reason for _, reason in words]),
    }
    return xr.Dataset(data, {"environment": environment_names, dim: names})


def principal_dataset(
    measured: Effects,
    model: InvariantLinearRegressor,
    environment_names: list[str],
    names: list[str],
    options: dict[str, Any],
) -> xr.Dataset:
    """The principal directions of variation, in standard deviations: those that vary by more than errors.

    A single feature has no other direction than itself.
    """
    W, varies = principal_directions(measured, options["level"])
    varies = varies & (len(W) > 1)
    count = int(varies.sum())
    rotated = measured.rotated(W)
    eta, alpha, steps = model.step_size_, model.init_scale, model.n_iter_
    kappa = effect_amplification(
        rotated.denoised(varies), options["tolerance"], step_size=eta, init_scale=alpha, num_steps=steps
    )[:count]
    effects, standard_errors = rotated.effects[:, :count], rotated.errors[:, :count]
    tests = {key: options[key] for key in ("step_size", "level", "confidence")}
    found = evidence(effects, standard_errors, kappa, **tests)
    # The Lyapunov rule of theory.transition: alpha exp(lambda T) stays below the root of a tenth of the effect.
    removed = found.lyapunov_amplified * steps < 0.5 * np.log(LEARNT * np.abs(found.mean)) - np.log(alpha)
    labels = [f"direction {i + 1}" for i in range(count)]
    along = ("direction", labels)
    data = _dataset(effects, standard_errors, kappa, removed, environment_names, along, np.ones(count), options)
    loading = model._measured.basis @ W[:, :count]
    loading = loading / np.maximum(np.linalg.norm(loading, axis=0), np.finfo(float).tiny)
    return data.assign(loading=(("feature", "direction"), loading)).assign_coords(feature=names)
