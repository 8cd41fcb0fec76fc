"""How effects differ between environments: numbers, a verdict for each feature and direction, and advice in sentences."""

from __future__ import annotations

from collections.abc import Callable, Sequence
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
from gyrostat.estimators.invariant.effects import Effects, principal_directions
from gyrostat.estimators.invariant.hetero_sgd import effect_amplification
from gyrostat.estimators.invariant.hypothesis_tests import FeatureFacts, feature_facts
from gyrostat.estimators.invariant.influence import (
    KEPT,
    LARGE,
    REMOVED,
    UNCLEAR,
    LargestRow,
    most_influential_row,
    without_each,
)
from gyrostat.estimators.invariant.linear import InvariantLinearRegressor, leading_directions
from gyrostat.estimators.invariant.random_effects import (
    effects_differ_p,
    known_effects,
    mean_effect_p,
    random_effects,
    shrunken,
    spread_interval,
)
from gyrostat.estimators.invariant.rows_in_parts import DaskParts, RowsInParts, is_dask, part_source
from gyrostat.theory.transition import LEARNT

FEW_ENVIRONMENTS = 4
"""With fewer environments than this, the bound on a spread is so wide that more environments are needed first."""


@dataclass(frozen=True)
class HeterogeneityReport:
    """The result of :func:`heterogeneity`.

    ``features`` and ``directions`` are labelled arrays over (environment, feature) and (environment, direction): effects,
    standard errors, intervals, the mean of the random-effects model with its interval, the spread with its interval and its
    share of the mean, p-values, Lyapunov exponents (per step, of the paper's method and with the estimator's
    amplification), verdicts and reasons, and coefficients of the fitted model with standard errors and intervals.
    ``mean_without`` and ``verdict_without`` leave out one environment at a time. ``directions.loading`` holds the weights of
    the features in each principal direction of variation. ``advice`` holds sentences about the data as a whole, ``row`` the
    row with the largest influence on an effect. Effects are in units of the data. Those whose name ends in ``_sd``, and those
    along principal directions, are in standard deviations. An effect is NaN where its feature does not vary.
    """

    features: xr.Dataset
    directions: xr.Dataset
    advice: tuple[str, ...]
    row: LargestRow | None = None

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
    cluster: Any = None,
    sample_weight: Any = None,
    family: str | None = None,
    tolerance: float = 0.5,
    level: float = 0.01,
    confidence: float = 0.95,
    adjust: bool = True,
    step_size: float | str = "auto",
    feature_names: Sequence[str] | None = None,
    row_numbers: Sequence[int] | np.ndarray | None = None,
) -> HeterogeneityReport:
    """How the effect of each feature, and of each principal direction of variation, differs between environments.

    ``cluster``, ``sample_weight``, ``family``, ``tolerance``, ``level``, ``adjust`` and ``step_size`` are those of
    :class:`~gyrostat.estimators.InvariantLinearRegressor`, whose decisions are reported; intervals have ``confidence``. A
    verdict is ``"kept"`` if the interval of the variation is within the tolerance, ``"removed"`` if the estimator leaves the
    direction out, and otherwise ``"unclear"``, with a reason.

    ``X``, ``y`` and ``environments`` may be columns of one Dask dataframe (see :func:`heterogeneity_of_parts`).

    Parameters
    ----------
    X
        Features, one row per observation.
    y
        Responses.
    environments
        The environment of each row: labels of any kind.
    cluster
        The cluster of each row, such as a patient, for dependent rows.
    sample_weight
        The weight of each row.
    family
        ``"gaussian"``, ``"binomial"`` or ``"poisson"``; None for least squares with a warning where ``y`` looks like
        0/1 or counts.
    tolerance
        How much an effect may vary, as its standard deviation over its mean.
    level
        The level of the tests.
    confidence
        The coverage of the intervals.
    adjust
        True for effects adjusted for the other features.
    step_size
        The step of the descent, or ``"auto"``.
    feature_names
        Names of the columns; those of a data frame by default.
    row_numbers
        The number of each row in the file that it comes from, for sentences about a row; 1, 2, ... by default.

    >>> rng = np.random.default_rng(0)
    >>> X, site = rng.standard_normal((2000, 3)), np.repeat(["a", "b", "c", "d"], 500)
    >>> y = X[:, 0] + np.repeat([1.0, -1.0, 0.6, 0.2], 500) * X[:, 1] + 0.2 * rng.standard_normal(2000)
    >>> report = heterogeneity(X, y, site, feature_names=["dose", "age", "noise"])
    >>> report.features.verdict.to_series().to_dict()
    {'dose': 'kept', 'age': 'removed', 'noise': 'unclear'}
    """
    if feature_names is not None and not isinstance(feature_names, Sequence | np.ndarray | pd.Index):
        raise GyrostatError(f"feature_names must be a list of names; got {errors.shown(feature_names)}.")
    names = feature_names if feature_names is not None else getattr(X, "columns", None)
    if is_dask(X):
        if cluster is not None or sample_weight is not None or row_numbers is not None:
            raise GyrostatError(
                "cluster, sample_weight and row_numbers need the rows in memory: call compute() on the Dask columns."
            )
        return heterogeneity_of_parts(
            DaskParts(X, y, environments),
            family=family,
            tolerance=tolerance,
            level=level,
            confidence=confidence,
            adjust=adjust,
            step_size=step_size,
            feature_names=names,
        )
    try:
        X, y = check_X_y(X, y, dtype=np.float64, y_numeric=True)
    except OverflowError:
        raise GyrostatError("X and y must hold numbers below 1e308; got a whole number that is too large.") from None
    names = _checked_names(names, X.shape[1])
    within = float(errors.number("confidence", confidence, above=0, most=0.9999))
    _, rows = rows_by_environment(environments, len(X), least=3)
    model = InvariantLinearRegressor(
        tolerance=tolerance, level=level, adjust=adjust, step_size=step_size, family=family, random_state=0
    ).fit(X, y, environments=environments, cluster=cluster, sample_weight=sample_weight)
    return report_of(model, feature_facts(X, y, rows), names, within, _row_number(row_numbers, len(X)))


