"""The cells of a user's table: reading and checking them, cells to hold out, and measures of error at cells."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from gyrostat import errors
from gyrostat.errors import GyrostatError
from gyrostat.estimators.low_rank.solver.observed_entries import ObservedEntries, held_out_mask

FEW = 5.0
"""The size of errors in a column is shrunken towards that of all columns as if it had this many more cells."""

LEAST_ALIKE, BY_CHANCE = 10, 0.01
"""A column of one number has at least so many cells, and in a table whose other columns hold this number as often as they do,
fewer than this many columns of one number are expected by chance. Ten ratings of five stars are not yet a rule."""


def observed_cells(X: Any) -> ObservedEntries:
    """The cells of an array that are not NaN, or those that a sparse matrix stores (explicit zeros too).

    >>> len(observed_cells(np.array([[1.0, np.nan], [0.0, 2.0]]))), len(observed_cells(sparse.csr_matrix(np.eye(3))))
    (3, 3)
    """
    if sparse.issparse(X):
        csr = X.tocsr(copy=True)
        csr.sum_duplicates()
        coo = csr.tocoo()
        known = ~np.isnan(coo.data)
        return ObservedEntries(X.shape, coo.row[known], coo.col[known], coo.data[known])
    rows, columns = np.nonzero(~np.isnan(X))
    return ObservedEntries(X.shape, rows, columns, X[rows, columns])


def unusable(X: Any) -> str:
    """The error message for a table with an infinite cell or one that is not a number; empty for any other table.

    >>> unusable([[1.0, "n/a"]])
    "X holds the text 'n/a' in row 0, column 1: leave columns of text out, and mark missing cells with NaN."
    >>> unusable(np.array([[1.0], [-np.inf]]))
    'X holds -inf in row 1, column 0: mark missing cells, and cells that are too large, with NaN.'
    """
    stored = X.tocoo() if sparse.issparse(X) else None
    table = np.asarray(X) if stored is None else stored.data
    if len(np.shape(X)) != 2 or table.size == 0:
        return ""
    bad = np.isinf(table) if table.dtype.kind in "biufc" else np.vectorize(_is_unusable, otypes=[bool])(table)
    if not bad.any():
        return ""
    first = np.unravel_index(int(np.argmax(bad)), bad.shape)
    i, j = first if stored is None else (stored.row[first], stored.col[first])
    value, where = table[first], f"in row {i}, column {list(getattr(X, 'columns', range(np.shape(X)[1])))[j]}"
    if isinstance(value, str):
        return f"X holds the text {str(value)!r} {where}: leave columns of text out, and mark missing cells with NaN."
    return f"X holds {value} {where}: mark missing cells, and cells that are too large, with NaN."


def _is_unusable(value: Any) -> bool:
    if isinstance(value, str):
        return not _is_number(value)
    return isinstance(value, float) and bool(np.isinf(value))


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def empty_rows_and_columns(cells: ObservedEntries) -> tuple[np.ndarray, np.ndarray]:
    """The rows and the columns without any observed cell."""
    rows, columns = (
        np.flatnonzero(np.bincount(index, minlength=n) == 0)
        for index, n in zip((cells.rows, cells.columns), cells.shape, strict=True)
    )
    return rows, columns


def cell_indices(rows: Any, columns: Any, shape: tuple[int, int]) -> tuple[np.ndarray, np.ndarray]:
    """Row and column numbers that a user gave, checked.

    >>> [x.tolist() for x in cell_indices([0, 1], [2, 0], (2, 3))]
    [[0, 1], [2, 0]]
    """
    i, j = np.atleast_1d(np.asarray(rows)), np.atleast_1d(np.asarray(columns))
    for name, index, size in (("rows", i, shape[0]), ("columns", j, shape[1])):
        inside = index.ndim == 1 and (index.size == 0 or 0 <= index.min() <= index.max() < size)
        if not np.issubdtype(index.dtype, np.integer) or not inside:
            raise GyrostatError(f"{name} must list numbers from 0 to {size - 1}; got {errors.shown(index)}.")
    if len(i) != len(j):
        raise GyrostatError(f"rows and columns must be equally long; got {len(i)} and {len(j)}.")
    return i, j


def values_at(cells: ObservedEntries, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
    """The values of some of the cells."""
    every, wanted = (_flat_index(i, j, cells) for i, j in ((cells.rows, cells.columns), (rows, columns)))
    return cells.values[np.searchsorted(every, wanted)]


def constant_columns(cells: ObservedEntries) -> np.ndarray:
    """The number of each column that holds no other, and NaN for columns that vary or have too few cells to tell.

    >>> table = np.column_stack([np.full(12, 7.0), np.arange(12.0), np.r_[np.full(9, 3.0), np.full(3, np.nan)]])
    >>> constant_columns(observed_cells(table)).tolist()
    [7.0, nan, nan]
    """
    m = cells.shape[1]
    counts = np.bincount(cells.columns, minlength=m)
    low, high = np.full(m, np.inf), np.full(m, -np.inf)
    np.minimum.at(low, cells.columns, cells.values)
    np.maximum.at(high, cells.columns, cells.values)
    found = np.where((low == high) & (counts >= LEAST_ALIKE), low, np.nan)
    known = np.flatnonzero(~np.isnan(found))
    if not known.size:
        return found
    numbers, which = np.unique(found[known], return_inverse=True)
    place = np.minimum(np.searchsorted(numbers, cells.values), len(numbers) - 1)
    cells_with = np.bincount(place[numbers[place] == cells.values], minlength=len(numbers))[which]
    elsewhere = (cells_with - counts[known]) / np.maximum(len(cells) - counts[known], 1)
    found[known[m * elsewhere ** counts[known] > BY_CHANCE]] = np.nan
    return found


def column_groups(labels: Any, count: int) -> np.ndarray:
    """The number of each column's group; without labels each column is a group of its own."""
    if labels is None:
        return np.arange(count)
    if np.ndim(labels) != 1 or len(labels) != count:
        raise GyrostatError(
            f"column_groups must hold one label for each of the {count} columns; got {errors.shown(labels)}."
        )
    return np.unique(np.asarray(labels, dtype=object).astype(str), return_inverse=True)[1]


