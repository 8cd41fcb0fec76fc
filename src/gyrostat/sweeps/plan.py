"""Chunks of cells: what one worker computes at a time. The cells of a chunk have one shape and share a compiled program."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from gyrostat.engine.summary import never_is_infinite
from gyrostat.sweeps.spec import QUANTILES, RUN_OUTCOMES, Point, Spec, check_code

if TYPE_CHECKING:
    from gyrostat.engine.results import Trajectories

# The engine is imported inside functions: a worker of a Dask cluster unpickles a chunk before it limits itself to one
# thread, and JAX must not start before that.

CALLS_PER_CHUNK = 6
"""Full calls of a compiled program in one chunk, so that a last call with idle runs hardly counts."""

BYTES_PER_CHUNK = 64e6
"""Bytes of results in one chunk."""

_ONE_AT_A_TIME = threading.Lock()
"""Two XLA programs that two threads of one process start can block each other."""


@dataclass(frozen=True)
class Chunk:
    """Cells to compute from seed ``first_seed`` on; small enough to be sent to any worker.

    ``program`` identifies the compiled program that it needs, ``weight`` is a rough cost, and ``failures`` counts how often
    it has failed.
    """

    spec: Spec
    points: tuple[Point, ...]
    first_seed: int
    program: int
    weight: float
    failures: int = 0

    @property
    def items(self) -> int:
        """The number of cells."""
        return len(self.points)

    def compute(self, progress: Callable[[float, int], None] | None = None) -> tuple[dict[str, np.ndarray], float]:
        """The arrays of the store for these cells, and the seconds that the computation took."""
        from gyrostat.engine.simulate import simulate

        check_code(self.spec)
        start = time.perf_counter()
        record = self.spec.record
        with _ONE_AT_A_TIME:
            built = [self.spec.cell(point) for point in self.points]
            found = simulate(
                [cell for cell, _ in built],
                num_steps=[steps for _, steps in built],
                seeds=range(self.first_seed, self.spec.seeds),
                seed=self.spec.seed,
                record=record.diagnostics,
                record_at=record.points if record.along else 1,
                reproducible_bits=True,
                progress=progress,
                **self.spec.options,
            )
        arrays = _stored_arrays(self.spec, found)
        arrays["steps"] = np.array([steps for _, steps in built], dtype=np.int32)
        return arrays, time.perf_counter() - start


def _stored_arrays(spec: Spec, found: Trajectories) -> dict[str, np.ndarray]:
    record = spec.record
    # A run that never reached the tolerance did so after any number of steps, not at step -1.
    times = {name: never_is_infinite(x) for name, x in found.ends.items()}
    last: Mapping[str, np.ndarray] = {**{name: x[:, :, -1] for name, x in found.values.items()}, **times}
    arrays = {name: last[name] for name in record.final}
    arrays |= {f"{name}_path": found.values[name] for name in record.paths}
    for name in record.quantiles:
        # A run that diverged counts as infinite: without it, the other runs would look typical.
        values = np.where(np.isnan(found.values[name]), np.inf, found.values[name])
        arrays[f"{name}_quantiles"] = np.moveaxis(np.quantile(values, QUANTILES, axis=1, method="lower"), 0, 1)
    if record.success:
        arrays["succeeded"] = record.successes(last).astype(np.int8)
    return arrays | {name: found.ends[name].astype(np.int32) for name in RUN_OUTCOMES if name in found.ends}


def plan_chunks(spec: Spec, unfinished: Sequence[tuple[Point, int]], jobs: int) -> tuple[list[Chunk], dict[Point, str]]:
    """The chunks for unfinished cells (each with its first missing seed), and the error of each cell that cannot be built."""
    from gyrostat.engine.program import group_cells, runs_per_call
    from gyrostat.engine.reduction import choose_reduction, largest_array
    from gyrostat.parallel.workers import explain

    built: dict[Point, tuple[Any, int]] = {}
    refused: dict[Point, str] = {}
    for point, _ in unfinished:
        try:
            built[point] = spec.cell(point)
        except Exception as error:
            refused[point] = explain(error)[0]
    # Quantiles over seeds need all seeds at once.
    first_seeds = {point: 0 if spec.record.quantiles else first for point, first in unfinished}
    points = sorted(built, key=lambda p: (first_seeds[p], p))
    chunks: list[Chunk] = []
    horizons = [(built[p][1], first_seeds[p]) for p in points]
    groups = group_cells([built[p][0] for p in points], horizons, reproducible_bits=True)
    for number, group in enumerate(groups):
        members = [points[i] for i in group]
        cell, steps = built[members[0]]
        reduced = choose_reduction(spec.options["reduction"], *cell)
        size = cells_per_chunk(spec, len(members), runs_per_call(cell, reduced), jobs)
        cost = float(steps) * largest_array(cell[0], cell[1], reduced) * (spec.seeds - first_seeds[members[0]])
        chunks += [
            Chunk(spec, tuple(part), first_seeds[part[0]], number, cost * len(part))
            for part in (members[i : i + size] for i in range(0, len(members), size))
        ]
    return chunks, refused


def cells_per_chunk(spec: Spec, num_cells: int, runs_per_call: int, jobs: int) -> int:
    """How many cells go into a chunk: several full calls, as far as memory and an even spread over workers allow."""
    numbers = max(1, len(spec.record.diagnostics)) * (spec.record.points if spec.record.along else 1)
    most = max(1, int(BYTES_PER_CHUNK / (8 * numbers * spec.seeds)))
    least, good = math.ceil(runs_per_call / spec.seeds), math.ceil(CALLS_PER_CHUNK * runs_per_call / spec.seeds)
    even = math.ceil(num_cells / (4 * jobs))
    return min(most, max(least, min(good, even)))