def _row_number(row_numbers: Any, count: int) -> Callable[[int], int]:
    """From the place of a row to its number, both counted from 0."""
    if row_numbers is None:
        return int
    numbers = errors.array("row_numbers", row_numbers, ndim=1)
    if len(numbers) != count or not (numbers == np.round(numbers)).all() or not (numbers > 0).all():
        raise GyrostatError(
            f"row_numbers must be {count} whole numbers of at least 1, one for each row; got {errors.shown(row_numbers)}."
        )
    return lambda row: int(numbers[row]) - 1


def heterogeneity_of_parts(
    parts: Any,
    *,
    family: str | None = None,
    tolerance: float = 0.5,
    level: float = 0.01,
    confidence: float = 0.95,
    adjust: bool = True,
    step_size: float | str = "auto",
    feature_names: Sequence[str] | None = None,
) -> HeterogeneityReport:
    """The report of :func:`heterogeneity` on rows that do not fit into memory.

    ``parts`` are those of :meth:`~gyrostat.estimators.InvariantLinearRegressor.fit_parts`, and one reading more is made than
    there. Distances from medians, by which variances are compared, are from those of 5000 random rows in larger
    environments. All other numbers are the same, to rounding.
    """
    within = float(errors.number("confidence", confidence, above=0, most=0.9999))
    rows = parts if isinstance(parts, RowsInParts) else RowsInParts(part_source(parts))
    rows.refuse_fewer_than(3)
    model = InvariantLinearRegressor(
        tolerance=tolerance, level=level, adjust=adjust, step_size=step_size, family=family, random_state=0
    ).fit_parts(rows)
    names = _checked_names(feature_names, rows.num_features)
    return report_of(model, rows.feature_facts(), names, within, rows.row_number)


def _checked_names(names: Any, count: int) -> list[str]:
    names = [f"x{j}" for j in range(count)] if names is None else [str(name) for name in names]
    if len(names) != count:
        raise GyrostatError(f"feature_names must name the {count} columns of X; got {len(names)} names.")
    return names


