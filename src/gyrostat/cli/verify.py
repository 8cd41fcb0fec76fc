"""``gyrostat verify``: whether a results folder or a sweep is complete and undamaged."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer


def verify(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="A results folder, or the folder of a sweep.")],
) -> None:
    """Check that nothing in a folder is missing or damaged.

    Everything that is marked as finished is read and compared with its checksums; nothing is changed. The command that wrote
    the folder computes again what is lost. Exit status: 0 when all is well, 1 when something is missing or damaged, 2 for bad
    usage.
    """
    from gyrostat.errors import GyrostatError

    # os.path, because a name that no file can have is just not there for it.
    if os.path.isdir(folder / "results.zarr"):
        from gyrostat.reproduce.store import check_results as check
    elif os.path.exists(folder / "sweep.json") or os.path.isdir(folder / "store.zarr"):
        from gyrostat.sweeps.store import check_sweep as check
    else:
        raise GyrostatError(
            f"{str(folder)!r} holds neither results nor a sweep: name the --out of gyrostat reproduce or gyrostat sweep."
        )
    summary, found = check(folder)
    for line in found:
        typer.echo(f"{line}.")
    typer.echo(summary)
    raise typer.Exit(int(bool(found)))
