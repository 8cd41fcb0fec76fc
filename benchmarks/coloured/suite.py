"""The map of coloured pictures: settings, records and what its page shows. It runs only when it is named.

``python -m benchmarks.coloured.suite MINUTES DIR`` goes on for so long and writes what is complete.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from rich.console import Console

import torch
from benchmarks.coloured import evidence
from benchmarks.coloured.pictures import available
from benchmarks.coloured.reported import reported
from benchmarks.coloured.study import CANONICAL, PIECES, MapSetting, MapSizes, kept, piece_file, row_of
from benchmarks.records import BenchmarkRecord, Group, GroupResult, Report, run_groups, write_evidence
from gyrostat.parallel.whole_files import write_whole

COMPARED = ("pooled", "one environment", "amplified", "V-REx", "IRMv1", "GroupDRO", "Fish", "no colour")
WITHOUT_FISH = tuple(name for name in COMPARED if name != "Fish")
OURS = ("pooled", "one environment", "amplified")
ON_COMPONENTS = ("linear", "diagonal", "quadratic", "rectified")


def settings() -> dict[MapSetting, tuple[str, ...]]:
    """Every setting of the map, with the methods that are compared in it. The inner steps of Fish are plain SGD."""
    found: dict[MapSetting, tuple[str, ...]] = {}
    for data in ("mnist", "digits"):
        for network in ON_COMPONENTS:
            found[MapSetting(data, network)] = (*COMPARED, "placebo")
    for network in ("rectified", "diagonal"):
        for order in ("shuffled", "iid"):
            found[MapSetting("mnist", network, order=order)] = OURS
    for wrong in (0.1, 0.25):
        found[MapSetting("mnist", "rectified", wrong=wrong)] = OURS
    for network in ("linear", "diagonal", "rectified"):
        found[MapSetting("mnist", network, agreements=CANONICAL)] = COMPARED
    for network in ("rectified", "diagonal", "linear", "quadratic"):
        for optimiser in ("momentum", "Adam"):
            found[MapSetting("mnist", network, "cross-entropy", optimiser)] = WITHOUT_FISH
    for network in ON_COMPONENTS:
        found[MapSetting("mnist", network, "squared")] = COMPARED
    for network in ON_COMPONENTS:
        found[MapSetting("fashion", network)] = (*COMPARED, "placebo")
    found[MapSetting("mnist", "rectified on pictures")] = COMPARED
    found[MapSetting("mnist", "convolutional")] = COMPARED
    for network in ON_COMPONENTS:
        for optimiser in ("momentum", "Adam"):
            found[MapSetting("mnist", network, "squared", optimiser)] = WITHOUT_FISH
        found[MapSetting("digits", network, "squared")] = COMPARED
    found[MapSetting("mnist", "rectified on pictures", agreements=CANONICAL)] = COMPARED
    return found


def run(say: Callable[[str], Any], sizes: MapSizes = MapSizes()) -> Report:  # noqa: B008  (immutable)
    """Every record of the suite."""
    torch.set_num_threads(1)
    groups: list[Group[MapSizes]] = [
        (setting.name, partial(_compared, setting, methods)) for setting, methods in settings().items()
    ]
    return run_groups([*groups, *_report_groups()], sizes, say)


def _report_groups() -> list[Group[MapSizes]]:
    return [(f"reports on {data}", partial(_reported, data)) for data in ("digits", "mnist")]


def _reported(data: str, sizes: MapSizes) -> GroupResult:
    if not available(data):
        return [], []
    path = PIECES / f"reports on {data}, {sizes.seeds} seeds, {sizes.steps} steps.json"
    if not path.exists():
        PIECES.mkdir(parents=True, exist_ok=True)
        write_whole(path, json.dumps(reported(data, sizes.seeds, sizes.steps)))
    found = json.loads(path.read_text())
    after, before = (sum(run[key] for run in found) / len(found) for key in ("after", "before"))
    about = {"data": data, "reports": found}
    unit = "share of wrong answers, colour reversed"
    return [BenchmarkRecord(f"coloured/{data}/project-out", 1 - after, unit, 1 - before, "as trained", None, about)], []


def _compared(setting: MapSetting, methods: tuple[str, ...], sizes: MapSizes) -> GroupResult:
    if not available(setting.data):
        return [], [f"coloured/{setting.data} is left out: its pictures are not here; run make map-data."]
    pieces = {method: kept(setting, method, sizes) for method in methods}
    rows = [row_of(setting, method, pieces[method], pieces["pooled"]) for method in methods]
    about = {**evidence.described(setting), "seeds": sizes.seeds, "steps": sizes.steps}
    wrong = {row["method"]: 1 - row["reversed"][1] for row in rows}
    name = f"coloured/{setting.name.replace(', ', '/').replace(' ', '-')}"
    unit = "share of wrong answers, colour reversed"
    return [
        BenchmarkRecord(
            name, wrong["amplified"], unit, wrong["pooled"], "pooled batches", None, {**about, "rows": rows}
        )
    ], []


def finish(report: Report, out: Path, console: Console) -> None:
    """Write what the page shows, and its picture."""
    found = evidence.MapResults(report.records)
    write_evidence("coloured-digits", "coloured", evidence.values(found, report.notes), out, console)
    evidence.draw(found, out)


def main(minutes: float, out: Path) -> None:
    """Make pieces until the time is over, and write what is complete."""
    torch.set_num_threads(1)
    start, sizes = time.monotonic(), MapSizes()
    groups, left = [], []
    for setting, methods in settings().items():
        over = time.monotonic() - start > 60 * minutes
        if over and not all(piece_file(setting, method, sizes).exists() for method in methods):
            left.append(setting.name)
        else:
            groups.append((setting.name, partial(_compared, setting, methods)))
            _compared(setting, methods, sizes)
    report = run_groups([*groups, *_report_groups()], sizes, print)
    notes = [f"Not run yet: {'; '.join(left)}."] if left else []
    finish(Report(report.records, report.notes + notes), out, Console())


if __name__ == "__main__":
    main(float(sys.argv[1]), Path(sys.argv[2]))
