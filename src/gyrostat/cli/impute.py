"""``gyrostat impute``: fill the empty cells of a table."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from gyrostat.cli.console import console
from gyrostat.cli.file_options import Decimal, Empty, Encoding, Ordered, Separator, Thousands

AUTO = "auto, yes or no."


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
    compare: Annotated[bool, typer.Option("--compare", help="Compare with iterated trees, on hidden cells.")] = False,
    ordered: Ordered = None,
    scale_columns: Annotated[
        str, typer.Option(help=f"Whether to divide columns by their spread first: {AUTO}")
    ] = "auto",
    scale_rows: Annotated[bool, typer.Option("--scale-rows", help="Also divide rows by their spread.")] = False,
    offsets: Annotated[str, typer.Option(help=f"Whether rows and columns have levels of their own: {AUTO}")] = "auto",
    exact: Annotated[str, typer.Option(help=f"Whether to look for a fit without any error: {AUTO}")] = "auto",
    max_rank: Annotated[
        int | None, typer.Option(metavar="R", help="The largest rank to try. [default: from the number of cells]")
    ] = None,
    depth: Annotated[str, typer.Option(help="The depth of the ridge: auto, or a number of at least 2.")] = "auto",
    ridge: Annotated[float | None, typer.Option(help="The ridge. [default: chosen on held-out cells]")] = None,
    validation: Annotated[
        float, typer.Option(metavar="P", help="The share of cells held out to choose the model.")
    ] = 0.1,
    separator: Separator = None,
    decimal: Decimal = None,
    thousands: Thousands = None,
    encoding: Encoding = None,
    empty: Empty = None,
    seed: Annotated[
        int, typer.Option(metavar="K", min=0, max=2**32 - 1, help="The seed that chooses the held-out cells.")
    ] = 0,
    verbose: Annotated[bool, typer.Option("--verbose", help="Show progress.")] = False,
) -> None:
    """Fill the missing cells of a table.

    The cells are filled by a matrix of low rank. Columns may have different units, and may hold categories and dates. The
    rank is found from the data. Ctrl-C ends a long fit and keeps the best one found until then.
    """
    from gyrostat import errors
    from gyrostat.tables import impute as imputing
    from gyrostat.tables.text_files import FileFormat

    if environments == "":
        raise errors.GyrostatError("--environments must name a column; got '': leave it out if there is none.")

    choices = {"auto": "auto", "yes": True, "no": False}
    answers = {"--scale-columns": scale_columns, "--offsets": offsets, "--exact": exact}
    for name, value in answers.items():
        errors.choice(name, value, choices)
    imputing.impute(
        data,
        out,
        console(),
        ignore=ignore or [],
        environments=environments,
        intervals=intervals,
        coverage=coverage,
        compare=compare,
        ordered=ordered or (),
        text_format=FileFormat(separator, decimal, thousands, encoding, tuple(empty or ())),
        options={
            "scale_columns": choices[scale_columns],
            "scale_rows": scale_rows,
            "offsets": choices[offsets],
            "exact": choices[exact],
            "max_rank": max_rank,
            "depth": depth if depth == "auto" else _number("--depth", depth),
            "ridge": ridge,
            "validation": validation,
            "random_state": errors.integer("--seed", seed, least=0, most=2**32 - 1),
            "verbose": verbose,
        },
    )


def _number(option: str, text: str) -> float:
    from gyrostat.errors import GyrostatError

    try:
        return float(text)
    except ValueError:
        raise GyrostatError(f"{option} must be auto or a number; got {text!r}.") from None
