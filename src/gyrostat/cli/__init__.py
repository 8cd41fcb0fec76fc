"""The command line. Each command has a file of its own, which parses options, calls the library and prints.

Commands import the scientific libraries inside their functions, so that ``gyrostat --help`` is instant.
"""

from __future__ import annotations

import io
import os
import sys
from typing import Annotated

import typer

from gyrostat import __version__
from gyrostat.cli import (
    check,
    claims,
    compare,
    compare_methods,
    doctor,
    fit,
    impute,
    lab,
    new,
    plot,
    predict,
    report,
    reproduce,
    sweep,
)
from gyrostat.cli.console import printable
from gyrostat.cli.explained_errors import TRACEBACK, explained

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)
for _command in (
    reproduce.reproduce,
    report.report,
    claims.claims,
    compare.compare,
    new.new,
    lab.lab,
    check.check,
    sweep.sweep,
    plot.plot,
    fit.fit,
    predict.predict,
    compare_methods.compare_methods,
    impute.impute,
    doctor.doctor,
):
    app.command()(_command)


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


def refuse_what_went(command: str, *arguments: str) -> None:
    """Refuse a command, or an option of a command, that earlier versions had, and say what to use instead."""
    known = typer.main.get_command(app).commands.get(command)  # type: ignore[attr-defined]
    options = {option for parameter in known.params for option in parameter.opts} if known else set()
    if known and all(word.split("=")[0] in options for word in arguments if word.startswith("--")):
        return
    # Not before: this imports NumPy, which would read the number of threads before `reproduce` sets it.
    from gyrostat.errors import GyrostatError
    from gyrostat.what_went import instead_of

    for name in (*(f"{command} {word.split('=')[0]}" for word in arguments), command):
        if sentence := instead_of(f"gyrostat {name}"):
            raise GyrostatError(sentence)


def main() -> None:
    """Run the command line: whatever goes wrong is one sentence on standard error and exit status 2."""
    for stream in (sys.stdout, sys.stderr):  # a name may hold characters that the encoding of the terminal has not
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    try:
        if sys.argv[1:] and not sys.argv[1].startswith("-"):
            refuse_what_went(*sys.argv[1:])
        app(prog_name="gyrostat")
    except KeyboardInterrupt:
        sys.exit(130)
    except Exception as error:
        if os.environ.get(TRACEBACK):
            raise
        print(f"gyrostat: {printable(explained(error))}", file=sys.stderr)
        sys.exit(2)
