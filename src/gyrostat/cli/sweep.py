"""``gyrostat sweep``: run a phase diagram."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gyrostat.cli.console import console
from gyrostat.cli.plot import draw_and_print

if TYPE_CHECKING:
    from rich.console import Console

    from gyrostat.sweeps.run import SweepSummary


def sweep(
    spec: Annotated[
        str | None, typer.Argument(metavar="SPEC", help="A TOML file, or a name that --list shows.")
    ] = None,
    out: Annotated[Path, typer.Option(metavar="DIR", help="The folder of the sweep.")] = Path("sweep-results"),
    jobs: Annotated[
        int | None, typer.Option(metavar="N", help="Number of worker processes. [default: one per core]")
    ] = None,
    scheduler: Annotated[
        str | None, typer.Option(metavar="ADDRESS", help="The Dask scheduler to use instead, tcp:// or tls://.")
    ] = None,
    tls_ca_file: Annotated[
        str, typer.Option(metavar="FILE", help="For tls://: the certificate of the authority, as in Dask's commands.")
    ] = "",
    tls_cert: Annotated[str, typer.Option(metavar="FILE", help="For tls://: the certificate.")] = "",
    tls_key: Annotated[str, typer.Option(metavar="FILE", help="For tls://: the private key.")] = "",
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="PATH=VALUE", help="Change a setting of the spec; may be repeated."),
    ] = None,
    seeds: Annotated[int | None, typer.Option(metavar="N", help="Change the number of seeds.")] = None,
    refine: Annotated[bool, typer.Option("--refine", help="Compute only cells near the transition.")] = False,
    extend: Annotated[
        bool, typer.Option("--extend", help="Allow the spec to add values and seeds to an existing sweep.")
    ] = False,
    fresh: Annotated[bool, typer.Option("--fresh", help="Remove the results in the folder first.")] = False,
    code: Annotated[
        bool, typer.Option("--code/--no-code", help="Whether the spec may run code: kinds such as module:function.")
    ] = True,
    listing: Annotated[bool, typer.Option("--list", help="List the ready-made specs.")] = False,
) -> None:
    """Run a phase diagram; the same command resumes it.

    A spec names the experiment, the axes, what to record and what a success is. A spec is code: a kind module:function
    imports that module and calls that function. Give --no-code for a spec from someone else.

    Exit status: 0 when all cells are done, 1 when some failed or the scheduler was lost, 2 for bad usage or a full disk, 130
    when interrupted.
    """
    from gyrostat.errors import GyrostatError
    from gyrostat.parallel.interrupts import interrupts_noted
    from gyrostat.parallel.threads import one_thread

    # Around the imports: NumPy reads the number of threads when it is imported, and predictions are computed here.
    with interrupts_noted(forced=True), one_thread():
        from gyrostat.sweeps import read_spec, run_sweep

        if listing:
            show_ready_made(console())
            raise typer.Exit
        if spec is None:
            raise GyrostatError("SPEC is missing: give a TOML file, or a name that gyrostat sweep --list shows.")
        changes: dict[str, Any] = {} if seeds is None else {"seeds": seeds}
        summary = run_sweep(
            read_spec(spec, settings or [], changes, code=code),
            out=out,
            jobs=jobs,
            scheduler=scheduler,
            tls={"ca_file": tls_ca_file, "cert": tls_cert, "key": tls_key},
            refine=refine,
            extend=extend,
            fresh=fresh,
            console=console(),
        )
        show_results(summary, out, console())
    raise typer.Exit(summary.status)


def show_results(summary: SweepSummary, folder: Path, console: Console) -> None:
    """Predict, draw and print the results, if the sweep was not stopped, and then its summary."""
    from gyrostat.parallel.interrupts import check_interrupt
    from gyrostat.sweeps.plots import predict

    if summary.done and not summary.stopped:
        check_interrupt()
        predict(summary.spec, folder)
        check_interrupt()
        draw_and_print(folder, console)
    for sentence in summary.sentences(folder):
        console.print(sentence, markup=False, highlight=False, soft_wrap=True)


def show_ready_made(console: Console) -> None:
    """Print the name, axes, sizes and question of every ready-made spec."""
    from rich.table import Table
    from rich.text import Text

    from gyrostat.sweeps import ready_made_specs

    table = Table(title="Ready-made sweeps: gyrostat sweep NAME --out DIR", title_justify="left", pad_edge=False)
    for heading in ("name", "axes", "cells", "runs", "question"):
        table.add_column(heading, overflow="fold", justify="right" if heading in ("cells", "runs") else "left")
    for name, spec in ready_made_specs().items():
        axes = ", ".join(f"{a.name} ({len(a.values)})" for a in spec.axes)
        runs = spec.num_cells * spec.seeds
        table.add_row(Text(name), Text(axes), str(spec.num_cells), str(runs), Text(f"{spec.title}. {spec.summary}"))
    console.print(table)
