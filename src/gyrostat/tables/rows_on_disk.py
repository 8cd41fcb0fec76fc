"""Tables that do not fit into memory: the rows of a Parquet file or a Dask dataframe, sorted by environment, in files on disk.

The estimators read one environment after another, so that they need memory for the largest environment, not for the table.
Rows are read in row groups (or partitions) of which one is in memory at a time, twice: once to see what the columns hold, and
once to write features and responses.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from gyrostat import errors
from gyrostat.errors import GyrostatError
from gyrostat.tables.row_checks import clean_columns, parsed_orders
from gyrostat.tables.saved_model import Column, column, feature_matrix, model_columns
from gyrostat.tables.table_files import MOST_LEVELS, PARQUET, existing_kind, is_text, refuse_repeated_names, unreadable

Chunks = Callable[[], Iterable[pd.DataFrame]]
"""A function that returns the parts of a table, one after another, each time it is called."""
LARGE_BYTES = 2_000_000_000
"""Parquet tables of more numbers than this, 8 bytes each, are put on disk without being asked for."""


@dataclass
class RowsOnDisk:
    """Features (rows, features), responses and labels of a table, as arrays in files that vanish with :meth:`close`.

    ``columns`` are the inputs of a model, as in a saved model; ``notes`` are sentences on what was left out.
    """

    X: pd.DataFrame
    y: np.ndarray
    labels: np.ndarray
    columns: tuple[Column, ...]
    notes: tuple[str, ...]
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
    errors.choice("missing", missing, ("error", "drop"))
    names, chunks = _parts(source, [*features, target, environment] if features is not None else None)
    used = [name for name in (features or names) if name not in (target, environment)]
    plan = _Plan.of(chunks, used, target, environment, parsed_orders(ordered, names), missing)
    plan.leave_out_small(max(min_rows, 1 if spare_rows is None else plan.num_features + spare_rows))
    kept = tempfile.TemporaryDirectory(prefix="gyrostat-rows-", dir=folder)
    try:
        X, y = plan.written(chunks, Path(kept.name))
    except BaseException:
        kept.cleanup()
        raise
    frame = pd.DataFrame(X, columns=[name for c in plan.columns for name in c.features], copy=False)
    labels = np.repeat(np.array(list(plan.counts), dtype=object), list(plan.counts.values()))
    return RowsOnDisk(frame, y, labels, tuple(plan.columns), tuple(plan.notes()), kept)


def is_large(path: Path) -> bool:
    """Whether a file is a Parquet table of more than ``LARGE_BYTES`` as numbers."""
    if not path.name.lower().endswith(PARQUET) or not path.is_file():
        return False
    from pyarrow import parquet

    try:
        about = parquet.read_metadata(path)
    except (ValueError, OSError) as error:
        raise unreadable(path, existing_kind(path), error) from None
    return about.num_rows * about.num_columns * 8 > LARGE_BYTES


def column_names(path: Path) -> list[str]:
    """The names of the columns of a Parquet file, which must be different."""
    from pyarrow import parquet

    kind = existing_kind(path)
    if kind not in PARQUET:
        raise GyrostatError(
            f"{str(path)!r} must be a Parquet file to be read in parts: convert it, or read it as a whole."
        )
    try:
        schema = parquet.read_schema(path)
        index = {name for name in (schema.pandas_metadata or {}).get("index_columns", []) if isinstance(name, str)}
        names = [str(name) for name in schema.names if name not in index]
    except (ValueError, OSError) as error:
        raise unreadable(path, kind, error) from None
    refuse_repeated_names(names)
    return names


def _parts(source: Any, wanted: list[str] | None) -> tuple[list[str], Chunks]:
    """The names of the columns, and the parts of a table with the wanted columns (None: all)."""
    if isinstance(source, str | Path):
        return _row_groups(Path(source), wanted)
    if hasattr(source, "to_delayed") and hasattr(source, "columns"):
        chosen = source if wanted is None else source[list(dict.fromkeys(wanted))]
        names = [str(name) for name in source.columns]
        return names, lambda: (chosen.get_partition(i).compute() for i in range(chosen.npartitions))
    if not callable(source):
        raise GyrostatError(
            f"source must be a Parquet file, a Dask dataframe, or a function that returns parts; got {errors.shown(source)}."
        )
    first = next(iter(source()), None)
    if first is None:
        raise GyrostatError("source has no parts: there are no rows.")
    return [str(name) for name in first.columns], source


def _row_groups(path: Path, wanted: list[str] | None) -> tuple[list[str], Chunks]:
    from pyarrow import parquet

    names = column_names(path)
    for name in wanted or ():
        errors.choice("column", name, names)
    columns = None if wanted is None else list(dict.fromkeys(wanted))

    def groups() -> Iterator[pd.DataFrame]:
        with parquet.ParquetFile(path) as file:
            for i in range(file.num_row_groups):
                yield file.read_row_group(i, columns=columns).to_pandas()

    return names, groups


@dataclass
class _Plan:
    """What the first reading has found: the columns, and the number of complete rows in each environment."""

    names: list[str]
    target: str
    environment: str
    missing: str
    columns: list[Column]
    counts: dict[Any, int]
    dropped: int = 0
    left_out: str = ""

    @property
    def num_features(self) -> int:
        """The number of features."""
        return sum(len(c.features) for c in self.columns)

    def leave_out_small(self, least: int) -> None:
        """Leave out environments with too few rows."""
        small = {label: count for label, count in self.counts.items() if count < least}
        if len(self.counts) - len(small) < 2:
            raise GyrostatError(
                f"fewer than two values of {self.environment!r} have at least {least} rows: use fewer features, or --alone."
            )
        self.counts = {label: count for label, count in self.counts.items() if label not in small}
        if small:
            names = ", ".join(map(str, list(small)[:5]))
            self.left_out = f"{len(small)} environments have fewer than {least} rows and were left out: {names}."

    def notes(self) -> Iterator[str]:
        """Sentences on what was left out, and on how columns are read."""
        if self.dropped:
            yield f"{self.dropped} rows with missing values were left out."
        if self.left_out:
            yield self.left_out
        for c in self.columns:
            if c.kind == "ordered":
                yield f"{c.name} has an order: {' < '.join(c.levels or ())}."

    @classmethod
    def of(
        cls,
        chunks: Chunks,
        names: list[str],
        target: str,
        environment: str,
        orders: dict[str, tuple[str, ...]],
        missing: str,
    ) -> _Plan:
        plan = cls(names, target, environment, missing, [], {})
        # A few rows of every part stand for its columns: all different words, and numbers as they are.
        samples = []
        for chunk in plan.complete(chunks):
            for label, count in chunk[environment].value_counts(sort=False).items():
                plan.counts[label] = plan.counts.get(label, 0) + int(count)
            samples.append(_sample(chunk[[*names, target]]))
        if not plan.counts:
            raise GyrostatError("there are no complete rows: leave out the columns with most missing values.")
        table = pd.concat(samples, ignore_index=True)
        (response,), plan.columns = model_columns(table, [target]), model_columns(table, names, orders)
        if response.kind in ("category", "ordered"):
            raise GyrostatError(
                f"target {target!r} must hold numbers; it holds words such as {(response.levels or '')[0]!r}."
            )
        return plan

    def complete(self, chunks: Chunks) -> Iterator[pd.DataFrame]:
        """The parts without rows that have missing values, which are counted; with ``missing="error"`` there are none."""
        wanted, self.dropped, seen = [*self.names, self.target, self.environment], 0, 0
        for chunk in chunks():
            for option, name in (("--target", self.target), ("--environment", self.environment)):
                column(chunk, option, name)
            part = clean_columns(chunk[wanted].rename(columns=str), [*self.names, self.target])
            holes = part.isna().any(axis=1)
            if holes.any() and self.missing == "error":
                row = seen + int(np.flatnonzero(holes)[0]) + 1
                raise GyrostatError(f"row {row} has a missing value: use --missing drop to leave such rows out.")
            self.dropped += int(holes.sum())
            seen += len(part)
            yield part[~holes].astype({self.environment: object}).reset_index(drop=True)

    def written(self, chunks: Chunks, folder: Path) -> tuple[np.ndarray, np.ndarray]:
        """Features and responses in files, sorted by environment, in the order of their first rows."""
        rows, d = sum(self.counts.values()), self.num_features
        X = np.lib.format.open_memmap(folder / "features.npy", mode="w+", dtype=np.float64, shape=(rows, d))
        y = np.lib.format.open_memmap(folder / "responses.npy", mode="w+", dtype=np.float64, shape=(rows,))
        ends = np.cumsum(list(self.counts.values()))
        free = dict(zip(self.counts, ends - list(self.counts.values()), strict=True))
        for part in self.complete(chunks):
            features, (responses,) = feature_matrix(part, self.columns), feature_matrix(part, [Column(self.target)]).T
            for label, mine in part.groupby(self.environment, sort=False).indices.items():
                if label not in free:
                    continue
                at = slice(free[label], free[label] + len(mine))
                X[at], y[at] = features[mine], responses[mine]
                free[label] += len(mine)
        return X, y


def _sample(part: pd.DataFrame) -> pd.DataFrame:
    """Rows of a part in which every word of every column occurs, and the first ones."""
    kept = set(range(min(len(part), 5)))
    for name in part:
        if is_text(part[name]):
            first = part[name].drop_duplicates().index[: MOST_LEVELS + 1]
            kept.update(part.index.get_indexer(first))
    return part.iloc[sorted(kept)]
