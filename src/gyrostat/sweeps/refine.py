"""Refinement: runs where the share of successes changes, instead of on the whole grid.

The grid of the spec is the resolution that is wanted. A coarse part of it is computed first; then every box of the coarse grid
whose corners do not all lie on one side of one half, beyond the doubt of their intervals, is halved along every axis, down to
the grid itself, and the boundary is followed where it leaves a box. An island that no cell of the coarse grid sees is missed.
Axes without an order (a list of names) are not halved: each of their values has a diagram of its own.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

import numpy as np

from gyrostat.sweeps.spec import Spec

Point = tuple[int, ...]
LEVEL = 0.5
COARSE = 4
"""Boxes along an axis of the coarsest grid."""


def ladder(length: int) -> list[list[int]]:
    """Indices of an axis from the coarsest level to all of them; each level contains the one before.

    >>> ladder(9)
    [[0, 2, 4, 6, 8], [0, 1, 2, 3, 4, 5, 6, 7, 8]]
    """
    levels = [list(range(length))]
    while len(levels[0]) > COARSE + 2:
        finer = levels[0]
        levels.insert(0, sorted({*finer[::2], finer[-1]}))
    return levels


class Refinement:
    """Goes from level to level: :meth:`first`, then for each of :meth:`rounds` :meth:`next` until it asks for nothing more."""

    def __init__(self, spec: Spec):
        ranks = [np.argsort(np.array(a.values)).tolist() if a.ordered else None for a in spec.axes]
        self.ranks = ranks
        ladders = [
            ladder(len(r)) if r is not None else [list(range(n))] for r, n in zip(ranks, spec.shape, strict=True)
        ]
        depth = max(len(each) for each in ladders)
        self.levels = [[each[max(0, k - depth + len(each))] for each in ladders] for k in range(depth)]

    def first(self) -> list[Point]:
        """The cells of the coarsest grid."""
        return [self._stored(p) for p in itertools.product(*self.levels[0])]

    def rounds(self) -> Iterator[int]:
        """The levels after the first."""
        return iter(range(1, len(self.levels)))

    def next(self, level: int, share: np.ndarray, low: np.ndarray, high: np.ndarray) -> list[Point]:
        """The cells of a level that lie in boxes of the level before which the boundary may cross, and are not there yet.

        ``share``, ``low`` and ``high`` are the success and its interval over the axes as stored, NaN where not computed. Ask
        again when they are there: where the boundary leaves a box through a side, the box beyond is opened too.
        """
        before, now = self.levels[level - 1], self.levels[level]
        wanted: set[Point] = set()
        for box in itertools.product(*(self._spans(axis, values) for axis, values in enumerate(before))):
            corners = [self._stored(p) for p in itertools.product(*(sorted(set(span)) for span in box))]
            inside = ([i for i in values if span[0] <= i <= span[1]] for values, span in zip(now, box, strict=True))
            cells = [self._stored(p) for p in itertools.product(*inside)]
            if _both_sides([share[c] for c in cells]) or any(low[c] < LEVEL < high[c] for c in corners):
                wanted |= {c for c in cells if np.isnan(share[c])}
        return sorted(wanted)

    def _spans(self, axis: int, values: Sequence[int]) -> list[tuple[int, int]]:
        if self.ranks[axis] is None:
            return [(i, i) for i in values]
        return list(itertools.pairwise(values))

    def _stored(self, point: Sequence[int]) -> Point:
        """Where a point of the sorted grid stands in the store."""
        return tuple(i if rank is None else rank[i] for i, rank in zip(point, self.ranks, strict=True))


def _both_sides(shares: Sequence[float]) -> bool:
    """Whether the boundary runs between some of these cells; those that are not computed (NaN) say nothing.

    >>> _both_sides([0.1, 0.6, np.nan]), _both_sides([0.1, 0.4, np.nan])
    (True, False)
    """
    return len({share >= LEVEL for share in shares if not np.isnan(share)}) > 1