def grouped_cells(cells: ObservedEntries, groups: np.ndarray) -> tuple[ObservedEntries, np.ndarray]:
    """The cells of a table with one column for each group of columns, and the number of each cell's among these."""
    count = int(groups.max()) + 1
    flat = cells.rows.astype(np.int64) * count + groups[cells.columns]
    unique, number = np.unique(flat, return_inverse=True)
    return ObservedEntries((cells.shape[0], count), *np.divmod(unique, count), np.zeros(len(unique))), number


def held_out_cells(
    validation: Any, cells: ObservedEntries, random: np.random.RandomState, groups: np.ndarray | None = None
) -> np.ndarray:
    """A mask of the observed cells to hold out: a random share of them, or the cells of a mask or of a pair of lists.

    Of a random share, cells of one row whose columns are in one group are held out together.

    >>> cells = ObservedEntries((2, 2), np.array([0, 0, 1]), np.array([0, 1, 1]), np.ones(3))
    >>> held_out_cells(([0], [1]), cells, None).tolist(), held_out_cells(np.eye(2, dtype=bool), cells, None).tolist()
    ([False, True, False], [True, False, True])
    """
    if np.ndim(validation) == 0 and not sparse.issparse(validation):
        share = float(errors.number("validation", validation, above=0, most=0.5))
        if groups is None or len(np.unique(groups)) == len(groups):
            return held_out_mask(cells, share, random)
        whole, number = grouped_cells(cells, groups)
        return held_out_mask(whole, share, random)[number]
    if isinstance(validation, tuple) and len(validation) == 2:
        held = _in_lists(*cell_indices(*validation, cells.shape), cells)
    else:
        held = _in_mask(validation, cells)
    if not held.any() or held.all():
        raise GyrostatError(
            f"validation holds out {held.sum()} of the {len(cells)} observed cells: leave some to fit, and some to judge by."
        )
    return held


