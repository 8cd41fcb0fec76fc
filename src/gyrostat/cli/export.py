"""``gyrostat export``: a results folder or a sweep as an RO-Crate, the data of a sweep as netCDF or CSV."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def export(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="A results folder, or the folder of a sweep.")],
    files: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="FILE", help="For a sweep: a .nc file for all data, or a .csv file with a row per cell."
        ),
    ] = None,
    crate: Annotated[
        Path | None,
        typer.Option(metavar="FILE.zip", help="Write everything, and how it was made, as a Workflow Run RO-Crate."),
    ] = None,
    paper: Annotated[
        list[str] | None,
        typer.Option(
            metavar="FILE.py", help="A file or module with a paper whose code goes into the crate; may be repeated."
        ),
    ] = None,
    author: Annotated[str, typer.Option(metavar="NAME", help="Who ran it, for the crate.")] = "",
    licence: Annotated[
        str, typer.Option("--license", metavar="URL", help="The licence of the results, for the crate.")
    ] = "",
) -> None:
    """Write results as an RO-Crate, netCDF or CSV.

    netCDF and CSV are for the data of a sweep.
    """
    from gyrostat.errors import GyrostatError

    is_results = (folder / "results.zarr").is_dir()
    if not files and crate is None:
        raise GyrostatError("there is nothing to write: give --crate FILE.zip, or, for a sweep, FILE.nc or FILE.csv.")
    if files and is_results:
        raise GyrostatError(f"{str(folder)!r} is a results folder: write it with --crate FILE.zip; got {files[0]}.")
    for path in files or ():
        from gyrostat.sweeps import tables
        from gyrostat.sweeps.store import load_sweep

        tables.export(load_sweep(folder), path)
        typer.echo(f"Written to {path}.")
    if crate is not None:
        if is_results:
            from gyrostat.reproduce.crate import export_results

            export_results(folder, crate, papers=paper or (), author=author, licence=licence)
        else:
            from gyrostat.sweeps.crate import export_sweep

            export_sweep(folder, crate, author=author, licence=licence)
        typer.echo(f"Written to {crate}.")
