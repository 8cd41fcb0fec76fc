"""Records of a benchmark, their file form and their table."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from rich.table import Table
from rich.text import Text


@dataclass(frozen=True)
class Record:
    """One comparison: our cost and a peer's in ``unit``, and the ratio (peer over ours) that we aim at.

    A record without a peer is informative: its ratio, goal and ``meets`` are None.

    >>> Record("core/example", ours=0.5, peer=20.0, peer_name="NumPy", unit="s", goal=30.0).meets
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
        """The record as it stands in ``bench.json``."""
        names = ("id", "ours", "peer", "peer_name", "unit", "ratio", "goal", "meets", "settings")
        return {name: getattr(self, name) for name in names}


@dataclass(frozen=True)
class Report:
    """What a suite found: records, and a sentence for each comparison that was left out."""

    records: list[Record]
    notes: list[str]
    crashed: bool = False

    def write(self, path: Path) -> None:
        """Keep the report in a file, whole or not at all."""
        hidden = path.with_suffix(".part")
        hidden.write_text(json.dumps(dataclasses.asdict(self)))
        hidden.replace(path)

    @classmethod
    def read(cls, path: Path) -> Report:
        """The report in a file."""
        found = json.loads(path.read_text())
        return cls([Record(**record) for record in found["records"]], found["notes"], found["crashed"])


def table(records: Sequence[Record], notes: Sequence[str] = ()) -> Table:
    """The records for the terminal; what was left out stands below them."""
    title = "Benchmarks (ratio: peer over ours, above 1 is better for us)"
    shown = Table(title=title, caption=Text("\n".join(notes)) if notes else None)
    for name in ("id", "ours", "peer", "unit", "peer name", "ratio", "goal", ""):
        side: Literal["left", "right"] = "right" if name in ("ours", "peer", "ratio", "goal") else "left"
        shown.add_column(name, justify=side, overflow="fold")
    for r in records:
        verdict = {True: "[green]meets[/]", False: "[red]misses[/]", None: "for information"}[r.meets]
        numbers = [_short(r.ours), _short(r.peer)]
        shown.add_row(r.id, *numbers, r.unit, r.peer_name or "", _short(r.ratio), _short(r.goal), verdict)
    return shown


def _short(x: float | None) -> str:
    return "" if x is None else f"{x:.3g}" if abs(x) < 1000 else f"{x:,.0f}"


def markdown_table(headings: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    """A table in Markdown.

    >>> print(markdown_table(["a", "b"], [["1", "2"]]))
    | a | b |
    |---|---|
    | 1 | 2 |
    """
    rows = [f"| {' | '.join(cells)} |" for cells in (headings, *lines)]
    return "\n".join([rows[0], f"|{'---|' * len(headings)}", *rows[1:]])
