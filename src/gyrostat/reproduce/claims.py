"""Claims: judging them on data, their records in ``claims.json``, and their tables on the terminal (``gyrostat claims``)."""

from __future__ import annotations

import json
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table
from rich.text import Text

from gyrostat import errors
from gyrostat.errors import GyrostatError
from gyrostat.experiments import registry
from gyrostat.experiments.experiment import Experiment
from gyrostat.parallel.whole_files import plain
from gyrostat.reproduce.store import ClaimRecord, ResultsStore

if TYPE_CHECKING:
    import xarray as xr

COLOURS = {"holds": "green", "fails": "red", "undecided": "yellow"}


def judge(name: str, experiment: Experiment, dataset: xr.Dataset, seconds: float) -> list[ClaimRecord]:
    """The record of every claim of the experiment ``name`` (``paper/experiment``), measured on its data."""
    records = []
    for claim in experiment.claims:
        outcome = claim.measure(dataset)
        records.append(
            {
                "id": f"{name}/{claim.slug}",
                "statement": claim.statement,
                "criterion": claim.criterion,
                "measured": plain(outcome.measured),
                "verdict": outcome.verdict,
                "expected": claim.expected,
                "kind": claim.kind,
                "reason": claim.reason,
                "ours": claim.ours,
                "seeds": int(dataset.sizes.get("seed", 0)),
                "seconds": round(seconds, 3),
            }
        )
    return records


def is_surprise(record: ClaimRecord) -> bool:
    """Whether the verdict differs from the expected one."""
    return record["verdict"] != record["expected"]


def by_author(records: Sequence[ClaimRecord]) -> Mapping[str, Sequence[ClaimRecord]]:
    """The claims on statements of the papers, and those on statements of ours, without what is empty.

    >>> {author: len(part) for author, part in by_author([{"ours": True}, {"ours": False}, {"ours": True}]).items()}
    {'the papers': 1, 'ours': 2}
    """
    parts = {
        "the papers": [record for record in records if not record.get("ours")],
        "ours": [record for record in records if record.get("ours")],
    }
    return {author: part for author, part in parts.items() if part}


def with_authors(records: Sequence[ClaimRecord]) -> list[ClaimRecord]:
    """The records, each with whose statement it is: as declared, or else as stored, which folders of 0.2.0 do not say."""
    papers = {record["id"].split("/")[0] for record in records}
    ours = {
        f"{name}/{experiment.name}/{claim.slug}": claim.ours
        for name in registry.paper_names()
        if name in papers
        for experiment in _declared_experiments(name, must=False)
        for claim in experiment.claims
    }
    return [{**record, "ours": ours.get(record["id"], record.get("ours", False))} for record in records]


def measured_text(record: ClaimRecord) -> str:
    """The measured numbers on one line.

    >>> measured_text({"measured": {"slope": -0.5, "rate": None}})
    'slope -0.5, rate n/a'
    """
    return ", ".join(f"{name} {_short(value)}" for name, value in record["measured"].items())


def _short(value: object) -> str:
    if value is None:
        return "n/a"
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def claims_table(records: Sequence[ClaimRecord], author: str) -> Table:
    """A table of verdicts, expectations and measured numbers, in which surprises stand out."""
    table = Table(title=f"Statements of {author}", title_justify="left", pad_edge=False)
    surprises = [is_surprise(record) for record in records]
    headings: list[tuple[str, int | None]] = [("claim", 3), ("verdict", None), ("expected", None), ("measured", 4)]
    for heading, ratio in [*headings, *([("", None)] if any(surprises) else [])]:
        table.add_column(heading, ratio=ratio, overflow="fold")
    for record, odd in zip(records, surprises, strict=True):
        table.add_row(
            Text(record["id"]),
            Text(record["verdict"], style=f"bold {COLOURS[record['verdict']]}" if odd else ""),
            Text(record.get("kind") or record["expected"]),
            Text(measured_text(record)),
            *([Text("SURPRISE", style="bold red")] if odd else []),
        )
    return table


def statements_table(records: Sequence[ClaimRecord], author: str) -> Table:
    """A table of declared statements with their criteria."""
    title = f"Statements of {author}"
    table = Table("claim", "statement", "criterion", "expected", title=title, title_justify="left")
    for record in records:
        words = (record["id"], record["statement"], record["criterion"], record["kind"] or record["expected"])
        table.add_row(*map(Text, words))
    return table


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
        paper = errors.choice("paper", registry.resolve(paper)[0], registry.paper_names())
    if folder is None:
        if verdict is not None or surprises:
            raise GyrostatError("--verdict and --surprises need a results folder: gyrostat claims DIR.")
        records = declared_claims(paper)
    else:
        records = stored_claims(folder, paper=paper, verdict=verdict, surprises=surprises)
    if as_json:
        console.file.write(json.dumps(records, indent=1) + "\n")
    elif not records:
        console.print("No claims.")
    else:
        table = statements_table if folder is None else claims_table
        for author, part in by_author(records).items():
            console.print(table(part, author))


def stored_claims(
    folder: Path, *, paper: str | None = None, verdict: str | None = None, surprises: bool = False
) -> list[ClaimRecord]:
    """The records of a results folder that pass the filters."""
    store = ResultsStore(folder)
    if not store.claims_file.is_file() and not store.data.is_dir():
        raise GyrostatError(f"{str(folder)!r} holds no claims.json: run gyrostat reproduce --out {folder}.")
    if store.data.is_dir():
        store.refuse_losses()
    return [
        record
        for record in with_authors(store.claims())
        if (paper is None or record["id"].startswith(f"{paper}/"))
        and (verdict is None or record["verdict"] == verdict)
        and (is_surprise(record) or not surprises)
    ]


def declared_claims(paper: str | None = None) -> list[ClaimRecord]:
    """The statements that can be checked: id, statement, criterion, expected verdict, reason, and whether they are ours.

    >>> all(record["id"].startswith("xu2024/") for record in declared_claims("xu2024"))
    True
    """
    return [
        {
            "id": f"{name}/{experiment.name}/{claim.slug}",
            "statement": claim.statement,
            "criterion": claim.criterion,
            "expected": claim.expected,
            "kind": claim.kind,
            "reason": claim.reason,
            "ours": claim.ours,
        }
        for name in (registry.paper_names() if paper is None else [paper])
        for experiment in _declared_experiments(name, must=paper is not None)
        for claim in experiment.claims
    ]


def _declared_experiments(name: str, *, must: bool) -> list[Experiment]:
    """The experiments of a paper. Unless it ``must`` be there, a plug-in that is broken is left out, with a warning."""
    try:
        return list(registry.experiments(name).values())
    except GyrostatError as error:
        if must:
            raise
        warnings.warn(str(error), stacklevel=2)
        return []
