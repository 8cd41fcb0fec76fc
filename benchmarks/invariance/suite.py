"""The invariance suite: how well the linear estimator finds the effects that hold everywhere, and how fast it is."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from rich.console import Console
from rich.table import Table

from benchmarks.invariance import evidence
from benchmarks.invariance.simulations import SIMULATIONS, Simulation
from benchmarks.invariance.study import InvarianceRow, on_real_data, simulated
from benchmarks.invariance.suite_methods import METHODS, OURS, UNTUNED
from benchmarks.measuring import best_of
from benchmarks.records import BenchmarkRecord, Group, GroupResult, Report, run_groups, write_evidence
from gyrostat.estimators.comparison.compared_methods import REFERENCE, Method
from gyrostat.tables.examples import REAL_TABLES, RealTable

UNITS = {
    "coefficients": "squared error of coefficients",
    "causal weights": "mean squared error of causal weights",
    "non-causal weights": "mean squared non-causal weight",
    "unseen environments": "squared error in unseen environments",
    "wrong labels": "share of wrong labels",
    "mean environment": "squared error over variance, mean environment",
    "worst environment": "squared error over variance, worst environment",
}
"""The unit of a record for each measure."""


class InvarianceSizes(NamedTuple):
    """How much to run; the tests take less."""

    repetitions: int = 20
    rows: int | None = None
    resamples: int = 500
    methods: tuple[Method, ...] = METHODS
    speed: tuple[int, int, int] = (1_000_000, 100, 10)
    repeats: int = 2


def run(say: Callable[[str], Any], sizes: InvarianceSizes = InvarianceSizes()) -> Report:  # noqa: B008  (immutable)
    """Every record of the suite."""
    groups: list[Group[InvarianceSizes]] = [
        (simulation.name, lambda s, this=simulation: _on_simulation(this, s)) for simulation in SIMULATIONS
    ]
    groups += [(data.name, lambda s, this=data: _on_data(this, s)) for data in REAL_TABLES]
    return run_groups([*groups, ("a million rows", speed)], sizes, say)


def _on_simulation(simulation: Simulation, sizes: InvarianceSizes) -> GroupResult:
    rows = simulated(simulation, sizes.repetitions, methods=sizes.methods, rows=sizes.rows)
    return [record for row in rows for record in _records(row)], []


def _on_data(data: RealTable, sizes: InvarianceSizes) -> GroupResult:
    if data.missing:
        return [], [data.missing]
    rows = on_real_data(data, methods=sizes.methods, resamples=sizes.resamples)
    return [record for row in rows for record in _records(row)], []


def _records(row: InvarianceRow) -> list[BenchmarkRecord]:
    """Ours, tuned (with the whole row in its settings) and untuned, against least squares; and tuned against the best other."""
    name = f"invariance/{row.setting}-{row.measure.replace(' ', '-')}"
    mine, untuned, base, its = (row.methods[m]["error"] for m in (OURS, UNTUNED, REFERENCE, row.best_other))
    unit, sample, best = UNITS[row.measure], {"sample": row.sample}, f"{row.best_other}, the best of the others"
    # Better than least squares is the goal where the answer can be found; not for predictions in unseen environments.
    goal = 1.0 if row.solvable and row.measure != "unseen environments" else None
    return [
        BenchmarkRecord(f"{name}-vs-least-squares", mine, unit, base, REFERENCE, goal, {"row": row.as_dict()}),
        BenchmarkRecord(f"{name}-untuned-vs-least-squares", untuned, unit, base, REFERENCE, goal, sample),
        BenchmarkRecord(f"{name}-vs-best", mine, unit, its, best, None, sample),
    ]


def speed(sizes: InvarianceSizes) -> GroupResult:
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
    settings = {"rows": n, "features": d, "environments": E, "seconds": best["ours"], "peer_seconds": best["peer"]}
    name = "scikit-learn Ridge on all rows together"
    return [BenchmarkRecord("invariance/speed-fit", best["ours"], "s", best["peer"], name, None, settings)], []


def finish(report: Report, out: Path, console: Console) -> None:
    """Print the table with intervals; write what the page shows, and its picture."""
    from gyrostat.figures.matplotlib_renderer import render

    rows = [InvarianceRow(**record.settings["row"]) for record in report.records if "row" in record.settings]
    if not rows:
        return
    shown = Table(title="Invariance (errors with 95 percent intervals; ratios below 1 are better than least squares)")
    for i in evidence.IN_TERMINAL:
        shown.add_column(evidence.HEADINGS[i])
    for row in rows:
        cells = evidence.main_cells(row)
        shown.add_row(*(cells[i] for i in evidence.IN_TERMINAL))
    console.print(shown, highlight=False)
    write_evidence("invariance", "invariance", evidence.values(rows, report.notes), out, console)
    render(evidence.picture(rows), out / "images" / "invariance")
