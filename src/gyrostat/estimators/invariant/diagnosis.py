"""How effects differ between environments, direction by direction, and what that allows to be said."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr
from scipy import stats
from sklearn.utils.validation import check_X_y

from gyrostat import __version__, errors
from gyrostat.errors import GyrostatError
from gyrostat.estimators.environment_labels import rows_by_environment
from gyrostat.estimators.invariant.advice import advice
from gyrostat.estimators.invariant.descent import amplification
from gyrostat.estimators.invariant.effects import Effects, measured
from gyrostat.estimators.invariant.linear import InvariantLinearRegressor
from gyrostat.estimators.invariant.principal import principal_directions
from gyrostat.estimators.invariant.shifts import consequences, shifts_of
from gyrostat.estimators.invariant.verdicts import evidence, verdicts
from gyrostat.theory.transition import LEARNT


@dataclass(frozen=True)
class Heterogeneity:
    """What :func:`heterogeneity` found.

    ``features`` and ``directions`` are labelled arrays over (environment, feature) and (environment, direction): effects,
    standard errors, intervals, the spread with its interval and its share of the mean, p-values, Lyapunov exponents (per
    step, of the paper's method and with the estimator's amplification), verdicts and reasons; ``directions.loading`` says what
    the principal directions of variation are made of. ``advice`` are sentences about the data as a whole. Effects are in units
    of the data, and in standard deviations if their name ends in ``_sd`` and along principal directions.
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
) -> Heterogeneity:
    """How the effect of every feature, and of every principal direction of variation, differs between environments.

    ``tolerance``, ``level``, ``adjust`` and ``step_size`` are those of :class:`~gyrostat.estimators.InvariantLinearRegressor`,
    whose decisions these are; intervals have ``confidence``. A verdict is ``"kept"`` if the interval of the variation is within
    the tolerance, ``"removed"`` if the estimator leaves the direction out, else ``"cannot be told"``, with the reason.

    >>> rng = np.random.default_rng(0)
    >>> X, site = rng.standard_normal((2000, 3)), np.repeat(["a", "b", "c", "d"], 500)
    >>> y = X[:, 0] + np.repeat([1.0, -1.0, 0.6, 0.2], 500) * X[:, 1] + 0.2 * rng.standard_normal(2000)
    >>> found = heterogeneity(X, y, site, feature_names=["dose", "age", "noise"])
    >>> found.features.verdict.to_series().to_dict()
    {'dose': 'kept', 'age': 'removed', 'noise': 'cannot be told'}
    """
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
    _, seen, units = measured(X, y, rows, adjust=adjust)
    places = [str(label) for label in labels]
    options = {"tolerance": tolerance, "level": level, "confidence": within, "step_size": model.step_size_}
    removed = np.isin(np.arange(len(names)), model.spurious_features_)
    features = _described(seen, model.amplification_, removed, places, ("feature", names), units, options)
    consequence = consequences(X, y, rows, level) & (features.differ_p.values < level)
    shifts = shifts_of(X, rows)
    features = features.assign(
        consequence=("feature", consequence),
        shift_mean_p=("feature", shifts.mean),
        shift_variance_p=("feature", shifts.variance),
        shift_ratio=("feature", shifts.ratio),
    )
    directions = _principal(seen, model, places, names, options)
    attributes = {
        **options,
        "adjust": adjust,
        "num_steps": model.n_iter_,
        "version": __version__,
        "status": model.status_,
    }
    said = advice(features, directions, level)
    return Heterogeneity(features.assign_attrs(attributes), directions.assign_attrs(attributes), said)


def _described(
    seen: Effects,
    kappa: np.ndarray,
    removed: np.ndarray,
    places: list[str],
    along: tuple[str, list[str]],
    units: np.ndarray,
    options: dict[str, Any],
) -> xr.Dataset:
    """The labelled arrays of some directions."""
    dim, names = along
    tests = {key: options[key] for key in ("step_size", "level", "confidence")}
    found = evidence(seen.effects, seen.errors, kappa, **tests)
    words = verdicts(found, removed, environments=len(places), tolerance=options["tolerance"], level=options["level"])
    half = stats.norm.isf((1 - options["confidence"]) / 2) * seen.errors
    both, size = ("environment", dim), np.maximum(np.abs(found.mean), np.finfo(float).tiny)
    data = {
        "effect": (both, seen.effects * units),
        "error": (both, seen.errors * units),
        "low": (both, (seen.effects - half) * units),
        "high": (both, (seen.effects + half) * units),
        "effect_sd": (both, seen.effects),
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
    return xr.Dataset(data, {"environment": places, dim: names})


def _principal(
    seen: Effects, model: InvariantLinearRegressor, places: list[str], names: list[str], options: dict[str, Any]
) -> xr.Dataset:
    """The principal directions of variation, in standard deviations: as many as vary by more than errors."""
    W, varies = principal_directions(seen, options["level"])
    count = int(varies.sum())
    turned = seen.turned(W)
    eta, alpha, steps = model.step_size_, model.init_scale, model.n_iter_
    kappa = amplification(turned.shown(varies), options["tolerance"], step_size=eta, init_scale=alpha, num_steps=steps)[
        :count
    ]
    along = Effects(turned.maps[:, :count, :count], turned.effects[:, :count], turned.covariances[:, :count, :count])
    tests = {key: options[key] for key in ("step_size", "level", "confidence")}
    found = evidence(along.effects, along.errors, kappa, **tests)
    # The Lyapunov rule of theory.transition: alpha exp(lambda T) stays below the root of a tenth of the effect.
    removed = found.lyapunov_amplified * steps < 0.5 * np.log(LEARNT * np.abs(found.mean)) - np.log(alpha)
    labels = [f"direction {i + 1}" for i in range(count)]
    described = _described(along, kappa, removed, places, ("direction", labels), np.ones(count), options)
    return described.assign(loading=(("feature", "direction"), W[:, :count])).assign_coords(feature=names)


def _table(data: xr.Dataset, dim: str) -> pd.DataFrame:
    columns = [name for name in data if data[name].dims == (dim,)]
    effects = data["effect"].to_pandas().T.add_prefix("effect in ") if data.sizes[dim] else pd.DataFrame()
    return pd.concat([data[columns].to_dataframe(), effects], axis=1).rename_axis("direction")
