"""``gyrostat fit``: which effects hold in every environment."""

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


def fit(
    data: Data,
    target: Target,
    environment: EnvironmentColumn,
    out: Annotated[Path, typer.Option(metavar="DIR", help="The folder for the model and its summary.")] = Path(
        "fit-results"
    ),
    features: Features = "",
    drop: Drop = "",
    kind: Annotated[str, typer.Option(help="The model: linear or quadratic.")] = "linear",
    tolerance: Annotated[
        float, typer.Option(help="How much an effect may vary between environments, as a share of its mean.")
    ] = 0.5,
    level: Annotated[float, typer.Option(help="The level of the tests.")] = 0.01,
    alone: Annotated[
        bool, typer.Option("--alone", help="Estimate the effect of each feature without adjusting for the others.")
    ] = False,
    principal: Annotated[
        bool, typer.Option("--principal", help="Remove combinations of features instead of single features.")
    ] = False,
    by_feature: Annotated[
        bool,
        typer.Option(
            "--by-feature",
            help="Keep or remove features only. [default: combinations, if no choice of features holds everywhere]",
        ),
    ] = False,
    family: Annotated[
        str | None,
        typer.Option(
            help="gaussian: numbers. binomial: 0/1, two words, or shares from 0 to 1, effects on the log-odds. poisson: "
            "counts and amounts, effects on the logarithm. [default: gaussian; 0/1 and counts are refused]"
        ),
    ] = None,
    cluster: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN", help="The column that is the same for dependent rows, such as all rows of a patient."
        ),
    ] = None,
    missing: Missing = "error",
    min_rows: MinRows = None,
    in_parts: Annotated[
        bool,
        typer.Option(
            "--in-parts",
            help="Read a Parquet table one row group at a time. [default: only above 2 GB]",
        ),
    ] = False,
    ordered: Ordered = None,
    separator: Separator = None,
    decimal: Decimal = None,
    thousands: Thousands = None,
    encoding: Encoding = None,
    empty: Empty = None,
    seed: Seed = 0,
) -> None:
    """Find the effects that hold in every environment.

    Fits a model with these effects. Writes model.json (plain JSON), heterogeneity.csv, a forest plot and summary.html.
    """
    from gyrostat.errors import GyrostatError
    from gyrostat.tables import fit_and_predict
    from gyrostat.tables.text_files import FileFormat

    if principal and by_feature:
        raise GyrostatError("--principal and --by-feature exclude each other: leave one out.")
    for name, text in (("features", features), ("drop", drop)):
        listed = [word.strip() for word in text.split(",")]
        if twice := next((word for word in listed if listed.count(word) > 1), None):
            raise GyrostatError(f"--{name} names {twice!r} twice: leave one out.")
    fit_and_predict.fit(
        data,
        target=target,
        environment=environment,
        out=out,
        console=console(),
        features=features,
        drop=drop,
        kind=kind,
        tolerance=tolerance,
        level=level,
        adjust=not alone,
        missing=missing,
        family=family,
        cluster=cluster,
        seed=seed,
        directions="principal" if principal else "features" if by_feature else "auto",
        text_format=FileFormat(separator, decimal, thousands, encoding, tuple(empty or ())),
        ordered=ordered or (),
        min_rows=min_rows,
        in_parts=in_parts,
    )
