"""``gyrostat reproduce``: run experiments, keep what is finished, judge the claims, draw, report."""

from __future__ import annotations

import os
import platform
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console

from gyrostat import __version__, errors
from gyrostat.experiments.declarations import SIZES
from gyrostat.parallel.progress import ProgressDisplay
from gyrostat.parallel.threads import one_thread
from gyrostat.parallel.whole_files import plain, write_whole
from gyrostat.parallel.workers import explain, run_tasks
from gyrostat.reproduce.claims_table import claims_table, surprise
from gyrostat.reproduce.store import Record, Store
from gyrostat.reproduce.tasks import Task, seed_of, select

if TYPE_CHECKING:
    import xarray as xr


@dataclass
class Summary:
    """What a run of experiments came to."""

    records: list[Record] = field(default_factory=list)
    failures: dict[str, str] = field(default_factory=dict)
    reused: list[str] = field(default_factory=list)
    computed: list[str] = field(default_factory=list)
    interrupted: bool = False

    @property
    def status(self) -> int:
        """The exit status: 0 when every verdict is the expected one, 1 when not, 130 when interrupted."""
        if self.interrupted:
            return 130
        return int(bool(self.failures) or any(surprise(record) for record in self.records))


def reproduce(
    names: Sequence[str] = (),
    *,
    size: str = "standard",
    seed: int = 0,
    out: str | Path = "results",
    jobs: int | None = None,
    fresh: bool = False,
    console: Console | None = None,
) -> Summary:
    """Run the experiments ``names`` (papers or ``paper/figure``; none for all) into the folder ``out``.

    An experiment that is finished there with the same version, seed, size and settings is not computed again
    (unless ``fresh``); its figure and claims are made anew from the stored data.
    """
    console = Console() if console is None else console
    errors.choice("size", size, SIZES)
    seed = errors.integer("seed", seed)
    jobs = (os.cpu_count() or 1) if jobs is None else errors.integer("jobs", jobs, least=1)
    tasks = [Task(name, size, seed) for name in select(names)]
    store = Store(out)
    store.prepare()
    with one_thread(quick=size == "smoke"):
        summary = _run(tasks, store, jobs, fresh, console)
    _conclude(summary, tasks, store, console)
    return summary


def _run(tasks: list[Task], store: Store, jobs: int, fresh: bool, console: Console) -> Summary:
    with ProgressDisplay(console, "experiments") as shown:
        session = _Session(store, shown)
        shown.expect(items=len(tasks))
        try:
            waiting = [task for task in tasks if fresh or not session.reuse(task)]
            shown.expect(weight=sum(task.weight for task in waiting))
            run_tasks(waiting, jobs, session)
        except KeyboardInterrupt:
            session.summary.interrupted = True
    return session.summary


class _Session:
    """Writes what the tasks deliver, as they deliver it (the listener of the pool)."""

    def __init__(self, store: Store, shown: ProgressDisplay):
        self.store, self.shown, self.summary = store, shown, Summary()

    def reuse(self, task: Task) -> bool:
        """Make figure and claims of stored data, if there is any for this task."""
        dataset = self.store.load(task.name, task.fingerprint)
        if dataset is None:
            return False
        self.summary.reused.append(task.name)
        if self._deliver(task, dataset, self.store.run(task.name)["seconds"]):
            self.shown.expect(kept=1)
            self.shown.print(f"{task.name} kept from before")
        return True

    def started(self, task: Task) -> None:
        self.shown.started(task, task.name)

    def progress(self, task: Task, done: int, total: int) -> None:
        self.shown.advanced(task, done / total if total else 0.0)

    def finished(self, task: Task, dataset: xr.Dataset, seconds: float) -> None:
        try:
            self.store.save(task.name, dataset, task.fingerprint, _facts(task, seconds))
        except Exception as error:
            self.failed(task, *explain(error))
            return
        self.summary.computed.append(task.name)
        if self._deliver(task, dataset, seconds):
            self.shown.finished(task, f"{task.name} finished in {seconds:.1f} s")

    def failed(self, task: Task, line: str, details: str) -> Sequence[Task]:
        self.summary.failures[task.name] = line
        write_whole(self.store.error(task.name), details)
        self.store.put_claims(task.name, [])
        self.shown.failed(f"{task.name}: {line}", task)
        return ()

    def _deliver(self, task: Task, dataset: xr.Dataset, seconds: float) -> bool:
        """Write the claims and the figure that the data give; False when that fails."""
        from gyrostat.figures.matplotlib_renderer import render

        try:
            records = judge(task, dataset, seconds)
            render(task.declared.draw(dataset), self.store.figure(task.name))
        except Exception as error:
            self.failed(task, *explain(error))
            return False
        self.store.put_claims(task.name, records)
        self.store.error(task.name).unlink(missing_ok=True)
        self.summary.records += records
        return True


def judge(task: Task, dataset: xr.Dataset, seconds: float) -> list[Record]:
    """The records of the claims of one experiment, from its data."""
    records = []
    for claim in task.declared.claims:
        outcome = claim.measure(dataset)
        records.append(
            {
                "id": f"{task.name}/{claim.slug}",
                "statement": claim.statement,
                "criterion": claim.criterion,
                "measured": plain(outcome.measured),
                "verdict": outcome.verdict,
                "expected": claim.expected,
                "reason": claim.reason,
                "seeds": int(dataset.sizes.get("seed", 0)),
                "seconds": round(seconds, 3),
            }
        )
    return records


def _facts(task: Task, seconds: float) -> dict[str, Any]:
    system = f"{platform.system()} {platform.machine()}"
    return {
        "version": __version__,
        "seed": task.seed,
        "derived_seed": seed_of(task.seed, task.name),
        "size": task.size,
        "settings": task.settings,
        "seconds": round(seconds, 3),
        "machine": f"{system}, {os.cpu_count()} cores, Python {platform.python_version()}",
        "time": datetime.now(UTC).isoformat(timespec="seconds"),
    }


def _conclude(summary: Summary, tasks: list[Task], store: Store, console: Console) -> None:
    from gyrostat.reproduce.report import write_report

    write_report(store)

    def say(line: str) -> None:
        console.print(line, markup=False, highlight=False, soft_wrap=True)

    done = len(summary.reused) + len(summary.computed)
    if summary.interrupted:
        say(
            f"Interrupted: {done} of {len(tasks)} experiments are finished and kept in {store.folder}; "
            "run the same command again to resume."
        )
        return
    order = {task.name: i for i, task in enumerate(tasks)}
    summary.records.sort(key=lambda record: order[record["id"].rsplit("/", 1)[0]])
    if summary.records:
        console.print(claims_table(summary.records))
    for name, line in summary.failures.items():
        say(f"{name} failed: {line} (details in {store.error(name)})")
    odd = sum(surprise(record) for record in summary.records)
    say(f"{len(summary.records)} claims, {odd} with a verdict that was not expected, {len(summary.failures)} failures.")
    for what in ("index.html", "claims.json", "figures", "results.zarr"):
        say(f"  {store.folder / what}")
