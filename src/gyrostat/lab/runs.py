"""Runs for the page, a call of the engine at a time."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from gyrostat.engine.program import Cell
from gyrostat.engine.results import Values
from gyrostat.engine.simulate import simulate
from gyrostat.lab.declarations import RECORDS

SEEDS_AT_ONCE, FEW_SEEDS = 16, 4
"""The runs of a call. A program is compiled for their number, so it is one of two. Few are as few as have quartiles."""


def growing_runs(
    cell: Cell, record: tuple[str, ...], num_steps: int, seeds: int, *, few_first: bool = False
) -> Iterator[Values]:
    """The values of more and more runs, up to ``seeds`` of them, with ``step`` and ``diverged``.

    They are those of :func:`gyrostat.run`. With ``few_first``, there are a few before the first sixteen.

    >>> import gyrostat as gs
    >>> problem = gs.Problem(gs.RandomEnvironments(5, law=gs.TwoPoint(spread=6.0)), gs.Identity())
    >>> [values["signal"].shape for values in growing_runs((gs.HeteroSGD(0.05), problem), ("signal",), 100, 17)]
    [(16, 101), (17, 101)]
    """

    def call(first: int, count: int) -> Values:
        numbers = range(first, first + count)
        result = simulate([cell], num_steps=num_steps, seeds=numbers, record=record, record_at=RECORDS)
        values = {name: x[0][: seeds - first] for name, x in result.values.items()}
        return values | {"diverged": result.ends["diverged"][0][: seeds - first], "step": result.steps[0]}

    if few_first or seeds <= FEW_SEEDS:
        yield call(0, FEW_SEEDS)
    values: Values = {}
    for first in range(0, seeds if seeds > FEW_SEEDS else 0, SEEDS_AT_ONCE):
        more = call(first, SEEDS_AT_ONCE)  # the last seeds of many fill up a program
        values = {
            name: np.concatenate([values[name], x]) if first and name != "step" else x for name, x in more.items()
        }
        yield values
