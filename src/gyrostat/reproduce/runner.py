"""The runner (``gyrostat reproduce``): runs experiments, stores their data, judges claims, draws figures, writes the report."""

from __future__ import annotations

import functools
import os
import platform
from collections.abc import Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, packages_distributions
from importlib.metadata import version as distribution_version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console

from gyrostat import __version__, errors
from gyrostat.experiments.experiment import SIZES
from gyrostat.experiments.paper_files import is_file_address, split_address
from gyrostat.experiments.registry import reference_to
from gyrostat.parallel.checked_files import DamagedStore
from gyrostat.parallel.interrupts import check_interrupt, interrupts_noted
from gyrostat.parallel.progress import ProgressDisplay, print_line
from gyrostat.parallel.threads import one_thread
from gyrostat.parallel.whole_files import reason, write_whole
from gyrostat.parallel.workers import explain, run_tasks
from gyrostat.reproduce.claims import by_author, claims_table, is_surprise, judge
from gyrostat.reproduce.store import CLAIMS, ClaimRecord, ResultsStore, experiment_of
from gyrostat.reproduce.tasks import ComputedExperiment, ExperimentTask, experiment_task, select

if TYPE_CHECKING:
    import xarray as xr

LIBRARIES = (
    "jax",
    "jaxlib",
    "equinox",
    "optax",
    "numpy",
    "scipy",
    "scikit-learn",
    "xarray",
    "zarr",
    "matplotlib",
    "plotly",
)
"""The libraries whose versions are stored with the data: those that compute, store and draw."""


@dataclass
class ReproductionSummary:
    """The outcome of :func:`reproduce`: records of claims, failures, and the names of reused and computed experiments."""

    records: list[ClaimRecord] = field(default_factory=list)
    failures: dict[str, str] = field(default_factory=dict)
    reused: list[str] = field(default_factory=list)
    computed: list[str] = field(default_factory=list)
    interrupted: bool = False
    cannot_write: str = ""

    @property
    def status(self) -> int:
        """The exit status: 0 when every verdict is the expected one, 1 when not, 2 for a full disk, 130 when interrupted."""
        if self.interrupted or self.cannot_write:
            return 130 if self.interrupted else 2
        return int(bool(self.failures) or any(is_surprise(record) for record in self.records))


def reproduce(
    names: Sequence[str] = (),
    *,
    size: str = "standard",
    seed: int = 0,
    out: str | Path = "results",
    jobs: int | None = None,
    fresh: bool = False,
    one_file: bool = False,
    console: Console | None = None,
) -> ReproductionSummary:
    """Run the experiments ``names`` and write their results to the folder ``out``.

    A name is a paper, ``paper/figure``, a file that declares a paper (``mypaper.py``, ``mypaper.py/fig1``) or ``module:NAME``;
    without names, all built-in papers are run.

    An experiment that is finished there with the same code, seed, size and settings is not computed again, unless
    ``fresh``; its figure and claims are made again from the stored data. With ``one_file``, the report is one page
    instead of an index and a page for each paper.
    """
    console = Console() if console is None else console
    errors.choice("size", size, SIZES)
    seed = errors.integer("seed", seed)
    jobs = (os.cpu_count() or 1) if jobs is None else errors.integer("jobs", jobs, least=1)
    tasks = [experiment_task(name, size, seed) for name in select(names)]
    store = ResultsStore(out)
    store.prepare()
    with one_thread(quick=size == "smoke"), interrupts_noted(), ProgressDisplay(console, "experiments") as display:
        session = FolderSession(store, display)
        display.expect(items=len(tasks))
        try:
            waiting = []
            for task in tasks:
                check_interrupt()
                waiting += [task] if fresh or not session.reuse(task) else []
            display.expect(weight=sum(task.weight for task in waiting))
            run_tasks(waiting, jobs, session)
        except KeyboardInterrupt:
            session.summary.interrupted = True
        except OSError as error:
            session.summary.cannot_write = reason(error)
    _conclude(session.summary, tasks, store, console, one_file=one_file)
    return session.summary


