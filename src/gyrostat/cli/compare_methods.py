"""``gyrostat compare-methods``: methods for data from several environments, compared on one's own table."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from gyrostat.cli.console import console
from gyrostat.cli.file_options import Decimal, Encoding, Ordered, Separator, Thousands


def compare_methods(
    data: Annotated[Path, typer.Argument(metavar="DATA", help="A table: CSV, TSV, Parquet, or example:sites.")],
    target: Annotated[str, typer.Option(metavar="COLUMN", help="The column to predict.")],
    environment: Annotated[str, typer.Option(metavar="COLUMN", help="The column with the environment of each row.")],
    out: Annotated[Path, typer.Option(metavar="DIR", help="The folder for tables and picture.")] = Path(
        "comparison-results"
    ),
    features: Annotated[
        str, typer.Option(metavar="A,B", help="Use only these columns. [default: all other columns]")
    ] = "",
    drop: Annotated[str, typer.Option(metavar="A,B", help="Leave out these columns.")] = "",
    choose_by: Annotated[
        str,
        typer.Option(
            help="How hyper-parameters are chosen inside the training environments: by the mean or worst error."
        ),
    ] = "mean",
    missing: Annotated[
        str, typer.Option(help="What to do with rows that have missing values: error or drop.")
    ] = "error",
    min_rows: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            help="Leave out environments with fewer rows. [default: as many as the number of features requires]",
        ),
    ] = None,
    ordered: Ordered = None,
    separator: Separator = None,
    decimal: Decimal = None,
    thousands: Thousands = None,
    encoding: Encoding = None,
    seed: Annotated[
        int, typer.Option(metavar="K", min=0, max=2**32 - 1, help="The same seed gives the same numbers.")
    ] = 0,
) -> None:
    """Compare methods for several environments by their errors in environments left out.

    Writes comparison.csv, environments.csv and a picture, and says what to deploy in new environments of the same kind, and in
    environments that may be unlike these.
    """
    from gyrostat.tables.method_comparison import compare_on_table
    from gyrostat.tables.table_files import FileFormat

    compare_on_table(
        data,
        target=target,
        environment=environment,
        out=out,
        console=console(),
        features=features,
        drop=drop,
        missing=missing,
        choose_by=choose_by,
        seed=seed,
        text_format=FileFormat(separator, decimal, thousands, encoding),
        ordered=ordered or (),
        min_rows=min_rows,
    )
