"""``gyrostat bench``: benchmarks against peers."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from gyrostat.cli.console import console


def bench(
    suites: Annotated[
        list[str] | None, typer.Argument(metavar="SUITE", help="The suites to run. [default: all]")
    ] = None,
    out: Annotated[Path, typer.Option(metavar="DIR", help="The folder for bench.json.")] = Path("bench-results"),
) -> None:
    """Compare gyrostat with other packages.

    Both are measured in the same run.
    """
    from gyrostat.benchmarks.runner import run_suites

    raise typer.Exit(run_suites(suites or [], out, console()))
