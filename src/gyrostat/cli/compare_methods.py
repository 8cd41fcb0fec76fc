"""``gyrostat compare-methods``: methods for data from several environments, compared on one's own table."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from gyrostat.cli.console import console
from gyrostat.cli.file_options import (
    Data,
    Decimal,
    Drop,
    Empty,
    Encoding,
    EnvironmentColumn,
    Features,
    MinRows,
    Missing,
    Ordered,
    Seed,
    Separator,
    Target,
    Thousands,
)


def compare_methods(
    data: Data,
    target: Target,
    environment: EnvironmentColumn,
    out: Annotated[Path, typer.Option(metavar="DIR", help="The folder for tables and picture.")] = Path(
        "comparison-results"
    ),
    features: Features = "",
    drop: Drop = "",
    choose_by: Annotated[
        str,
        typer.Option(
            help="How hyper-parameters are chosen inside the training environments: by the mean or worst error."
        ),
    ] = "mean",
    missing: Missing = "error",
    min_rows: MinRows = None,
    ordered: Ordered = None,
    separator: Separator = None,
    decimal: Decimal = None,
    thousands: Thousands = None,
    encoding: Encoding = None,
    empty: Empty = None,
    seed: Seed = 0,
) -> None:
    """Compare methods by their errors in new environments.

    Every environment is left out in turn. Writes comparison.csv, environments.csv and a picture, and recommends a method for
    new environments of the same kind and one for environments that may be unlike these.
    """
    from gyrostat.tables.method_comparison import compare_on_table
    from gyrostat.tables.text_files import FileFormat

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
        text_format=FileFormat(separator, decimal, thousands, encoding, tuple(empty or ())),
        ordered=ordered or (),
        min_rows=min_rows,
    )
