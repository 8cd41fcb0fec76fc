"""Rows of a table that does not fit into memory, sorted by environment, in files on disk.

They are for models that read rows many times (families with a link, quadratic models): estimators read one environment after
another, so that they need memory for the largest environment, not for the table. Least squares do without:
:mod:`gyrostat.tables.table_parts`.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from gyrostat.tables.row_checks import small_environments
from gyrostat.tables.saved_model import Column
from gyrostat.tables.table_parts import TableParts, table_parts


@dataclass
class RowsOnDisk:
    """Features (rows, features), responses and labels of a table, as arrays in files that vanish with :meth:`close`.

    ``columns`` are the inputs of a model, as in a saved model. ``notes`` are sentences on what was left out, ``row_numbers``
    the numbers of the rows in the table, from 1.
    """

    X: pd.DataFrame
    y: np.ndarray
    labels: np.ndarray
    columns: tuple[Column, ...]
    notes: tuple[str, ...]
    row_numbers: np.ndarray
    _folder: Any = field(repr=False)

    def close(self) -> None:
        """Delete the files."""
        self._folder.cleanup()

    def __enter__(self) -> RowsOnDisk:
        return self

    def __exit__(self, *error: Any) -> None:
        self.close()


def rows_on_disk(
    source: Any,
    *,
    target: str,
    environment: str,
    features: Sequence[str] | None = None,
    ordered: Sequence[str] = (),
    missing: str = "error",
    spare_rows: int | None = None,
    min_rows: int = 1,
    folder: Path | None = None,
) -> RowsOnDisk:
    """The rows of a Parquet file (read in row groups), a Dask dataframe (in partitions), or parts that a function returns.

    ``missing="drop"`` leaves out rows with missing values. Environments with fewer than ``min_rows`` rows, or (with
    ``spare_rows``) with fewer than that many more rows than features, are left out and named in ``notes``. The files are
    written below ``folder``, by default the system's folder for temporary files.

    >>> frame = pd.DataFrame({"x": [1.0, 2, 3, 4], "site": ["a", "b", "a", "b"], "y": [0.0, 1, 2, 3]})
    >>> with rows_on_disk(lambda: [frame[:2], frame[2:]], target="y", environment="site") as rows:
    ...     rows.X.x.tolist(), rows.labels.tolist()
    ([1.0, 3.0, 2.0, 4.0], ['a', 'a', 'b', 'b'])
    """
    parts = table_parts(
        source, target=target, environment=environment, features=features, ordered=ordered, missing=missing
    )
    counts: dict[Any, int] = {}
    for part in parts.map(label_counts):
        for label, count in part.items():
            counts[label] = counts.get(label, 0) + count
    notes = part_notes(parts)
    least = max(min_rows, 1 if spare_rows is None else len(parts.feature_names) + spare_rows)
    for label in small_environments(counts, environment, least, "", notes):
        del counts[label]
    return files_of_parts(parts, counts, notes, folder)


def files_of_parts(
    parts: TableParts, counts: dict[Any, int], notes: Sequence[str] = (), folder: Path | None = None
) -> RowsOnDisk:
    """The rows of those environments that are counted in ``counts``, in files below ``folder``."""
    kept = tempfile.TemporaryDirectory(prefix="gyrostat-rows-", dir=folder)
    try:
        X, y, numbers = _written(parts, counts, Path(kept.name))
    except BaseException:
        kept.cleanup()
        raise
    frame = pd.DataFrame(X, columns=parts.feature_names, copy=False)
    labels = np.repeat(np.array(list(counts), dtype=object), list(counts.values()))
    return RowsOnDisk(frame, y, labels, parts.columns, tuple(notes), numbers, kept)


def part_notes(parts: TableParts) -> list[str]:
    """Sentences on the rows that the last reading left out, and on how columns are read."""
    notes = [f"{parts.dropped} of {parts.rows} rows have missing values and were left out."] if parts.dropped else []
    return notes + [
        f"{c.name} has an order: {' < '.join(c.levels or ())}." for c in parts.columns if c.kind == "ordered"
    ]


def label_counts(X: np.ndarray, y: np.ndarray, labels: np.ndarray) -> dict[Any, int]:
    """The number of rows with each label, in the order of their first rows."""
    return {label: int(count) for label, count in pd.Series(labels).value_counts(sort=False).items()}


def _written(parts: TableParts, counts: dict[Any, int], folder: Path) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Features, responses and row numbers in files, sorted by environment, in the order of their first rows."""
    rows, d = sum(counts.values()), len(parts.feature_names)
    X = np.lib.format.open_memmap(folder / "features.npy", mode="w+", dtype=np.float64, shape=(rows, d))
    y = np.lib.format.open_memmap(folder / "responses.npy", mode="w+", dtype=np.float64, shape=(rows,))
    numbers = np.lib.format.open_memmap(folder / "rows.npy", mode="w+", dtype=np.int64, shape=(rows,))
    free = dict(zip(counts, np.cumsum(list(counts.values())) - list(counts.values()), strict=True))
    for features, responses, labels in parts.map(_as_they_are):
        for label, mine in pd.Series(labels).groupby(labels, sort=False).indices.items():
            if label in free:
                at = slice(free[label], free[label] + len(mine))
                X[at], y[at], numbers[at] = features[mine], responses[mine], parts.part_rows[mine] + 1
                free[label] += len(mine)
    return X, y, numbers


def _as_they_are(X: np.ndarray, y: np.ndarray, labels: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    return X, y, labels
