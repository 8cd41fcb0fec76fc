"""The invariance suite: how well the linear estimator finds what holds everywhere, against others; and how fast it is."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from rich.console import Console
from rich.table import Table

from gyrostat.benchmarks.groups import Found, walk
from gyrostat.benchmarks.invariance import SIMULATIONS, page
from gyrostat.benchmarks.invariance.methods import METHODS, OURS, REFERENCE, UNTUNED, Method
from gyrostat.benchmarks.invariance.real import DATA
from gyrostat.benchmarks.invariance.study import Row, on_real_data, simulated
from gyrostat.benchmarks.invariance.table import HEADINGS, IN_TERMINAL, main_cells
from gyrostat.benchmarks.records import Record, Report
from gyrostat.benchmarks.timing import best_of

__all__ = ["finish", "panels", "run"]

UNITS = {
    "coefficients": "squared error of coefficients",
    "causal weights": "mean squared error of causal weights",
    "non-causal weights": "mean squared non-causal weight",
    "unseen environments": "squared error in unseen environments",
    "wrong labels": "share of wrong labels",
    "mean place": "squared error over variance, mean place",
    "worst place": "squared error over variance, worst place",
}
"""What each measure is, for a record."""


class Sizes(NamedTuple):
    """How much to run; the tests take less."""

    repetitions: int = 20
    rows: int | None = None
    resamples: int = 500
    methods: tuple[Method, ...] = METHODS
    speed: tuple[int, int, int] = (1_000_000, 100, 10)
    repeats: int = 2


def run(say: Callable[[str], Any], sizes: Sizes = Sizes()) -> Report:  # noqa: B008  (immutable)
    """Every record of the suite."""
    groups: list[tuple[str, Callable[[Sizes], Found]]] = [
        (simulation.name, lambda s, this=simulation: _on_simulation(this, s)) for simulation in SIMULATIONS
    ]
    groups += [(data.name, lambda s, this=data: _on_data(this, s)) for data in DATA]
    return walk([*groups, ("a million rows", speed)], sizes, say)


def panels(records: Sequence[Record]) -> list:
    """None in the common figure, which is about time: the suite has a picture of its own."""
    return []


def _on_simulation(simulation: Any, sizes: Sizes) -> Found:
    rows = simulated(simulation, sizes.repetitions, methods=sizes.methods, rows=sizes.rows)
    return [record for row in rows for record in _records(row)], _missing(sizes.methods)


def _on_data(data: Any, sizes: Sizes) -> Found:
    if data.missing:
        return [], [data.missing]
    rows = on_real_data(data, methods=sizes.methods, resamples=sizes.resamples)
    return [record for row in rows for record in _records(row)], []


def _missing(methods: Sequence[Method]) -> list[str]:
    absent = {m.package: m.name for m in reversed(methods) if not m.installed}
    return [
        f"{name}: {package} not installed; pip install gyrostat[bench]." for package, name in reversed(absent.items())
    ]


def _records(row: Row) -> list[Record]:
    """Against least squares, with all of the row in the settings, also untuned; and against the best of the others."""
    name = f"invariance/{row.setting}-{row.measure.replace(' ', '-')}"
    mine, untuned, base, its = (row.methods[m]["error"] for m in (OURS, UNTUNED, REFERENCE, row.best_other))
    unit, told, best = UNITS[row.measure], {"sample": row.sample}, f"{row.best_other}, the best of the others"
    # Better than least squares is asked where the answer can be found, of the answer: not of predictions in unseen places.
    goal = 1.0 if row.solvable and row.measure != "unseen environments" else None
    return [
        Record(f"{name}-vs-least-squares", mine, unit, base, REFERENCE, goal, {"row": row.as_dict()}),
        Record(f"{name}-untuned-vs-least-squares", untuned, unit, base, REFERENCE, goal, told),
        Record(f"{name}-vs-best", mine, unit, its, best, None, told),
    ]


def speed(sizes: Sizes) -> Found:
    """One fit to many rows, against pooled ridge on the same arrays."""
    from sklearn.linear_model import Ridge

    from gyrostat.estimators import InvariantLinearRegressor

    n, d, E = sizes.speed
    rng = np.random.default_rng(0)
    X, labels = rng.standard_normal((n, d)), np.arange(n) % E
    y = X[:, :3].sum(axis=1) + rng.standard_normal(E)[labels] * X[:, 3] + rng.standard_normal(n)
    sides: dict[str, Callable[[], Any]] = {
        "ours": lambda: InvariantLinearRegressor(random_state=0).fit(X, y, environments=labels),
        "peer": lambda: Ridge().fit(X, y),
    }
    best = best_of(sides, sizes.repeats)
    told = {"rows": n, "features": d, "environments": E, "seconds": best["ours"], "peer_seconds": best["peer"]}
    name = "scikit-learn Ridge on all rows together"
    return [Record("invariance/speed-fit", best["ours"], "s", best["peer"], name, None, told)], []


def finish(report: Report, out: Path, console: Console) -> None:
    """Print the table with intervals; write it with all that explains it to ``invariance.md``, beside its picture."""
    rows = [Row(**record.settings["row"]) for record in report.records if "row" in record.settings]
    if not rows:
        return
    shown = Table(title="Invariance (errors with 95 percent intervals; ratios below 1 are better than least squares)")
    for i in IN_TERMINAL:
        shown.add_column(HEADINGS[i])
    for row in rows:
        cells = main_cells(row)
        shown.add_row(*(cells[i] for i in IN_TERMINAL))
    console.print(shown, highlight=False)
    page.write(rows, report.notes, out)
    console.print(f"Written to {out / 'invariance.md'}.", highlight=False)