def _in_lists(rows: np.ndarray, columns: np.ndarray, cells: ObservedEntries) -> np.ndarray:
    wanted, observed = _flat_index(rows, columns, cells), _flat_index(cells.rows, cells.columns, cells)
    if (absent := ~np.isin(wanted, observed)).any():
        first = int(np.argmax(absent))
        raise GyrostatError(f"validation names the cell ({rows[first]}, {columns[first]}), which is not observed in X.")
    return np.isin(observed, wanted)


def _flat_index(rows: np.ndarray, columns: np.ndarray, cells: ObservedEntries) -> np.ndarray:
    return rows.astype(np.int64) * cells.shape[1] + columns.astype(np.int64)


def _in_mask(mask: Any, cells: ObservedEntries) -> np.ndarray:
    given = mask.tocsr() if sparse.issparse(mask) else np.asarray(mask)
    if given.shape != cells.shape or given.dtype != bool:
        raise GyrostatError(
            "validation must be a share of the cells, a pair (rows, columns), or a mask of True and False of X's shape "
            f"{cells.shape}; got {errors.shown(mask)}."
        )
    return np.asarray(given[cells.rows, cells.columns]).ravel()


def conformal_width(calibration: np.ndarray, coverage: float) -> float:
    """The half width of split conformal intervals, from a model's errors at cells it was not fitted to.

    It is infinite if there are too few of these for the coverage.

    >>> conformal_width(np.array([3.0, -1.0, 2.0]), 0.75), conformal_width(np.array([3.0]), 0.9)
    (3.0, inf)
    """
    position = int(np.ceil((len(calibration) + 1) * coverage))
    return float(np.sort(np.abs(calibration))[position - 1]) if position <= len(calibration) else float("inf")


def column_widths(columns: np.ndarray, errors: np.ndarray, coverage: float, count: int) -> np.ndarray:
    """The half width of conformal intervals in each of ``count`` columns, from errors at cells of these columns.

    A column has a quantile of its own if at least two of its errors are expected beyond it. Otherwise it is that of all
    errors, each divided by the size of errors in its column (shrunken towards that of all), times the size in this column.
    Columns without any error (of one number) do not count in these.

    >>> errors = np.concatenate([np.linspace(-1, 1, 99), np.linspace(-10, 10, 99), [0.5]])
    >>> column_widths(np.repeat([0, 1, 2], [99, 99, 1]), errors, 0.9, 3).round(2).tolist()
    [0.92, 9.18, 5.35]
    """
    counts, squares = (np.bincount(columns, w, minlength=count) for w in (None, errors**2))
    wrong = squares[columns] > 0
    usual = squares.sum() / max(wrong.sum(), 1)
    sizes = np.sqrt((squares + FEW * usual) / (counts + FEW))
    widths = conformal_width((errors / sizes[columns])[wrong], coverage) * sizes if usual > 0 else np.zeros(count)
    by_column = np.split(errors[np.argsort(columns, kind="stable")], np.cumsum(counts)[:-1])
    for j in np.flatnonzero((counts + 1) * (1 - coverage) >= 2):
        widths[j] = conformal_width(by_column[j], coverage)
    return widths


def r_squared(truth: np.ndarray, filled: np.ndarray) -> float:
    """R^2, the share of the variance of cells that is explained; NaN if they have no variance.

    >>> r_squared(np.array([1.0, 3.0]), np.array([1.0, 2.0])), r_squared(np.ones(2), np.ones(2))
    (0.5, nan)
    """
    total = float(np.sum((truth - truth.mean()) ** 2)) if len(truth) else 0.0
    return float(1 - np.sum((filled - truth) ** 2) / total) if total > 0 else float("nan")
