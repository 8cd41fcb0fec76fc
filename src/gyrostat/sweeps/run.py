"""Running a sweep: plan chunks, give them to an executor, write the results, and keep ``sweep.json`` current."""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from rich.console import Console

from gyrostat import errors
from gyrostat.engine.summary import warn_of_divergence
from gyrostat.errors import GyrostatError
from gyrostat.parallel.interrupts import interrupts_noted
from gyrostat.parallel.progress import ProgressDisplay, clock
from gyrostat.parallel.whole_files import reason, write_whole
from gyrostat.sweeps import executors
from gyrostat.sweeps.executors import Executor, SchedulerLost
from gyrostat.sweeps.plan import Chunk, plan_chunks
from gyrostat.sweeps.plots import predict
from gyrostat.sweeps.refine import Refinement
from gyrostat.sweeps.spec import Point, Spec, read_spec
from gyrostat.sweeps.store import SweepStore, lock_folder, open_store, value_text

if TYPE_CHECKING:
    import xarray as xr

MOST_FAILURES = 3
"""A cell that fails this often on its own is given up."""

DESCRIBE_EVERY = 1.0
"""Seconds between two updates of ``sweep.json``."""

INTERRUPTED, SCHEDULER_GONE = "interrupted", "the scheduler is gone"
"""Why a sweep stopped early, in its summary; the third reason is that its folder cannot be written to."""


