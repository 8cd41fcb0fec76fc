"""The suite ``compare-methods``: what each method is worth for its purpose, on laws with known answers and on real tables.

``docs/compare-methods.md`` explains the command and shows the result.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from rich.console import Console

from benchmarks.held_out_tables import HELD_OUT_TABLES, HeldOutTable
from benchmarks.invariance import simulations
from benchmarks.invariance.simulations import MEASURES, Draw
from benchmarks.records import BenchmarkRecord, Group, GroupResult, Report, grid, run_groups, write_evidence
from gyrostat.estimators.comparison import peer_methods
from gyrostat.estimators.comparison.compared_methods import (
    COMPARED,
    FIXED,
    OURS,
    OWN,
    PEERS,
    REFERENCE,
    SAME_KIND,
    WORST_CASE,
    Method,
    fitted,
)
from gyrostat.estimators.comparison.leave_one_out import CLOSE, MethodComparison, by_environment, comparison
from gyrostat.estimators.squared_losses import Environment
from gyrostat.tables.examples import FURTHER_TABLES, REAL_TABLES, RealTable, sites

GOAL = 1.02
"""The largest ratio to the better of least squares and fixed effects in new environments of the same law that we aim at."""
NEW = 30
"""New environments of each repetition."""


class ComparisonSizes(NamedTuple):
    """Repetitions of laws, of laws with all methods, of combinations; bootstrap samples; tables."""

    laws: int = 100
    all_methods: int = 20
    combinations: int = 10
    resamples: int = 500
    methods: tuple[Method, ...] = COMPARED
    tables: tuple[RealTable, ...] = (*REAL_TABLES, *FURTHER_TABLES)
    held_out: tuple[HeldOutTable, ...] = HELD_OUT_TABLES


# --- new environments of the same law --------------------------------------------------------------------------------------

SLOPES = np.array([1.0, -0.5, 0.3, 0.0, 0.0])
LAWS = {
    "nothing varies": {},
    "levels": {"levels": 1.5},
    "slopes": {"slopes": 0.7},
    "levels and slopes": {"levels": 1.5, "slopes": 0.7},
    "levels and slopes, uneven noise": {"levels": 1.5, "slopes": 0.7, "noises": (0.3, 1.0, 3.0)},
    "levels, uneven sizes": {"levels": 1.5, "sizes": (0.5, 1.0, 8.0)},
    "levels follow features": {"between": np.array([1.0, 1.0, -1.0, 0.0, 0.0])},
    "levels follow features, and slopes": {"between": np.array([1.0, 1.0, -1.0, 0.0, 0.0]), "slopes": 0.7},
}
"""Options of :func:`environments_of_law` by the words for a law."""
COUNTS = ((3, 100), (4, 40), (8, 60), (20, 50))
"""Environments and rows of each."""
POOLERS = (REFERENCE, FIXED, "mean of slopes", "mixed model", SAME_KIND)


def environments_of_law(
    rng: np.random.Generator,
    count: int,
    rows: int,
    *,
    levels: float = 0.0,
    slopes: float = 0.0,
    between: np.ndarray | float = 0.0,
    sizes: Sequence[float] = (1.0,),
    noises: Sequence[float] = (1.0,),
) -> list[Environment]:
    """Environments whose features have their own means; levels and three slopes vary, or levels follow the means."""
    found = []
    for _ in range(count):
        means = rng.standard_normal(len(SLOPES))
        X = means + rng.standard_normal((int(rows * rng.choice(sizes)), len(SLOPES)))
        coef = SLOPES + slopes * np.append(rng.standard_normal(3), [0.0, 0.0])
        level = levels * rng.standard_normal() + float(np.sum(between * means))
        found.append((X, level + X @ coef + rng.choice(noises) * rng.standard_normal(len(X))))
    return found


def _of_law(name: str, sizes: ComparisonSizes) -> GroupResult:
    methods = [m for m in COMPARED if m.name in POOLERS]
    records = []
    for count, rows in COUNTS:
        errors = np.zeros((sizes.laws, len(methods)))
        for r in range(sizes.laws):
            rng = np.random.default_rng([zlib.crc32(name.encode()), count, r])
            options: dict[str, Any] = LAWS[name]  # type: ignore[assignment]
            predictors = fitted(methods, environments_of_law(rng, count, rows, **options))
            tests = environments_of_law(rng, NEW, 200, **options)
            errors[r] = [np.mean([np.mean((y - predictors[m.name](X)) ** 2) for X, y in tests]) for m in methods]
        means = dict(zip((m.name for m in methods), errors.mean(axis=0), strict=True))
        better = min(means[REFERENCE], means[FIXED])
        settings = {
            "part": "law",
            "law": name,
            "environments": count,
            "rows": rows,
            "repetitions": sizes.laws,
            "errors": means,
        }
        records.append(
            BenchmarkRecord(
                f"compare-methods/{name.replace(' ', '-')}-{count}".replace(",", ""),
                means[SAME_KIND],
                "squared error in new environments of the same law",
                better,
                "the better of least squares and fixed effects",
                1 / GOAL,
                settings,
            )
        )
    return records, []


# --- effects that change their sign: all methods, the worst of many new environments -----------------------------------------

FLIPPING: dict[str, Callable[[np.random.Generator, int], Draw]] = {
    "flips": partial(simulations.flips, tests=NEW),
    "diagonal": partial(simulations.diagonal, tests=NEW),
}
"""Settings in which two effects have both signs."""


UNSEEN = 2000
"""The first repetition: no setting of ours was chosen after a look at it or a later one."""


def _worst(name: str, sizes: ComparisonSizes) -> GroupResult:
    methods = [replace(m, rule="worst") for m in sizes.methods]
    errors = np.zeros((sizes.all_methods, len(methods), 2))
    for r in range(sizes.all_methods):
        draw = FLIPPING[name](np.random.default_rng([zlib.crc32(name.encode()), UNSEEN + r]), 300)
        predictors = fitted(methods, draw.train)
        for i, m in enumerate(methods):
            each = [np.mean((y - predictors[m.name](X)) ** 2) for X, y in draw.tests]
            errors[r, i] = np.mean(each), np.max(each)
    mean, worst = ({m.name: float(x) for m, x in zip(methods, column, strict=True)} for column in errors.mean(axis=0).T)
    best = min((n for n in worst if n not in [m.name for m in OWN]), key=worst.__getitem__)
    settings = {"part": "worst", "law": name, "repetitions": sizes.all_methods, "mean": mean, "worst": worst}
    unit = f"squared error in the worst of {NEW} new environments"
    record = BenchmarkRecord(f"compare-methods/{name}-worst", worst[WORST_CASE], unit, worst[best], best, 1.0, settings)
    return [record], []


# --- combinations ------------------------------------------------------------------------------------------------------------


def _ten(scrambled: bool) -> Callable[[np.random.Generator, int], Draw]:
    example = partial(simulations.example_3, environments=10)
    return partial(simulations.draw_unit_test, example, scrambled)


COMBINED: dict[str, tuple[Callable[[np.random.Generator, int], Draw], str]] = {
    **{s.name: (s.draw, s.measures[0]) for s in simulations.SIMULATIONS},
    "example-3, ten environments": (_ten(False), "wrong labels"),
    "example-3s, ten environments": (_ten(True), "wrong labels"),
}
"""A draw and the error by which it is judged."""
MODES = ("features", "principal", "auto")


def _combinations(name: str, sizes: ComparisonSizes) -> GroupResult:
    draw, measure = COMBINED[name]
    methods = [PEERS[REFERENCE]]
    methods += [Method(mode, partial(peer_methods.ours, directions=mode), (), 0.5) for mode in MODES]
    errors, combined = np.zeros((sizes.combinations, len(methods))), 0
    for r in range(sizes.combinations):
        drawn = draw(np.random.default_rng([zlib.crc32(name.encode()), r]), 1000)
        found = fitted(methods, drawn.train)
        errors[r] = [MEASURES[measure](found[m.name], drawn) for m in methods]
        combined += not np.allclose(found["auto"].coef, found["features"].coef)
    means = {m.name: float(e) for m, e in zip(methods, errors.mean(axis=0), strict=True)}
    settings = {
        "part": "combinations",
        "law": name,
        "measure": measure,
        "repetitions": sizes.combinations,
        "errors": means,
        "combined": combined / sizes.combinations,
    }
    name = f"compare-methods/combinations-{name.replace(', ', '-').replace(' ', '-')}"
    return [BenchmarkRecord(name, means["auto"], measure, means["features"], "features only", None, settings)], []


# --- real tables -------------------------------------------------------------------------------------------------------------


def _simulated_sites() -> dict[str, Environment]:
    table = sites()
    X = table.drop(columns=["site", "outcome", "sex"]).assign(male=table["sex"] == "m")
    return by_environment(X.astype(float), table["outcome"], table["site"])


def _on_table(name: str, environments: Callable[[], dict[str, Environment]], sizes: ComparisonSizes) -> GroupResult:
    found = comparison(environments(), sizes.methods, 0.95, sizes.resamples, 0)
    settings = {
        "part": "table",
        "table": name,
        "environments": found.errors.shape[1],
        "ratios": {e: found.table[f"{e}_ratio"].to_dict() for e in ("mean", "worst")},
        "recommended": {e: found.recommended(e) for e in ("mean", "worst")},
        "advice": list(found.advice[:2]),
    }
    return [_table_record(name, found, settings)], []


def _table_record(name: str, found: MethodComparison, settings: dict[str, Any]) -> BenchmarkRecord:
    means = found.table["mean"] ** 2
    better = float(min(means[REFERENCE], means[FIXED]))
    return BenchmarkRecord(
        f"compare-methods/{name}",
        float(means[SAME_KIND]),
        "squared error, mean over environments left out",
        better,
        "the better of least squares and fixed effects",
        1 / GOAL,
        settings,
    )


def _on_real_table(table: RealTable, sizes: ComparisonSizes) -> GroupResult:
    return ([], [table.missing]) if table.missing else _on_table(table.name, table.environments, sizes)


UNSEEN_METHODS = (*POOLERS, "GroupDRO", OURS, WORST_CASE)
"""The methods that are compared on tables held out: those that choose nothing, and ours with its defaults."""


def _on_held_out_table(table: HeldOutTable, sizes: ComparisonSizes) -> GroupResult:
    if table.missing:
        return [], [table.missing]
    methods = [replace(m, grid=()) for m in COMPARED if m.name in UNSEEN_METHODS]
    found = comparison(table.environments(), methods, 0.95, 2, 0)
    settings = {
        "part": "held out",
        "table": table.name,
        "environments": found.errors.shape[1],
        "ratios": {e: found.table[f"{e}_ratio"].to_dict() for e in ("mean", "worst")},
    }
    return [_table_record(f"held-out-{table.name.replace(' ', '-')}", found, settings)], []


def run(say: Callable[[str], Any], sizes: ComparisonSizes = ComparisonSizes()) -> Report:  # noqa: B008  (immutable)
    """Every record of the suite."""
    groups: list[Group[ComparisonSizes]] = [(f"same law: {name}", partial(_of_law, name)) for name in LAWS]
    groups += [("table: sites", lambda s: _on_table("sites", _simulated_sites, s))]
    groups += [(f"table: {t.name}", partial(_on_real_table, t)) for t in sizes.tables]
    groups += [(f"table held out: {t.name}", partial(_on_held_out_table, t)) for t in sizes.held_out]
    groups += [(f"combinations: {name}", partial(_combinations, name)) for name in COMBINED]
    groups += [(f"worst of new environments: {name}", partial(_worst, name)) for name in FLIPPING]
    return run_groups(groups, sizes, say)


def finish(report: Report, out: Path, console: Console) -> None:
    """Write what the page shows."""
    write_evidence("compare-methods", "compare-methods", evidence(report), out, console)


# --- the page ----------------------------------------------------------------------------------------------------------------


def evidence(report: Report) -> dict[str, Any]:
    """What ``docs/compare-methods.md`` shows, by the names of its marks."""
    law, worst, combined, tables, held_out = (
        [r for r in report.records if r.settings.get("part") == part]
        for part in ("law", "worst", "combinations", "table", "held out")
    )
    ratios = [r.settings["ratios"]["worst"][WORST_CASE] for r in (*tables, *held_out)]
    return {
        "laws": len(law),
        "laws-met": _met(law),
        "tables": len(tables),
        "tables-met": _met(tables),
        "held-out": len(held_out),
        "held-out-met": _met(held_out),
        "missed": ", ".join(r.settings["table"] for r in (*tables, *held_out) if not r.meets) or "none",
        **{f"{r.settings['law']}-worst": r.ours / r.peer for r in worst if r.peer},
        **{f"{r.settings['law']}-best-other": r.peer_name for r in worst},
        "all-tables": len(ratios),
        "tables-better": sum(x < 1 - CLOSE for x in ratios),
        "tables-worse": sum(x > 1 + CLOSE for x in ratios),
        "law-errors": _law_table(law),
        "law-repetitions": _repetitions(law),
        "worst-errors": _worst_table(worst),
        "worst-repetitions": _repetitions(worst),
        "worst-goals": [
            f"`{r.settings['law']}`: {WORST_CASE} {r.ours:.3g}, the best other ({r.peer_name}) {r.peer:.3g}: "
            f"{'met' if r.meets else 'missed'}."
            for r in worst
        ],
        "combination-errors": _combination_table(combined),
        "combination-repetitions": _repetitions(combined),
        "table-means": _ratio_table(tables, "mean"),
        "table-worst": _ratio_table(tables, "worst"),
        "table-goals": ", ".join(f"{r.settings['table']} {'met' if r.meets else 'missed'}" for r in tables),
        "advice": [f"**{r.settings['table']}**: {' '.join(r.settings['advice'])}" for r in tables],
        "held-out-errors": _held_out_table(held_out),
        "notes": report.notes,
    }


def _met(records: Sequence[BenchmarkRecord]) -> int:
    return sum(bool(r.meets) for r in records)


def _repetitions(records: Sequence[BenchmarkRecord]) -> int:
    return records[0].settings["repetitions"] if records else 0


def _law_table(records: Sequence[BenchmarkRecord]) -> dict[str, Any]:
    headings = ["law", "environments", "rows of each", *POOLERS, "goal"]
    lines = []
    for r in records:
        s = r.settings
        ratios = [f"{s['errors'][m] / r.peer:.3f}" for m in POOLERS] if r.peer else []
        lines.append([s["law"], str(s["environments"]), str(s["rows"]), *ratios, "met" if r.meets else "missed"])
    return grid(headings, lines)


def _worst_table(records: Sequence[BenchmarkRecord]) -> dict[str, Any]:
    names = list(records[0].settings["worst"]) if records else []
    headings = ["method", *(f"{r.settings['law']}, {error}" for r in records for error in ("worst", "mean"))]
    lines = [
        [name, *(f"{r.settings[e][name] / r.settings[e][REFERENCE]:.2f}" for r in records for e in ("worst", "mean"))]
        for name in names
    ]
    return grid(headings, lines)


def _combination_table(records: Sequence[BenchmarkRecord]) -> dict[str, Any]:
    headings = ["setting", "error of", REFERENCE, *MODES, "combinations used"]
    lines = [
        [
            r.settings["law"],
            r.settings["measure"],
            *(f"{r.settings['errors'][name]:.3g}" for name in (REFERENCE, *MODES)),
            f"{r.settings['combined']:.0%}",
        ]
        for r in records
    ]
    return grid(headings, lines)


def _ratio_table(records: Sequence[BenchmarkRecord], error: str) -> dict[str, Any]:
    names = list(records[0].settings["ratios"][error]) if records else []
    headings = ["method", *(f"{r.settings['table']} ({r.settings['environments']})" for r in records)]
    return grid(headings, [[name, *(f"{r.settings['ratios'][error][name]:.3f}" for r in records)] for name in names])


def _held_out_table(records: Sequence[BenchmarkRecord]) -> dict[str, Any]:
    worst = ("GroupDRO", OURS, WORST_CASE)
    headings = ["table", *(f"{m}, mean" for m in POOLERS), "goal", *(f"{m}, worst" for m in worst)]
    lines = []
    for r in records:
        mean, most = r.settings["ratios"]["mean"], r.settings["ratios"]["worst"]
        better = min(mean[REFERENCE], mean[FIXED])
        lines.append(
            [
                f"{r.settings['table']} ({r.settings['environments']})",
                *(f"{mean[m] / better:.3f}" for m in POOLERS),
                "met" if r.meets else "missed",
                *(f"{most[m]:.2f}" for m in worst),
            ]
        )
    return grid(headings, lines)
