"""The page ``completion-evidence.md``: tables and sentences made from the records, no number of it typed by hand."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from gyrostat.benchmarks.completion import sensing
from gyrostat.benchmarks.completion.peers import PEERS
from gyrostat.benchmarks.completion.study import CELLS, EXACT, FOUND, OURS, Row
from gyrostat.benchmarks.records import Record, Report, markdown_table

NAME = "completion-evidence.md"
PHASE, IMAGE = "images/completion-phase.png", "images/completion-image.png"
INTRODUCTION = f"""\
# Evidence: missing cells, beside other methods

Made by `gyrostat bench completion` in one run on one core; no number was typed by hand (`make evidence` puts the page here).
What it means: [missing cells](completion.md).

- **Tables.** nN-rR-xX: N x N matrices of rank R with X times as many cells as degrees of freedom, at random with at least R in
  every row and column; noise: its standard deviation, for entries of unit variance; cond: condition number. n30-r3: 30 x 30,
  rank 3, every cell observed with the probability given. Digits and patches: half of the pixels missing; MovieLens-small: a
  fifth of the ratings. Splits are fixed.
- **Choosing.** Every method, ours too, is tuned on the same tenth of the cells that are seen and then fitted to all of them.
  Nobody is told the rank but methods marked *. Ours is `LowRankImputer` as it comes.
- **Numbers.** Errors at missing cells over their root mean square, the median over draws; in brackets CPU seconds, tuning
  included. {EXACT:g} stands for anything smaller. **Bold**: the least of those that are not told the rank. *won*: draws on
  which none of these has less error than ours. *found*: draws on which {CELLS:.0%} of the missing cells are right to {FOUND:g}.
"""


def page(records: Sequence[Record], notes: Sequence[str] = ()) -> str:
    """The whole page."""
    rows = [Row(**row) for row in _told(records, "row")]
    parts = [INTRODUCTION]
    if rows:
        parts += ["## Errors and time\n", main_table(rows), "\n", *_judged(rows), *_timed(records)]
    parts += [f"- {note}" for note in notes]
    if cells := _told(records, "phase"):
        parts += ["\n## How few cells are enough\n", *_phase(cells)]
    if images := _told(records, "image"):
        parts += ["\n## An image\n", *_image(images[0])]
    if sensed := _told(records, "sensing"):
        parts += ["\n## Measurements instead of cells\n", *sensing.section(sensed)]
    return "\n".join(parts) + "\n"


def _told(records: Sequence[Record], what: str) -> list[dict[str, Any]]:
    return [record.settings[what] for record in records if what in record.settings]


def main_table(rows: Sequence[Row]) -> str:
    """A line for every kind of table, a column for every method."""
    names = [OURS, *(name for name in PEERS if any(name in row.methods for row in rows))]
    headings = [
        "",
        *(f"{name}*" if name in PEERS and PEERS[name].knows_rank else name for name in names),
        "won",
        "found",
    ]
    return markdown_table(headings, [[row.name, *(_cell(row, name) for name in names), *_counts(row)] for row in rows])


def _cell(row: Row, method: str) -> str:
    if method not in row.methods:
        return "-"
    error = f"{row.error(method):.4g}"
    least = min(row.error(name) for name in (OURS, *row.rivals))
    known = method != OURS and method not in row.rivals
    return f"{error if known or row.error(method) > least else f'**{error}**'} ({row.seconds(method):.1f} s)"


def _counts(row: Row) -> tuple[str, str]:
    found = f"{row.methods[OURS]['found']} of {row.draws}" if row.rank is not None else "-"
    return f"{row.won} of {row.draws}", found


def _judged(rows: Sequence[Row]) -> list[str]:
    """Where another method that is not told the rank has less error."""
    said = []
    for row in rows:
        best = min(row.rivals, key=row.error, default=None)
        if best and row.error(best) < row.error(OURS):
            said.append(f"{row.name} ({best} {row.error(best):.4g}, ours {row.error(OURS):.4g})")
    lost = f"**Missed** in {len(said)}: {'; '.join(said)}." if said else "None is missed."
    return [f"- **Least error among methods not told the rank: {len(rows) - len(said)} of {len(rows)} rows.** {lost}"]


def _timed(records: Sequence[Record]) -> list[str]:
    """Where the fastest peer of equal accuracy takes less than half of our time."""
    times = [record for record in records if record.id.endswith("-seconds")]
    slow = [
        f"{r.id.removeprefix('completion/').removesuffix('-seconds')} ({r.ours:.1f} s, {r.peer_name} {r.peer:.1f} s)"
        for r in times
        if not r.meets
    ]
    lost = f"**Missed** in {len(slow)}: {'; '.join(slow)}." if slow else "None is missed."
    return [
        f"- **Within twice the time of the fastest peer of equal accuracy: {len(times) - len(slow)} of the {len(times)} rows "
        f"that have one** (an error of at most 1.05 times ours). {lost}"
    ]


def _phase(cells: Sequence[dict[str, Any]]) -> list[str]:
    count, n = cells[0]["count"], cells[0]["n"]
    ranks, overs = (sorted({cell[name] for cell in cells}) for name in ("rank", "oversampling"))
    by = {(cell["rank"], cell["oversampling"]): cell for cell in cells}
    lines = [[str(rank), *(_share(by.get((rank, x))) for x in overs)] for rank in ranks]
    return [
        f"Of {count} matrices {n} x {n}: found by ours, not told the rank / by MatrixIRLS (written here), told the rank.\n",
        markdown_table(["rank", *(f"{x:g} times the freedom" for x in overs)], lines),
        f"\n![Share of matrices found]({PHASE})",
    ]


def _share(cell: dict[str, Any] | None) -> str:
    return f"{cell['ours']} / {cell['told']}" if cell else "-"


def _image(found: dict[str, Any]) -> list[str]:
    return [
        "A part of scikit-image's `camera` at half its resolution. As a matrix an image is not of very low rank "
        f"({found['matrix']:.1f} dB); its overlapping patches as rows of a table are (rank {found['rank']}, "
        f"{found['patches']:.1f} dB).\n",
        f"![An image with most of its pixels missing]({IMAGE})",
    ]


def write(report: Report, folder: Path) -> None:
    """The page and its pictures into a folder."""
    from gyrostat.benchmarks.completion.pictures import image_picture, phase_picture

    folder.mkdir(parents=True, exist_ok=True)
    (folder / NAME).write_text(page(report.records, report.notes))
    if cells := _told(report.records, "phase"):
        phase_picture(cells, folder / PHASE)
    for image in _told(report.records, "image"):
        image_picture(image, folder / IMAGE)
