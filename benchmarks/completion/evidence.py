"""What the page ``docs/completion-evidence.md`` shows, made from the records: counts, tables and pictures."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.completion import image, phase_diagram, sensing
from benchmarks.completion.peers import PEERS
from benchmarks.completion.study import OURS, CompletionRow
from benchmarks.records import BenchmarkRecord, Report, grid


def values(report: Report) -> dict[str, Any]:
    """Everything by the names of the page's marks; parts that were not run are left out."""
    rows = [CompletionRow(**row) for row in _from_settings(report.records, "row")]
    lost, slow, timed = _beaten(rows), _slow(report.records), _timed(report.records)
    shown = {
        "tables": len(rows),
        "tables-won": len(rows) - len(lost),
        "tables-lost": "; ".join(lost) or "none",
        "timed": len(timed),
        "timed-fast": len(timed) - len(slow),
        "timed-slow": "; ".join(slow) or "none",
        "errors": main_table(rows),
        "notes": report.notes,
    }
    if cells := _from_settings(report.records, "phase"):
        shown |= phase_diagram.values(cells)
    for restoration in _from_settings(report.records, "image"):
        shown |= image.values(restoration)
    if sensed := _from_settings(report.records, "sensing"):
        shown |= sensing.values(sensed)
    return shown


def _from_settings(records: Sequence[BenchmarkRecord], what: str) -> list[dict[str, Any]]:
    return [record.settings[what] for record in records if what in record.settings]


def main_table(rows: Sequence[CompletionRow]) -> dict[str, Any]:
    """A line for every kind of table, a column for every method."""
    names = [OURS, *(name for name in PEERS if any(name in row.methods for row in rows))]
    headings = [
        "",
        *(f"{name}*" if name in PEERS and PEERS[name].knows_rank else name for name in names),
        "won",
        "found",
    ]
    return grid(headings, [[row.name, *(_cell(row, name) for name in names), *_counts(row)] for row in rows])


def _cell(row: CompletionRow, method: str) -> str:
    if method not in row.methods:
        return "-"
    error = f"{row.error(method):.4g}"
    least = min(row.error(name) for name in (OURS, *row.rivals))
    knows_rank = method != OURS and method not in row.rivals
    return f"{error if knows_rank or row.error(method) > least else f'**{error}**'} ({row.seconds(method):.1f} s)"


def _counts(row: CompletionRow) -> tuple[str, str]:
    num_found = f"{row.methods[OURS]['found']} of {row.draws}" if row.rank is not None else "-"
    return f"{row.won} of {row.draws}", num_found


def _beaten(rows: Sequence[CompletionRow]) -> list[str]:
    """The tables in which another method that is not told the rank has less error."""
    lost = []
    for row in rows:
        best = min(row.rivals, key=row.error, default=None)
        if best and row.error(best) < row.error(OURS):
            lost.append(f"{row.name} ({best} {row.error(best):.4g}, ours {row.error(OURS):.4g})")
    return lost


def _timed(records: Sequence[BenchmarkRecord]) -> list[BenchmarkRecord]:
    return [record for record in records if record.id.endswith("-seconds")]


def _slow(records: Sequence[BenchmarkRecord]) -> list[str]:
    return [
        f"{r.id.removeprefix('completion/').removesuffix('-seconds')} ({r.ours:.1f} s, {r.peer_name} {r.peer:.1f} s)"
        for r in _timed(records)
        if not r.meets
    ]


def draw(report: Report, folder: Path) -> None:
    """Draw the pictures of the page."""
    if cells := _from_settings(report.records, "phase"):
        phase_diagram.phase_picture(cells, folder / phase_diagram.PHASE)
    for restoration in _from_settings(report.records, "image"):
        image.image_picture(restoration, folder / image.IMAGE)
