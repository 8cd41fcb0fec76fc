"""Some seeds of a run, as fast as can be, a part at a time."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from gyrostat.engine.compile import Cell
from gyrostat.engine.numpy_backend.course import Values, course
from gyrostat.engine.numpy_backend.draws import LANES
from gyrostat.engine.numpy_backend.seen import suits
from gyrostat.engine.simulate import simulate
from gyrostat.lab.declarations import RECORDS

PRECISIONS = {"single": np.float32, "double": np.float64}
FEWER = 51
"""Recorded steps of a run in single precision: looking at every other one takes a twentieth of its time."""


def precisions(cell: Cell, record: tuple[str, ...]) -> tuple[str, ...]:
    """In which precisions a run is made, one after the other: what single precision shows soon, double precision replaces."""
    return ("single", "double") if suits(cell, record) else ("double",)


def parts(
    cell: Cell, record: tuple[str, ...], num_steps: int, seeds: int, precision: str = "double"
) -> Iterator[Values | None]:
    """The values of some seeds after those of others, with ``step`` and ``diverged``; None where a run may be put aside.

    >>> import gyrostat as gs
    >>> problem = gs.Problem(gs.RandomEnvironments(5, law=gs.TwoPoint(spread=6.0)), gs.Identity())
    >>> found = parts((gs.HeteroSGD(0.05), problem), ("signal",), 100, 17)
    >>> [part["signal"].shape for part in found if part is not None]
    [(16, 101), (1, 101)]
    """
    quick = suits(cell, record)
    records = FEWER if quick and precision == "single" else RECORDS
    grid = np.round(np.linspace(0, num_steps, records)).astype(int)
    for first in range(0, seeds, LANES):
        count = min(LANES, seeds - first)
        if not quick:
            # Always so many: a program is compiled for their number.
            lanes = list(range(first, first + LANES))
            found = simulate([cell], num_steps=num_steps, seeds=lanes, record=record, record_at=RECORDS)
            values = {name: x[0][:count] for name, x in found.values.items()}
            yield values | {"diverged": found.ends["diverged"][0][:count], "step": found.steps[0]}
            continue
        for part in course(cell, record, grid, first, count, PRECISIONS[precision]):
            yield part if part is None else part | {"step": grid}


def joined(found: list[Values]) -> Values:
    """The values of several parts as those of one."""
    whole = {name: np.concatenate([part[name] for part in found]) for name in found[0] if name != "step"}
    return whole | {"step": found[0]["step"]}


def run(cell: Cell, record: tuple[str, ...], num_steps: int, seeds: int) -> Values:
    """What :func:`gyrostat.run` records, with ``step`` and ``diverged``."""
    return joined([part for part in parts(cell, record, num_steps, seeds) if part is not None])
