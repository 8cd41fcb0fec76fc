"""The commands of sweeps: ``sweep``, ``plot``, ``export``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from gyrostat.cli.terminal import console


def sweep(
    given: Annotated[str | None, typer.Argument(metavar="SPEC", help="A TOML file, or a ready-made name.")] = None,
    out: Annotated[Path, typer.Option(metavar="DIR", help="The folder of the sweep.")] = Path("sweep-results"),
    jobs: Annotated[int | None, typer.Option(metavar="N", help="Worker processes (one per core).")] = None,
    scheduler: Annotated[
        str | None, typer.Option(metavar="ADDRESS", help="A Dask scheduler, tcp:// or tls://.")
    ] = None,
    tls_ca_file: Annotated[str, typer.Option(metavar="FILE", help="For tls://, as in Dask's commands.")] = "",
    tls_cert: Annotated[str, typer.Option(metavar="FILE", help="Likewise.")] = "",
    tls_key: Annotated[str, typer.Option(metavar="FILE", help="Likewise.")] = "",
    settings: Annotated[
        list[str] | None, typer.Option("--set", metavar="PATH=VALUE", help="Another value of a setting.")
    ] = None,
    seeds: Annotated[int | None, typer.Option(metavar="N", help="Another number of seeds.")] = None,
    refine: Annotated[bool, typer.Option("--refine", help="Spend the runs near the transition.")] = False,
    extend: Annotated[bool, typer.Option("--extend", help="Add points to a sweep that is there.")] = False,
    fresh: Annotated[bool, typer.Option("--fresh", help="Forget what is in the folder.")] = False,
    listing: Annotated[bool, typer.Option("--list", help="List the ready-made specs.")] = False,
) -> None:
    """Run a phase diagram; the same command resumes it.

    A spec names the experiment, the axes, what to keep and what success is. Exit status: 0 when all cells are done, 1 when
    some failed or the scheduler is gone, 2 for bad usage, 130 when interrupted.
    """
    from gyrostat.errors import GyrostatError
    from gyrostat.parallel.threads import one_thread

    # Around the imports: NumPy reads the number of threads when it comes in, and the predictions are made here.
    with one_thread():
        from gyrostat.sweeps import load_spec, run_sweep
        from gyrostat.sweeps.conclude import conclude
        from gyrostat.sweeps.listing import show_ready_made

        if listing:
            show_ready_made(console())
            raise typer.Exit
        if given is None:
            raise GyrostatError("SPEC is missing: give a TOML file, or a name that gyrostat sweep --list shows.")
        changes: dict[str, Any] = {} if seeds is None else {"seeds": seeds}
        summary = run_sweep(
            load_spec(given, settings or [], changes),
            out=out,
            jobs=jobs,
            scheduler=scheduler,
            tls={"ca_file": tls_ca_file, "cert": tls_cert, "key": tls_key},
            refine=refine,
            extend=extend,
            fresh=fresh,
            console=console(),
        )
        conclude(summary, out, console())
    raise typer.Exit(summary.status)
