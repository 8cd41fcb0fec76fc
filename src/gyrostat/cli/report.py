"""``gyrostat report``: the page of a results folder."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def report(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="A results folder.")] = Path("results"),
    paper: Annotated[
        list[str] | None,
        typer.Option(metavar="FILE.py", help="A file or module with a paper that is not installed; may be repeated."),
    ] = None,
) -> None:
    """Write the page of a results folder again.

    Writes DIR/index.html from the stored data and claims.json. Nothing is computed.
    """
    from gyrostat.reproduce.report.page import rebuild

    path = rebuild(folder, paper or [])
    typer.echo(f"{path} ({path.stat().st_size / 1e6:.1f} MB)")
