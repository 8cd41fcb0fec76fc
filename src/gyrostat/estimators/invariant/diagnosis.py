"""How effects differ between environments: the report with its numbers, verdicts and advice."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr
from sklearn.utils.validation import check_X_y

from gyrostat import __version__, errors
from gyrostat.errors import GyrostatError
from gyrostat.estimators.environment_labels import rows_by_environment
from gyrostat.estimators.invariant.advice_sentences import advice_sentences
from gyrostat.estimators.invariant.hypothesis_tests import FeatureFacts, feature_facts
from gyrostat.estimators.invariant.influence import LargestRow, most_influential_row
from gyrostat.estimators.invariant.labelled_effects import feature_dataset, principal_dataset
from gyrostat.estimators.invariant.linear import InvariantLinearRegressor
from gyrostat.estimators.invariant.rows_in_parts import DaskParts, RowsInParts, is_dask, part_source


@dataclass(frozen=True)
class HeterogeneityReport:
    """The result of :func:`heterogeneity`.

    ``features`` and ``directions`` are labelled arrays over (environment, feature) and (environment, direction): effects,
    standard errors, intervals, the mean of the random-effects model with its interval, the spread with its interval and its
    share of the mean, p-values, Lyapunov exponents (per step, of the paper's method and with the estimator's
    amplification), verdicts and reasons, and coefficients of the fitted model (those of what holds everywhere).
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
    :class:`~gyrostat.estimators.InvariantLinearRegressor`, whose decisions are reported. Intervals have the coverage
    ``confidence``. A verdict is ``"kept"`` if the interval of the variation is within the tolerance, ``"removed"`` if the
    estimator leaves the direction out, and otherwise ``"unclear"``, with a reason.

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
        0/1, counts, or shares of unequal levels.
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
        The number of each row in its file, which messages about a row use; 1, 2, ... by default.

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
    features = feature_dataset(model, environment_names, names, options)
    numeric = model.family_ == "gaussian" and len(environment_names) > 1
    consequence = facts.consequences(model.level) if numeric else np.zeros(len(names), bool)
    shifts = facts.shifts()
    features = features.assign(
        consequence=("feature", consequence & (features.differ_p.values < model.level)),
        shift_mean_p=("feature", shifts.mean),
        shift_variance_p=("feature", shifts.variance),
        shift_ratio=("feature", shifts.ratio),
    )
    directions = principal_dataset(model._measured.effects, model, environment_names, names, options)
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
    advice = advice_sentences(features, directions, model, row)
    return HeterogeneityReport(features.assign_attrs(attributes), directions.assign_attrs(attributes), advice, row)


def _table(data: xr.Dataset, dim: str) -> pd.DataFrame:
    columns = [name for name in data if data[name].dims == (dim,)]
    effects = data["effect"].to_pandas().T.add_prefix("effect in ") if data.sizes[dim] else pd.DataFrame()
    return pd.concat([data[columns].to_dataframe(), effects], axis=1).rename_axis("direction")
