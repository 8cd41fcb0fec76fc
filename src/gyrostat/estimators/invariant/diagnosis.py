"""How effects differ between environments: numbers, a verdict for each feature and direction, and advice in sentences."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import xarray as xr
from scipy import stats
from sklearn.utils.validation import check_X_y

from gyrostat import __version__, errors
from gyrostat.errors import GyrostatError
from gyrostat.estimators.environment_labels import rows_by_environment
from gyrostat.estimators.invariant.effects import Effects, measured_effects, principal_directions
from gyrostat.estimators.invariant.hetero_sgd import effect_amplification
from gyrostat.estimators.invariant.hypothesis_tests import (
    covariate_shifts,
    effects_differ_p,
    look_like_consequences,
    mean_effect_test,
    spread,
    spread_interval,
)
from gyrostat.estimators.invariant.linear import InvariantLinearRegressor
from gyrostat.theory.transition import LEARNT

KEPT, REMOVED, UNCLEAR = "kept", "removed", "cannot be told"
FEW_ENVIRONMENTS = 4
"""With fewer environments than this, the bound on a spread is so wide that more environments are needed first."""


@dataclass(frozen=True)
class HeterogeneityReport:
    """The result of :func:`heterogeneity`.

    ``features`` and ``directions`` are labelled arrays over (environment, feature) and (environment, direction): effects,
    standard errors, intervals, the spread with its interval and its share of the mean, p-values, Lyapunov exponents (per
    step, of the paper's method and with the estimator's amplification), verdicts and reasons. ``directions.loading`` holds the
    weights of the features in each principal direction of variation. ``advice`` holds sentences about the data as a whole.
    Effects are in units of the data. Those whose name ends in ``_sd``, and those along principal directions, are in standard
    deviations.
    """

    features: xr.Dataset
    directions: xr.Dataset
    advice: tuple[str, ...]

    def table(self) -> pd.DataFrame:
        """One row for each feature and for each principal direction of variation."""
        return pd.concat([_table(self.features, "feature"), _table(self.directions, "direction")])

    def __str__(self) -> str:
        shown = self.table()[["mean", "variation", "differ_p", "lyapunov", "verdict", "reason"]]
        with pd.option_context("display.width", 200, "display.max_colwidth", 90, "display.max_rows", 100):
            return "\n".join([shown.to_string(float_format="{:.3g}".format), "", *self.advice])


@errors.explains_keywords
def heterogeneity(
    X: Any,
    y: Any,
    environments: Any,
    *,
    tolerance: float = 0.5,
    level: float = 0.01,
    confidence: float = 0.95,
    adjust: bool = True,
    step_size: float | str = "auto",
    feature_names: Sequence[str] | None = None,
) -> HeterogeneityReport:
    """How the effect of each feature, and of each principal direction of variation, differs between environments.

    ``tolerance``, ``level``, ``adjust`` and ``step_size`` are those of :class:`~gyrostat.estimators.InvariantLinearRegressor`,
    whose decisions are reported; intervals have ``confidence``. A verdict is ``"kept"`` if the interval of the variation is
    within the tolerance, ``"removed"`` if the estimator leaves the direction out, and otherwise ``"cannot be told"``, with a
    reason.

    >>> rng = np.random.default_rng(0)
    >>> X, site = rng.standard_normal((2000, 3)), np.repeat(["a", "b", "c", "d"], 500)
    >>> y = X[:, 0] + np.repeat([1.0, -1.0, 0.6, 0.2], 500) * X[:, 1] + 0.2 * rng.standard_normal(2000)
    >>> report = heterogeneity(X, y, site, feature_names=["dose", "age", "noise"])
    >>> report.features.verdict.to_series().to_dict()
    {'dose': 'kept', 'age': 'removed', 'noise': 'cannot be told'}
    """
    if feature_names is not None and not isinstance(feature_names, Sequence | np.ndarray | pd.Index):
        raise GyrostatError(f"feature_names must be a list of names; got {errors.shown(feature_names)}.")
    names = feature_names if feature_names is not None else getattr(X, "columns", None)
    X, y = check_X_y(X, y, dtype=np.float64, y_numeric=True)
    labels, rows = rows_by_environment(environments, len(X), least=3)
    names = [f"x{j}" for j in range(X.shape[1])] if names is None else [str(name) for name in names]
    if len(names) != X.shape[1]:
        raise GyrostatError(f"feature_names must name the {X.shape[1]} columns of X; got {len(names)} names.")
    within = float(errors.number("confidence", confidence, above=0, most=0.9999))
    model = InvariantLinearRegressor(
        tolerance=tolerance, level=level, adjust=adjust, step_size=step_size, random_state=0
    ).fit(X, y, environments=environments)
    _, measured, units = measured_effects(X, y, rows, adjust=adjust)
    environment_names = [str(label) for label in labels]
    options = {"tolerance": tolerance, "level": level, "confidence": within, "step_size": model.step_size_}
    removed = np.isin(np.arange(len(names)), model.spurious_features_)
    features = _dataset(measured, model.amplification_, removed, environment_names, ("feature", names), units, options)
    consequence = look_like_consequences(X, y, rows, level) & (features.differ_p.values < level)
    shifts = covariate_shifts(X, rows)
    features = features.assign(
        consequence=("feature", consequence),
        shift_mean_p=("feature", shifts.mean),
        shift_variance_p=("feature", shifts.variance),
        shift_ratio=("feature", shifts.ratio),
    )
    directions = _principal_dataset(measured, model, environment_names, names, options)
    attributes = {
        **options,
        "adjust": adjust,
        "num_steps": model.n_iter_,
        "version": __version__,
        "status": model.status_,
    }
    advice = _advice(features, directions, level)
    return HeterogeneityReport(features.assign_attrs(attributes), directions.assign_attrs(attributes), advice)


def _dataset(
    measured: Effects,
    kappa: np.ndarray,
    removed: np.ndarray,
    environment_names: list[str],
    along: tuple[str, list[str]],
    units: np.ndarray,
    options: dict[str, Any],
) -> xr.Dataset:
    """The labelled arrays of some directions."""
    dim, names = along
    tests = {key: options[key] for key in ("step_size", "level", "confidence")}
    found = evidence(measured.effects, measured.errors, kappa, **tests)
    count, (tolerance, level) = len(environment_names), (options["tolerance"], options["level"])
    words = verdicts(found, removed, environments=count, tolerance=tolerance, level=level)
    half = stats.norm.isf((1 - options["confidence"]) / 2) * measured.errors
    both, size = ("environment", dim), np.maximum(np.abs(found.mean), np.finfo(float).tiny)
    data = {
        "effect": (both, measured.effects * units),
        "error": (both, measured.errors * units),
        "low": (both, (measured.effects - half) * units),
        "high": (both, (measured.effects + half) * units),
        "effect_sd": (both, measured.effects),
        "mean": (dim, found.mean * units),
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
        "verdict": (dim, [word for word, _ in words]),
        "reason": (dim, [reason for _, reason in words]),
    }
    return xr.Dataset(data, {"environment": environment_names, dim: names})


def _principal_dataset(
    measured: Effects,
    model: InvariantLinearRegressor,
    environment_names: list[str],
    names: list[str],
    options: dict[str, Any],
) -> xr.Dataset:
    """The principal directions of variation, in standard deviations: those that vary by more than errors."""
    W, varies = principal_directions(measured, options["level"])
    count = int(varies.sum())
    rotated = measured.rotated(W)
    eta, alpha, steps = model.step_size_, model.init_scale, model.n_iter_
    kappa = effect_amplification(
        rotated.denoised(varies), options["tolerance"], step_size=eta, init_scale=alpha, num_steps=steps
    )[:count]
    along = Effects(rotated.maps[:, :count, :count], rotated.effects[:, :count], rotated.covariances[:, :count, :count])
    tests = {key: options[key] for key in ("step_size", "level", "confidence")}
    found = evidence(along.effects, along.errors, kappa, **tests)
    # The Lyapunov rule of theory.transition: alpha exp(lambda T) stays below the root of a tenth of the effect.
    removed = found.lyapunov_amplified * steps < 0.5 * np.log(LEARNT * np.abs(found.mean)) - np.log(alpha)
    labels = [f"direction {i + 1}" for i in range(count)]
    data = _dataset(along, kappa, removed, environment_names, ("direction", labels), np.ones(count), options)
    return data.assign(loading=(("feature", "direction"), W[:, :count])).assign_coords(feature=names)


def _table(data: xr.Dataset, dim: str) -> pd.DataFrame:
    columns = [name for name in data if data[name].dims == (dim,)]
    effects = data["effect"].to_pandas().T.add_prefix("effect in ") if data.sizes[dim] else pd.DataFrame()
    return pd.concat([data[columns].to_dataframe(), effects], axis=1).rename_axis("direction")


# --- verdicts -------------------------------------------------------------------------------------


class Evidence(NamedTuple):
    """The numbers behind the verdicts, each an array (d,) over directions.

    ``mean``: the mean effect over environments, with ``mean_p``, the p-value of no effect, and ``mean_error``, the standard
    error behind it. ``spread``: the standard deviation of effects without the part that errors add, with the ends of its
    interval. ``differ_p``: the adjusted p-value that effects are the same. ``one_sign``: whether all effects have the sign of
    the mean. ``lyapunov``, ``lyapunov_amplified``: Lyapunov exponents per step.
    """

    mean: Any
    mean_p: Any
    mean_error: Any
    spread: Any
    spread_low: Any
    spread_high: Any
    differ_p: Any
    one_sign: Any
    lyapunov: Any
    lyapunov_amplified: Any


def evidence(
    effects: np.ndarray, errors: np.ndarray, kappa: np.ndarray, *, step_size: float, level: float, confidence: float
) -> Evidence:
    """The evidence from effects and standard errors (K, d) in standard deviations; ``level`` is that of the tests.

    While it is small, a direction with mean effect m > 0 is multiplied by ``1 + eta (m + (1 + kappa) (effect_e - m))`` in
    environment e. Its Lyapunov exponent is the mean of the logarithm (``kappa = 0``: the paper's own method).
    """
    mean, real_spread = effects.mean(axis=0), spread(effects, errors)
    mean_p, mean_error = mean_effect_test(effects, errors, level)
    low, high = spread_interval(effects, errors, 1 - confidence)
    share = real_spread / np.maximum(effects.std(axis=0), np.finfo(float).tiny)
    deviations = np.sign(mean) * share * (effects - mean)

    def exponent(k: np.ndarray | float) -> np.ndarray:
        factors = np.abs(1 + step_size * (np.abs(mean) + (1 + k) * deviations))
        return np.log(np.maximum(factors, 1e-300)).mean(axis=0)

    return Evidence(
        mean=mean,
        mean_p=mean_p,
        mean_error=mean_error,
        spread=real_spread,
        spread_low=low,
        spread_high=high,
        differ_p=effects_differ_p(effects, errors),
        one_sign=(np.sign(effects) == np.sign(mean)).all(axis=0),
        lyapunov=exponent(0.0),
        lyapunov_amplified=exponent(kappa),
    )


def verdicts(
    found: Evidence, removed: np.ndarray, *, environments: int, tolerance: float, level: float
) -> list[tuple[str, str]]:
    """A verdict and its reason for each direction; ``removed`` marks the directions that the estimator leaves out."""
    return [
        _verdict(Evidence(*(x[j] for x in found)), bool(removed[j]), environments, tolerance, level)
        for j in range(len(found.mean))
    ]


def _verdict(x: Evidence, removed: bool, environments: int, tolerance: float, level: float) -> tuple[str, str]:
    if environments == 1:
        return UNCLEAR, "one environment: there is nothing to compare"
    size, differs = abs(x.mean), x.differ_p < level
    varies = f"effects differ (p {shown_p(x.differ_p)})"
    if removed:
        how = "and change sign" if not x.one_sign else "though all have one sign: it oscillates only when amplified"
        return REMOVED, f"{varies} by {_share(x.spread, size)} of their mean, {how}"
    if not differs and x.mean_p >= level:
        bound = stats.norm.isf(level / 2) * x.mean_error
        return UNCLEAR, f"no effect is seen: one of less than {bound:.2g} standard deviations would not be"
    if x.spread_high <= tolerance * size:
        return KEPT, f"effects vary by at most {_share(x.spread_high, size)} of their mean"
    if differs and x.one_sign:
        return UNCLEAR, f"{varies}, and all have one sign: nothing oscillates"
    if environments < FEW_ENVIRONMENTS:
        most = _share(x.spread_high, size)
        return UNCLEAR, f"{environments} environments are too few: effects may vary by {most} of their mean"
    return UNCLEAR, f"too little data: effects may vary by {_share(x.spread_high, size)} of their mean"


def _share(part: float, whole: float) -> str:
    share = part / whole if whole > 0 else np.inf
    return f"{share:.0%}" if share < 10 else "more than 1000%"


def shown_p(value: float) -> str:
    """A p-value as text, such as ``= 0.03`` or ``< 0.0001``."""
    return f"= {value:.2g}" if value >= 1e-4 else "< 0.0001"


# --- advice ---------------------------------------------------------------------------------------


def _advice(features: xr.Dataset, directions: xr.Dataset, level: float) -> tuple[str, ...]:
    """Sentences on what is kept and removed, on shifts of covariates, and on features that look like consequences."""
    sentences = (
        _counts(features),
        _combinations(features, directions),
        _shift(features, level),
        _consequences(features),
    )
    return tuple(sentence for sentence in sentences if sentence)


def _named(features: xr.Dataset, chosen: xr.DataArray) -> str:
    names = features.feature.values[chosen.values].tolist()
    return ", ".join(names[:8]) + (f" and {len(names) - 8} more" if len(names) > 8 else "")


def _counts(features: xr.Dataset) -> str:
    kept, removed = features.verdict == KEPT, features.verdict == REMOVED
    num_environments = features.sizes["environment"]
    if num_environments == 1:
        return "There is one environment, so nothing can be found spurious: give a label that varies."
    parts = [
        f"kept: {_named(features, kept)}" if kept.any() else "nothing is sure to be invariant",
        f"removed: {_named(features, removed)}" if removed.any() else "nothing varies by more than the tolerance",
    ]
    unclear = ~(kept | removed)
    if unclear.any():
        parts.append(f"cannot be told: {_named(features, unclear)} (a linear model keeps them)")
    return f"Of {features.sizes['feature']} features in {num_environments} environments: " + "; ".join(parts) + "."


def _combinations(features: xr.Dataset, directions: xr.Dataset) -> str:
    if (features.verdict == REMOVED).any() or not (directions.verdict == REMOVED).any():
        return ""
    return (
        "No single feature is removed, but a combination of features varies by more than the tolerance (see the principal "
        "directions): with directions='principal' the model leaves such combinations out."
    )


def _shift(features: xr.Dataset, level: float) -> str:
    share = level / max(features.sizes["feature"], 1)
    shifted = (features.shift_variance_p < share) | (features.shift_mean_p < share)
    if not shifted.any():
        return ""
    sentence = f"Covariates shift (their means or variances differ between environments): {_named(features, shifted)}."
    if not (features.differ_p < level).any():
        return sentence + " No effect is seen to differ, so this by itself is no reason to leave anything out."
    return sentence


def _consequences(features: xr.Dataset) -> str:
    looks = features.consequence
    if not looks.any():
        return ""
    return (
        f"{_named(features, looks)}: the effect differs, but the regression of the feature on the response is the same "
        "everywhere, as for a consequence of the response (IRM's X2 = Y + noise). This method does not solve that case: with "
        "such a feature in the model the effects of all other features vary too, and they may be removed without reason. "
        "Leave it out and look again."
    )
