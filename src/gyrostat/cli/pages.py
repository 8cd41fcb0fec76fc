"""The commands that make pages: ``report``, ``lab``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from gyrostat.cli.terminal import console


def report(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="A results folder.")] = Path("results"),
) -> None:
    """Make the page of a results folder again.

    Writes DIR/index.html from what is stored there: figures from the data, verdicts from claims.json. Nothing is computed.
    """
    from gyrostat.reproduce import report as lab_report

    path = lab_report.rebuild(folder)
    typer.echo(f"{path} ({path.stat().st_size / 1e6:.1f} MB)")


def lab(
    state: Annotated[str, typer.Option(metavar="STATE", help="Where to begin: the page's address after the ?.")] = "",
    csv: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write the curves of the state, and open no page.")
    ] = None,
    host: Annotated[str, typer.Option(metavar="ADDRESS", help="The address to listen on.")] = "127.0.0.1",
    port: Annotated[
        int | None, typer.Option(metavar="N", min=1, max=65535, help="None: the first free one from 8765.")
    ] = None,
    browser: Annotated[bool, typer.Option("--browser/--no-browser", help="Open the page.")] = True,
) -> None:
    """A live laboratory in the browser: sliders, curves, theory.

    The page is served on this machine only. Ctrl-C ends it.
    """
    from gyrostat.parallel.threads import one_thread

    with one_thread():  # before NumPy and JAX come in
        from gyrostat.lab import start

        if csv is not None:
            start.write_curves(console(), state=state, path=csv)
        else:
            start.serve(console(), host=host, port=port, state=state, browser=browser)
