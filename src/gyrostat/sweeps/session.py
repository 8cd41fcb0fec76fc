"""The driver of a sweep: gives out chunks, writes what comes back, halves what fails, keeps ``sweep.json`` current."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from gyrostat.parallel.progress import ProgressDisplay
from gyrostat.parallel.whole_files import write_whole
from gyrostat.sweeps.chunks import Chunk, Point, plan
from gyrostat.sweeps.engines import Engine, Lost
from gyrostat.sweeps.refine import Refinement
from gyrostat.sweeps.resume import made_by
from gyrostat.sweeps.spec import Spec
from gyrostat.sweeps.store import SweepStore, words

TRIES = 3
"""A cell that fails so often, alone, is given up."""

STATE_EVERY = 1.0


@dataclass
class Summary:
    """What a sweep came to."""

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
        """The exit status: 0 when all cells are done, 1 when some failed or the scheduler is gone, 130 when interrupted."""
        return {"": int(bool(self.failures)), "interrupted": 130}.get(self.stopped, 1)

    @property
    def done(self) -> int:
        """Cells that are finished, now or from before."""
        return self.kept + self.computed

    @property
    def saved(self) -> int:
        """Runs that a whole grid would have needed beside those of a refinement."""
        return (int(np.prod(self.spec.shape)) - self.cells) * self.spec.seeds if self.refined else 0


class Session:
    """One sweep on one store; the listener of the engine."""

    def __init__(self, spec: Spec, store: SweepStore, shown: ProgressDisplay):
        self.spec, self.store, self.shown = spec, store, shown
        self.summary = Summary(spec)
        self.began = self.stated = time.monotonic()
        self.asked: set[Point] = set()

    def run(self, engine: Engine, *, refine: bool) -> Summary:
        """Compute what is missing; an interruption or a lost scheduler ends the sweep early, and the summary says so."""
        self.summary.refined = refine
        try:
            self._refined(engine) if refine else self._compute(list(self.spec.points()), engine)
        except KeyboardInterrupt:
            self.summary.stopped = "interrupted"
        except Lost:
            self.summary.stopped = "the scheduler is gone"
        self.summary.seconds = time.monotonic() - self.began
        self.state()
        return self.summary

    def _refined(self, engine: Engine) -> None:
        refinement = Refinement(self.spec)
        self._compute(refinement.first(), engine)
        for level in refinement.rounds():
            while new := self._unasked(refinement.next(level, *self.store.shares(self.spec.seeds))):
                self._compute(new, engine)

    def _unasked(self, points: Sequence[Point]) -> list[Point]:
        return [p for p in points if p not in self.asked]

    def _compute(self, points: Sequence[Point], engine: Engine) -> None:
        self.asked |= set(points)
        left = self.store.left(points, self.spec.seeds)
        self.summary.cells += len(points)
        self.summary.kept += len(points) - len(left)
        chunks, refused = plan(self.spec, left, engine.jobs)
        weight = sum(chunk.weight for chunk in chunks)
        self.shown.expect(items=len(points), kept=len(points) - len(left), weight=weight)
        for point, line in refused.items():
            self._give_up(point, line, line)
        self.state()
        engine.run(chunks, self)

    def started(self, task: Chunk) -> None:
        self.shown.started(task)

    def progress(self, task: Chunk, done: int, total: int) -> None:
        self.shown.advanced(task, done / total)

    def finished(self, task: Chunk, result: dict[str, np.ndarray], seconds: float) -> None:
        self.store.put(task.points, task.first, result, self.spec.seeds)
        self.summary.computed += len(task.points)
        self.summary.runs += len(task.points) * (self.spec.seeds - task.first)
        self.shown.finished(task)
        if time.monotonic() - self.stated > STATE_EVERY:
            self.state()

    def failed(self, task: Chunk, line: str, details: str) -> Sequence[Chunk]:
        """Halve a chunk that failed until the cell that fails is alone, and give that one up after some tries."""
        if (n := len(task.points)) > 1:
            self.shown.dropped(task)
            halves = (task.points[: n // 2], task.points[n // 2 :])
            return [replace(task, points=half, weight=task.weight * len(half) / n) for half in halves]
        if task.tries + 1 < TRIES:
            self.shown.dropped(task)
            return [replace(task, tries=task.tries + 1)]
        self._give_up(task.points[0], line, details, task)
        return ()

    def _give_up(self, point: Point, line: str, details: str, task: Chunk | None = None) -> None:
        self.summary.failures[point] = line
        name = "-".join(str(i) for i in point)
        write_whole(self.store.folder / "errors" / f"cell-{name}.txt", f"{self.setting(point)}\n{details}\n")
        self.shown.failed(f"{words_of(self.setting(point))}: {line}", task)

    def setting(self, point: Point) -> dict[str, Any]:
        """The values of the axes at a cell."""
        return {a.name: a.values[i] for a, i in zip(self.spec.axes, point, strict=True)}

    def state(self) -> None:
        """Write ``sweep.json``."""
        s = self.summary
        self.stated = time.monotonic()
        report: dict[str, Any] = {
            "made_by": made_by(),
            "cells": {
                "grid": int(np.prod(self.spec.shape)),
                "asked": s.cells,
                "done": s.done,
                "failed": len(s.failures),
                "left": s.cells - s.done - len(s.failures),
            },
            "failures": [{"setting": self.setting(p), "error": line} for p, line in s.failures.items()],
            "runs": s.runs,
            "seconds": round(self.stated - self.began, 3),
            "stopped": s.stopped,
        }
        if s.refined:
            report["refine"] = {"runs_saved": s.saved, "resolution": "one step of the grid"}
        self.store.state(self.spec, report)


def words_of(setting: dict[str, Any]) -> str:
    """A setting on one line.

    >>> words_of({"step_size": 0.05, "order": "iid"})
    'step_size = 0.05, order = iid'
    """
    return ", ".join(f"{name} = {words(value)}" for name, value in setting.items())
