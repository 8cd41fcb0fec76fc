"""``gyrostat compare``: two results folders side by side."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gyrostat.cli.console import console

if TYPE_CHECKING:
    from rich.console import Console

    from gyrostat.reproduce.compare import Comparison


def compare(
    first: Annotated[Path, typer.Argument(metavar="DIR1", help="A results folder.")],
    second: Annotated[Path, typer.Argument(metavar="DIR2", help="Another results folder.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Compare the verdicts and numbers of two results folders.

    Settings and versions that differ are listed too. Exit status: 0, or 1 when a verdict changed, or 2 for bad usage.
    """
    from gyrostat.parallel.whole_files import plain
    from gyrostat.reproduce.compare import compare_results

    compared = compare_results(first, second)
    if as_json:
        typer.echo(json.dumps(plain(compared.plain), indent=1))
    else:
        show(compared, console())
    raise typer.Exit(compared.status)


def show(compared: Comparison, console: Console) -> None:
    """Print tables of what differs, and one sentence about all of it."""
    if compared.verdicts:
        rows = [(v["claim"], v["first"], v["second"]) for v in compared.verdicts]
        _print_table(console, "Verdicts that changed", ("claim", "first", "second"), rows)
    different = [number for number in compared.numbers if number.first != number.second]
    if different:
        numbers = [(f"{n.claim} {n.name}", _text(n.first), _text(n.second), _text(n.difference)) for n in different]
        _print_table(console, "Numbers that differ", ("number", "first", "second", "difference"), numbers)
    if compared.runs:
        _print_table(
            console, "Settings and versions that differ", ("what", "first", "second", "in"), _grouped(compared)
        )
    for what, names in compared.only.items():
        if names:
            console.print(f"Only {what}: {', '.join(names)}", markup=False, highlight=False)
    console.print(
        f"{compared.claims} claims in both folders, {len(compared.verdicts)} with another verdict; "
        f"{len(different)} of {len(compared.numbers)} numbers differ.",
        markup=False,
        highlight=False,
    )


def _grouped(compared: Comparison) -> list[tuple[str, str, str, str]]:
    """A row for each difference, with the experiments that have it."""
    found: dict[tuple[str, str, str], list[str]] = {}
    for experiment, changes in compared.runs.items():
        for name, values in changes.items():
            found.setdefault((name, _text(values[0]), _text(values[1])), []).append(experiment)
    return [(*key, names[0] if len(names) == 1 else f"{len(names)} experiments") for key, names in found.items()]


def _text(value: Any) -> str:
    if value is None:
        return "n/a"
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _print_table(console: Console, title: str, headings: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> None:
    from rich.table import Table
    from rich.text import Text

    table = Table(title=title, title_justify="left", pad_edge=False)
    for heading in headings:
        table.add_column(heading, overflow="fold")
    for row in rows:
        table.add_row(*(Text(cell, style="bold" if title.startswith("Verdicts") else "") for cell in row))
    console.print(table)
