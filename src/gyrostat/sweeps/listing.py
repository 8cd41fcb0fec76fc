"""The ready-made specs for the terminal."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table
from rich.text import Text

from gyrostat.sweeps.reading import ready_made


def show_ready_made(console: Console) -> None:
    """A table of names, axes, sizes and what each asks."""
    table = Table(title="Ready-made sweeps: gyrostat sweep NAME --out DIR", title_justify="left", pad_edge=False)
    for heading in ("name", "axes", "cells", "runs", "what it asks"):
        table.add_column(heading, overflow="fold", justify="right" if heading in ("cells", "runs") else "left")
    for name, spec in ready_made().items():
        cells = 1
        for length in spec.shape:
            cells *= length
        axes = ", ".join(f"{a.name} ({len(a.values)})" for a in spec.axes)
        table.add_row(
            Text(name), Text(axes), str(cells), str(cells * spec.seeds), Text(f"{spec.title}. {spec.summary}")
        )
    console.print(table)