def report_of(
    model: InvariantLinearRegressor,
    facts: FeatureFacts,
    names: list[str],
    confidence: float,
    row_number: Callable[[int], int],
) -> HeterogeneityReport:
    """The report on a model that was fitted, with ``directions`` that decide on features, to the rows of these facts.

    ``row_number`` gives the number of a row in the file that it comes from, counted from 0.
    """
    options = {
        "tolerance": model.tolerance,
        "level": model.level,
        "confidence": confidence,
        "step_size": model.step_size_,
    }
    environment_names = [str(label) for label in model.environments_]
    features = _feature_dataset(model, environment_names, names, options)
    numeric = model.family_ == "gaussian" and len(environment_names) > 1
    consequence = facts.consequences(model.level) if numeric else np.zeros(len(names), bool)
    shifts = facts.shifts()
    features = features.assign(
        consequence=("feature", consequence & (features.differ_p.values < model.level)),
        shift_mean_p=("feature", shifts.mean),
        shift_variance_p=("feature", shifts.variance),
        shift_ratio=("feature", shifts.ratio),
    )
    directions = _principal_dataset(model._measured.effects, model, environment_names, names, options)
    attributes = {
        **options,
        "adjust": model.adjust,
        "family": model.family_,
        "num_steps": model.n_iter_,
        "version": __version__,
        "status": model.status_,
    }
    row = most_influential_row(model._measured)
    row = row._replace(row=row_number(row.row))
    advice = _advice(features, directions, model, row)
    return HeterogeneityReport(features.assign_attrs(attributes), directions.assign_attrs(attributes), advice, row)


