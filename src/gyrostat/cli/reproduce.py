"""``gyrostat reproduce``: run the experiments of the papers."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from gyrostat.cli.console import console


class Size(StrEnum):
    """How much to compute. A copy of ``gyrostat.experiments.experiment.SIZES``, whose import would slow ``--help``."""

    smoke = "smoke"
    standard = "standard"
    full = "full"


def reproduce(
    names: Annotated[
        list[str] | None,
        typer.Argument(metavar="PAPER | PAPER/FIGURE | FILE.py", help="What to run. [default: every built-in paper]"),
    ] = None,
    size: Annotated[Size, typer.Option(help="How much to compute.")] = Size.standard,
    seed: Annotated[int, typer.Option(metavar="K", help="The same seed gives the same numbers.")] = 0,
    out: Annotated[Path, typer.Option(metavar="DIR", help="The results folder.")] = Path("results"),
    jobs: Annotated[
        int | None, typer.Option(metavar="N", help="Number of worker processes. [default: one per core]")
    ] = None,
    fresh: Annotated[bool, typer.Option("--fresh", help="Compute finished experiments again.")] = False,
    one_file: Annotated[bool, typer.Option("--one-file", help="Write the report as one page.")] = False,
) -> None:
    """Run experiments; write figures, claims and a report.

    A paper is built in, installed by another package, or your own: FILE.py, FILE.py/FIGURE or module:NAME.

    Experiments that are finished in the folder are kept, so the same command resumes an interrupted run. The size smoke
    takes seconds, standard takes minutes, and full is the size of the papers. Exit status: 0 when every verdict is the
    expected one, 1 when not, 2 for bad usage or a full disk, 130 when interrupted.
    """
    from gyrostat.parallel.interrupts import interrupts_noted
    from gyrostat.parallel.threads import confine_this_process, one_thread

    # Here as well as in the runner: NumPy and JAX read the number of threads when they are first used, just below.
    with interrupts_noted(forced=True), one_thread(quick=size is Size.smoke):
        confine_this_process()
        from gyrostat.reproduce import runner

        summary = runner.reproduce(
            names or [],
            size=size.value,
            seed=seed,
            out=out,
            jobs=jobs,
            fresh=fresh,
            one_file=one_file,
            console=console(),
        )
    raise typer.Exit(summary.status)
