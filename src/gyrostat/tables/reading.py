"""Tables from files, and their columns as numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from gyrostat import errors
from gyrostat.errors import GyrostatError
from gyrostat.tables.examples import PREFIX, example

MOST_LEVELS = 50
"""Words that a column may hold to be taken for a category rather than for names or remarks."""
READERS: dict[str, Any] = {
    ".csv": pd.read_csv,
    ".csv.gz": pd.read_csv,
    ".tsv": partial(pd.read_csv, sep="\t"),
    ".parquet": pd.read_parquet,
    ".pq": pd.read_parquet,
}


def kind_of(name: str, path: Path) -> str:
    """Which of these kinds of file a path has."""
    kind = next((suffix for suffix in READERS if path.name.lower().endswith(suffix)), None)
    if kind is None:
        raise GyrostatError(
            f"{name} {path.name!r} is no kind of table that is known: it must end in {', '.join(READERS)}."
        )
    return kind


def read_table(path: Path) -> pd.DataFrame:
    """The table in a CSV, TSV or Parquet file, or one of :mod:`gyrostat.tables.examples` (``example:NAME``).

    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "rows.csv"
    >>> _ = path.write_text("dose,site\\n1.5,north\\n2.0,south\\n")
    >>> read_table(path).shape
    (2, 2)
    """
    if path.name.startswith(PREFIX):
        return example(path.name.removeprefix(PREFIX))
    kind = kind_of("DATA", path)
    if not path.is_file():
        raise GyrostatError(f"there is no file {str(path)!r}: check its name and folder.")
    try:
        frame = READERS[kind](path)
    except (ValueError, OSError) as error:  # what pandas and pyarrow raise for files that are not what they are called
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise GyrostatError(f"{str(path)!r} cannot be read as {kind}: {reason}.") from None
    if frame.empty:
        raise GyrostatError(f"{str(path)!r} has no rows: give a table with a line of names and at least one row.")
    return frame.rename(columns=str)


def write_table(frame: pd.DataFrame, path: Path, option: str = "--out") -> None:
    """The table as a file of the kind that its name says; ``option`` is how the user gave it."""
    kind = kind_of(option, path)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if kind in (".parquet", ".pq"):
            frame.to_parquet(path, index=False)
        else:
            frame.to_csv(path, index=False, sep="\t" if kind == ".tsv" else ",")
    except OSError as error:
        raise GyrostatError(
            f"{option} {str(path)!r} cannot be written ({error.strerror}): choose another place."
        ) from None


def column(frame: pd.DataFrame, option: str, name: str) -> pd.Series:
    """A column, or the closest names."""
    return frame[errors.choice(option, name, frame.columns)]


@dataclass(frozen=True)
class Column:
    """A column as it enters a model: a number, or (with ``levels``) a category, which becomes one 0/1 feature for each level
    but the first.
    """

    name: str
    levels: tuple[str, ...] | None = None

    @property
    def features(self) -> list[str]:
        """The names of its features."""
        return [self.name] if self.levels is None else [f"{self.name}={level}" for level in self.levels[1:]]

    def numbers(self, frame: pd.DataFrame) -> np.ndarray:
        """Its features, (rows, how many)."""
        values = column(frame, "column", self.name)
        if self.levels is None:
            found = pd.to_numeric(values, errors="coerce")
            if (bad := found.isna() & values.notna()).any():
                raise GyrostatError(
                    f"column {self.name!r} must hold numbers; row {_first(bad)} has {values[bad].iloc[0]!r}."
                )
            return found.to_numpy(np.float64)[:, None]
        words = values.astype(str)
        if (bad := ~words.isin(self.levels)).any():
            raise GyrostatError(
                f"column {self.name!r} has {words[bad].iloc[0]!r} in row {_first(bad)}, which no row had when the model was "
                f"fitted; known are {', '.join(self.levels[:8])}: leave such rows out, or fit again with them."
            )
        return (words.to_numpy()[:, None] == np.array(self.levels[1:], dtype=object)).astype(np.float64)


def columns_of(frame: pd.DataFrame, names: Sequence[str]) -> list[Column]:
    """How each named column enters a model: numbers and truths as numbers, words as categories."""
    return [_column(column(frame, "feature", name)) for name in names]


def _column(values: pd.Series) -> Column:
    name = str(values.name)
    if pd.api.types.is_numeric_dtype(values) or pd.api.types.is_bool_dtype(values):
        return Column(name)
    levels = sorted(values.dropna().astype(str).unique())
    if len(levels) > MOST_LEVELS:
        raise GyrostatError(
            f"column {name!r} holds {len(levels)} different words, too many for a category: leave it out with --drop {name}."
        )
    return Column(name, tuple(levels))


def matrix(frame: pd.DataFrame, columns: Sequence[Column]) -> np.ndarray:
    """All features of ``columns``, side by side."""
    X = np.hstack([c.numbers(frame) for c in columns])
    if not np.isfinite(X).all():
        j = int(np.flatnonzero(~np.isfinite(X).all(axis=0))[0])
        name = [c.name for c in columns for _ in c.features][j]
        raise GyrostatError(f"column {name!r} holds infinite values: leave those rows out.")
    return X


def complete(frame: pd.DataFrame, names: Sequence[str], missing: str) -> pd.DataFrame:
    """The rows without missing values in ``names``: with ``missing="error"`` there must be no others."""
    errors.choice("missing", missing, ("error", "drop"))
    holes = frame[list(names)].isna()
    if not holes.any(axis=None):
        return frame
    if missing == "error":
        worst = holes.sum().idxmax()
        raise GyrostatError(
            f"{int(holes.any(axis=1).sum())} of {len(frame)} rows have missing values, most in column {worst!r} "
            f"({int(holes[worst].sum())}): use --missing drop to leave those rows out, or fill them with gyrostat impute."
        )
    left = frame[~holes.any(axis=1)]
    if left.empty:
        raise GyrostatError("every row has a missing value: leave out the columns that have most with --drop.")
    return left


def _first(chosen: pd.Series) -> int:
    return int(np.flatnonzero(chosen.to_numpy())[0]) + 1
