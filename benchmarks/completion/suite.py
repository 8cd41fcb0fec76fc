"""The completion suite: errors at missing cells, and time, against peers that do not know the rank either."""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from rich.console import Console

from benchmarks.completion import evidence, phase_diagram
from benchmarks.completion.image import restored
from benchmarks.completion.peers import PEERS
from benchmarks.completion.problems import REAL, Synthetic, real, small, synthetic
from benchmarks.completion.sensing import SETTINGS, MeasurementSetting, sensed
from benchmarks.completion.study import OURS, CompletionRow, compared
from benchmarks.records import BenchmarkRecord, Group, GroupResult, Report, run_groups, write_evidence

UNIT = "error at missing cells over their root mean square"
SECONDS = "CPU seconds, tuning included"
EQUAL = 1.05
"""A peer with at most this multiple of our error is of equal accuracy, and its time is compared."""

ROWS = (
    Synthetic(100, 3, 3),
    Synthetic(100, 3, 1.3),
    Synthetic(100, 3, 1.1),
    Synthetic(100, 5, 2),
    Synthetic(100, 5, 1.5),
    Synthetic(100, 5, 1.3),
    Synthetic(100, 5, 1.2),
    Synthetic(100, 10, 1.1),
    Synthetic(100, 5, 3, noise=0.1),
    Synthetic(100, 10, 1.5, noise=0.05),
    Synthetic(100, 5, 2, condition=1e3),
    Synthetic(100, 5, 1.5, condition=1e3),
    Synthetic(500, 5, 3),
    Synthetic(500, 10, 1.3),
    Synthetic(500, 10, 1.1),
    Synthetic(500, 5, 2, noise=0.1),
    Synthetic(500, 5, 2, condition=1e3),
    Synthetic(2000, 5, 3),
    Synthetic(2000, 10, 1.5),
    Synthetic(2000, 10, 1.2),
    Synthetic(2000, 5, 3, noise=0.1),
)
DRAWS = {100: 8, 500: 3, 2000: 1}
"""The number of matrices of each size."""

PHASE = tuple((r, x) for r in (3, 5, 10) for x in (1.1, 1.2, 1.3, 1.5, 2.0))
"""Ranks, and cells for each free number."""


class CompletionSizes(NamedTuple):
    """How much to compare; the tests take less."""

    rows: tuple[Synthetic, ...] = ROWS
    shares: tuple[float, ...] = (0.4, 0.3, 0.25)
    tables: tuple[str, ...] = tuple(REAL)
    peers: tuple[str, ...] = tuple(PEERS)
    phase: tuple[tuple[int, float], ...] = PHASE
    matrices: int = 8
    draws: int | None = None
    image: bool = True
    sensing: tuple[MeasurementSetting, ...] = SETTINGS


def run(say: Callable[[str], Any], sizes: CompletionSizes = CompletionSizes()) -> Report:  # noqa: B008  (immutable)
    """Every record of the suite."""
    importlib.import_module("gyrostat.estimators")  # the import is not timed
    groups: list[Group[CompletionSizes]] = [
        *((f"{share:.0%} of 30 x 30", partial(_small, share)) for share in sizes.shares),
        *((row.name, partial(_synthetic, row)) for row in sizes.rows),
        *((name, partial(_real, name)) for name in sizes.tables),
        *((f"rank {r} at {x:g} times the freedom", partial(_phase, r, x)) for r, x in sizes.phase),
        *([("image", _image)] if sizes.image else []),
        *((f"measurements, {setting.name}", partial(_sensing, setting)) for setting in sizes.sensing),
    ]
    return run_groups(groups, sizes, say)


def _small(share: float, sizes: CompletionSizes) -> GroupResult:
    return _compared([small(share, seed) for seed in range(sizes.draws or 6)], sizes)


def _synthetic(row: Synthetic, sizes: CompletionSizes) -> GroupResult:
    return _compared([synthetic(row, seed) for seed in range(sizes.draws or DRAWS[row.n])], sizes)


def _real(name: str, sizes: CompletionSizes) -> GroupResult:
    problem = real(name)
    if problem is None:
        return [], [f"completion/{name} is left out: its package is not installed; pip install 'gyrostat[datasets]'."]
    return _compared([problem], sizes)


def _compared(problems: list, sizes: CompletionSizes) -> GroupResult:
    row, notes = compared(problems, sizes.peers)
    return records_of(row), notes


def records_of(row: CompletionRow) -> list[BenchmarkRecord]:
    """Our error against each peer's (medians over draws), and our time against that of the fastest of equal accuracy."""
    mine = row.error(OURS)
    settings: dict[str, Any] = {"row": row.as_dict()}  # the whole row goes into the first record only
    name = f"completion/{row.name.replace('%', '-percent')}"
    records = []
    for peer in row.methods:
        if peer != OURS:
            goal = 1.0 if peer in row.rivals else None
            records.append(
                BenchmarkRecord(f"{name}-vs-{_slug(peer)}", mine, UNIT, row.error(peer), peer, goal, settings)
            )
            settings = {"draws": row.draws}
    equal = [peer for peer in row.rivals if row.error(peer) <= EQUAL * mine]
    if equal:
        fastest = min(equal, key=row.seconds)
        times = row.seconds(OURS), row.seconds(fastest)
        records.append(
            BenchmarkRecord(f"{name}-seconds", times[0], SECONDS, times[1], fastest, 0.5, {"draws": row.draws})
        )
    return records


def _phase(rank: int, oversampling: float, sizes: CompletionSizes) -> GroupResult:
    cell = phase_diagram.count_found(rank, oversampling, sizes.matrices, n=100)
    missed, theirs = (1 - cell[side] / cell["count"] for side in ("ours", "told"))
    name = f"completion/phase-r{rank}-x{oversampling:g}"
    return [
        BenchmarkRecord(
            name, missed, "share of matrices not found", theirs, "MatrixIRLS told the rank", None, {"phase": cell}
        )
    ], []


def _image(sizes: CompletionSizes) -> GroupResult:
    if not importlib.util.find_spec("skimage"):
        return [], ["completion/image is left out: scikit-image is not installed; pip install 'gyrostat[datasets]'."]
    image = restored()
    return [
        BenchmarkRecord("completion/image", image["patches"], "dB, peak signal to noise", settings={"image": image})
    ], []


def _sensing(setting: MeasurementSetting, sizes: CompletionSizes) -> GroupResult:
    result = sensed(setting, sizes.draws or 5)
    ours, plain = (result["solvers"][solver]["steps"] for solver in ("auto", "gd"))
    name = f"completion/sensing-{setting.name}"
    return [BenchmarkRecord(name, ours, "steps until converged", plain, "plain descent", None, {"sensing": result})], []


def finish(report: Report, out: Path, console: Console) -> None:
    """Write what the page shows, and its pictures."""
    write_evidence("completion-evidence", "completion", evidence.values(report), out, console)
    evidence.draw(report, out)


def _slug(name: str) -> str:
    return name.lower().replace(" ", "-")
