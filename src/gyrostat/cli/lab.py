"""``gyrostat lab``: the live laboratory in the browser."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from gyrostat.cli.console import console


def lab(
    state: Annotated[
        str, typer.Option(metavar="STATE", help="The initial state: what follows the ? in the address of the page.")
    ] = "",
    csv: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write the curves of the state to a file, and do not open a page."),
    ] = None,
    host: Annotated[str, typer.Option(metavar="ADDRESS", help="The address to listen on.")] = "127.0.0.1",
    port: Annotated[
        int | None,
        typer.Option(metavar="N", min=1, max=65535, help="The port. [default: the first free one from 8765]"),
    ] = None,
    paper: Annotated[
        list[str] | None,
        typer.Option(
            metavar="FILE.py",
            help="A file or module with a paper whose settings are offered as presets; may be repeated.",
        ),
    ] = None,
    browser: Annotated[bool, typer.Option("--browser/--no-browser", help="Open the page.")] = True,
) -> None:
    """Explore the models live in the browser.

    You move sliders and see the curves and the theory change. The page is served on this machine only. Ctrl-C ends it.
    """
    from gyrostat.parallel.threads import one_thread

    with one_thread():  # before NumPy and JAX are imported
        if csv is not None:
            from gyrostat.lab.export import write_curves

            console().print(f"{write_curves(state, csv)} rows in {csv}", highlight=False)
        else:
            from gyrostat.experiments import registry
            from gyrostat.lab.start import serve

            for reference in paper or ():
                registry.add_paper(reference)
            serve(console(), host=host, port=port, state=state, browser=browser)
