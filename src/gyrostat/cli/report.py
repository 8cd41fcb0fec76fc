"""``gyrostat report``: the report of a results folder."""

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
    one_file: Annotated[bool, typer.Option("--one-file", help="Write one page that holds everything.")] = False,
) -> None:
    """Write the report of a results folder again.

    Writes DIR/index.html and a page for each paper, DIR/pages/PAPER.html, from the stored data and claims.json. Nothing is
    computed.
    """
    from gyrostat.reproduce.report.page import rebuild

    index = rebuild(folder, paper or [], one_file=one_file)
    for path in [index, *sorted((index.parent / "pages").glob("*.html"))]:
        typer.echo(f"{path} ({path.stat().st_size / 1e6:.1f} MB)")
