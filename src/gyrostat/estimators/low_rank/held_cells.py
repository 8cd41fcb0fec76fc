"""Single cells of a table: those that a user asks for, those held out to choose a model by, and what their errors tell."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from gyrostat import errors
from gyrostat.errors import GyrostatError
from gyrostat.estimators.low_rank.solver import Observed
from gyrostat.estimators.low_rank.solver.observed import held_out


def cells(rows: Any, columns: Any, shape: tuple[int, int]) -> tuple[np.ndarray, np.ndarray]:
    """The numbers of rows and columns, checked.

    >>> [x.tolist() for x in cells([0, 1], [2, 0], (2, 3))]
    [[0, 1], [2, 0]]
    """
    i, j = np.atleast_1d(np.asarray(rows)), np.atleast_1d(np.asarray(columns))
    for name, at, size in (("rows", i, shape[0]), ("columns", j, shape[1])):
        inside = at.ndim == 1 and (at.size == 0 or 0 <= at.min() <= at.max() < size)
        if not np.issubdtype(at.dtype, np.integer) or not inside:
            raise GyrostatError(f"{name} must list numbers from 0 to {size - 1}; got {errors.shown(at)}.")
    if len(i) != len(j):
        raise GyrostatError(f"rows and columns must be equally long; got {len(i)} and {len(j)}.")
    return i, j


def held_cells(validation: Any, seen: Observed, random: np.random.RandomState) -> np.ndarray:
    """Which of the observed cells are held out: a share of them at random, or those that a mask or a pair of lists names.

    >>> seen = Observed((2, 2), np.array([0, 0, 1]), np.array([0, 1, 1]), np.ones(3))
    >>> held_cells(([0], [1]), seen, None).tolist(), held_cells(np.eye(2, dtype=bool), seen, None).tolist()
    ([False, True, False], [True, False, True])
    """
    if np.ndim(validation) == 0 and not sparse.issparse(validation):
        return held_out(seen, float(errors.number("validation", validation, above=0, most=0.5)), random)
    if isinstance(validation, tuple) and len(validation) == 2:
        held = _listed(*cells(*validation, seen.shape), seen)
    else:
        held = _masked(validation, seen)
    if not held.any() or held.all():
        raise GyrostatError(
            f"validation holds out {held.sum()} of the {len(seen)} observed cells: leave some to fit, and some to judge by."
        )
    return held


def _listed(rows: np.ndarray, columns: np.ndarray, seen: Observed) -> np.ndarray:
    wanted, there = _numbered(rows, columns, seen), _numbered(seen.rows, seen.columns, seen)
    if (absent := ~np.isin(wanted, there)).any():
        first = int(np.argmax(absent))
        raise GyrostatError(f"validation names the cell ({rows[first]}, {columns[first]}), which is not observed in X.")
    return np.isin(there, wanted)


def _numbered(rows: np.ndarray, columns: np.ndarray, seen: Observed) -> np.ndarray:
    return rows.astype(np.int64) * seen.shape[1] + columns.astype(np.int64)


def _masked(mask: Any, seen: Observed) -> np.ndarray:
    given = mask.tocsr() if sparse.issparse(mask) else np.asarray(mask)
    if given.shape != seen.shape or given.dtype != bool:
        raise GyrostatError(
            "validation must be a share of the cells, a pair (rows, columns), or a mask of True and False of X's shape "
            f"{seen.shape}; got {errors.shown(mask)}."
        )
    return np.asarray(given[seen.rows, seen.columns]).ravel()


def conformal_width(calibration: np.ndarray, coverage: float) -> float:
    """The half width of split conformal intervals from errors at cells that a model has not seen; infinite for too few.

    >>> conformal_width(np.array([3.0, -1.0, 2.0]), 0.75), conformal_width(np.array([3.0]), 0.9)
    (3.0, inf)
    """
    at = int(np.ceil((len(calibration) + 1) * coverage))
    return float(np.sort(np.abs(calibration))[at - 1]) if at <= len(calibration) else float("inf")


def explained(truth: np.ndarray, filled: np.ndarray) -> float:
    """R^2, the share of the variance of cells that is explained; NaN where there is none.

    >>> explained(np.array([1.0, 3.0]), np.array([1.0, 2.0])), explained(np.ones(2), np.ones(2))
    (0.5, nan)
    """
    total = float(np.sum((truth - truth.mean()) ** 2)) if len(truth) else 0.0
    return float(1 - np.sum((filled - truth) ** 2) / total) if total > 0 else float("nan")
