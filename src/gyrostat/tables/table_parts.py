"""Tables that do not fit into memory, in parts: the row groups of a Parquet file, the partitions of a Dask dataframe.

Columns of numbers are known from the first part. If there are columns of words, all parts are looked at once more, before
anything else, for the levels of categories.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np
import pandas as pd

from gyrostat import errors
from gyrostat.errors import GyrostatError
from gyrostat.estimators.invariant.rows_in_parts import BATCH, is_dask
from gyrostat.tables.column_values import MOST_LEVELS, is_text, stripped
from gyrostat.tables.row_checks import clean_columns, parsed_orders
from gyrostat.tables.saved_model import Column, column, feature_matrix, model_columns
from gyrostat.tables.table_files import PARQUET, existing_kind, unreadable
from gyrostat.tables.text_files import refuse_repeated_names

T = TypeVar("T")
Frames = Callable[[Callable[[pd.DataFrame], T]], Iterator[T]]
"""Reads a table once: gives the function of each of its parts, in order."""
LARGE_BYTES = 2_000_000_000
"""Parquet tables of more numbers than this, 8 bytes each, are read in parts without being asked for."""


class Selection(NamedTuple):
    """The columns of a table that a model uses, and whether rows with missing values are an error or are left out."""

    names: tuple[str, ...]
    target: str
    environment: str
    missing: str
    orders: dict[str, tuple[str, ...]]

    def complete(self, frame: pd.DataFrame) -> tuple[pd.DataFrame, np.ndarray]:
        """The rows of a part without missing values, and the numbers of the others."""
        for option, name in (("--target", self.target), ("--environment", self.environment)):
            column(frame, option, name)
        wanted = [*self.names, self.target, self.environment]
        part = clean_columns(frame.rename(columns=str)[wanted], [*self.names, self.target], tuple(self.orders))
        holes = part.isna().any(axis=1).to_numpy()
        part[self.environment] = stripped(part[self.environment])
        return part[~holes].astype({self.environment: object}).reset_index(drop=True), np.flatnonzero(holes)


class PartResult(NamedTuple):
    """What a function found in the complete rows of a part (None if it has none), its length, and its incomplete rows."""

    found: Any
    rows: int
    holes: np.ndarray


def of_complete_rows(frame: pd.DataFrame, selection: Selection, function: Callable[[pd.DataFrame], Any]) -> PartResult:
    """The function of the complete rows of a part, unless incomplete ones are an error."""
    part, holes = selection.complete(frame)
    refused = len(part) == 0 or (len(holes) and selection.missing == "error")
    return PartResult(None if refused else function(part), len(frame), holes)


def of_numbers(
    part: pd.DataFrame,
    selection: Selection,
    columns: Sequence[Column],
    function: Callable[[np.ndarray, np.ndarray, Any], T],
) -> T:
    """The function of features, responses and labels."""
    y = feature_matrix(part, [Column(selection.target)])[:, 0]
    return function(feature_matrix(part, columns), y, part[selection.environment].to_numpy())


class Gap(NamedTuple):
    """A part of ``rows`` rows with missing values.

    ``first`` is the number of complete rows before the part, ``dropped`` that of incomplete ones; ``complete`` has a bit for
    each row of the part.
    """

    first: int
    dropped: int
    rows: int
    complete: np.ndarray

    @classmethod
    def of(cls, part: PartResult, first: int, dropped: int) -> Gap:
        """The gaps of a part."""
        complete = np.ones(part.rows, bool)
        complete[part.holes] = False
        return cls(first, dropped, part.rows, np.packbits(complete))

    def row_number(self, row: int) -> int:
        """The number in the table of a complete row of this part or a later one before the next gap."""
        places = np.flatnonzero(np.unpackbits(self.complete, count=self.rows))
        inside = row - self.first
        start = self.first + self.dropped
        return start + int(places[inside]) if inside < len(places) else start + self.rows + inside - len(places)


@dataclass
class TableParts:
    """The rows of a table in parts, as numbers: what ``InvariantLinearRegressor.fit_parts`` reads.

    ``columns`` are the inputs of a model, as in a saved model. ``rows`` counts those of the last reading, ``dropped`` the ones
    with missing values, which it left out. ``part_rows`` are the numbers in the table, from 0, of the complete rows of the part
    that was read last.
    """

    frames: Frames
    selection: Selection
    columns: tuple[Column, ...] = ()
    dropped: int = 0
    rows: int = 0
    part_rows: np.ndarray = field(default_factory=lambda: np.zeros(0, dtype=np.int64), repr=False)
    _gaps: list[Gap] = field(default_factory=list, repr=False)

    @property
    def feature_names(self) -> list[str]:
        """The names of the features."""
        return [name for c in self.columns for name in c.features]

    def map(self, function: Callable[[np.ndarray, np.ndarray, Any], T]) -> Iterator[T]:
        """The function of features, responses and labels of each part that has complete rows."""
        yield from self.read(partial(of_numbers, selection=self.selection, columns=self.columns, function=function))

    def read(self, function: Callable[[pd.DataFrame], T]) -> Iterator[T]:
        """The function of the complete rows of each part that has some."""
        self.dropped, self.rows, self._gaps = 0, 0, []
        for part in self.frames(partial(of_complete_rows, selection=self.selection, function=function)):
            if len(part.holes) and self.selection.missing == "error":
                row = self.rows + int(part.holes[0]) + 1
                raise GyrostatError(f"row {row} has a missing value: use --missing drop to leave such rows out.")
            if len(part.holes):
                self._gaps.append(Gap.of(part, self.rows - self.dropped, self.dropped))
            self.part_rows = self.rows + np.delete(np.arange(part.rows), part.holes)
            self.dropped += len(part.holes)
            self.rows += part.rows
            if part.rows > len(part.holes):
                yield part.found

    def row_number(self, row: int) -> int:
        """The number of a row in the table, counted from 0, by its number among the complete rows of the last reading."""
        before = [gap for gap in self._gaps if gap.first <= row]
        return before[-1].row_number(row) if before else row


def table_parts(
    source: Any,
    *,
    target: str,
    environment: str,
    features: Sequence[str] | None = None,
    ordered: Sequence[str] = (),
    missing: str = "error",
) -> TableParts:
    """The rows of a Parquet file (read in row groups), a Dask dataframe (in partitions), or parts that a function returns.

    Parameters
    ----------
    source : the path of a Parquet file, a Dask dataframe, or a function without arguments that returns dataframes.
    target, environment : the columns with the response and with the environment of each row.
    features : the columns to use; None: all others.
    ordered : orders of categories, such as ``"size=small<medium<large"``.
    missing : ``"error"``, or ``"drop"`` to leave out rows with missing values.

    >>> frame = pd.DataFrame({"x": [1.0, 2, 3, 4], "sex": list("fmfm"), "site": list("abab"), "y": [0.0, 1, 2, 3]})
    >>> parts = table_parts(lambda: [frame[:2], frame[2:]], target="y", environment="site")
    >>> parts.feature_names, [X.tolist() for X in parts.map(lambda X, y, site: X)]
    (['x', 'sex=m'], [[[1.0, 0.0], [2.0, 1.0]], [[3.0, 0.0], [4.0, 1.0]]])
    """
    errors.choice("missing", missing, ("error", "drop"))
    names, frames = _frames(source, [*features, target, environment] if features is not None else None)
    used = tuple(name for name in (features or names) if name not in (target, environment))
    parts = TableParts(frames, Selection(used, target, environment, missing, parsed_orders(ordered, names)))
    first = next(frames(_same), None)
    if first is None:
        raise GyrostatError("source has no parts: there are no rows.")
    words = any(is_text(first[name]) for name in (*used, target) if name in first)
    samples = list(parts.read(sample) if words else [parts.selection.complete(first)[0]])
    if not samples:
        raise GyrostatError("there are no complete rows: leave out the columns with most missing values.")
    table = pd.concat(samples, ignore_index=True)
    (response,), columns = model_columns(table, [target]), model_columns(table, used, parts.selection.orders)
    if response.kind in ("category", "ordered"):
        raise GyrostatError(
            f"target {target!r} must hold numbers; it holds words such as {(response.levels or '')[0]!r}."
        )
    parts.columns = tuple(columns)
    return parts


def sample(part: pd.DataFrame) -> pd.DataFrame:
    """Rows of a part in which every word of every column occurs, and the first ones."""
    kept = set(range(min(len(part), 5)))
    for name in part:
        if is_text(part[name]):
            first = part[name].drop_duplicates().index[: MOST_LEVELS + 1]
            kept.update(part.index.get_indexer(first))
    return part.iloc[sorted(kept)]


def _same(frame: pd.DataFrame) -> pd.DataFrame:
    return frame


# --- Parquet files and Dask dataframes ------------------------------------------------------------


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


def _frames(source: Any, wanted: list[str] | None) -> tuple[list[str], Frames]:
    """The names of the columns, and a way to read the wanted ones (None: all)."""
    if isinstance(source, str | Path):
        return _row_groups(Path(source), wanted)
    if is_dask(source):
        chosen = source if wanted is None else source[list(dict.fromkeys(wanted))]
        return [str(name) for name in source.columns], partial(_of_partitions, chosen)
    if not callable(source):
        raise GyrostatError(
            f"source must be a Parquet file, a Dask dataframe, or a function that returns parts; got {errors.shown(source)}."
        )
    first = next(iter(source()), None)
    if first is None:
        raise GyrostatError("source has no parts: there are no rows.")
    return [str(name) for name in first.columns], lambda function: (function(frame) for frame in source())


def _of_partitions(table: Any, function: Callable[[pd.DataFrame], T]) -> Iterator[T]:
    """The function of each partition, computed where the partitions are, a few at a time."""
    import dask

    tasks = [dask.delayed(function)(part) for part in table.to_delayed()]
    for start in range(0, len(tasks), BATCH):
        yield from dask.compute(*tasks[start : start + BATCH])


def _row_groups(path: Path, wanted: list[str] | None) -> tuple[list[str], Frames]:
    from pyarrow import parquet

    names = column_names(path)
    for name in wanted or ():
        errors.choice("column", name, names)
    columns = None if wanted is None else list(dict.fromkeys(wanted))

    def groups(function: Callable[[pd.DataFrame], T]) -> Iterator[T]:
        with parquet.ParquetFile(path) as file:
            for i in range(file.num_row_groups):
                yield function(file.read_row_group(i, columns=columns).to_pandas())

    return names, groups
