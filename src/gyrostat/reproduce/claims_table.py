"""Claims as a table on the terminal."""

from __future__ import annotations

from collections.abc import Sequence

from rich.table import Table
from rich.text import Text

from gyrostat.reproduce.store import Record

COLOURS = {"holds": "green", "fails": "red", "undecided": "yellow"}


def surprise(record: Record) -> bool:
    """Whether the verdict is not the expected one."""
    return record["verdict"] != record["expected"]


def measured(record: Record) -> str:
    """The measured numbers, short.

    >>> measured({"measured": {"slope": -0.5, "rate": None}})
    'slope -0.5, rate n/a'
    """
    return ", ".join(f"{name} {_short(value)}" for name, value in record["measured"].items())


def _short(value: object) -> str:
    if value is None:
        return "n/a"
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def claims_table(records: Sequence[Record]) -> Table:
    """Id, verdict, expectation and measurement of each claim; surprises stand out."""
    table = Table(title="Claims", title_justify="left", pad_edge=False)
    for heading, ratio in (("claim", 3), ("verdict", None), ("expected", None), ("measured", 4), ("", None)):
        table.add_column(heading, ratio=ratio, overflow="fold")
    for record in records:
        odd = surprise(record)
        table.add_row(
            Text(record["id"]),
            Text(record["verdict"], style=f"bold {COLOURS[record['verdict']]}" if odd else ""),
            Text(record["expected"]),
            Text(measured(record)),
            Text("SURPRISE", style="bold red") if odd else Text(""),
        )
    return table