class FolderSession:
    """The listener of the workers: writes the results of each task as soon as it is finished."""

    def __init__(self, store: ResultsStore, display: ProgressDisplay):
        self.store, self.display = store, display
        self.summary = ReproductionSummary()

    def reuse(self, task: ExperimentTask) -> bool:
        """Make the figure and the claims of a task from stored data; False if there are none."""
        try:
            dataset = self.store.load(task.name, task.fingerprint)
        except DamagedStore as error:
            self.display.print(f"{task.name} is computed again: {error.fault}")
            return False
        if dataset is None:
            return False
        self.summary.reused.append(task.name)
        if self._deliver(task, dataset, self.store.run(task.name)["seconds"]):
            self.display.expect(kept=1)
            self.display.print(f"{task.name} kept from before")
        return True

    def started(self, task: ExperimentTask) -> None:
        self.display.started(task, task.name)

    def progress(self, task: ExperimentTask, done: float, total: int) -> None:
        self.display.advanced(task, done / total if total else 0.0)

    def finished(self, task: ExperimentTask, result: ComputedExperiment, seconds: float) -> None:
        try:
            run = _how_it_ran(task, seconds, result.cpu_seconds)
            self.store.save(task.name, result.dataset, task.fingerprint, run)
        except OSError:
            raise  # a full disk ends the run, which says so: later experiments could not be written either
        except Exception as error:
            self.failed(task, *explain(error))
            return
        self.summary.computed.append(task.name)
        if self._deliver(task, result.dataset, seconds):
            self.display.finished(task, f"{task.name} finished in {seconds:.1f} s")

    def failed(self, task: ExperimentTask, line: str, details: str) -> Sequence[ExperimentTask]:
        self.summary.failures[task.name] = line
        write_whole(self.store.error(task.name), details)
        self.store.put_claims(task.name, [])
        self.display.failed(f"{task.name}: {line}", task)
        return ()

    def _deliver(self, task: ExperimentTask, dataset: xr.Dataset, seconds: float) -> bool:
        """Judge the claims on the data and draw the figure; False if that fails."""
        from gyrostat.figures.matplotlib_renderer import render

        try:
            records = judge(task.name, task.experiment, dataset, seconds)
            render(task.experiment.figure(dataset), self.store.figure(task.name))
        except OSError:
            raise  # as in `finished`
        except Exception as error:
            self.failed(task, *explain(error))
            return False
        self.store.put_claims(task.name, records)
        self.store.error(task.name).unlink(missing_ok=True)
        self.summary.records += records
        return True


def _how_it_ran(task: ExperimentTask, seconds: float, cpu_seconds: float) -> dict[str, Any]:
    """What is stored with the data: what was run and how, with which versions, where and when."""
    paper, experiment = task.paper, task.experiment
    system = f"{platform.system()} {platform.machine()}"
    return {
        "version": __version__,
        "versions": versions(task.address),
        "code": task.code,
        "paper": {"title": paper.title, "link": paper.link, "doi": paper.doi},
        "reference": f"{reference_to(paper.name)}/{experiment.name}",
        "title": experiment.title,
        "source": experiment.source,
        "summary": experiment.summary,
        "seed": task.seed,
        "derived_seed": task.derived_seed,
        "size": task.size,
        "settings": task.settings,
        CLAIMS: [claim.slug for claim in experiment.claims],
        "seconds": round(seconds, 3),
        "cpu_seconds": round(cpu_seconds, 3),
        "machine": f"{system}, {os.cpu_count()} cores, Python {platform.python_version()}",
        "time": datetime.now(UTC).isoformat(timespec="seconds"),
    }


def versions(address: str = "") -> dict[str, str]:
    """The versions of Python and of the libraries that compute; with an ``address``, also of the package of a plug-in.

    >>> versions()["python"].startswith("3.")
    True
    """
    found = {"python": platform.python_version(), "gyrostat": __version__}
    top = split_address(address)[0].split(".")[0]
    others = () if not address or is_file_address(address) or top == "gyrostat" else _distributions_of(top)
    for name in (*LIBRARIES, *others):
        with suppress(PackageNotFoundError):
            found[name] = distribution_version(name)
    return found


@functools.cache  # goes through the files of all installed packages
def _distributions_of(top: str) -> Sequence[str]:
    return sorted(set(packages_distributions().get(top, ())))


def _conclude(
    summary: ReproductionSummary,
    tasks: list[ExperimentTask],
    store: ResultsStore,
    console: Console,
    *,
    one_file: bool,
) -> None:
    """Write the report and print the table of claims, the failures and the files."""
    from gyrostat.reproduce.report.page import counted_statements, write_report

    if summary.interrupted or summary.cannot_write:
        done = len(summary.reused) + len(summary.computed)
        why, remedy = "Interrupted", ""
        if not summary.interrupted:
            why = f"Stopped, the folder cannot be written to ({summary.cannot_write})"
            remedy = "free some space and "
        print_line(
            console,
            f"{why}: {done} of {len(tasks)} experiments are finished and kept in {store.folder}; "
            f"{remedy}run the same command again to resume.",
        )
        with suppress(OSError) if summary.cannot_write else nullcontext():
            write_report(store, one_file=one_file)
        return
    write_report(store, one_file=one_file)
    order = {task.name: i for i, task in enumerate(tasks)}
    summary.records.sort(key=lambda record: order[experiment_of(record)])
    parts = by_author(summary.records)
    for author, part in parts.items():
        console.print(claims_table(part, author))
    for name, line in summary.failures.items():
        print_line(console, f"{name} failed: {line} (details in {store.error(name)})")
    surprises = sum(is_surprise(record) for record in summary.records)
    for author, part in parts.items():
        print_line(console, counted_statements(part, author))
    print_line(
        console,
        f"{len(summary.records)} claims, {surprises} with a verdict that was not expected; "
        f"experiments that could not be computed: {len(summary.failures)}.",
    )
    for name in ("index.html", "claims.json", "figures", "results.zarr"):
        print_line(console, f"  {store.folder / name}")