@errors.explains_keywords
def sweep(
    spec: Any,
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
    """Run every cell of a spec (a TOML file, the name of a ready-made spec, or a mapping) and return the data.

    Results are written to the folder ``out``. Finished cells in it are kept, so the same call resumes an interrupted sweep.
    A spec that has changed, or whose code has, is refused with the name of what changed.
    The theory's predictions are kept there too; ``gyrostat plot`` draws them over the results.

    ``jobs`` is the number of worker processes: one per core by default, 0 to compute in this process. ``scheduler`` is the
    address of a Dask cluster to use instead, with the certificates ``tls``. ``refine`` computes cells near the transition
    only. ``extend`` allows the spec to add values to axes and seeds to an existing sweep, and ``fresh`` removes what is in
    the folder.

    Cells that fail are NaN, and a warning says how many; if all fail, the reason is raised as an error. Another warning says
    that a success such as "spurious below 0.1" also counts runs that have learnt nothing.

    The data have a dimension for every axis and for the seeds, and ``success`` with its 95 % interval. ``diverged`` and
    ``reached`` are steps: infinite for never, NaN for a run that is not computed. :func:`gyrostat.summary` takes medians in
    which a diverged run counts as infinite, and a :class:`DivergenceWarning` says how many there are.

    Parameters
    ----------
    spec
        A TOML file, the name of a ready-made spec, or a mapping.
    out
        The folder of the results; finished cells in it are kept.
    jobs
        The number of worker processes: one per core by default, 0 to compute in this process.
    scheduler
        The address of a Dask cluster, instead of worker processes.
    tls
        The certificates for it: ``ca_file``, ``cert``, ``key``.
    refine
        True to compute only cells near the transition.
    extend
        True to let the spec add values to axes, and seeds, to an existing sweep.
    fresh
        True to remove what is in the folder.
    console
        Where progress is shown; a rich console.

    >>> import tempfile
    >>> result = sweep({
    ...     "num_steps": 200, "seeds": 8,
    ...     "algorithm": {"kind": "HeteroSGD", "step_size": 0.05},
    ...     "environments": {"kind": "RandomEnvironments", "dimension": 8, "law": {"kind": "TwoPoint"}},
    ...     "measurements": {"kind": "FreshGaussian", "num_samples": "= 200 * dimension"},
    ...     "axes": {"spread": [1.0, 9.0]},
    ...     "success": {"spurious": {"below": 0.1}, "signal": {"above": 0.5}},
    ... }, out=tempfile.mkdtemp(), jobs=0)
    >>> result.success.round().values.tolist()
    [0.0, 1.0]
    """
    summary = run_sweep(
        spec,
        out=out,
        jobs=jobs,
        scheduler=scheduler,
        tls=tls,
        refine=refine,
        extend=extend,
        fresh=fresh,
        console=console,
    )
    if summary.stopped == INTERRUPTED:
        raise KeyboardInterrupt
    if summary.stopped:
        raise GyrostatError(
            f"{summary.stopped}: {summary.done} of {summary.cells} cells are kept; call again to continue."
        )
    _report_failures(summary, Path(out))
    if note := summary.spec.record.note:
        warnings.warn(note, stacklevel=3)
    predict(summary.spec, Path(out))
    return warn_of_divergence(SweepStore(out).load(), stacklevel=3)


def _report_failures(summary: SweepSummary, folder: Path) -> None:
    """Cells that failed: an error if no cell is done, a warning otherwise."""
    if not summary.failures:
        return
    point, line = next(iter(summary.failures.items()))
    what = f"{len(summary.failures)} of {summary.cells} cells failed, the first one with: {line}"
    if not summary.done:
        raise GyrostatError(what)
    warnings.warn(f"{what} Their data are NaN; details in {error_file(folder, point)}.", stacklevel=3)


def run_sweep(
    spec: Any,
    *,
    out: str | Path,
    jobs: int | None = None,
    scheduler: str | None = None,
    tls: dict[str, str] | None = None,
    refine: bool = False,
    extend: bool = False,
    fresh: bool = False,
    console: Console | None = None,
) -> SweepSummary:
    """Run a sweep as :func:`sweep` does, and return a summary instead of the data."""
    checked = read_spec(spec)
    checked.check_cells()
    if refine and not checked.record.success:
        raise GyrostatError("refine looks for the boundary of success: say in the spec what success is.")
    jobs = (os.cpu_count() or 1) if jobs is None else errors.integer("jobs", jobs)
    chosen = executors.dask_executor(scheduler, tls or {}) if scheduler is not None else executors.local_executor(jobs)
    display = ProgressDisplay(console or Console(quiet=True), "cells", show_rate=True)
    with interrupts_noted(), lock_folder(Path(out)), chosen as executor, display:
        store, ordered = open_store(checked, out, extend=extend, fresh=fresh)
        if store.repaired:
            display.print(f"Missing or damaged in {out}: {'; '.join(store.repaired)}.")
        return Session(ordered, store, display).run(executor, refine=refine)


@dataclass
class SweepSummary:
    """What a sweep did: ``cells`` that were asked for, ``kept`` from before and ``computed``, and why it ``stopped`` early."""

    spec: Spec
    cells: int = 0
    kept: int = 0
    computed: int = 0
    runs: int = 0
    seconds: float = 0.0
    failures: dict[Point, str] = field(default_factory=dict)
    refined: bool = False
    stopped: str = ""

    @property
    def status(self) -> int:
        """The exit status: 0 when all cells are done, 1 when some failed or the scheduler is gone, 130 when interrupted.

        It is 2 when the folder cannot be written to any more.
        """
        return {"": int(bool(self.failures)), INTERRUPTED: 130, SCHEDULER_GONE: 1}.get(self.stopped, 2)

    @property
    def done(self) -> int:
        """The number of finished cells, from now or before."""
        return self.kept + self.computed

    @property
    def saved(self) -> int:
        """The number of runs that refinement saved compared with the whole grid."""
        return (self.spec.num_cells - self.cells) * self.spec.seeds if self.refined else 0

    def sentences(self, folder: Path) -> list[str]:
        """The summary in words."""
        if self.stopped:
            why = "Interrupted" if self.stopped == INTERRUPTED else f"Stopped, {self.stopped}"
            kept = f"{self.done} of {self.cells} cells are done and kept in {folder}"
            remedy = "free some space and " if self.status == 2 else ""
            return [f"{why}: {kept}; {remedy}run the same command to continue."]
        lines = [
            f"cell {point} failed: {line} (details in {error_file(folder, point)})"
            for point, line in self.failures.items()
        ]
        rate = self.computed / self.seconds if self.seconds else 0.0
        lines.append(
            f"{self.done} of {self.cells} cells done ({self.kept} kept from before, {self.computed} computed in "
            f"{clock(self.seconds)}, {rate:.3g} cells/s, {self.runs} runs), {len(self.failures)} failed."
        )
        if self.refined:
            runs = self.cells * self.spec.seeds
            lines.append(
                f"Refined: {runs} runs instead of the {runs + self.saved} of the whole grid "
                f"({self.saved / (runs + self.saved):.0%} saved); the boundary is still known to one step of the grid."
            )
        note = self.spec.record.note
        return [*lines, f"{note[0].upper()}{note[1:]}"] if note else lines


def error_file(folder: Path, point: Point) -> Path:
    """The file with the traceback of a failed cell."""
    return folder / "errors" / f"cell-{'-'.join(map(str, point))}.txt"


class Session:
    """One run of a sweep on one store. It listens to the executor."""

    def __init__(self, spec: Spec, store: SweepStore, display: ProgressDisplay):
        self.spec, self.store, self.display = spec, store, display
        self.summary = SweepSummary(spec)
        self.began = self.described_at = time.monotonic()
        self.asked: set[Point] = set()

    def run(self, executor: Executor, *, refine: bool) -> SweepSummary:
        """Compute the missing cells. An interruption or a lost scheduler ends the sweep early, and the summary says so."""
        self.summary.refined = refine
        try:
            if refine:
                self._compute_refined(executor)
            else:
                self._compute(list(self.spec.points()), executor)
        except KeyboardInterrupt:
            self.summary.stopped = INTERRUPTED
        except SchedulerLost:
            self.summary.stopped = SCHEDULER_GONE
        except OSError as error:
            self.summary.stopped = f"the folder cannot be written to ({reason(error)})"
        self.summary.seconds = time.monotonic() - self.began
        with suppress(OSError) if self.summary.status == 2 else nullcontext():
            self._write_description()
        return self.summary

    def _compute_refined(self, executor: Executor) -> None:
        refinement = Refinement(self.spec)
        self._compute(refinement.first(), executor)
        for level in refinement.finer_levels():
            # A failed cell stays missing; it is not asked for again.
            while new := self._not_asked(refinement.next(level, *self.store.success_shares(self.spec.seeds))):
                self._compute(new, executor)
        self._count_finished_before()

    def _count_finished_before(self) -> None:
        """Count cells that an earlier run finished and that refinement therefore did not ask for."""
        unfinished = self.store.unfinished(list(self.spec.points()), self.spec.seeds)
        more = self.spec.num_cells - len(unfinished) - self.summary.done
        self.summary.cells += more
        self.summary.kept += more

    def _not_asked(self, points: Sequence[Point]) -> list[Point]:
        return [p for p in points if p not in self.asked]

    def _compute(self, points: Sequence[Point], executor: Executor) -> None:
        self.asked |= set(points)
        unfinished = self.store.unfinished(points, self.spec.seeds)
        kept = len(points) - len(unfinished)
        self.summary.cells += len(points)
        self.summary.kept += kept
        chunks, refused = plan_chunks(self.spec, unfinished, executor.jobs)
        self.display.expect(items=len(points), kept=kept, weight=sum(chunk.weight for chunk in chunks))
        for point, line in refused.items():
            self._give_up(point, line, line)
        self._write_description()
        executor.run(chunks, self)

    # Called by the executor

    def started(self, task: Chunk) -> None:
        """A chunk was given to a worker."""
        self.display.started(task)

    def progress(self, task: Chunk, done: float, total: int) -> None:
        """A part of a chunk is computed."""
        self.display.advanced(task, done / total)

    def finished(self, task: Chunk, result: dict[str, np.ndarray], seconds: float) -> None:
        """A chunk is computed: write its cells."""
        self.store.write_cells(task.points, task.first_seed, result, self.spec.seeds)
        self.summary.computed += len(task.points)
        self.summary.runs += len(task.points) * (self.spec.seeds - task.first_seed)
        self.display.finished(task)
        if time.monotonic() - self.described_at > DESCRIBE_EVERY:
            self._write_description()

    def failed(self, task: Chunk, line: str, details: str) -> Sequence[Chunk]:
        """Halve a chunk that failed until the failing cell is alone; give that cell up after :data:`MOST_FAILURES`."""
        if (n := len(task.points)) > 1:
            self.display.dropped(task)
            halves = (task.points[: n // 2], task.points[n // 2 :])
            return [replace(task, points=half, weight=task.weight * len(half) / n) for half in halves]
        if task.failures + 1 < MOST_FAILURES:
            self.display.dropped(task)
            return [replace(task, failures=task.failures + 1)]
        self._give_up(task.points[0], line, details, task)
        return ()

    def _give_up(self, point: Point, line: str, details: str, task: Chunk | None = None) -> None:
        setting = self.spec.axis_values(point)
        self.summary.failures[point] = line
        write_whole(error_file(self.store.folder, point), f"{setting}\n{details}\n")
        text = ", ".join(f"{name} = {value_text(value)}" for name, value in setting.items())
        self.display.failed(f"{text}: {line}", task)

    def _write_description(self) -> None:
        s = self.summary
        self.described_at = time.monotonic()
        report: dict[str, Any] = {
            "cells": {
                "grid": self.spec.num_cells,
                "asked": s.cells,
                "done": s.done,
                "failed": len(s.failures),
                "left": s.cells - s.done - len(s.failures),
            },
            "failures": [{"setting": self.spec.axis_values(p), "error": line} for p, line in s.failures.items()],
            "runs": s.runs,
            "seconds": round(self.described_at - self.began, 3),
            "stopped": s.stopped,
            "note": s.spec.record.note,
        }
        if s.refined:
            report["refine"] = {"runs_saved": s.saved, "resolution": "one step of the grid"}
        self.store.write_description(self.spec, report)
