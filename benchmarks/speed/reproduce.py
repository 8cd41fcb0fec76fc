"""The reproduce suite: what ``gyrostat reproduce`` costs on a fresh machine, by paper, and how well it fills the cores.

One command runs everything at one size, in a new process that finds an empty cache of compiled programs. Every experiment
stores its CPU seconds; what the command spends beyond them goes into starting, judging, drawing and the report. The parallel
efficiency is CPU seconds / (seconds on the clock x cores), so other work on the machine lowers it.

The suite ``reproduce`` runs the size smoke, ``reproduce-standard`` the size of ``make reproduce``.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.measuring import ProcessCost, allow_all_cores, fresh_process
from benchmarks.records import BenchmarkRecord, Report
from gyrostat.reproduce.store import ResultsStore

AIMED_SECONDS = {"smoke": 180.0, "standard": 480.0}
"""Seconds on the clock that we aim at, on two quiet cores of 2024."""
AIMED_EFFICIENCY = 0.85
SHOWN = 10
"""The number of experiments that the note lists."""


def run(say: Callable[[str], Any], size: str = "smoke", names: Sequence[str] = ()) -> Report:
    """Every record of the suite; without ``names``, of all built-in papers."""
    allow_all_cores()  # as the command has them
    say(f"everything at size {size}" if not names else f"{', '.join(names)} at size {size}")
    with tempfile.TemporaryDirectory() as folder:
        command = ["-m", "gyrostat", "reproduce", *names, "--size", size, "--out", f"{folder}/results"]
        # The status 1 says that a verdict was not the expected one, which is no matter of speed.
        cost = fresh_process(command, f"{folder}/cache", statuses=(0, 1))
        costs = _experiment_costs(ResultsStore(Path(folder) / "results"))
    return Report(_records(size, cost, costs), _notes(size, costs))


def _experiment_costs(store: ResultsStore) -> dict[str, float]:
    """The CPU seconds of every experiment, the most expensive first."""
    costs = {name: store.run(name)["cpu_seconds"] for name in store.finished()}
    return dict(sorted(costs.items(), key=lambda item: -item[1]))


def _records(size: str, cost: ProcessCost, costs: Mapping[str, float]) -> list[BenchmarkRecord]:
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    settings = {"size": size, "cores": cores}
    papers: dict[str, dict[str, float]] = {}
    for name, seconds in costs.items():
        paper, experiment = name.split("/")
        papers.setdefault(paper, {})[experiment] = seconds
    parts = {paper: sum(of_paper.values()) for paper, of_paper in sorted(papers.items())}
    parts |= {"other": cost.cpu - sum(parts.values()), "all": cost.cpu}
    efficiency, aim = cost.cpu / (cost.wall * cores), AIMED_SECONDS[size]
    return [
        *(
            BenchmarkRecord(
                f"reproduce/{part}", seconds, "CPU seconds", settings=settings | {"experiments": papers.get(part, {})}
            )
            for part, seconds in parts.items()
        ),
        BenchmarkRecord(
            "reproduce/clock", cost.wall, "seconds", settings=settings | {"aim": aim, "reached": cost.wall <= aim}
        ),
        BenchmarkRecord(
            "reproduce/efficiency",
            efficiency,
            "of the cores' time",
            settings=settings | {"aim": AIMED_EFFICIENCY, "reached": efficiency >= AIMED_EFFICIENCY},
        ),
    ]


def _notes(size: str, costs: Mapping[str, float]) -> list[str]:
    most = ", ".join(f"{name} {seconds:.1f}" for name, seconds in list(costs.items())[:SHOWN])
    return [
        f"reproduce: the most CPU seconds go to {most}.",
        f"reproduce: the size {size} aims at {AIMED_SECONDS[size]:g} seconds on two quiet cores, busy for "
        f"{AIMED_EFFICIENCY:.0%} of the time.",
    ]
