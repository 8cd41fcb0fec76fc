"""Recorded values: the steps at which runs are recorded, and the values of all cells in one set of arrays."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np

from gyrostat import errors
from gyrostat.diagnostics.base import Diagnostic
from gyrostat.errors import GyrostatError

Values = dict[str, np.ndarray]
"""The recorded values of the runs of one cell by name, with leading dimension seed."""


@dataclasses.dataclass(frozen=True)
class Trajectories:
    """Recorded values of many runs: arrays with leading dimensions (cell, seed, record).

    ``ends`` holds numbers about whole runs, with dimensions (cell, seed): the step at which a run diverged, the step at
    which it reached the tolerance (-1 for never), the summaries of its events. ``notes`` are sentences that a reader should
    not miss.
    """

    values: dict[str, np.ndarray]
    dims: dict[str, tuple[str, ...]]
    ends: dict[str, np.ndarray]
    notes: list[str]
    steps: np.ndarray
    seeds: np.ndarray
    record: tuple[Diagnostic, ...] = ()


def gather(
    cells: list[Values], record: Sequence[Diagnostic], events: Sequence[Any], steps: np.ndarray, seeds: Sequence[int]
) -> Trajectories:
    """The values of all cells in one set of arrays. ``events`` holds one event of each kind, which may add notes."""
    names = {d.name for d in record}
    values = {d.name: _stacked([cell[d.name] for cell in cells]) for d in record}
    pooled = _pooled(cells)
    notes = [note for event in events for note in event.notes(pooled)]
    dims = {d.name: d.dims for d in record}
    return Trajectories(values, dims, _ends(cells, names), notes, steps, np.asarray(seeds), tuple(record))


def _stacked(arrays: list[np.ndarray]) -> np.ndarray:
    """The values of cells as one array, padded with NaN where last dimensions differ (numbers of singular values)."""
    shape = np.max([a.shape for a in arrays], axis=0)
    out = np.full((len(arrays), *shape), np.nan)
    for i, a in enumerate(arrays):
        out[i][tuple(slice(n) for n in a.shape)] = a
    return out


def _ends(cells: list[Values], recorded: set[str]) -> dict[str, np.ndarray]:
    """The numbers about whole runs; a cell that lacks one (an event of other cells) gets -1, or NaN for a real number."""

    def missing(like: np.ndarray) -> np.ndarray:
        return np.full(like.shape, -1 if np.issubdtype(like.dtype, np.integer) else np.nan, dtype=like.dtype)

    ends = {name: x for cell in cells for name, x in cell.items() if name not in recorded}
    return {name: np.stack([cell.get(name, missing(x)) for cell in cells]) for name, x in sorted(ends.items())}


def _pooled(cells: list[Values]) -> dict[str, np.ndarray]:
    """Every value over the runs of all cells that have it."""
    names = {name for cell in cells for name in cell}
    return {name: np.concatenate([cell[name].ravel() for cell in cells if name in cell]) for name in names}


def recording_grids(record_at: int | Sequence[int] | np.ndarray, horizons: list[int], starts: list[int]) -> np.ndarray:
    """The recorded steps of every cell (cell, record), equally many for each cell.

    >>> recording_grids(3, [4, 10], [0, 0]).tolist()
    [[0, 2, 4], [0, 5, 10]]
    """
    if isinstance(record_at, Sequence | np.ndarray):
        if len(set(horizons)) > 1:
            raise GyrostatError("record_at must be a number of points, not a list, when num_steps differs by setting.")
        return np.stack([_listed_steps(record_at, horizons[0])] * len(horizons))
    # At most as many points as the shortest run has steps, so that no step is recorded twice.
    lengths = [T - start for start, T in zip(starts, horizons, strict=True)]
    most = int(errors.BOUNDS["num_steps"][1])
    points = min(errors.integer("record_at", record_at, least=1, most=most), min(lengths) + 1)
    first = 0 if points > 1 else 1
    parts = [np.round(np.linspace(first * T, T, points)).astype(int) for T in lengths]
    return np.stack([start + part for start, part in zip(starts, parts, strict=True)])


def _listed_steps(record_at: Sequence[int] | np.ndarray, num_steps: int) -> np.ndarray:
    steps = np.array([errors.integer("record_at", s, most=num_steps, most_because=", num_steps") for s in record_at])
    if steps.size == 0 or (np.diff(steps) <= 0).any():
        raise GyrostatError("record_at must list at least one step, in increasing order.")
    # A run continues to num_steps even when the last recording is earlier, so that divergence is noticed.
    return steps if steps[-1] == num_steps else np.append(steps, num_steps)
