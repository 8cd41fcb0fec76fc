"""Options that several commands with a table share: how its text is to be read, and which rows and columns are used."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

Separator = Annotated[
    str | None, typer.Option(metavar="C", help="The character between cells of a text file. [default: detected]")
]
Decimal = Annotated[str | None, typer.Option(metavar="C", help="The decimal mark: . or , [default: detected]")]
Thousands = Annotated[
    str | None, typer.Option(metavar="C", help="The character between thousands. [default: detected]")
]
Encoding = Annotated[
    str | None, typer.Option(metavar="NAME", help="The encoding, such as utf-8 or cp1252. [default: detected]")
]
Empty = Annotated[
    list[str] | None,
    typer.Option(metavar="COLUMN=999", help="What stands for an empty cell in a column; may be repeated."),
]
Ordered = Annotated[
    list[str] | None,
    typer.Option(metavar="COLUMN=A<B<C", help="The levels of a column of ordered categories; may be repeated."),
]

Data = Annotated[Path, typer.Argument(metavar="DATA", help="A table: CSV, TSV, Parquet, or example:sites.")]
Target = Annotated[str, typer.Option(metavar="COLUMN", help="The column to predict.")]
EnvironmentColumn = Annotated[
    str, typer.Option("--environment", metavar="COLUMN", help="The column with the environment of each row.")
]
Features = Annotated[str, typer.Option(metavar="A,B", help="Use only these columns. [default: all other columns]")]
Drop = Annotated[str, typer.Option(metavar="A,B", help="Leave out these columns.")]
Missing = Annotated[str, typer.Option(help="What to do with rows that have missing values: error or drop.")]
MinRows = Annotated[
    int | None,
    typer.Option(
        metavar="N",
        help="Leave out environments with fewer rows. [default: as many as the number of features requires]",
    ),
]
Seed = Annotated[int, typer.Option(metavar="K", min=0, max=2**32 - 1, help="The same seed gives the same numbers.")]
