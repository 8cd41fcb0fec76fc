"""``gyrostat plot``: the figures and tables of a sweep."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from gyrostat.cli.console import console

if TYPE_CHECKING:
    from rich.console import Console

MOST_ROWS = 24
"""Rows of the boundary that are printed, at most."""


def plot(folder: Annotated[Path, typer.Argument(metavar="DIR", help="The folder of a sweep.")]) -> None:
    """Draw a sweep again from its store. Nothing is computed."""
    draw_and_print(folder, console())


def draw_and_print(folder: Path, console: Console) -> None:
    """Write the figures and ``table.csv`` of a sweep; print the boundary of success and the names of the files."""
    from rich.table import Table

    from gyrostat.parallel.whole_files import write_whole
    from gyrostat.sweeps.plots import draw_sweep, load_predictions, thinned
    from gyrostat.sweeps.store import load_sweep
    from gyrostat.sweeps.tables import boundary_table, cell_table

    ds = load_sweep(folder)
    files = [*draw_sweep(folder), folder / "table.csv"]
    write_whole(folder / "table.csv", cell_table(ds).to_csv(index=False))
    headings, rows = boundary_table(ds, load_predictions(folder))
    if rows:
        table = Table(title="The boundary: half of the runs succeed", title_justify="left", pad_edge=False)
        for heading in headings:
            table.add_column(heading, overflow="fold", justify="right")
        for i in thinned(len(rows), MOST_ROWS):
            table.add_row(*rows[i])
        console.print(table)
    for path in files:
        console.print(f"  {path}", markup=False, highlight=False, soft_wrap=True)
