"""The sweep suite: cells per second against plain loops, the gain from a second worker, and the cost of checksums."""

from __future__ import annotations

import math
import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from rich.console import Console

import gyrostat as gs
from benchmarks.measuring import allow_all_cores, best_of
from benchmarks.records import BenchmarkRecord, Group, GroupResult, Report, run_groups

WHOLE = 50 * 50
"""Cells of the whole sweep; a part of them is timed, and all cost the same."""


class SweepSizes(NamedTuple):
    """How much to time; the tests take less."""

    dimension: int = 30
    num_steps: int = 200
    seeds: int = 100
    step_sizes: int = 4
    spreads: int = 5
    loop_runs: int = 100
    repeats: int = 3


def run(say: Callable[[str], Any], sizes: SweepSizes = SweepSizes()) -> Report:  # noqa: B008  (immutable)
    """Every record of the suite."""
    return run_groups(GROUPS, sizes, say)


def table(sizes: SweepSizes) -> dict[str, Any]:
    """A part of the sweep over (eta, M), as a spec."""
    return {
        "num_steps": sizes.num_steps,
        "seeds": sizes.seeds,
        "algorithm": {"kind": "HeteroSGD", "step_size": 0.05},
        "environments": {"kind": "RandomEnvironments", "dimension": sizes.dimension, "law": {"kind": "TwoPoint"}},
        "measurements": {"kind": "FreshGaussian", "num_samples": 80 * sizes.dimension},
        "axes": {
            "step_size": {"linear": [0.01, 0.1], "points": sizes.step_sizes},
            "spread": {"linear": [1, 10], "points": sizes.spreads},
        },
        "record": {"final": ["signal"]},
        "success": {"spurious": {"below": 0.1}},
    }


def record_settings(sizes: SweepSizes, seconds: float) -> dict[str, Any]:
    """The settings of a record: what was timed, and what all 50 x 50 cells would take at this rate."""
    rate = {"cells_per_second": 1 / seconds, "minutes_for_50_x_50": WHOLE * seconds / 60}
    return {**sizes._asdict(), "cells_timed": sizes.step_sizes * sizes.spreads, **rate}


def loops(sizes: SweepSizes) -> GroupResult:
    """A sweep in this process, data written, against loops over cells, and over cells and seeds."""
    from gyrostat.sweeps import read_spec, run_sweep

    cells = sizes.step_sizes * sizes.spreads
    grid = read_spec(table(sizes))
    (algorithm, problem), steps = grid.cell((1, 1))

    def ours() -> None:
        with tempfile.TemporaryDirectory() as folder:
            run_sweep(grid, out=folder, jobs=0)

    def one(seeds: Any) -> Any:
        return gs.run(
            algorithm, problem, num_steps=steps, seeds=seeds, record=("signal", "spurious"), record_at=[steps]
        )

    best = best_of(
        {
            "ours": ours,
            "cells": lambda: one(sizes.seeds),
            "runs": lambda: [one([seed]) for seed in range(sizes.loop_runs)],
        },
        sizes.repeats,
    )
    mine, unit = best["ours"] / cells, "seconds per cell"
    each = best["runs"] / sizes.loop_runs * sizes.seeds
    names = ("a Python loop over cells and seeds, one run per call", "a Python loop over cells, all seeds in one call")
    return [
        BenchmarkRecord("sweep/cells-vs-loop", mine, unit, each, names[0], None, record_settings(sizes, mine)),
        BenchmarkRecord(
            "sweep/cells-vs-seeds-vmapped", mine, unit, best["cells"], names[1], None, record_settings(sizes, mine)
        ),
    ], []


