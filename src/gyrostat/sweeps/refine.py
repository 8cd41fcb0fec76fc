"""Refinement: compute the cells where the share of successes changes, instead of the whole grid.

The grid of the spec is the wanted resolution. A coarse part of it is computed first. A box of the coarse grid is halved along
every axis unless all its corners lie on one side of one half, beyond the doubt of their intervals. This goes on down to the
grid itself, and the boundary is followed where it leaves a box. An island that no cell of the coarse grid sees is missed.
Axes without an order (a list of names) are not halved: each of their values has a diagram of its own.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

import numpy as np

from gyrostat.sweeps.spec import Point, Spec

LEVEL = 0.5
COARSEST_BOXES = 4
"""Boxes along an axis of the coarsest grid, about."""


def nested_levels(length: int) -> list[list[int]]:
    """Indices of an axis from the coarsest level to all of them; each level contains the one before.

    >>> nested_levels(9)
    [[0, 2, 4, 6, 8], [0, 1, 2, 3, 4, 5, 6, 7, 8]]
    """
    levels = [list(range(length))]
    while len(levels[0]) > COARSEST_BOXES + 2:
        finer = levels[0]
        levels.insert(0, sorted({*finer[::2], finer[-1]}))
    return levels


class Refinement:
    """Chooses cells level by level: :meth:`first`, then for each of :meth:`finer_levels` :meth:`next` until it is empty."""

    def __init__(self, spec: Spec):
        # For an ordered axis, the position in the store of its smallest value, its second smallest, and so on.
        self.sorted_positions = [np.argsort(np.array(a.values)).tolist() if a.ordered else None for a in spec.axes]
        axis_levels = [nested_levels(len(a.values)) if a.ordered else [list(range(len(a.values)))] for a in spec.axes]
        depth = max(len(levels) for levels in axis_levels)
        self.levels = [[levels[max(0, k - depth + len(levels))] for levels in axis_levels] for k in range(depth)]

    def first(self) -> list[Point]:
        """The cells of the coarsest grid."""
        return [self._stored(p) for p in itertools.product(*self.levels[0])]

    def finer_levels(self) -> Iterator[int]:
        """The levels after the first."""
        return iter(range(1, len(self.levels)))

    def next(self, level: int, share: np.ndarray, low: np.ndarray, high: np.ndarray) -> list[Point]:
        """The missing cells of a level that lie in boxes of the level before through which the boundary may pass.

        ``share``, ``low`` and ``high`` are the success and its interval in the order of the store, NaN where not computed.
        Call it again when the cells are computed: where the boundary leaves a box through a side, the box beyond is opened.
        """
        before, now = self.levels[level - 1], self.levels[level]
        wanted: set[Point] = set()
        for box in itertools.product(*(self._spans(axis, values) for axis, values in enumerate(before))):
            corners = [self._stored(p) for p in itertools.product(*(sorted(set(span)) for span in box))]
            inside = ([i for i in values if span[0] <= i <= span[1]] for values, span in zip(now, box, strict=True))
            cells = [self._stored(p) for p in itertools.product(*inside)]
            if _on_both_sides([share[c] for c in cells]) or any(low[c] < LEVEL < high[c] for c in corners):
                wanted |= {c for c in cells if np.isnan(share[c])}
        return sorted(wanted)

    def _spans(self, axis: int, values: Sequence[int]) -> list[tuple[int, int]]:
        if self.sorted_positions[axis] is None:
            return [(i, i) for i in values]
        return list(itertools.pairwise(values))

    def _stored(self, point: Sequence[int]) -> Point:
        """The position in the store of a point of the sorted grid."""
        return tuple(
            i if positions is None else positions[i] for i, positions in zip(point, self.sorted_positions, strict=True)
        )


def _on_both_sides(shares: Sequence[float]) -> bool:
    """Whether the boundary runs between some of these cells; cells that are not computed (NaN) do not count.

    >>> _on_both_sides([0.1, 0.6, np.nan]), _on_both_sides([0.1, 0.4, np.nan])
    (True, False)
    """
    return len({share >= LEVEL for share in shares if not np.isnan(share)}) > 1
