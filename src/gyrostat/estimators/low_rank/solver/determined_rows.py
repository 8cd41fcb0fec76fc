"""Which rows and columns the observed entries determine at a given rank, and how to compute the others from these."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from gyrostat.estimators.low_rank.solver.observed_entries import Factors, ObservedEntries
from gyrostat.estimators.low_rank.solver.ridge_path import ridge_regressions

Masks = list[np.ndarray]
"""Two boolean masks: one of rows and one of columns."""


def core(entries: ObservedEntries, known: Masks, rank: int) -> Masks:
    """The largest part of the known rows and columns in which each has more than ``rank`` entries within the part."""
    known = [side.copy() for side in known]
    while True:
        before = [side.copy() for side in known]
        for side, enough in enumerate(_with_entries_in(entries, known, rank + 1)):
            known[side] &= enough
        if all(np.array_equal(a, b) for a, b in zip(before, known, strict=True)):
            return known


def joining(entries: ObservedEntries, known: Masks, rank: int) -> Iterator[tuple[int, np.ndarray]]:
    """Rows (side 0) and columns (side 1) with at least ``rank`` entries in the known part, round by round.

    ``known`` is updated on the way: rows and columns that have joined count as known in the next round.
    """
    progress = True
    while progress:
        progress = False
        for side, enough in enumerate(_with_entries_in(entries, known, rank)):
            new = enough & ~known[side]
            if new.any():
                yield side, new
                known[side] |= new
                progress = True


def _with_entries_in(entries: ObservedEntries, known: Masks, least: int) -> Iterator[np.ndarray]:
    for side, pattern in enumerate(entries.pattern):
        yield pattern @ known[1 - side].astype(float) >= least


def undetermined(entries: ObservedEntries, rank: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows and columns that an exact fit of this rank leaves free, or fits without a check.

    The core consists of rows and columns with more than ``rank`` entries within the core. A row with at least ``rank``
    entries in determined columns is determined too, and likewise a column.

    >>> rows, columns = np.nonzero(~np.eye(4, dtype=bool))
    >>> entries = ObservedEntries((5, 4), np.append(rows, 4), np.append(columns, 0), np.ones(13))
    >>> [x.tolist() for x in undetermined(entries, 2)]
    [[4], []]
    """
    known = core(entries, [np.ones(n, dtype=bool) for n in entries.shape], rank)
    for _ in joining(entries, known, rank):
        pass
    return np.flatnonzero(~known[0]), np.flatnonzero(~known[1])


def submatrix(entries: ObservedEntries, known: Masks) -> ObservedEntries:
    """The entries in known rows and columns, as a smaller matrix."""
    kept = entries.take(known[0][entries.rows] & known[1][entries.columns])
    rows, columns = (np.cumsum(side) - 1 for side in known)
    shape = int(known[0].sum()), int(known[1].sum())
    return ObservedEntries(shape, rows[kept.rows], columns[kept.columns], kept.values)


def extended(entries: ObservedEntries, factors: Factors, known: Masks) -> Factors:
    """Factors of all rows and columns, computed from those of the known ones by least squares.

    They are zero where there are too few entries.
    """
    whole = Factors(*(np.zeros((n, factors.rank)) for n in entries.shape))
    for target, mask, given in zip(whole, known, factors, strict=True):
        target[mask] = given
    known, tiny = [side.copy() for side in known], np.full(factors.rank, 1e-12)
    for side, new in joining(entries, known, factors.rank):
        usable = entries.take(known[1 - side][entries.columns if side == 0 else entries.rows])
        whole[side][new] = ridge_regressions(usable, whole[1 - side], tiny, transposed=bool(side))[new]
    return whole
