"""Methods compared on one's own data: the error of each in environments that are left out one at a time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal, NamedTuple

import numpy as np
import pandas as pd
from sklearn.utils.validation import check_X_y

from gyrostat import errors
from gyrostat.errors import GyrostatError
from gyrostat.estimators.comparison import peer_methods
from gyrostat.estimators.comparison.compared_methods import (
    COMPARED,
    OURS,
    OWN,
    PEERS,
    REFERENCE,
    SAME_KIND,
    WORST_CASE,
    Method,
    fitted,
)
from gyrostat.estimators.environment_labels import rows_by_environment
from gyrostat.estimators.squared_losses import Environment

FEWEST = 3
"""The fewest environments: with two, the methods would learn from one, in which nothing can differ."""
CLOSE = 0.01
"""Errors that differ by less than this share count as equal."""
ROUNDING = 1e-10
"""Errors below this share of the largest response are those of arithmetic, and count as none."""
MOST_REFITS, MOST_CELLS, SHORT_RESAMPLES = 12, 5_000_000, 200
"""Limits of the short form: environments, cells of all refits together, and bootstrap samples."""
PURPOSES = {
    "mean": ("new environments of the same kind", "the mean error in environments left out", SAME_KIND),
    "worst": ("environments that may be unlike these", "the error in the worst environment left out", WORST_CASE),
}
"""What each error is for, what it is, and which of our models is meant for it."""
OPTIONS = {REFERENCE: "least-squares", OURS: "everywhere", SAME_KIND: "same-kind", WORST_CASE: "worst-case"}
"""The purpose to ask for, by the name of a method."""


@dataclass(frozen=True)
class MethodComparison:
    """The result of :func:`compare_methods`.

    ``table`` has a row for each method. ``mean`` and ``worst`` are root mean square errors in units of the response, in
    environments left out one at a time: over all environments with equal weights, and in the worst one
    (``worst_environment``). ``mean_ratio`` and ``worst_ratio`` are these errors over those of least squares, squared: a share
    of the mean square error. Names that end in ``_low`` and ``_high`` are the ends of intervals. ``status`` is what the
    method said of its fits. ``errors`` holds the mean square error by method and environment.
    """

    table: pd.DataFrame
    errors: pd.DataFrame
    confidence: float

    def recommended(self, error: Literal["mean", "worst"]) -> str:
        """The method to deploy, by this error: ours if its error is within one percent of the least one, otherwise least
        squares if its error is, otherwise the method with the least error. No method with a larger error than least squares is
        recommended."""
        ratios = self.table[f"{error}_ratio"]
        ours, enough = PURPOSES[error][2], (1 + CLOSE) * ratios.min()
        if ours in ratios and ratios[ours] <= min(1.0, enough):
            return ours
        return REFERENCE if enough >= 1 else str(ratios.idxmin())

    @property
    def advice(self) -> tuple[str, ...]:
        """What to deploy in new environments of the same kind, and in environments that may be unlike these."""
        return (*(self._sentence(error) for error in PURPOSES), self._caveat())

    def _sentence(self, error: str) -> str:
        purpose, measure, _ = PURPOSES[error]
        name = self.recommended(error)  # type: ignore[arg-type]
        row = self.table.loc[name]
        if name == REFERENCE:
            return f"For {purpose}: {name}. No method is more than one percent better, by {measure} ({row[error]:.4g})."
        low, ratio, high = (row[f"{error}_ratio{end}"] for end in ("_low", "", "_high"))
        clear = "" if high < 1 else " The interval reaches 1: this may be chance, and least squares serves as well."
        return (
            f"For {purpose}: {name}. Its mean square error is {ratio:.2f} ({low:.2f} to {high:.2f}) of that of least squares, "
            f"by {measure} ({row[error]:.4g}, least squares {self.table.loc[REFERENCE, error]:.4g}).{clear}"
        )

    def _caveat(self) -> str:
        K = self.errors.shape[1]
        return (
            f"The choice was made after a look at {K} environments among {len(self.table)} methods, so the errors of what is "
            "chosen are a little too small. No data can tell how far new environments may be from these: the worst of them is "
            "a stand-in."
        )

    def __str__(self) -> str:
        return "\n".join(
            [self.table[["mean", "mean_ratio", "worst", "worst_ratio"]].round(4).to_string(), *self.advice]
        )


@errors.explains_keywords
def compare_methods(
    X: Any,
    y: Any,
    environments: Any,
    *,
    choose_by: Literal["mean", "worst"] = "mean",
    confidence: float = 0.95,
    resamples: int = 1000,
    seed: int = 0,
) -> MethodComparison:
    """Errors of methods for data from several environments, in environments left out one at a time.

    The methods are least squares, ridge, fixed effects, the mean of the slopes of environments, a mixed model with random
    slopes, anchor regression, V-REx, IRMv1, GroupDRO, ANDMask, invariant causal prediction, invariance-guided
    regularisation, and :class:`~gyrostat.estimators.InvariantLinearRegressor` for its three purposes. Each is a linear model
    in pooled standard units. A method with a hyper-parameter chooses it within the training environments, by leaving out one
    of these at a time.

    Parameters
    ----------
    X : rows of numbers, without missing values.
    y : one number for each row.
    environments : one label for each row; at least three different ones.
    choose_by : the error inside the training environments by which hyper-parameters are chosen: the ``"mean"`` over
        environments left out, or the ``"worst"``.
    confidence : of the intervals. They come from the bootstrap over rows of the environment left out and, for the mean, over
        environments. They are too short if there are few environments.
    resamples : the number of bootstrap samples.
    seed : of the bootstrap.

    >>> rng = np.random.default_rng(0)
    >>> X, site = rng.standard_normal((120, 2)), np.repeat(["a", "b", "c"], 40)
    >>> y = X[:, 0] + np.repeat([5.0, 0.0, -5.0], 40) + 0.1 * rng.standard_normal(120)
    >>> found = compare_methods(X, y, site)
    >>> len(found.table), found.errors.columns.tolist()
    (15, ['a', 'b', 'c'])
    >>> bool(found.table.loc[found.recommended("worst"), "worst_ratio"] <= 1)
    True
    """
    within = float(errors.number("confidence", confidence, above=0, most=0.9999))
    count = errors.integer("resamples", resamples, least=2, most=1_000_000)
    errors.choice("choose_by", choose_by, ("mean", "worst"))
    chosen = [replace(m, rule=choose_by) for m in COMPARED]
    return comparison(by_environment(X, y, environments), chosen, within, count, seed)


def by_environment(X: Any, y: Any, environments: Any) -> dict[str, Environment]:
    """Checked rows and responses of each environment, by its name."""
    X, y = check_X_y(X, y, dtype=np.float64, y_numeric=True)
    if environments is None:
        raise GyrostatError("environments is missing: give one label for each row.")
    labels, rows = rows_by_environment(environments, len(X), least=2)
    if len(labels) < FEWEST:
        raise GyrostatError(
            f"environments must hold at least {FEWEST} different labels, got {len(labels)}: one is left out at a time, and "
            "methods compare those that remain."
        )
    if np.ptp(y) == 0:
        raise GyrostatError(f"y is {y[0]:g} in every row: there is nothing to predict.")
    return {str(label): (X[mine], y[mine]) for label, mine in zip(labels, rows, strict=True)}


class LeftOut(NamedTuple):
    """Squared errors of the rows of each environment left out, arrays (rows, methods), and statuses (environments, methods)."""

    squares: list[np.ndarray]
    statuses: list[list[str]]


def left_out(environments: Sequence[Environment], methods: Sequence[Method]) -> LeftOut:
    """Fit the methods without each environment in turn, and predict its rows."""
    squares, statuses = [], []
    for e, (X, y) in enumerate(environments):
        predictors = fitted(methods, [*environments[:e], *environments[e + 1 :]])
        errors_made = np.stack([y - predictors[m.name](X) for m in methods], axis=1)
        rounding = (
            ROUNDING * np.abs(y).max()
        )  # a target that is a sum of features has no other errors, and no best method
        squares.append(np.where(np.abs(errors_made) > rounding, errors_made, 0.0) ** 2)
        statuses.append([predictors[m.name].status for m in methods])
    return LeftOut(squares, statuses)


def over_rows(squares: Sequence[np.ndarray], rng: np.random.Generator, resamples: int) -> np.ndarray:
    """Resampled means (resamples, environments, methods) of errors, one array (rows, methods) per environment.

    Rows have Poisson(1) weights, which is resampling with a random number of rows.
    """
    means = []
    for mine in squares:
        sums = np.empty((resamples, mine.shape[1]))
        for b in range(resamples):  # row by row of the result: all weights at once would take gigabytes
            weights = rng.poisson(1.0, len(mine))
            sums[b] = weights @ mine / max(weights.sum(), 1)
        means.append(sums)
    return np.stack(means, axis=1)


def comparison(
    environments: dict[str, Environment], methods: Sequence[Method], confidence: float, resamples: int, seed: int
) -> MethodComparison:
    """Compare methods, of which the first is least squares."""
    found = left_out(list(environments.values()), methods)
    means = np.stack([mine.mean(axis=0) for mine in found.squares])
    rng = np.random.default_rng(seed)
    resampled = over_rows(found.squares, rng, resamples)
    picks = rng.integers(len(means), size=(resamples, len(means)))
    mean_draws = np.take_along_axis(resampled, picks[:, :, None], axis=1).mean(axis=1)
    names = [m.name for m in methods]
    columns = {
        **_columns("mean", means.mean(axis=0), mean_draws, confidence),
        **_columns("worst", means.max(axis=0), resampled.max(axis=1), confidence),
        "worst_environment": [list(environments)[e] for e in means.argmax(axis=0)],
        "status": ["; ".join(sorted(set(filter(None, said)))) for said in zip(*found.statuses, strict=True)],
    }
    table = pd.DataFrame(columns, index=pd.Index(names, name="method"))
    by_place = pd.DataFrame(means.T, index=table.index, columns=list(environments))
    return MethodComparison(table, by_place, confidence)


def deployment_sentences(
    X: Any, y: Any, environments: Any, *, tolerance: float = 0.5, directions: str = "auto", seed: int = 0
) -> tuple[str, ...]:
    """The short form of a comparison: which purpose of one fitted model to use for which environments, against least squares.

    Two sentences; one if there are too few environments, too many or too many rows to fit the model without each in turn.

    >>> rng = np.random.default_rng(0)
    >>> X, site = rng.standard_normal((80, 1)), np.repeat(["a", "b"], 40)
    >>> deployment_sentences(X, X[:, 0] + rng.standard_normal(80), site)[0][:62]
    'Other purposes are not compared with least squares: this takes'
    """
    K = len(pd.unique(np.asarray(environments)))
    if not FEWEST <= K <= MOST_REFITS or K * np.size(X) > MOST_CELLS:
        return (
            f"Other purposes are not compared with least squares: this takes {FEWEST} to {MOST_REFITS} environments, and not "
            "too many rows. gyrostat compare-methods compares methods.",
        )
    everywhere = partial(peer_methods.ours, directions=directions)
    others = tuple(m for m in OWN if m.name != OURS)
    methods = (PEERS[REFERENCE], *others, Method(OURS, everywhere, (), tolerance))
    found = comparison(by_environment(X, y, environments), methods, 0.95, SHORT_RESAMPLES, seed)
    return tuple(_short_sentence(found, error) for error in PURPOSES)


def _short_sentence(found: MethodComparison, error: str) -> str:
    purpose, measure, ours = PURPOSES[error]
    name = found.recommended(error)  # type: ignore[arg-type]
    own = float(found.table.loc[ours, f"{error}_ratio"])
    if name in (REFERENCE, ours) and abs(own - 1) <= CLOSE:
        return (
            f"For {purpose}: --purpose {OPTIONS[REFERENCE]} or {OPTIONS[ours]}, whose mean square error is within one percent "
            f"of that, by {measure}."
        )
    if name == REFERENCE:
        return (
            f"For {purpose}: predict with --purpose {OPTIONS[REFERENCE]}, not {OPTIONS[ours]}, whose mean square error is "
            f"{own:.2f} times as large, by {measure}. gyrostat compare-methods compares more methods."
        )
    low, ratio, high = (found.table.loc[name, f"{error}_ratio{end}"] for end in ("_low", "", "_high"))
    clear = "" if high < 1 else " The interval reaches 1, so this may be chance."
    return (
        f"For {purpose}: predict with --purpose {OPTIONS[name]}. Its mean square error is {ratio:.2f} times that of least "
        f"squares ({low:.2f} to {high:.2f}), by {measure}.{clear}"
    )


def _columns(name: str, values: np.ndarray, draws: np.ndarray, confidence: float) -> dict[str, np.ndarray]:
    """Root mean square errors and their ratios to least squares, with intervals; a ratio is 1 where both are zero."""
    ends = ((1 - confidence) / 2, (1 + confidence) / 2)
    tiny = 1e-12 * max(float(values.max()), np.finfo(float).tiny)
    ratios = (draws + tiny) / (draws[:, :1] + tiny)
    low, high = np.sqrt(np.quantile(draws, ends, axis=0))
    ratio_low, ratio_high = np.quantile(ratios, ends, axis=0)
    return {
        name: np.sqrt(values),
        f"{name}_low": low,
        f"{name}_high": high,
        f"{name}_ratio": (values + tiny) / (values[0] + tiny),
        f"{name}_ratio_low": ratio_low,
        f"{name}_ratio_high": ratio_high,
    }
