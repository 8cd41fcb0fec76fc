"""The calibration suite: how often verdicts are wrong and intervals cover the truth, on simulations of ordinary trouble.

``docs/calibration.md`` shows the result. A setting draws data with a known answer; its measures are shares of
repetitions, in each of which a model is fitted with its defaults.
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from rich.console import Console
from scipy import special, stats

from benchmarks.records import BenchmarkRecord, Group, Report, grid, run_groups, write_evidence


class CalibrationSizes(NamedTuple):
    """How many repetitions; the tests take fewer."""

    repetitions: int = 100


class CalibrationDraw(NamedTuple):
    """Rows with a known answer: coefficients ``truth`` (NaN: none is true), and options of ``fit`` and of the estimator."""

    X: np.ndarray
    y: np.ndarray
    environments: np.ndarray
    truth: np.ndarray
    fit: dict[str, Any] = {}  # noqa: RUF012  (never changed)
    options: dict[str, Any] = {}  # noqa: RUF012


Measure = Callable[[CalibrationDraw, Any, Callable[[], Any]], float]
"""A number of one repetition, from the draw, the fitted model, and a function that makes the report; NaN does not count."""


@dataclass(frozen=True)
class CalibrationSetting:
    """A setting, what is right in it, and what is measured: names and functions of the draw and the fit."""

    name: str
    text: str
    draw: Callable[[np.random.Generator], CalibrationDraw]
    measures: dict[str, Measure] = field(default_factory=dict)


# --- measures --------------------------------------------------------------------------------------------------------------


def any_removed(draw: CalibrationDraw, model: Any, report: Callable[[], Any]) -> float:
    """Whether some feature was removed, though no effect varies."""
    return float(len(model.spurious_features_) > 0)


def covers(draw: CalibrationDraw, model: Any, report: Callable[[], Any]) -> float:
    """The share of the 95 percent intervals of coefficients that hold the truth."""
    half = stats.t.ppf(0.975, model.coef_dof_) * model.coef_se_
    counts = np.isfinite(half) & np.isfinite(draw.truth)
    return float(np.mean((np.abs(model.coef_ - draw.truth) <= half)[counts])) if counts.any() else np.nan


def first_removed(draw: CalibrationDraw, model: Any, report: Callable[[], Any]) -> float:
    """Whether the first feature was removed."""
    return float(0 in model.spurious_features_)


def first_kept(draw: CalibrationDraw, model: Any, report: Callable[[], Any]) -> float:
    """Whether the verdict on the first feature is "kept"."""
    return float(report().features.verdict.values[0] == "kept")


def second_named(draw: CalibrationDraw, model: Any, report: Callable[[], Any]) -> float:
    """Whether the second feature is named a consequence."""
    return float(report().features.consequence.values[1])


def first_named(draw: CalibrationDraw, model: Any, report: Callable[[], Any]) -> float:
    """Whether the first feature, a cause, is named a consequence."""
    return float(report().features.consequence.values[0])


def explained(draw: CalibrationDraw, model: Any, report: Callable[[], Any]) -> float:
    """R^2 within environments over that of least squares with an intercept for each environment."""
    sites = np.unique(draw.environments)

    def centred(v: np.ndarray) -> np.ndarray:
        return np.concatenate([v[draw.environments == s] - v[draw.environments == s].mean(axis=0) for s in sites])

    X, y = centred(draw.X), centred(draw.y)
    best = y - X @ np.linalg.lstsq(X, y, rcond=1e-10)[0]
    return float((1 - np.var(y - X @ model.coef_) / np.var(y)) / (1 - np.var(best) / np.var(y)))


def _report(draw: CalibrationDraw) -> Any:
    import gyrostat

    return gyrostat.heterogeneity(draw.X, draw.y, draw.environments, **draw.fit, **draw.options)


NULL: dict[str, Measure] = {"wrong removal": any_removed, "coverage": covers}


# --- settings --------------------------------------------------------------------------------------------------------------

EFFECTS = np.array([1.0, -0.5, 0.3, 0.0])


def _sites(count: int, rows: int) -> np.ndarray:
    return np.repeat(np.arange(count), rows)


def _null(
    rng: np.random.Generator, noise: Callable[[np.ndarray, np.ndarray], np.ndarray], rows: int = 100
) -> CalibrationDraw:
    """Six environments with the same effects; ``noise`` is a function of sites and features."""
    sites = _sites(6, rows)
    X = rng.standard_normal((len(sites), 4))
    return CalibrationDraw(X, X @ EFFECTS + noise(sites, X) + rng.standard_normal(6)[sites], sites, EFFECTS)


def null(rng: np.random.Generator) -> CalibrationDraw:
    """Normal noise."""
    return _null(rng, lambda sites, X: rng.standard_normal(len(sites)))


def small(rng: np.random.Generator) -> CalibrationDraw:
    """Twelve rows in each environment."""
    return _null(rng, lambda sites, X: rng.standard_normal(len(sites)), rows=12)


def unequal(rng: np.random.Generator) -> CalibrationDraw:
    """Noise of standard deviation 0.3 to 3, by environment."""
    return _null(rng, lambda sites, X: np.geomspace(0.3, 3, 6)[sites] * rng.standard_normal(len(sites)))


def uneven(rng: np.random.Generator) -> CalibrationDraw:
    """Noise that grows with the first feature."""
    return _null(rng, lambda sites, X: np.abs(X[:, 0]) * rng.standard_normal(len(sites)))


def heavy(rng: np.random.Generator) -> CalibrationDraw:
    """Noise and features with Student's t distribution of three degrees of freedom."""
    sites = _sites(6, 100)
    X = rng.standard_t(3, (len(sites), 4))
    return CalibrationDraw(X, X @ EFFECTS + rng.standard_t(3, len(sites)), sites, EFFECTS)


