"""``gyrostat compare-methods``: errors of methods in environments of a table that are left out, as text, picture and CSV."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from rich.console import Console
from rich.table import Table

from gyrostat.estimators.comparison.compared_methods import OWN, REFERENCE
from gyrostat.estimators.comparison.leave_one_out import FEWEST, MethodComparison, compare_methods
from gyrostat.figures.declarations import Dots, Figure, Marker, Panel
from gyrostat.tables.fit_and_predict import rows_of_table, writing
from gyrostat.tables.table_files import read_table
from gyrostat.tables.text_files import FileFormat

HEADINGS = ("method", "mean error", "over least squares", "worst error", "over least squares", "worst environment")
PANELS = {"mean": "Mean over environments", "worst": "Worst environment"}
FARTHEST = 10.0
"""Ratios beyond this are drawn here."""


def compare_on_table(
    data: Path,
    *,
    target: str,
    environment: str,
    out: Path,
    console: Console,
    features: str = "",
    drop: str = "",
    missing: str = "error",
    choose_by: str = "mean",
    seed: int = 0,
    text_format: FileFormat = FileFormat(),  # noqa: B008  (immutable)
    ordered: Sequence[str] = (),
    min_rows: int | None = None,
) -> MethodComparison:
    """Compare methods on the table in ``data``; write ``comparison.csv``, ``environments.csv`` and the picture into ``out``."""
    with writing(out):
        out.mkdir(parents=True, exist_ok=True)
    frame = read_table(data, replace(text_format, labels=(environment,)))
    rows = rows_of_table(
        frame,
        target,
        environment,
        features,
        drop,
        missing,
        ordered=ordered,
        min_rows=min_rows,
        least_environments=FEWEST,
    )
    for note in rows.notes:
        console.print(note, markup=False, highlight=False, soft_wrap=True)
    if set(np.unique(rows.y)) <= {0.0, 1.0}:
        console.print(f"{target} holds 0 and 1: the mean square error is the Brier score.", highlight=False)
    found = compare_methods(rows.X, rows.y, rows.labels, choose_by=choose_by, seed=seed)  # type: ignore[arg-type]
    with writing(out):
        found.table.to_csv(out / "comparison.csv")
        found.errors.to_csv(out / "environments.csv")
        draw_comparison(found, f"{target} in environments left out, by {environment}", out / "comparison")
    _print(console, found, target, environment, out)
    return found


def _print(console: Console, found: MethodComparison, target: str, environment: str, out: Path) -> None:
    title = f"{target} in values of {environment} left out one at a time ({found.confidence:.0%} intervals)"
    table = Table(title=title, title_justify="left", pad_edge=False)
    for heading in HEADINGS:
        table.add_column(heading, overflow="fold")
    for name, row in found.table.sort_values("mean", kind="stable").iterrows():
        table.add_row(*cells(str(name), row))
    console.print(table)
    for sentence in found.advice:
        console.print(sentence, highlight=False, soft_wrap=True)
    console.print(
        'Errors are root mean squares. "over least squares" is the ratio of mean squares: below 1 is better.',
        highlight=False,
    )
    console.print(f"Tables and picture are in {out}", highlight=False)


def cells(name: str, row: pd.Series) -> list[str]:
    """A method as a line of the table: errors with intervals, and the place that is worst for it."""

    def interval(error: str) -> list[str]:
        low, ratio, high = (row[f"{error}_ratio{end}"] for end in ("_low", "", "_high"))
        shown = f"{row[error]:.4g} ({row[f'{error}_low']:.4g} to {row[f'{error}_high']:.4g})"
        return [shown, "1" if name == REFERENCE else f"{ratio:.3g} ({low:.3g} to {high:.3g})"]

    return [name, *interval("mean"), *interval("worst"), str(row["worst_environment"])]


def draw_comparison(found: MethodComparison, title: str, base: Path) -> list[Path]:
    """Write the picture as ``base.png`` and ``base.svg``."""
    from gyrostat.figures.matplotlib_renderer import render

    return render(comparison_figure(found, title), base)


def comparison_figure(found: MethodComparison, title: str) -> Figure:
    """The errors of all methods relative to least squares, with intervals: the mean, and that of the worst environment."""
    return Figure(
        title=title,
        panels=[_panel(found.table, error) for error in PANELS],
        note=(
            "Left of the line is better than least squares. Mean square errors relative to its own, with "
            f"{found.confidence:.0%} intervals. Ratios above {FARTHEST:g} are drawn at {FARTHEST:g}."
        ),
        columns=2,
    )


def _panel(table: pd.DataFrame, error: str) -> Panel:
    others = table.drop(index=REFERENCE).sort_values("mean_ratio", kind="stable")
    own = others.index.isin([m.name for m in OWN])
    series: list[Any] = [  # both name all methods, in one order, and draw their own
        _dots(others, error, own, "ours", 0),
        _dots(others, error, ~own, "other methods", 6),
        Marker(1.0, REFERENCE, axis="x"),
    ]
    return Panel(
        title=PANELS[error],
        xlabel="mean square error / that of least squares",
        ylabel="",
        series=series,
        xscale="log",
        height=1.7,
    )


def _dots(table: pd.DataFrame, error: str, shown: np.ndarray, label: str, colour: int) -> Dots:
    def column(end: str) -> np.ndarray:
        return np.where(shown, np.minimum(table[f"{error}_ratio{end}"].to_numpy(), FARTHEST), np.nan)

    return Dots(list(table.index), column(""), label, low=column("_low"), high=column("_high"), colour=colour)
