"""What a benchmark suite returns: records of comparisons, collected group by group, as a file, a table and curves."""

from __future__ import annotations

import dataclasses
import json
import time
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeVar

import numpy as np
from rich.console import Console
from rich.table import Table
from rich.text import Text

from gyrostat import __version__
from gyrostat.figures.declarations import Line, Panel, Points
from gyrostat.parallel.progress import clock
from gyrostat.parallel.whole_files import write_whole


@dataclass(frozen=True)
class BenchmarkRecord:
    """One comparison: our cost and a peer's in ``unit``, and the ratio (peer over ours) that we aim at.

    A record without a peer is informative: its ratio, goal and ``meets`` are None.

    >>> BenchmarkRecord("core/example", ours=0.5, peer=20.0, peer_name="NumPy", unit="s", goal=30.0).meets
    True
    """

    id: str
    ours: float
    unit: str
    peer: float | None = None
    peer_name: str | None = None
    goal: float | None = None
    settings: dict[str, Any] = field(default_factory=dict)

    @property
    def ratio(self) -> float | None:
        """Peer over ours: above 1 is better for us; None where there is no peer, or where ours is zero."""
        return None if self.peer is None or self.ours == 0 else self.peer / self.ours

    @property
    def meets(self) -> bool | None:
        """Whether the ratio reaches the goal; None without one."""
        return None if self.goal is None or self.ratio is None else self.ratio >= self.goal

    def as_dict(self) -> dict[str, Any]:
        """The record in the form of ``bench.json``."""
        names = ("id", "ours", "peer", "peer_name", "unit", "ratio", "goal", "meets", "settings")
        return {name: getattr(self, name) for name in names}


@dataclass(frozen=True)
class Report:
    """The result of a suite: records, and a sentence for each comparison that was left out."""

    records: list[BenchmarkRecord]
    notes: list[str]
    crashed: bool = False

    def write(self, path: Path) -> None:
        """Write the report to a file, whole or not at all."""
        write_whole(path, json.dumps(dataclasses.asdict(self)))

    @classmethod
    def read(cls, path: Path) -> Report:
        """The report in a file."""
        content = json.loads(path.read_text())
        records = [BenchmarkRecord(**record) for record in content["records"]]
        return cls(records, content["notes"], content["crashed"])


# --- groups of comparisons -------------------------------------------------------------------------------------------------

GroupResult = tuple[list[BenchmarkRecord], list[str]]
"""Records of a group, and a sentence for each comparison that was left out."""

SuiteSizes = TypeVar("SuiteSizes")
Group = tuple[str, Callable[[SuiteSizes], GroupResult]]
"""The text that announces a group of comparisons, and the function that makes them."""

report_file: ContextVar[Path | None] = ContextVar("report_file", default=None)
"""The file to which the report so far is written after every group, if any."""
LONG = 60
"""Progress messages show the elapsed time from this many seconds on."""


def run_groups(groups: Sequence[Group[SuiteSizes]], sizes: SuiteSizes, say: Callable[[str], Any]) -> Report:
    """The report of all groups; each is announced by its text and its number.

    >>> groups = [("nothing", lambda sizes: ([], ["left out"])), ("still nothing", lambda sizes: ([], ["left out"]))]
    >>> run_groups(groups, 3, print)
    nothing (1 of 2)
    still nothing (2 of 2)
    Report(records=[], notes=['left out'], crashed=False)
    """
    report, start = Report([], []), time.monotonic()
    for number, (text, group) in enumerate(groups, start=1):
        passed = time.monotonic() - start
        say(f"{text} ({number} of {len(groups)}{f', {clock(passed)} so far' if passed >= LONG else ''})")
        records, notes = group(sizes)
        report = Report(report.records + records, list(dict.fromkeys(report.notes + notes)))
        if (path := report_file.get()) is not None:
            report.write(path)
    return report


# --- how records are shown -------------------------------------------------------------------------------------------------


def table(records: Sequence[BenchmarkRecord], notes: Sequence[str] = ()) -> Table:
    """The records as a table for the terminal, with the notes below it."""
    title = "Benchmarks (ratio: peer over ours, above 1 is better for us)"
    shown = Table(title=title, caption=Text("\n".join(notes)) if notes else None)
    for name in ("id", "ours", "peer", "unit", "peer name", "ratio", "goal", ""):
        side: Literal["left", "right"] = "right" if name in ("ours", "peer", "ratio", "goal") else "left"
        shown.add_column(name, justify=side, overflow="fold")
    for r in records:
        verdict = {True: Text("meets", "green"), False: Text("misses", "red"), None: Text("for information")}[r.meets]
        numbers = [_short(r.ours), _short(r.peer)]
        shown.add_row(r.id, *numbers, r.unit, r.peer_name or "", _short(r.ratio), _short(r.goal), verdict)
    return shown


def _short(x: float | None) -> str:
    return "" if x is None else f"{x:.3g}" if abs(x) < 1000 else f"{x:,.0f}"


# --- what the pages of the documentation show ------------------------------------------------------------------------------


def grid(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> dict[str, Any]:
    """A table, as a page's record holds it."""
    return {"columns": list(columns), "rows": [list(row) for row in rows]}


def write_evidence(page: str, suite: str, values: dict[str, Any], out: Path, console: Console) -> None:
    """Write what a page shows, by the names of its marks: numbers, words, lists and tables.

    ``docs/site_tools/evidence_pages.py`` puts it there, once the file is in ``docs/evidence``.
    """
    path = out / "evidence" / f"{page}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    record = {"command": f'make bench SUITE="{suite}"', "version": __version__, "values": values}
    write_whole(path, json.dumps(record, indent=1, ensure_ascii=False) + "\n")
    console.print(f"Written to {path}.", highlight=False)


# --- curves ----------------------------------------------------------------------------------------------------------------


class CurveAxis(NamedTuple):
    """The horizontal axis of a curve, and the title above it."""

    title: str
    label: str

    def curve(self, x: Sequence, y: Sequence, unit: str) -> dict[str, Any]:
        """The curve in the form in which a record's settings carry it."""
        return {"title": self.title, "xlabel": self.label, "x": list(x), "y": list(y), "unit": unit}


def curve_panels(records: Sequence[BenchmarkRecord]) -> list[Panel]:
    """A panel for every record that carries a curve."""
    return [_panel(record) for record in records if "curve" in record.settings]


def _panel(record: BenchmarkRecord) -> Panel:
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
