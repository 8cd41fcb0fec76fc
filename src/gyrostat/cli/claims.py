"""``gyrostat claims``: claims and their verdicts."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from gyrostat.cli.console import console


class Verdict(StrEnum):
    """The verdicts that a claim can have."""

    holds = "holds"
    fails = "fails"
    undecided = "undecided"


def claims(
    folder: Annotated[
        Path | None, typer.Argument(metavar="DIR", help="A results folder. [default: list the declared statements]")
    ] = None,
    paper: Annotated[
        str | None, typer.Option(help="Only the claims of this paper: a name, a file or module:NAME.")
    ] = None,
    verdict: Annotated[Verdict | None, typer.Option(help="Only the claims with this verdict.")] = None,
    surprises: Annotated[bool, typer.Option("--surprises", help="Only the claims with an unexpected verdict.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """List the claims of a results folder with their verdicts.

    Without a folder, lists the statements that the papers' experiments can check.
    """
    from gyrostat.reproduce.claims import show_claims

    show_claims(
        console(),
        folder,
        paper=paper,
        verdict=None if verdict is None else verdict.value,
        surprises=surprises,
        as_json=as_json,
    )
