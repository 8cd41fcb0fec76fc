"""Options of all commands that read a table: how its text is to be read."""

from __future__ import annotations

from typing import Annotated

import typer

Separator = Annotated[
    str | None, typer.Option(metavar="C", help="The sign between cells of a text file. [default: detected]")
]
Decimal = Annotated[str | None, typer.Option(metavar="C", help="The decimal sign: . or , [default: detected]")]
Thousands = Annotated[str | None, typer.Option(metavar="C", help="The sign between thousands. [default: detected]")]
Encoding = Annotated[
    str | None, typer.Option(metavar="NAME", help="The encoding, such as utf-8 or cp1252. [default: detected]")
]
Ordered = Annotated[
    list[str] | None,
    typer.Option(metavar="COLUMN=A<B<C", help="The levels of a column of ordered categories; may be repeated."),
]
