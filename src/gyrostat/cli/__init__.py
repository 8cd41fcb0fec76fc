"""The command line: parses, calls, prints. What is slow to import is imported inside the commands."""

from __future__ import annotations

import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from gyrostat import __version__
from gyrostat.cli import check, data, pages, sweep
from gyrostat.cli.terminal import console

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)


for _command in (
    sweep.sweep,
    sweep.plot,
    sweep.export,
    data.fit,
    data.predict,
    data.impute,
    pages.report,
    pages.lab,
    check.check,
):
    app.command()(_command)


class Size(StrEnum):
    """How much to compute; the names of ``gyrostat.experiments.declarations.SIZES``, which would be slow to import."""

    smoke = "smoke"
    standard = "standard"
    full = "full"


class Word(StrEnum):
    """The verdicts."""

    holds = "holds"
    fails = "fails"
    undecided = "undecided"


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"gyrostat {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """What gradient descent keeps and what it forgets in over-parameterised matrix models."""


@app.command()
def reproduce(
    names: Annotated[list[str] | None, typer.Argument(metavar="PAPER | PAPER/FIGURE", help="None: everything.")] = None,
    size: Annotated[Size, typer.Option(help="How much to compute.")] = Size.standard,
    seed: Annotated[int, typer.Option(metavar="K", help="The same seed gives the same numbers.")] = 0,
    out: Annotated[Path, typer.Option(metavar="DIR", help="The results folder.")] = Path("results"),
    jobs: Annotated[int | None, typer.Option(metavar="N", help="Worker processes (one per core).")] = None,
    fresh: Annotated[bool, typer.Option("--fresh", help="Compute finished ones again.")] = False,
) -> None:
    """Run experiments: figures, claims and a report.

    What is finished in the folder is kept, so the same command resumes an interrupted run. Sizes: smoke takes
    seconds, standard minutes, full is as in the papers. Exit status: 0 when every verdict is the expected
    one, 1 when not, 2 for bad usage, 130 when interrupted.
    """
    from gyrostat.parallel.threads import one_thread

    # Here as well as in the runner: NumPy reads the number of threads when it is imported, just below.
    with one_thread(quick=size is Size.smoke):
        from gyrostat.reproduce import runner

        summary = runner.reproduce(
            names or [], size=size.value, seed=seed, out=out, jobs=jobs, fresh=fresh, console=console()
        )
    raise typer.Exit(summary.status)


@app.command()
def claims(
    folder: Annotated[Path | None, typer.Argument(metavar="DIR", help="A results folder.")] = None,
    paper: Annotated[str | None, typer.Option(help="Only this paper.")] = None,
    verdict: Annotated[Word | None, typer.Option(help="Only this verdict.")] = None,
    surprises: Annotated[bool, typer.Option("--surprises", help="Only unexpected verdicts.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """List claims and their verdicts.

    Of a results folder; or, without a folder, the statements that can be checked.
    """
    from gyrostat.reproduce import claims_listing as listing

    word = None if verdict is None else verdict.value
    listing.show_claims(console(), folder, paper=paper, verdict=word, surprises=surprises, as_json=as_json)


@app.command()
def doctor() -> None:
    """Check this installation and its compiled programs.

    Exit status: 0 when compiled float64 programs agree with NumPy, 1 when not.
    """
    from gyrostat.cli import doctor as lab_doctor

    raise typer.Exit(lab_doctor.doctor(console()))


@app.command()
def bench(
    suites: Annotated[list[str] | None, typer.Argument(metavar="SUITE", help="None: all suites.")] = None,
    out: Annotated[Path, typer.Option(metavar="DIR", help="Where bench.json goes.")] = Path("bench-results"),
) -> None:
    """Measure gyrostat against its peers in the same run."""
    from gyrostat.benchmarks import run_suites

    raise typer.Exit(run_suites(suites or [], out, console()))


def main() -> None:
    """Run the command line: bad input is one sentence on standard error and exit status 2."""
    try:
        app(prog_name="gyrostat")
    except ValueError as error:
        from gyrostat.errors import GyrostatError

        if not isinstance(error, GyrostatError):
            raise
        print(f"gyrostat: {error}", file=sys.stderr)
        sys.exit(2)
    except KeyboardInterrupt:
        sys.exit(130)
