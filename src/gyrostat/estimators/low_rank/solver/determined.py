"""Which rows and columns the entries determine at some rank, and how the others follow from those that are known."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from gyrostat.estimators.low_rank.solver.observed import Factors, Observed
from gyrostat.estimators.low_rank.solver.ridge import solved

Known = list[np.ndarray]
"""Rows and columns that count as known, as two masks."""


def core(seen: Observed, known: Known, rank: int) -> Known:
    """The rows and columns among those known that have more than ``rank`` entries among each other."""
    known = [side.copy() for side in known]
    while True:
        before = [side.copy() for side in known]
        for side, enough in enumerate(_enough(seen, known, rank + 1)):
            known[side] &= enough
        if all(np.array_equal(a, b) for a, b in zip(before, known, strict=True)):
            return known


def joining(seen: Observed, known: Known, rank: int) -> Iterator[tuple[int, np.ndarray]]:
    """Rows (side 0) and columns (side 1) that have ``rank`` entries or more in what is known, turn by turn.

    ``known`` is changed on the way: what has joined is known in the next turn.
    """
    found = True
    while found:
        found = False
        for side, enough in enumerate(_enough(seen, known, rank)):
            new = enough & ~known[side]
            if new.any():
                yield side, new
                known[side] |= new
                found = True


def _enough(seen: Observed, known: Known, least: int) -> Iterator[np.ndarray]:
    for side, pattern in enumerate(seen.pattern):
        yield pattern @ known[1 - side].astype(float) >= least


def undetermined(seen: Observed, rank: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows and columns that an exact fit of this rank leaves free, or does not check.

    The core are rows and columns with more than ``rank`` entries among each other; a row with at least ``rank`` entries in
    columns that are determined is so too, and likewise for columns.

    >>> rows, columns = np.nonzero(~np.eye(4, dtype=bool))
    >>> seen = Observed((5, 4), np.append(rows, 4), np.append(columns, 0), np.ones(13))
    >>> [x.tolist() for x in undetermined(seen, 2)]
    [[4], []]
    """
    known = core(seen, [np.ones(n, dtype=bool) for n in seen.shape], rank)
    for _ in joining(seen, known, rank):
        pass
    return np.flatnonzero(~known[0]), np.flatnonzero(~known[1])


def part(seen: Observed, known: Known) -> Observed:
    """The entries in known rows and columns, as a matrix of its own."""
    kept = seen.take(known[0][seen.rows] & known[1][seen.columns])
    rows, columns = (np.cumsum(side) - 1 for side in known)
    return Observed((int(known[0].sum()), int(known[1].sum())), rows[kept.rows], columns[kept.columns], kept.values)


def extended(seen: Observed, factors: Factors, known: Known) -> Factors:
    """Factors of all rows and columns from those of known ones, by least squares; zero where entries are too few."""
    whole = Factors(*(np.zeros((n, factors.rank)) for n in seen.shape))
    for mine, there, given in zip(whole, known, factors, strict=True):
        mine[there] = given
    known, tiny = [side.copy() for side in known], np.full(factors.rank, 1e-12)
    for side, new in joining(seen, known, factors.rank):
        usable = seen.take(known[1 - side][seen.columns if side == 0 else seen.rows])
        whole[side][new] = solved(usable, whole[1 - side], tiny, transposed=bool(side))[new]
    return whole
