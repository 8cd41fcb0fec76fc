"""``gyrostat impute``: fill the empty cells of a table."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from gyrostat.cli.console import console


def impute(
    data: Annotated[Path, typer.Argument(metavar="DATA", help="A table: CSV, TSV or Parquet.")],
    out: Annotated[Path, typer.Option(metavar="FILE", help="The file for the filled table (.csv or .parquet).")],
    ignore: Annotated[
        list[str] | None, typer.Option(metavar="COLUMN", help="Leave this column as it is; may be repeated.")
    ] = None,
    environments: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="The column with the environment of each row.")
    ] = None,
    intervals: Annotated[
        Path | None, typer.Option(metavar="FILE", help="A file that lists the filled cells, each with an interval.")
    ] = None,
    coverage: Annotated[
        float, typer.Option(metavar="P", help="The share of intervals that contain the true value.")
    ] = 0.9,
    seed: Annotated[
        int, typer.Option(metavar="K", min=0, max=2**32 - 1, help="The seed that chooses the held-out cells.")
    ] = 0,
    verbose: Annotated[bool, typer.Option("--verbose", help="Show progress.")] = False,
) -> None:
    """Fill the empty cells of a table with a matrix of low rank.

    The rank is found from the data. Ctrl-C ends a long fit and keeps the best one found until then.
    """
    from gyrostat.errors import GyrostatError
    from gyrostat.tables import impute as imputing

    if environments == "":
        raise GyrostatError("--environments must name a column; got '': leave it out if there is none.")

    imputing.impute(
        data,
        out,
        console(),
        ignore=ignore or [],
        environments=environments,
        seed=seed,
        verbose=verbose,
        intervals=intervals,
        coverage=coverage,
    )
