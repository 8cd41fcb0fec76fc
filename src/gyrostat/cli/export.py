"""``gyrostat export``: the data of a sweep as netCDF or CSV."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def export(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="The folder of a sweep.")],
    files: Annotated[
        list[Path], typer.Argument(metavar="FILE", help="A .nc file for all data, or a .csv file with a row per cell.")
    ],
) -> None:
    """Write the data of a sweep as netCDF or CSV."""
    from gyrostat.sweeps import tables
    from gyrostat.sweeps.store import load_sweep

    for path in files:
        tables.export(load_sweep(folder), path)
        typer.echo(f"Written to {path}.")