def clustered(rng: np.random.Generator, *, told: bool = True) -> CalibrationDraw:
    """Twenty patients in each of six environments, ten rows each; two features belong to the patient; nothing has an effect."""
    patients = np.repeat(np.arange(120), 10)
    sites = patients // 20
    X = rng.standard_normal((len(sites), 4))
    X[:, :2] = rng.standard_normal((120, 2))[patients]
    y = rng.standard_normal(120)[patients] + 0.5 * rng.standard_normal(len(sites))
    return CalibrationDraw(X, y, sites, np.zeros(4), {"cluster": patients} if told else {})


def _varying(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    sites = _sites(6, 200)
    X = rng.standard_normal((len(sites), 2))
    return (
        X,
        rng.permutation([1.0, -0.8, 0.6, -0.4, 0.9, -1.1])[sites] * X[:, 0] + X[:, 1] + rng.standard_normal(1200),
        sites,
    )


def noisy_site(rng: np.random.Generator) -> CalibrationDraw:
    """The first effect changes its sign; a seventh environment has 30 rows with noise of standard deviation 100."""
    X, y, sites = _varying(rng)
    more = rng.standard_normal((30, 2))
    X, y = np.concatenate([X, more]), np.concatenate([y, more[:, 1] + 100 * rng.standard_normal(30)])
    return CalibrationDraw(X, y, np.concatenate([sites, np.full(30, 6)]), np.array([np.nan, 1.0]))


def corrupted_row(rng: np.random.Generator) -> CalibrationDraw:
    """The first effect changes its sign; one response is 10000 standard deviations off."""
    X, y, sites = _varying(rng)
    y[rng.integers(len(y))] += 1e4
    return CalibrationDraw(X, y, sites, np.array([np.nan, 1.0]))


def one_site_only(rng: np.random.Generator) -> CalibrationDraw:
    """The first feature varies in one environment only."""
    sites = _sites(6, 100)
    X = rng.standard_normal((600, 2))
    X[sites > 0, 0] = 1.5
    return CalibrationDraw(X, X.sum(axis=1) + 0.5 * rng.standard_normal(600), sites, np.ones(2))


def base_rates(rng: np.random.Generator, *, family: str = "binomial") -> CalibrationDraw:
    """Log odds ratios 1 and -0.7 everywhere, base rates from 1 to 50 percent."""
    sites = _sites(6, 1000)
    X = rng.standard_normal((len(sites), 2))
    base = special.logit(np.geomspace(0.01, 0.5, 6))[sites]
    y = (rng.random(len(sites)) < special.expit(base + X @ [1.0, -0.7])).astype(float)
    return CalibrationDraw(
        X, y, sites, np.array([1.0, -0.7]) if family == "binomial" else np.full(2, np.nan), {}, {"family": family}
    )


def counts(rng: np.random.Generator, *, family: str = "poisson") -> CalibrationDraw:
    """Overdispersed counts with means 0.2 to 5 and the same relative effects."""
    sites = _sites(6, 300)
    X = rng.standard_normal((len(sites), 2))
    mean = np.exp(np.log(np.geomspace(0.2, 5, 6))[sites] + X @ [0.5, -0.3])
    y = rng.poisson(mean * rng.gamma(2.0, 0.5, len(sites))).astype(float)
    return CalibrationDraw(
        X, y, sites, np.array([0.5, -0.3]) if family == "poisson" else np.full(2, np.nan), {}, {"family": family}
    )


def varying(rng: np.random.Generator, rows: Sequence[int], spread: float) -> CalibrationDraw:
    """Environments with these numbers of rows, in which effects vary around their means with this standard deviation."""
    sites = np.repeat(np.arange(len(rows)), rows)
    X, truth = rng.standard_normal((len(sites), 2)), np.array([1.0, -0.5])
    effects = truth + spread * rng.standard_normal((len(rows), 2))
    return CalibrationDraw(X, np.sum(X * effects[sites], axis=1) + rng.standard_normal(len(sites)), sites, truth)


def one_large(rng: np.random.Generator, spread: float = 0.05) -> CalibrationDraw:
    """One environment of 5000 rows and five of 60, whose effects vary by less than can be seen in the small ones."""
    return varying(rng, [5000] + [60] * 5, spread)


def shares(rng: np.random.Generator, *, family: str = "binomial") -> CalibrationDraw:
    """Shares with a beta distribution, levels from 3 to 60 percent, and the same effects on the log-odds."""
    sites = _sites(6, 200)
    X = rng.standard_normal((len(sites), 2))
    mean = special.expit(special.logit(np.geomspace(0.03, 0.6, 6))[sites] + X @ [0.5, -0.3])
    y = rng.beta(20 * mean, 20 * (1 - mean))
    return CalibrationDraw(
        X, y, sites, np.array([0.5, -0.3]) if family == "binomial" else np.full(2, np.nan), {}, {"family": family}
    )


def site_level(rng: np.random.Generator) -> CalibrationDraw:
    """Twelve environments with baselines of their own; the second feature is a property of the environment, with effect 2."""
    sites = _sites(12, 50)
    X = np.column_stack([rng.standard_normal(600), 100 + rng.standard_normal(12)[sites]])
    y = X[:, 0] + 2 * X[:, 1] + 0.5 * rng.standard_normal(12)[sites] + rng.standard_normal(600)
    return CalibrationDraw(X, y, sites, np.array([1.0, 2.0]))


def second_covered(draw: CalibrationDraw, model: Any, report: Callable[[], Any]) -> float:
    """Whether the interval of the second coefficient holds the truth."""
    half = stats.t.ppf(0.975, model.coef_dof_[1]) * model.coef_se_[1]
    return float(abs(model.coef_[1] - draw.truth[1]) <= half)


def second_error(draw: CalibrationDraw, model: Any, report: Callable[[], Any]) -> float:
    """The distance of the second coefficient from the truth."""
    return float(abs(model.coef_[1] - draw.truth[1]))


def collinear(rng: np.random.Generator) -> CalibrationDraw:
    """Four measures of one size that differ by three percent, and differ otherwise in what they say in each environment."""
    sites = _sites(6, 300)
    size = rng.standard_normal(len(sites))
    X = np.column_stack([size[:, None] + 0.03 * rng.standard_normal((len(sites), 4)), rng.standard_normal(len(sites))])
    twist = rng.normal(0, 12, (6, 4))[sites]
    y = X[:, :4].mean(axis=1) + np.sum(twist * (X[:, :4] - size[:, None]), axis=1) * 0.2 + 0.3 * X[:, 4]
    return CalibrationDraw(X, y + 0.3 * rng.standard_normal(len(sites)), sites, np.full(5, np.nan))


def consequence(rng: np.random.Generator, *, noise: tuple[float, ...] = (1.0, 1.0, 1.0, 1.0)) -> CalibrationDraw:
    """The second feature is the response plus noise; scales of the cause and of the response differ by environment."""
    sites = _sites(4, 300)
    scale = np.array([0.2, 1.0, 2.0, 3.0])[sites]
    x = scale * rng.standard_normal(1200)
    y = x + scale * rng.standard_normal(1200)
    X = np.column_stack([x, y + np.array(noise)[sites] * rng.standard_normal(1200)])
    return CalibrationDraw(X, y, sites, np.full(2, np.nan))


CHOSEN = "five environments, chosen"
"""The setting that shows intervals of features which were kept because their effects happened to look alike."""

SETTINGS = (
    CalibrationSetting("null data", "six environments, 100 rows each, the same four effects, normal noise", null, NULL),
    CalibrationSetting("small environments", "the same with twelve rows each", small, NULL),
    CalibrationSetting("unequal noise", "noise of standard deviation 0.3 to 3, by environment", unequal, NULL),
    CalibrationSetting("uneven noise", "noise that grows with a feature", uneven, NULL),
    CalibrationSetting("heavy tails", "noise and features with Student's t of three degrees of freedom", heavy, NULL),
    CalibrationSetting(
        "clustered, told",
        "no effect, ten rows for each of 20 patients in six environments, `cluster=`",
        clustered,
        NULL,
    ),
    CalibrationSetting(
        "clustered, not told", "the same without `cluster=`", lambda rng: clustered(rng, told=False), NULL
    ),
    CalibrationSetting(
        "one noisy environment",
        "an effect that changes its sign, and an environment of 30 rows with a hundred times the noise",
        noisy_site,
        {"varying effect kept": first_kept, "varying effect removed": first_removed, "coverage": covers},
    ),
    CalibrationSetting(
        "one corrupted row",
        "an effect that changes its sign, and one response 10000 standard deviations off",
        corrupted_row,
        {"varying effect kept": first_kept, "varying effect removed": first_removed, "coverage": covers},
    ),
    CalibrationSetting(
        "one large environment",
        "5000 rows in one environment and 60 in five others; effects vary by 0.05, which cannot be seen",
        one_large,
        {"coverage": covers},
    ),
    CalibrationSetting(
        "one large environment, seen",
        "the same with effects that vary by 0.2",
        lambda rng: one_large(rng, spread=0.2),
        {"coverage": covers},
    ),
    CalibrationSetting(
        "three environments",
        "three environments of 100 rows; effects vary by 0.2",
        lambda rng: varying(rng, [100] * 3, 0.2),
        {"coverage": covers},
    ),
    CalibrationSetting(
        CHOSEN,
        "five environments of 100 rows; effects vary by 0.5, and most are removed: coverage of those that are kept",
        lambda rng: varying(rng, [100] * 5, 0.5),
        {"coverage": covers},
    ),
    CalibrationSetting(
        "varies in one environment",
        "a feature that is constant in all environments but one",
        one_site_only,
        {"called kept": first_kept},
    ),
    CalibrationSetting("base rates, binomial", "0/1, one odds ratio, base rates 1 to 50 %", base_rates, NULL),
    CalibrationSetting(
        "base rates, gaussian",
        'the same, fitted as numbers (`family="gaussian"`)',
        lambda rng: base_rates(rng, family="gaussian"),
        {"wrong removal": any_removed},
    ),
    CalibrationSetting("counts, poisson", "overdispersed counts, means 0.2 to 5, one relative effect", counts, NULL),
    CalibrationSetting(
        "counts, gaussian",
        "the same, fitted as numbers",
        lambda rng: counts(rng, family="gaussian"),
        {"wrong removal": any_removed},
    ),
    CalibrationSetting("shares, binomial", "shares, one odds ratio, levels 3 to 60 %", shares, NULL),
    CalibrationSetting(
        "shares, gaussian",
        "the same, fitted as numbers",
        lambda rng: shares(rng, family="gaussian"),
        {"wrong removal": any_removed},
    ),
    CalibrationSetting(
        "site-level covariate",
        "a property of twelve environments with effect 2",
        site_level,
        {"coverage": second_covered, "mean absolute error": second_error},
    ),
    CalibrationSetting(
        "collinear features",
        "four measurements of one quantity whose small differences matter differently in each environment",
        collinear,
        {"R^2 over least squares": explained},
    ),
    CalibrationSetting(
        "consequence, equal noise",
        "a feature that is the response plus noise",
        consequence,
        {"named": second_named, "cause named": first_named},
    ),
    CalibrationSetting(
        "consequence, unequal noise",
        "the same with noise of standard deviation 0.3 to 2, by environment",
        lambda rng: consequence(rng, noise=(0.5, 2.0, 1.0, 0.3)),
        {"named": second_named, "cause named": first_named},
    ),
)


# --- the suite -------------------------------------------------------------------------------------------------------------


def measured(setting: CalibrationSetting, repetitions: int) -> dict[str, tuple[float, float, int]]:
    """For each measure: the mean over repetitions, its standard error, and the number that count."""
    from gyrostat.estimators import InvariantLinearRegressor

    found: dict[str, list[float]] = {name: [] for name in setting.measures}
    for seed in range(repetitions):
        draw = setting.draw(np.random.default_rng(seed))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            model = InvariantLinearRegressor(random_state=0, **draw.options)
            model.fit(draw.X, draw.y, environments=draw.environments, **draw.fit)
            report = functools.cache(functools.partial(_report, draw))
            for name, measure in setting.measures.items():
                found[name].append(measure(draw, model, report))
    result = {}
    for name, listed in found.items():
        values = np.array(listed)[np.isfinite(listed)]
        result[name] = (float(values.mean()), float(values.std() / np.sqrt(len(values))), len(values))
    return result


def run(say: Callable[[str], Any], sizes: CalibrationSizes = CalibrationSizes()) -> Report:  # noqa: B008  (immutable)
    """Every record of the suite."""
    groups: list[Group[CalibrationSizes]] = [
        (setting.name, lambda s, this=setting: (_records(this, s.repetitions), [])) for setting in SETTINGS
    ]
    return run_groups(groups, sizes, say)


def _records(setting: CalibrationSetting, repetitions: int) -> list[BenchmarkRecord]:
    return [
        BenchmarkRecord(
            f"calibration/{_slug(setting.name)}-{name.replace(' ', '-')}",
            value,
            "mean over repetitions",
            settings={"setting": setting.name, "measure": name, "error": error, "repetitions": count},
        )
        for name, (value, error, count) in measured(setting, repetitions).items()
    ]


def _slug(setting: str) -> str:
    return setting.replace(",", "").replace(" ", "-")


MISUSED = ("clustered, not told", "base rates, gaussian", "counts, gaussian", "shares, gaussian")
"""Settings that show what happens if the estimator is not told of clusters, or of the kind of outcome."""


def evidence(report: Report) -> dict[str, Any]:
    """What ``docs/calibration.md`` shows.

    >>> about = {"setting": "null data", "measure": "coverage", "error": 0.02, "repetitions": 100}
    >>> record = BenchmarkRecord("calibration/null-data-coverage", 0.95, "mean over repetitions", settings=about)
    >>> values = evidence(Report([record], []))
    >>> values["coverage-least"], values["measures"]["rows"][0][2:]
    (0.95, ['coverage', '0.950 +- 0.020', '100'])
    """
    texts = {setting.name: setting.text for setting in SETTINGS}
    value = {(r.settings["setting"], r.settings["measure"]): r.ours for r in report.records}
    removed = {setting: share for (setting, measure), share in value.items() if measure == "wrong removal"}
    right = [share for setting, share in removed.items() if setting not in MISUSED]
    covered = [
        share
        for (setting, measure), share in value.items()
        if measure == "coverage" and setting not in (*MISUSED, CHOSEN)
    ]
    rows = [
        [
            (setting := record.settings["setting"]),
            texts[setting],
            record.settings["measure"],
            f"{record.ours:.3f} +- {record.settings['error']:.3f}",
            str(record.settings["repetitions"]),
        ]
        for record in report.records
    ]
    return {
        "right-settings": len(right),
        "right-removed": max(right, default=np.nan),
        **{f"removed-{_slug(setting)}": removed.get(setting, np.nan) for setting in MISUSED},
        "coverage-least": min(covered, default=np.nan),
        "coverage-most": max(covered, default=np.nan),
        "coverage-chosen": value.get((CHOSEN, "coverage"), np.nan),
        "measures": grid(["setting", "data", "measure", "value", "repetitions"], rows),
    }


def finish(report: Report, out: Path, console: Console) -> None:
    """Write what the page shows."""
    write_evidence("calibration", "calibration", evidence(report), out, console)
