"""Run benchmark suites, each in a process of its own on one core; print and write their records.

A suite is a module with ``run(say) -> Report``; to add one, write the module and name it in ``SUITES``. ``say(text)`` reports
progress. A suite may also have ``finish(report, out, console)``, which prints and writes more than one line per record.

``python -m benchmarks.runner SUITE FILE`` is the process of one suite, which ``run_suites`` starts.
"""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

from rich.console import Console

from benchmarks.measuring import pin_to_one_core
from benchmarks.records import BenchmarkRecord, Report, curve_panels, report_file, table
from gyrostat import errors
from gyrostat.parallel.threads import one_thread

SUITES: dict[str, str] = {
    **{name: f"benchmarks.speed.{name}" for name in ("core", "gd", "deep", "sweep", "lab", "reproduce")},
    "first-minute": "benchmarks.speed.first_minute",
    "torch": "benchmarks.speed.torch_batches",
    **{name: f"benchmarks.{name}.suite" for name in ("invariance", "completion", "tables")},
}
"""Name of a suite -> its module."""
ON_REQUEST: dict[str, str] = {
    "calibration": "benchmarks.calibration",
    "compare-methods": "benchmarks.compared_methods_suite",
    "completion-large": "benchmarks.completion.large_table",
    "reproduce-standard": "benchmarks.speed.reproduce_standard",
    "coloured": "benchmarks.coloured.suite",
    "tables-ratings": "benchmarks.tables.ratings",
}
"""Suites that take many minutes, or gigabytes; they run only when they are named."""
INTERRUPTED = "interrupted"
"""The reason why a suite ended, after Ctrl-C."""


def run_suites(names: list[str], out: Path, console: Console) -> int:
    """Run suites (all when none is named), print a table, write ``bench.json`` and ``bench.png`` to ``out``.

    Returns 0 whatever the timings, 1 when a suite crashed, 130 after Ctrl-C; records made until then are kept. A suite that
    was interrupted starts from the beginning the next time, because both sides of a comparison must come from one run.
    """
    chosen = list(dict.fromkeys(errors.choice("suite", name, SUITES | ON_REQUEST) for name in names)) or list(SUITES)
    out.mkdir(parents=True, exist_ok=True)
    reports: dict[str, Report] = {}
    for name in chosen:
        with console.status(f"{name}: starting") as status:
            # Without a terminal there is no line to update: every message gets its own.
            show = status.update if console.is_terminal else partial(console.print, highlight=False, markup=False)
            reports[name], trouble = in_child(name, lambda text, name=name, show=show: show(f"{name}: {text}"))
        if trouble:
            console.print(f"The suite {name} stopped: {trouble}", style="red", markup=False)
        if trouble == INTERRUPTED:
            break
    records = [record for report in reports.values() for record in report.records]
    (out / "bench.json").write_text(json.dumps([record.as_dict() for record in records], indent=1) + "\n")
    draw(records, out / "bench")
    console.print(table(records, [note for report in reports.values() for note in report.notes]))
    for name, report in reports.items():
        finish = getattr(suite_module(name), "finish", None)
        if finish and report.records:
            finish(report, out, console)
    console.print(f"Written to {out / 'bench.json'}.", highlight=False)
    return 130 if trouble == INTERRUPTED else int(any(report.crashed for report in reports.values()))


def suite_module(name: str) -> ModuleType:
    """The module of a suite."""
    return importlib.import_module((SUITES | ON_REQUEST)[name])


def in_child(name: str, say: Callable[[str], Any]) -> tuple[Report, str]:
    """Run one suite in a fresh process on one core; its report, and the last line of the error if it crashed."""
    with tempfile.TemporaryDirectory() as folder:
        result, errors_file = Path(folder) / "report.json", Path(folder) / "stderr"
        stopped = False
        command = [sys.executable, "-m", "benchmarks.runner", name, str(result)]
        with (
            errors_file.open("w") as stderr,
            subprocess.Popen(command, stdout=subprocess.PIPE, stderr=stderr, text=True, env=single_threaded()) as child,
        ):
            try:
                for line in child.stdout or ():
                    say(line.strip())
            except KeyboardInterrupt:
                child.kill()  # an interrupt would not end all of it: a fit keeps its best model and goes on
                stopped = True
        report = Report.read(result) if result.exists() else Report([], [])
        if stopped:
            note = f"{name} was interrupted: its records up to then are kept."
            return Report(report.records, [*report.notes, note], crashed=True), INTERRUPTED
        if child.returncode == 0:
            return report, ""
        last = errors_file.read_text().strip().splitlines()[-1:] or [f"exit status {child.returncode}"]
        return Report(report.records, report.notes, crashed=True), last[0]


def single_threaded() -> dict[str, str]:
    """The environment variables of a child process that computes on one thread and finds this package from any folder."""
    paths = os.pathsep.join(filter(None, (str(Path(__file__).parents[1]), os.environ.get("PYTHONPATH"))))
    with one_thread():
        return {**os.environ, "JAX_PLATFORMS": "cpu", "PYTHONPATH": paths}


def draw(records: Sequence[BenchmarkRecord], base: Path) -> None:
    """Draw the curves of all records in one figure, if there are any."""
    from gyrostat.figures.declarations import Figure
    from gyrostat.figures.matplotlib_renderer import render

    if panels := curve_panels(records):
        note = "Best of several runs on one core, compiled beforehand."
        render(Figure(title="What a step costs", panels=panels, note=note), base)


def main(name: str, path: str) -> None:
    """Run one suite on one core and write its report; every line printed is a progress message."""
    pin_to_one_core()
    report_file.set(Path(path))
    report = suite_module(name).run(lambda text: print(text, flush=True))
    report.write(Path(path))


if __name__ == "__main__":
    main(*sys.argv[1:])
