"""Tables in files: CSV, TSV and Parquet, read and written."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd

from gyrostat.errors import GyrostatError
from gyrostat.tables.examples import PREFIX, example

READERS: dict[str, Any] = {
    ".csv": pd.read_csv,
    ".csv.gz": pd.read_csv,
    ".tsv": partial(pd.read_csv, sep="\t"),
    ".parquet": pd.read_parquet,
    ".pq": pd.read_parquet,
}


def file_kind(option: str, path: Path) -> str:
    """The ending that tells the format of a file; ``option`` is the name under which the user gave the path."""
    kind = next((suffix for suffix in READERS if path.name.lower().endswith(suffix)), None)
    if kind is None:
        raise GyrostatError(
            f"{option} {path.name!r} is not a known kind of table: the name must end in {', '.join(READERS)}."
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
    kind = file_kind("DATA", path)
    if not path.is_file():
        raise GyrostatError(f"there is no file {str(path)!r}: check its name and folder.")
    try:
        frame = READERS[kind](path)
    except (ValueError, OSError) as error:  # pandas and pyarrow raise these for files whose content is something else
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise GyrostatError(f"{str(path)!r} cannot be read as {kind}: {reason}.") from None
    if frame.empty:
        raise GyrostatError(f"{str(path)!r} has no rows: give a table with a line of names and at least one row.")
    return frame.rename(columns=str)


def write_table(frame: pd.DataFrame, path: Path, option: str = "--out") -> None:
    """Write a table in the format that the name of the file tells; ``option`` is as in :func:`file_kind`."""
    kind = file_kind(option, path)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if kind in (".parquet", ".pq"):
            frame.to_parquet(path, index=False)
        else:
            frame.to_csv(path, index=False, sep="\t" if kind == ".tsv" else ",")
    except OSError as error:
        raise cannot_be_written(option, path, error) from None


def cannot_be_written(option: str, path: Path, error: OSError) -> GyrostatError:
    """The error for a path that cannot be written to."""
    return GyrostatError(f"{option} {str(path)!r} cannot be written ({error.strerror}): choose another path.")
