"""Sweeps: phase diagrams that resume, on the cores of this machine or on a Dask cluster."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gyrostat import errors
from gyrostat.errors import GyrostatError
from gyrostat.sweeps.reading import load_spec, ready_made, spec
from gyrostat.sweeps.spec import Spec

if TYPE_CHECKING:
    import xarray as xr
    from rich.console import Console

    from gyrostat.sweeps.session import Summary


def sweep(
    given: Any,
    *,
    out: str | Path,
    jobs: int | None = None,
    scheduler: str | None = None,
    tls: dict[str, str] | None = None,
    refine: bool = False,
    extend: bool = False,
    fresh: bool = False,
    console: Console | None = None,
) -> xr.Dataset:
    """Run every cell of a spec (a TOML file, a ready-made name, a mapping) into the folder ``out``; the data come back.

    What is there is kept, so the same call goes on after an interruption. ``jobs`` worker processes compute (one per core;
    0 for this process), or the Dask cluster at ``scheduler``. ``refine`` spends the runs near the transition; ``extend``
    lets a spec add values to axes, and seeds; ``fresh`` forgets what is there. The data have a dimension for every axis and
    for the seeds, and ``success`` with its 95 % interval.

    >>> import tempfile
    >>> result = sweep({
    ...     "num_steps": 200, "seeds": 8,
    ...     "algorithm": {"kind": "HeteroSGD", "step_size": 0.05},
    ...     "environments": {"kind": "RandomEnvironments", "dimension": 8, "law": {"kind": "TwoPoint"}},
    ...     "measurements": {"kind": "FreshGaussian", "num_samples": "= 200 * dimension"},
    ...     "axes": {"spread": [1.0, 9.0]},
    ...     "success": {"spurious": {"below": 0.1}},
    ... }, out=tempfile.mkdtemp(), jobs=0)
    >>> result.success.round().values.tolist()
    [0.0, 1.0]
    """
    from gyrostat.sweeps.store import SweepStore

    summary = run_sweep(
        given,
        out=out,
        jobs=jobs,
        scheduler=scheduler,
        tls=tls,
        refine=refine,
        extend=extend,
        fresh=fresh,
        console=console,
    )
    if summary.stopped == "interrupted":
        raise KeyboardInterrupt
    if summary.stopped:
        raise GyrostatError(
            f"{summary.stopped}: {summary.done} of {summary.cells} cells are kept, call again to go on."
        )
    return SweepStore(out).load()


def run_sweep(
    given: Any,
    *,
    out: str | Path,
    jobs: int | None = None,
    scheduler: str | None = None,
    tls: dict[str, str] | None = None,
    refine: bool = False,
    extend: bool = False,
    fresh: bool = False,
    console: Console | None = None,
) -> Summary:
    """As :func:`sweep`; what it came to comes back instead of the data."""
    from rich.console import Console

    from gyrostat.parallel.progress import ProgressDisplay
    from gyrostat.sweeps import engines
    from gyrostat.sweeps.session import Session
    from gyrostat.sweeps.store import alone

    asked = spec(given)
    if refine and not asked.record.success:
        raise GyrostatError("refine looks for the boundary of success: say in the spec what success is.")
    jobs = (os.cpu_count() or 1) if jobs is None else errors.integer("jobs", jobs)
    chosen = engines.cluster(scheduler, tls or {}) if scheduler else engines.local(jobs)
    display = ProgressDisplay(console or Console(quiet=True), "cells", show_rate=True)
    with alone(Path(out)), chosen as engine, display as shown:
        store, asked = prepared(asked, out, extend=extend, fresh=fresh)
        return Session(asked, store, shown).run(engine, refine=refine)


def prepared(asked: Spec, out: str | Path, *, extend: bool, fresh: bool) -> tuple[Any, Spec]:
    """The store of a folder, ready for a spec, and the spec with the values of its axes in the order of the store."""
    from gyrostat.sweeps.resume import accept
    from gyrostat.sweeps.store import SweepStore, in_order

    store = SweepStore(out)
    if fresh:
        store.remove()
    stated = store.stated
    if stated is not None:
        accept(asked, stated, extend=extend)
    asked = in_order(asked, stated)
    store.begin(asked)
    return store, asked


__all__ = ["Spec", "load_spec", "ready_made", "run_sweep", "spec", "sweep"]