def workers(sizes: SweepSizes) -> GroupResult:
    """The same sweep with one and with two worker processes, started and compiled beforehand."""
    from gyrostat.sweeps import executors

    allow_all_cores()
    if (os.cpu_count() or 1) < 2 or not Path("/proc/self/stat").exists():
        return [], ["sweep: parallel efficiency left out: it needs two cores, and a system with /proc."]
    with executors.local_executor(1) as single, executors.local_executor(2) as double:
        spent = {"one": math.inf, "two": math.inf}

        def timed(name: str, engine: Any) -> None:
            before = processor_seconds(engine)
            through(engine, sizes)
            spent[name] = min(spent[name], processor_seconds(engine) - before)

        best = best_of({"one": lambda: timed("one", single), "two": lambda: timed("two", double)}, sizes.repeats)
    cells = sizes.step_sizes * sizes.spreads
    names = ("half the time of one worker (the ratio is the efficiency)", "one worker on its own, the same work")
    settings = {**record_settings(sizes, best["two"] / cells), "seconds_one": best["one"], "seconds_two": best["two"]}
    return [
        BenchmarkRecord("sweep/two-workers", best["two"], "seconds", best["one"] / 2, names[0], 0.85, settings),
        BenchmarkRecord(
            "sweep/two-workers-processor", spent["two"], "processor seconds", spent["one"], names[1], None, settings
        ),
        BenchmarkRecord("sweep/two-workers-rate", cells / best["two"], "cells per second", settings=settings),
    ], []


def processor_seconds(engine: Any) -> float:
    """Processor seconds of the driver and the workers of an engine so far; meaningful also while others use the machine."""
    pids = [worker.process.pid for worker in (engine.busy | engine.idle).values()]
    ticks = [Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[11:13] for pid in pids]
    return sum(int(t) for pair in ticks for t in pair) / os.sysconf("SC_CLK_TCK") + time.process_time()


def through(engine: Any, sizes: SweepSizes) -> None:
    """One sweep into a new folder, on workers that have started already."""
    from gyrostat.parallel.progress import ProgressDisplay
    from gyrostat.sweeps import read_spec
    from gyrostat.sweeps.run import Session
    from gyrostat.sweeps.store import open_store

    with tempfile.TemporaryDirectory() as folder:
        store, asked = open_store(read_spec(table(sizes)), folder, extend=False, fresh=False)
        Session(asked, store, ProgressDisplay(Console(quiet=True), "cells")).run(engine, refine=False)


def checksums(sizes: SweepSizes) -> GroupResult:
    """What checksums and synchronised files add to a sweep: the same cells written with them, and as zarr writes by default."""
    from gyrostat.sweeps import read_spec, run_sweep
    from gyrostat.sweeps.plan import plan_chunks
    from gyrostat.sweeps.store import open_store

    grid = read_spec(table(sizes))
    computed = [(c.points, c.compute()[0]) for c in plan_chunks(grid, [(p, 0) for p in grid.points()], 1)[0]]

    def in_new_folder(work: Callable[[str], Any]) -> Callable[[], None]:
        def run() -> None:
            with tempfile.TemporaryDirectory() as folder:
                work(folder)

        return run

    def checked(folder: str) -> None:
        store, spec = open_store(grid, folder, extend=False, fresh=False)
        for points, data in computed:
            store.write_cells(points, 0, data, spec.seeds)

    sides = {
        "sweep": in_new_folder(lambda folder: run_sweep(grid, out=folder, jobs=0)),
        "checked": in_new_folder(checked),
        "plain": in_new_folder(lambda folder: write_by_default(folder, grid, computed)),
    }
    best = best_of(sides, sizes.repeats)
    added = best["checked"] - best["plain"]
    settings = {**sizes._asdict(), "cells_timed": grid.num_cells, "seconds_added": added}
    name = "the same sweep without checksums (the ratio is the share of the time that is left for the rest)"
    record = BenchmarkRecord("sweep/checksums", best["sweep"], "seconds", best["sweep"] - added, name, 0.95, settings)
    return [record], []


def write_by_default(folder: str, spec: Any, computed: Any) -> None:
    """Write cells in chunks as zarr does without being asked for more: no checksums."""
    import zarr

    root = zarr.open_group(folder, mode="a", zarr_format=3)
    done = root.create_array("done", shape=spec.shape, chunks=spec.shape, dtype="int32")
    arrays = {}
    for name, values in computed[0][1].items():
        inside = values.shape[1:]
        chunks = (*(1 for _ in spec.shape), *inside)
        arrays[name] = root.create_array(name, shape=(*spec.shape, *inside), chunks=chunks, dtype=values.dtype)
    for points, data in computed:
        for name, values in data.items():
            for point, value in zip(points, values, strict=True):
                arrays[name][point] = value
        done[...] = 1


GROUPS: tuple[Group[SweepSizes], ...] = (
    ("a sweep against plain loops", loops),
    ("one worker against two", workers),
    ("checksums", checksums),
)