def _feature_dataset(
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
                others = _listed([names[i] for i in group if i != j])
                reason = f"nearly repeats {others}, judged together: {judged.reason.values[group[0]]}"
                words[j] = (str(judged.verdict.values[group[0]]), reason)
    for j in model.site_level_features_:
        words[j] = (UNCLEAR, _site_level_reason(model, int(j)))
    data = data.assign(
        verdict=("feature", [word for word, _ in words]), reason=("feature", [reason for _, reason in words])
    )
    return with_coefficients(data, model, options["confidence"])


def with_coefficients(features: xr.Dataset, model: InvariantLinearRegressor, confidence: float) -> xr.Dataset:
    """The labelled arrays with the coefficients of a model, their standard errors and intervals."""
    half = stats.t.isf((1 - confidence) / 2, model.coef_dof_) * model.coef_se_
    return features.assign(
        coefficient=("feature", model.coef_),
        coefficient_error=("feature", model.coef_se_),
        coefficient_low=("feature", model.coef_ - half),
        coefficient_high=("feature", model.coef_ + half),
    )


def _site_level_reason(model: InvariantLinearRegressor, j: int) -> str:
    K = len(model.environments_)
    if np.isnan(model.coef_se_[j]):
        return (
            f"the same for all rows of an environment, and {K} environments are too few for its effect: none is given"
        )
    return f"the same for all rows of an environment: its effect comes from comparing {K} environments"


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


def _table(data: xr.Dataset, dim: str) -> pd.DataFrame:
    columns = [name for name in data if data[name].dims == (dim,)]
    effects = data["effect"].to_pandas().T.add_prefix("effect in ") if data.sizes[dim] else pd.DataFrame()
    return pd.concat([data[columns].to_dataframe(), effects], axis=1).rename_axis("direction")


# --- verdicts -------------------------------------------------------------------------------------


class Evidence(NamedTuple):
    """The numbers behind the verdicts, each an array (d,) over directions.

    ``mean``: the mean of the random-effects model, with its error and the ends of its interval; ``mean_p``, the p-value of no
    effect; ``visible``, the smallest effect that the test would see. ``spread``: the standard deviation of effects without the
    part that errors add, with the ends of its interval. ``differ_p``: the adjusted p-value that effects are the same.
    ``one_sign``: whether all effects, without their errors, have the sign of the mean. ``known``: the number of environments
    with a known effect, and ``only``, the last of these. ``lyapunov``, ``lyapunov_amplified``: Lyapunov exponents per step.
    """

    mean: Any
    mean_error: Any
    mean_low: Any
    mean_high: Any
    mean_p: Any
    visible: Any
    spread: Any
    spread_low: Any
    spread_high: Any
    differ_p: Any
    one_sign: Any
    known: Any
    only: Any
    lyapunov: Any
    lyapunov_amplified: Any


def evidence(
    effects: np.ndarray, errors: np.ndarray, kappa: np.ndarray, *, step_size: float, level: float, confidence: float
) -> Evidence:
    """The evidence from effects and standard errors (K, d) in standard deviations; ``level`` is that of the tests.

    While it is small, a direction with mean effect m > 0 is multiplied by ``1 + eta (m + (1 + kappa) (effect_e - m))`` in
    environment e. Its Lyapunov exponent is the mean of the logarithm (``kappa = 0``: the paper's own method).
    """
    model, real = random_effects(effects, errors), shrunken(effects, errors)
    mean_p, visible = mean_effect_p(effects, errors, level)
    low, high = spread_interval(effects, errors, 1 - confidence)
    deviations = np.sign(model.mean) * (real - model.mean)
    known = known_effects(errors)

    def exponent(k: np.ndarray | float) -> np.ndarray:
        factors = np.abs(1 + step_size * (np.abs(model.mean) + (1 + k) * deviations))
        return np.log(np.maximum(factors, 1e-300)).mean(axis=0)

    mean_low, mean_high = model.interval(confidence)
    return Evidence(
        mean=model.mean,
        mean_error=model.error,
        mean_low=mean_low,
        mean_high=mean_high,
        mean_p=mean_p,
        visible=visible,
        spread=model.spread,
        spread_low=low,
        spread_high=high,
        differ_p=effects_differ_p(effects, errors),
        one_sign=(np.sign(real) == np.sign(model.mean)).all(axis=0),
        known=known.sum(axis=0),
        only=np.argmax(known, axis=0),
        lyapunov=exponent(0.0),
        lyapunov_amplified=exponent(kappa),
    )


def verdicts(
    found: Evidence, removed: np.ndarray, environment_names: Sequence[str], *, tolerance: float, level: float
) -> list[tuple[str, str]]:
    """A verdict and its reason for each direction; ``removed`` marks the directions that the estimator leaves out."""
    return [
        _verdict(Evidence(*(x[j] for x in found)), bool(removed[j]), environment_names, tolerance, level)
        for j in range(len(found.mean))
    ]


def _verdict(
    x: Evidence, removed: bool, environment_names: Sequence[str], tolerance: float, level: float
) -> tuple[str, str]:
    environments = len(environment_names)
    if environments == 1:
        return UNCLEAR, "one environment: there is nothing to compare"
    if x.known == 0:
        return UNCLEAR, "it does not vary within any environment"
    if x.known == 1:
        return UNCLEAR, f"it varies in {environment_names[x.only]} only: there is nothing to compare"
    size, differs = abs(x.mean), x.differ_p < level
    varies = f"effects differ (p {shown_p(x.differ_p)})"
    if removed:
        how = "and change sign" if not x.one_sign else "though all have one sign: it oscillates only when amplified"
        return REMOVED, f"{varies} by {_share(x.spread, size)} of their mean, {how}"
    if not differs and x.mean_p >= level:
        return UNCLEAR, f"no effect is seen: the data cannot show an effect smaller than {x.visible:.2g} SD"
    if x.spread_high <= tolerance * size:
        return KEPT, f"effects vary by at most {_share(x.spread_high, size)} of their mean"
    if differs and x.one_sign:
        return UNCLEAR, f"{varies}, and all have one sign: nothing oscillates"
    if x.known < FEW_ENVIRONMENTS:
        most = _share(x.spread_high, size)
        return UNCLEAR, f"{x.known} environments are too few: effects may vary by {most} of their mean"
    return UNCLEAR, f"too little data: effects may vary by {_share(x.spread_high, size)} of their mean"


def _share(part: float, whole: float) -> str:
    share = part / whole if whole > 0 else np.inf
    return f"{share:.0%}" if share < 10 else "more than 1000%"


def shown_p(value: float) -> str:
    """A p-value as text, such as ``= 0.03`` or ``< 0.0001``."""
    return f"= {value:.2g}" if value >= 1e-4 else "< 0.0001"


# --- advice ---------------------------------------------------------------------------------------


def _advice(
    features: xr.Dataset, directions: xr.Dataset, model: InvariantLinearRegressor, row: LargestRow
) -> tuple[str, ...]:
    """Sentences, the most important first: constant predictions, verdicts, collinear and site-level features, influence of
    single environments and rows, shifts of covariates, and features that look like consequences.
    """
    sentences = (
        _constant(model),
        _counts(features),
        _common(model),
        _combinations(features, directions),
        *(_collinear(features, group) for group in model.collinear_features_),
        _site_level(features, model),
        _one_environment(features),
        _one_row(features, row),
        _shift(features, model.level),
        _consequences(features),
    )
    return tuple(sentence for sentence in sentences if sentence)


def _constant(model: InvariantLinearRegressor) -> str:
    if np.any(model.coef_ != 0):
        return ""
    return (
        "Predictions are constant: no feature is left in the model. Decide on combinations of features "
        "(directions='principal'), or allow more variation (tolerance)."
    )


def _common(model: InvariantLinearRegressor) -> str:
    if not model.combined_:
        return ""
    return (
        "Features alone do not tell what holds everywhere: without the removed ones, effects of others vary, or more is "
        "removed than varies. So coefficients are those of combinations of features that hold in all environments, and a "
        "removed feature may have one that is not zero; with directions='features' its coefficient is zero."
    )


def _collinear(features: xr.Dataset, group: np.ndarray) -> str:
    names = features.feature.values[group].tolist()
    return (
        f"{_listed(names)} nearly repeat each other within environments, so their separate effects cannot be told apart. The "
        "verdict is on the combination that varies most, and predictions use the combinations that hold."
    )


def _site_level(features: xr.Dataset, model: InvariantLinearRegressor) -> str:
    chosen = model.site_level_features_
    if not len(chosen):
        return ""
    names, K = _listed(features.feature.values[chosen].tolist()), len(model.environments_)
    if np.isnan(model.coef_se_[chosen]).any():
        return (
            f"{names}: the same for all rows of an environment. {K} environments are too few to tell such an effect from other "
            "differences between environments, so none is given."
        )
    return (
        f"{names}: the same for all rows of an environment. The effect comes from comparing {K} environments, so other "
        "differences between them may be in it."
    )


def _one_environment(features: xr.Dataset) -> str:
    """Verdicts that rest on a single environment."""
    changed = features.verdict_without != features.verdict
    found = [
        f"without {features.environment.values[e]} the verdict on {features.feature.values[j]} would be "
        f"{features.verdict_without.values[e, j]}"
        for e, j in np.argwhere(changed.transpose("environment", "feature").values)
        if features.verdict.values[j] != UNCLEAR and features.verdict_without.values[e, j] != UNCLEAR
    ]
    more = f", and {len(found) - 3} more" if len(found) > 3 else ""
    return f"A single environment decides: {'; '.join(found[:3])}{more}." if found else ""


def _one_row(features: xr.Dataset, row: LargestRow) -> str:
    if row.ratio < LARGE or abs(row.effect - row.without) < 0.01 * abs(row.without):
        return ""
    name, where = features.feature.values[row.feature], features.environment.values[row.environment]
    return (
        f"Row {row.row + 1} alone moves the effect of {name} in {where} from {row.without:.3g} to {row.effect:.3g} "
        f"({row.ratio:.1f} standard errors): check it."
    )


def _listed(names: Sequence[str]) -> str:
    """Names as text.

    >>> _listed(["a", "b", "c"])
    'a, b and c'
    """
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


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
        parts.append(f"unclear: {_named(features, unclear)} (a linear model keeps them)")
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
        return sentence + " No effect was found to differ, so this alone is not a reason to leave anything out."
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
