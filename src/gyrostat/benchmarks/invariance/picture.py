"""The picture of the study: every error relative to least squares, as dots with intervals."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gyrostat.benchmarks.invariance.methods import OURS, PRINCIPAL, UNTUNED
from gyrostat.benchmarks.invariance.study import Row
from gyrostat.figures.declarations import Dots, Figure, Marker, Panel

SHOWN = (OURS, UNTUNED, PRINCIPAL, "IRMv1", "V-REx", "GroupDRO", "ANDMask")
"""As many as there are colours; ridge, fixed effects, anchor regression and ICP are in the tables."""
FLOOR = 1e-3
"""Smaller ratios, zero among them, are drawn here."""

GROUPS: tuple[tuple[str, Callable[[Row], bool]], ...] = (
    ("Effects that vary, and EILLS", lambda row: row.setting in ("diagonal", "flips", "one-sign", "eills")),
    ("Linear unit tests", lambda row: row.setting.startswith("example-")),
    ("Real data, one place left out", lambda row: row.solvable is None),
    ("IRM 5.1: causal weights", lambda row: row.setting.startswith("irm-") and row.measure == "causal weights"),
    ("IRM 5.1: non-causal weights", lambda row: row.setting.startswith("irm-") and row.measure != "causal weights"),
)


def picture(rows: Sequence[Row]) -> Figure:
    """A panel for each group of settings that has a row with a ratio."""
    panels = [_panel(title, [row for row in rows if of(row)]) for title, of in GROUPS]
    return Figure(
        title="Errors relative to pooled least squares",
        panels=[panel for panel in panels if panel is not None],
        note=(
            "Left of the line is better than least squares. Intervals of 95 percent (bootstrap over repetitions, or over rows "
            f"of the place left out). Ratios below {FLOOR:g}, zero among them, are drawn there. Settings in which least "
            "squares makes no error are left out. Hyper-parameters are chosen by the mean error in training places left out."
        ),
    )


def _panel(title: str, rows: Sequence[Row]) -> Panel | None:
    shown = [row for row in rows if row.methods[OURS]["ratio"] is not None]
    if not shown:
        return None
    series: list[Any] = [_dots(shown, name, colour) for colour, name in enumerate(SHOWN)]
    series = [dots for dots in series if dots.categories]
    series.append(Marker(1.0, "least squares", axis="x"))
    return Panel(
        title=title, xlabel="error / error of least squares", ylabel="", series=series, xscale="log", height=2.0
    )


def _dots(rows: Sequence[Row], name: str, colour: int) -> Dots:
    have = [row for row in rows if name in row.methods]
    values, low, high = (
        [max(row.methods[name][key], FLOOR) for row in have] for key in ("ratio", "ratio_low", "ratio_high")
    )
    return Dots(
        [_label(row) for row in have], np.array(values), name, low=np.array(low), high=np.array(high), colour=colour
    )


def _label(row: Row) -> str:
    plain = row.setting.startswith(("irm-", "example-"))
    word = row.measure.removesuffix(" environments").removesuffix(" place")
    return row.setting if plain else f"{row.setting}\n{word}"
