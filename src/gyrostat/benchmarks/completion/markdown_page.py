"""The page ``completion-evidence.md``: tables, sentences and pictures made from the records, no number typed by hand."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from gyrostat.benchmarks.completion import image, phase_diagram, sensing
from gyrostat.benchmarks.completion.peers import PEERS
from gyrostat.benchmarks.completion.study import CELLS, EXACT, FOUND, OURS, CompletionRow
from gyrostat.benchmarks.records import BenchmarkRecord, Report, markdown_table

NAME = "completion-evidence.md"
INTRODUCTION = f"""\
# Evidence: missing cells, compared with other methods

{{verdict}}

Made by `gyrostat bench completion` in one run on one core; no number was typed by hand (`make evidence` puts the page here).
Explained in [missing cells](completion.md).

- **Tables.** nN-rR-xX are N x N matrices of rank R. They have X times as many observed cells as degrees of freedom, drawn at
  random with at least R in every row and column. *noise* is the standard deviation of the noise, for entries of unit
  variance, and *cond* the condition number. n30-r3 are 30 x 30 matrices of rank 3, in which every cell is observed with the
  given probability. In digits and patches half of the pixels are missing, and in MovieLens-small a fifth of the ratings.
  Splits are fixed.
- **Choosing.** Every method, including ours, is tuned on the same tenth of the observed cells and then fitted to all of them.
  Only methods marked * are told the rank. Ours is `LowRankImputer` with its defaults.
- **Numbers.** The error at missing cells, relative to their root mean square: the median over draws, with CPU seconds in
  brackets, tuning included. Errors below {EXACT:g} are shown as {EXACT:g}. **Bold** marks the least error among methods that
  are not told the rank. *won* counts the draws on which none of these has less error than ours. *found* counts the draws on
  which {CELLS:.0%} of the missing cells are right to {FOUND:g}.
"""


def page(records: Sequence[BenchmarkRecord], notes: Sequence[str] = ()) -> str:
    """The whole page."""
    rows = [CompletionRow(**row) for row in _from_settings(records, "row")]
    lost, slow, timed = _beaten(rows), _slow(records), _timed(records)
    said = verdict(len(lost), len(rows), len(slow), len(timed))
    parts = [INTRODUCTION.replace("{verdict}", said)]
    if rows:
        parts += ["## Errors and time\n", main_table(rows), "\n", *_accuracy(rows), *_speed(records)]
    parts += [f"- {note}" for note in notes]
    if cells := _from_settings(records, "phase"):
        parts += ["\n## How few cells are enough\n", *phase_diagram.section(cells)]
    if images := _from_settings(records, "image"):
        parts += ["\n## An image\n", *image.section(images[0])]
    if sensed := _from_settings(records, "sensing"):
        parts += ["\n## Measurements instead of cells\n", *sensing.section(sensed)]
    return "\n".join(parts) + "\n"


def _from_settings(records: Sequence[BenchmarkRecord], what: str) -> list[dict[str, Any]]:
    return [record.settings[what] for record in records if what in record.settings]


def main_table(rows: Sequence[CompletionRow]) -> str:
    """A line for every kind of table, a column for every method."""
    names = [OURS, *(name for name in PEERS if any(name in row.methods for row in rows))]
    headings = [
        "",
        *(f"{name}*" if name in PEERS and PEERS[name].knows_rank else name for name in names),
        "won",
        "found",
    ]
    return markdown_table(headings, [[row.name, *(_cell(row, name) for name in names), *_counts(row)] for row in rows])


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


def verdict(lost: int, tables: int, slow: int, timed: int) -> str:
    """The page in two sentences.

    >>> verdict(1, 27, 0, 11)[:78]
    'Of the methods that are not told the rank, ours has the least error in 26 of 2'
    """
    return (
        f"Of the methods that are not told the rank, ours has the least error in {tables - lost} of {tables} kinds of tables "
        f"with missing cells. Where a peer is as accurate, ours takes at most twice the time of the fastest in {timed - slow} "
        f"of {timed} cases."
    )


def _beaten(rows: Sequence[CompletionRow]) -> list[str]:
    """The tables in which another method that is not told the rank has less error."""
    lost = []
    for row in rows:
        best = min(row.rivals, key=row.error, default=None)
        if best and row.error(best) < row.error(OURS):
            lost.append(f"{row.name} ({best} {row.error(best):.4g}, ours {row.error(OURS):.4g})")
    return lost


def _accuracy(rows: Sequence[CompletionRow]) -> list[str]:
    lost = _beaten(rows)
    missed = f"**Missed** in {len(lost)}: {'; '.join(lost)}." if lost else "None is missed."
    return [f"- **Least error among methods not told the rank: {len(rows) - len(lost)} of {len(rows)} rows.** {missed}"]


def _timed(records: Sequence[BenchmarkRecord]) -> list[BenchmarkRecord]:
    return [record for record in records if record.id.endswith("-seconds")]


def _slow(records: Sequence[BenchmarkRecord]) -> list[str]:
    return [
        f"{r.id.removeprefix('completion/').removesuffix('-seconds')} ({r.ours:.1f} s, {r.peer_name} {r.peer:.1f} s)"
        for r in _timed(records)
        if not r.meets
    ]


def _speed(records: Sequence[BenchmarkRecord]) -> list[str]:
    """Where the fastest peer of equal accuracy takes less than half of our time."""
    times, slow = _timed(records), _slow(records)
    missed = f"**Missed** in {len(slow)}: {'; '.join(slow)}." if slow else "None is missed."
    return [
        f"- **Within twice the time of the fastest peer of equal accuracy: {len(times) - len(slow)} of the {len(times)} rows "
        f"that have one** (an error of at most 1.05 times ours). {missed}"
    ]


def write(report: Report, folder: Path) -> None:
    """Write the page and its pictures to a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / NAME).write_text(page(report.records, report.notes))
    if cells := _from_settings(report.records, "phase"):
        phase_diagram.phase_picture(cells, folder / phase_diagram.PHASE)
    for restoration in _from_settings(report.records, "image"):
        image.image_picture(restoration, folder / image.IMAGE)
