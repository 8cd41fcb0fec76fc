"""Chunks of cells: what one worker computes at a time. Cells of one shape share a program, and a chunk."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from gyrostat.sweeps.record import QUANTILES
from gyrostat.sweeps.spec import Spec

if TYPE_CHECKING:
    from gyrostat.engine.record import Trajectories

CALLS = 6
"""Full calls of a compiled program in one chunk: enough that a last, partly idle one hardly counts."""

MEMORY = 64e6
"""Bytes of results in one chunk."""

_ALONE = threading.Lock()
"""Two XLA programs started from two threads of one process can wait for each other for ever."""

Point = tuple[int, ...]


@dataclass(frozen=True)
class Chunk:
    """Cells to compute, from seed ``first`` on; small enough to send anywhere.

    ``program`` tells which compiled program it needs, ``weight`` what it costs, ``tries`` how often it went wrong.
    """

    spec: Spec
    points: tuple[Point, ...]
    first: int
    program: int
    weight: float
    tries: int = 0

    @property
    def items(self) -> int:
        """The number of cells."""
        return len(self.points)

    def compute(self, progress: Callable[[int, int], None] | None = None) -> tuple[dict[str, np.ndarray], float]:
        """The arrays of the store for these cells, and the seconds that it took."""
        from gyrostat.engine.simulate import simulate

        start = time.perf_counter()
        kept = self.spec.record
        with _ALONE:
            built = [self.spec.cell(point) for point in self.points]
            found = simulate(
                [cell for cell, _ in built],
                num_steps=[steps for _, steps in built],
                seeds=range(self.first, self.spec.seeds),
                seed=self.spec.seed,
                record=kept.diagnostics,
                record_at=kept.points if kept.along else 1,
                reproducible_bits=True,
                progress=progress,
                **self.spec.options,
            )
        data = _arrays(self.spec, found)
        data["steps"] = np.array([steps for _, steps in built], dtype=np.int32)
        return data, time.perf_counter() - start


def _arrays(spec: Spec, found: Trajectories) -> dict[str, np.ndarray]:
    kept = spec.record
    last: Mapping[str, np.ndarray] = {**{name: x[:, :, -1] for name, x in found.values.items()}, **found.ends}
    data = {name: last[name] for name in kept.final}
    data |= {f"{name}_path": found.values[name] for name in kept.paths}
    for name in kept.quantiles:
        # A run that diverged counts as infinite: left out, it would make the others look typical.
        values = np.where(np.isnan(found.values[name]), np.inf, found.values[name])
        data[f"{name}_quantiles"] = np.moveaxis(np.quantile(values, QUANTILES, axis=1, method="lower"), 0, 1)
    if kept.success:
        data["succeeded"] = kept.successes(last).astype(np.int8)
    return data | {name: found.ends[name].astype(np.int32) for name in ("diverged", "reached") if name in found.ends}


def plan(spec: Spec, left: Sequence[tuple[Point, int]], jobs: int) -> tuple[list[Chunk], dict[Point, str]]:
    """Chunks for the cells that are left, and the error of each cell that cannot even be built."""
    from gyrostat.engine.compile import group_cells, runs_per_call
    from gyrostat.engine.reduction.choose import choose_reduction, largest_array
    from gyrostat.parallel.workers import explain

    built: dict[Point, tuple[Any, int]] = {}
    refused: dict[Point, str] = {}
    for point, _ in left:
        try:
            built[point] = spec.cell(point)
        except Exception as error:
            refused[point] = explain(error)[0]
    firsts = {point: 0 if spec.record.quantiles else first for point, first in left}
    points = sorted(built, key=lambda p: (firsts[p], p))
    chunks: list[Chunk] = []
    horizons = [(built[p][1], firsts[p]) for p in points]
    groups = group_cells([built[p][0] for p in points], horizons, reproducible_bits=True)
    for number, group in enumerate(groups):
        members = [points[i] for i in group]
        cell, steps = built[members[0]]
        reduced = choose_reduction(spec.options["reduction"], *cell)
        size = cells_per_chunk(spec, len(members), runs_per_call(cell, reduced), jobs)
        cost = float(steps) * largest_array(cell[0], cell[1], reduced) * (spec.seeds - firsts[members[0]])
        chunks += [
            Chunk(spec, tuple(part), firsts[part[0]], number, cost * len(part))
            for part in (members[i : i + size] for i in range(0, len(members), size))
        ]
    return chunks, refused


def cells_per_chunk(spec: Spec, cells: int, lanes: int, jobs: int) -> int:
    """How many cells go into a chunk: several full calls, but no more than the memory and an even spread allow."""
    numbers = max(1, len(spec.record.diagnostics)) * (spec.record.points if spec.record.along else 1)
    most = max(1, int(MEMORY / (8 * numbers * spec.seeds)))
    least, good = math.ceil(lanes / spec.seeds), math.ceil(CALLS * lanes / spec.seeds)
    even = math.ceil(cells / (4 * jobs))
    return min(most, max(least, min(good, even)))
