"""The commands for people with data: ``fit``, ``predict``, ``impute``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from gyrostat.cli.terminal import console


def fit(
    data: Annotated[Path, typer.Argument(metavar="DATA", help="A table: CSV, TSV, Parquet, or example:sites.")],
    target: Annotated[str, typer.Option(metavar="COLUMN", help="The column to predict.")],
    environment: Annotated[str, typer.Option(metavar="COLUMN", help="The column that says where a row comes from.")],
    out: Annotated[Path, typer.Option(metavar="DIR", help="Where the model and the summary go.")] = Path("fit-results"),
    features: Annotated[str, typer.Option(metavar="A,B", help="Only these columns (none: all others).")] = "",
    drop: Annotated[str, typer.Option(metavar="A,B", help="Without these columns.")] = "",
    kind: Annotated[str, typer.Option(help="linear or quadratic.")] = "linear",
    tolerance: Annotated[float, typer.Option(help="How much an effect may vary, as a share of its mean.")] = 0.5,
    level: Annotated[float, typer.Option(help="The level of the tests.")] = 0.01,
    alone: Annotated[
        bool, typer.Option("--alone", help="The effect of each feature by itself, not beside others.")
    ] = False,
    principal: Annotated[
        bool, typer.Option("--principal", help="Remove combinations of features, not features.")
    ] = False,
    missing: Annotated[str, typer.Option(help="Rows with missing values: error or drop.")] = "error",
    seed: Annotated[int, typer.Option(metavar="K", help="The same seed gives the same numbers.")] = 0,
) -> None:
    """Which effects hold in every environment, and a model of those.

    Writes model.json (plain JSON), heterogeneity.csv, a forest plot and summary.html.
    """
    from gyrostat.tables import fit as fitting

    fitting.fit(
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
        seed=seed,
        directions="principal" if principal else "features",
    )


def predict(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="A model.json, or the folder of gyrostat fit.")],
    data: Annotated[Path, typer.Argument(metavar="DATA", help="A table with the model's columns.")],
    out: Annotated[Path, typer.Option(metavar="FILE", help="The predictions, as CSV.")] = Path("predictions.csv"),
) -> None:
    """Predictions of a saved model for the rows of a table."""
    from gyrostat.tables import fit as fitting

    fitting.predict(model, data, out, console())


def impute(
    data: Annotated[Path, typer.Argument(metavar="DATA", help="A table: CSV, TSV or Parquet.")],
    out: Annotated[Path, typer.Option(metavar="FILE", help="Where the filled table goes (.csv or .parquet).")],
    ignore: Annotated[list[str] | None, typer.Option(metavar="COLUMN", help="Leave this column as it is.")] = None,
    environments: Annotated[str | None, typer.Option(metavar="COLUMN", help="Rows come from these places.")] = None,
    intervals: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Where the filled cells go, each with an interval.")
    ] = None,
    coverage: Annotated[float, typer.Option(metavar="P", help="How often intervals hold the true value.")] = 0.9,
    seed: Annotated[int, typer.Option(metavar="K", help="For the cells held out.")] = 0,
    verbose: Annotated[bool, typer.Option("--verbose", help="Show progress.")] = False,
) -> None:
    """Fill the empty cells of a table.

    With a matrix of low rank, whose rank is found from the data. Ctrl-C ends a long fit and keeps the best so far.
    """
    from gyrostat.tables import impute as imputing

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
