"""Curves of a benchmark: how they travel in a record, and how they are drawn."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from gyrostat.benchmarks.records import Record
from gyrostat.figures.declarations import Line, Panel, Points


class Axis(NamedTuple):
    """What a curve is drawn against, and the title over it."""

    title: str
    label: str

    def curve(self, x: Sequence, y: Sequence, unit: str) -> dict[str, Any]:
        """The curve as it stands in a record's settings."""
        return {"title": self.title, "xlabel": self.label, "x": list(x), "y": list(y), "unit": unit}


def panels(records: Sequence[Record]) -> list[Panel]:
    """A panel for every record that carries a curve."""
    return [_panel(record) for record in records if "curve" in record.settings]


def _panel(record: Record) -> Panel:
    curve = record.settings["curve"]
    x, y = (np.asarray(curve[axis], dtype=float) for axis in "xy")
    series: list[Any] = [Line(x, y, "measured", colour=0), Points(x, y, "measured", colour=0)]
    if "exponent" in record.settings:
        slope = record.settings["exponent"]
        upper = x[len(x) // 2 :]
        fitted = y[-1] * (upper / x[-1]) ** slope
        series.append(Line(upper, fitted, f"fitted power {slope:.2f}", role="theory", colour=1))
    limits = None if "exponent" in record.settings else (float(y.min() / 3), float(y.max() * 3))
    return Panel(
        title=curve["title"],
        xlabel=curve["xlabel"],
        ylabel=curve["unit"],
        series=series,
        xscale="log",
        yscale="log",
        ylim=limits,
    )
