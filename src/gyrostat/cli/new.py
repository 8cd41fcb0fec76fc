"""``gyrostat new``: a working skeleton to start from."""

from __future__ import annotations

import shlex
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer


class Skeleton(StrEnum):
    """What a skeleton can be of."""

    paper = "paper"


def new(
    kind: Annotated[Skeleton, typer.Argument(metavar="paper", help="What to write.")],
    name: Annotated[str, typer.Argument(metavar="NAME", help="Its name, as in smith2026.")],
    out: Annotated[
        Path | None, typer.Option(metavar="DIR", help="The folder to write to. [default: a new folder NAME]")
    ] = None,
) -> None:
    """Write a working skeleton for a paper of your own.

    It has settings, a figure, two claims and a test. Run it with gyrostat reproduce DIR/NAME.py, and install it with
    pip install DIR.
    """
    from gyrostat.reproduce.new_paper import write_paper_skeleton

    files = write_paper_skeleton(name, out)
    for path in files:
        typer.echo(f"  {path}")
    typer.echo(f"Run it with: gyrostat reproduce {shlex.quote(str(files[0]))} --size smoke")
