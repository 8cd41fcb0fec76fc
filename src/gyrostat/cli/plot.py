"""``gyrostat plot``: the figures of a sweep."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from gyrostat.cli.terminal import console


def plot(folder: Annotated[Path, typer.Argument(metavar="DIR", help="The folder of a sweep.")]) -> None:
    """Draw a sweep again from its store. Nothing is computed."""
    from gyrostat.sweeps.conclude import plot as draw

    draw(folder, console())
