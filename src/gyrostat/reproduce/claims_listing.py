"""``gyrostat claims``: the claims of a results folder, or the statements that the papers' modules declare."""

from __future__ import annotations

import json
from pathlib import Path

from rich.console import Console
from rich.table import Table
from rich.text import Text

from gyrostat import errors
from gyrostat.errors import GyrostatError
from gyrostat.experiments import registry
from gyrostat.reproduce.claims_table import claims_table, surprise
from gyrostat.reproduce.store import Record, Store


def show_claims(
    console: Console,
    folder: Path | None,
    *,
    paper: str | None = None,
    verdict: str | None = None,
    surprises: bool = False,
    as_json: bool = False,
) -> None:
    """Print the claims of ``folder`` that pass the filters; without a folder, the declared statements."""
    if paper is not None:
        errors.choice("paper", paper, registry.PAPERS)
    if folder is None:
        if verdict is not None or surprises:
            raise GyrostatError("--verdict and --surprises need a results folder: gyrostat claims DIR.")
        records = declared(paper)
    else:
        records = stored(folder, paper=paper, verdict=verdict, surprises=surprises)
    if as_json:
        console.file.write(json.dumps(records, indent=1) + "\n")
    elif not records:
        console.print("No claims.")
    else:
        console.print(claims_table(records) if folder is not None else _statements(records))


def stored(
    folder: Path, *, paper: str | None = None, verdict: str | None = None, surprises: bool = False
) -> list[Record]:
    """The records of a results folder that pass the filters."""
    store = Store(folder)
    if not store.claims_file.is_file():
        raise GyrostatError(f"{str(folder)!r} holds no claims.json: run gyrostat reproduce --out {folder}.")
    return [
        record
        for record in store.claims()
        if (paper is None or record["id"].startswith(f"{paper}/"))
        and (verdict is None or record["verdict"] == verdict)
        and (surprise(record) or not surprises)
    ]


def declared(paper: str | None = None) -> list[Record]:
    """The statements that can be checked: id, statement, criterion, expectation and reason.

    >>> all(record["id"].startswith("xu2024/") for record in declared("xu2024"))
    True
    """
    return [
        {
            "id": f"{name}/{experiment.name}/{claim.slug}",
            "statement": claim.statement,
            "criterion": claim.criterion,
            "expected": claim.expected,
            "reason": claim.reason,
        }
        for name in (registry.PAPERS if paper is None else [paper])
        for experiment in registry.experiments(name).values()
        for claim in experiment.claims
    ]


def _statements(records: list[Record]) -> Table:
    table = Table("claim", "statement", "criterion", "expected", title="Statements", title_justify="left")
    for record in records:
        table.add_row(*(Text(record[key]) for key in ("id", "statement", "criterion", "expected")))
    return table
