"""Benchmarks: each suite times the library beside its peers in a process of its own, on one core.

A suite is a module with ``run(say) -> Report`` and ``panels(records) -> list[Panel]``; to add one, write the
module and name it in ``SUITES``. ``say(text)`` reports progress. A suite whose records tell more than a line each may also have
``finish(report, out, console)``, which prints and writes the rest.
"""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from rich.console import Console

from gyrostat import errors
from gyrostat.benchmarks.records import Record, Report, table
from gyrostat.benchmarks.timing import single_threaded

SUITES: dict[str, str] = {
    name: f"gyrostat.benchmarks.{name}" for name in ("core", "gd", "deep", "sweep", "lab", "invariance", "completion")
}
"""Name of a suite -> its module."""
NAMED: dict[str, str] = {"completion-large": "gyrostat.benchmarks.completion.large_table"}
"""Suites that take minutes and gigabytes, and run only when they are named."""
INTERRUPTED = "interrupted"
"""The trouble of a suite that Ctrl-C ended."""


def run_suites(names: list[str], out: Path, console: Console) -> int:
    """Run suites (all when none is named), print a table, write ``bench.json`` and ``bench.png`` to ``out``.

    Returns 0 whatever the timings, 1 when a suite crashed, 130 after Ctrl-C; records that are there by then are kept. A
    suite that was ended starts anew: what it compares must come from one run.
    """
    chosen = list(dict.fromkeys(errors.choice("suite", name, SUITES | NAMED) for name in names)) or list(SUITES)
    out.mkdir(parents=True, exist_ok=True)
    reports: dict[str, Report] = {}
    for name in chosen:
        with console.status(f"{name}: starting") as status:
            reports[name], trouble = in_child(name, lambda text, name=name: status.update(f"{name}: {text}"))
        if trouble:
            console.print(f"The suite {name} stopped: {trouble}", style="red", markup=False)
        if trouble == INTERRUPTED:
            break
    records = [record for report in reports.values() for record in report.records]
    (out / "bench.json").write_text(json.dumps([record.as_dict() for record in records], indent=1) + "\n")
    draw(reports, out / "bench")
    console.print(table(records, [note for report in reports.values() for note in report.notes]))
    for name, report in reports.items():
        finish = getattr(importlib.import_module((SUITES | NAMED)[name]), "finish", None)
        if finish and report.records:
            finish(report, out, console)
    console.print(f"Written to {out / 'bench.json'}.", highlight=False)
    return 130 if trouble == INTERRUPTED else int(any(report.crashed for report in reports.values()))


def in_child(name: str, say: Callable[[str], Any]) -> tuple[Report, str]:
    """Run one suite in a fresh process on one core; its report, and the last words of a crash."""
    with tempfile.TemporaryDirectory() as folder:
        result, errors_file = Path(folder) / "report.json", Path(folder) / "stderr"
        stopped = False
        command = [sys.executable, "-m", "gyrostat.benchmarks.child", name, str(result)]
        with (
            errors_file.open("w") as stderr,
            subprocess.Popen(command, stdout=subprocess.PIPE, stderr=stderr, text=True, env=single_threaded()) as child,
        ):
            try:
                for line in child.stdout or ():
                    say(line.strip())
            except KeyboardInterrupt:
                child.kill()  # not all that runs in it ends at an interrupt: a fit keeps its best model and goes on
                stopped = True
        report = Report.read(result) if result.exists() else Report([], [])
        if stopped:
            note = f"{name} was interrupted: this is what it had found by then."
            return Report(report.records, [*report.notes, note], crashed=True), INTERRUPTED
        if child.returncode == 0:
            return report, ""
        last = errors_file.read_text().strip().splitlines()[-1:] or [f"exit status {child.returncode}"]
        return Report(report.records, report.notes, crashed=True), last[0]


def draw(reports: dict[str, Report], base: Path) -> None:
    """The curves of all suites in one figure, if there are any."""
    from gyrostat.figures.declarations import Figure, Panel
    from gyrostat.figures.matplotlib_renderer import render

    panels: list[Panel] = []
    for name, report in reports.items():
        panels += importlib.import_module((SUITES | NAMED)[name]).panels(report.records)
    if panels:
        note = "Best of several runs on one core, compiled beforehand."
        render(Figure(title="What a step costs", panels=panels, note=note), base)


__all__ = ["NAMED", "SUITES", "Record", "Report", "run_suites"]
