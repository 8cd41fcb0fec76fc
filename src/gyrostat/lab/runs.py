"""Runs for the page: the values of some seeds at a time, by the faster backend that supports them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from gyrostat.engine.compile import Cell
from gyrostat.engine.numpy_backend.cached_draws import SEEDS_AT_ONCE
from gyrostat.engine.numpy_backend.symmetric_runs import simulate_blocks, supports
from gyrostat.engine.record import Values
from gyrostat.engine.simulate import simulate
from gyrostat.lab.declarations import RECORDS

SINGLE_RECORDS = 51
"""Recorded steps of a run in single precision: recording only every other one saves a twentieth of its time."""

FEW_SEEDS = 4
"""Up to this many seeds, the compiled engine runs only so many at once: those of sensing take seconds each."""


class Backend(NamedTuple):
    """A way to compute runs: its precisions, the quickest first, and a function ``(cell, record, num_steps, first_seed,
    seeds, precision)`` that gives the values of at most 16 seeds, and None where a run may be stopped.
    """

    precisions: tuple[str, ...]
    run: Callable[[Cell, tuple[str, ...], int, int, int, str], Iterator[Values | None]]


def backend_for(cell: Cell, record: tuple[str, ...]) -> Backend:
    """The NumPy backend where it supports the cell, and the compiled engine otherwise.

    A run in single precision is drawn soon; the run in double precision then replaces it.
    """
    return Backend(("single", "double"), _in_numpy) if supports(cell, record) else Backend(("double",), _compiled)


def _in_numpy(
    cell: Cell, record: tuple[str, ...], num_steps: int, first_seed: int, seeds: int, precision: str
) -> Iterator[Values | None]:
    records, dtype = (SINGLE_RECORDS, np.float32) if precision == "single" else (RECORDS, np.float64)
    grid = np.round(np.linspace(0, num_steps, records)).astype(int)
    for values in simulate_blocks(cell, record, grid, first_seed, seeds, dtype):
        yield values if values is None else values | {"step": grid}


def _compiled(
    cell: Cell, record: tuple[str, ...], num_steps: int, first_seed: int, seeds: int, precision: str
) -> Iterator[Values | None]:
    # One of two numbers of seeds, because a program is compiled for their number; the last seeds of many fill up a program.
    few = first_seed == 0 and seeds <= FEW_SEEDS
    numbers = range(first_seed, first_seed + (FEW_SEEDS if few else SEEDS_AT_ONCE))
    found = simulate([cell], num_steps=num_steps, seeds=numbers, record=record, record_at=RECORDS)
    values = {name: x[0][:seeds] for name, x in found.values.items()}
    yield values | {"diverged": found.ends["diverged"][0][:seeds], "step": found.steps[0]}


def parts(
    cell: Cell, record: tuple[str, ...], num_steps: int, seeds: int, precision: str = "double"
) -> Iterator[Values | None]:
    """The values of 16 seeds after those of another 16, with ``step`` and ``diverged``; None where a run may be stopped.

    >>> import gyrostat as gs
    >>> problem = gs.Problem(gs.RandomEnvironments(5, law=gs.TwoPoint(spread=6.0)), gs.Identity())
    >>> found = parts((gs.HeteroSGD(0.05), problem), ("signal",), 100, 17)
    >>> [part["signal"].shape for part in found if part is not None]
    [(16, 101), (1, 101)]
    """
    backend = backend_for(cell, record)
    for first_seed in range(0, seeds, SEEDS_AT_ONCE):
        count = min(SEEDS_AT_ONCE, seeds - first_seed)
        yield from backend.run(cell, record, num_steps, first_seed, count, precision)


def joined(found: list[Values]) -> Values:
    """The values of several parts in one set of arrays."""
    whole = {name: np.concatenate([part[name] for part in found]) for name in found[0] if name != "step"}
    return whole | {"step": found[0]["step"]}


def run(cell: Cell, record: tuple[str, ...], num_steps: int, seeds: int) -> Values:
    """What :func:`gyrostat.run` records, with ``step`` and ``diverged``."""
    return joined([part for part in parts(cell, record, num_steps, seeds) if part is not None])
