"""Tables in files: CSV, TSV and Parquet, read and written."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from gyrostat.errors import GyrostatError
from gyrostat.tables.column_values import NOTES, emptied
from gyrostat.tables.examples import PREFIX, example
from gyrostat.tables.text_files import FileFormat, read_text, refuse_repeated_names

TEXT_KINDS = {".csv": ",", ".csv.gz": ",", ".tsv": "\t", ".tsv.gz": "\t", ".txt": "\t", ".txt.gz": "\t"}
"""Endings of text files, and the separator that each suggests."""
PARQUET = (".parquet", ".pq")
KINDS = (*TEXT_KINDS, *PARQUET)
OTHER_KINDS = {
    (".xlsx", ".xls", ".xlsm", ".ods", ".numbers"): "save the sheet as CSV",
    (".zip", ".7z", ".rar", ".bz2", ".xz", ".tar"): "unpack it first",
    (
        ".json",
        ".jsonl",
        ".ndjson",
        ".feather",
        ".dta",
        ".sav",
        ".rds",
        ".rdata",
        ".sas7bdat",
    ): "save it as CSV or Parquet",
}
"""Endings of files that people have, and what to do with them."""


def file_kind(option: str, path: Path) -> str:
    """The ending that tells the format of a file; ``option`` is the name under which the user gave the path."""
    kind = next((suffix for suffix in KINDS if path.name.lower().endswith(suffix)), None)
    if kind is None:
        advice = next((text for endings, text in OTHER_KINDS.items() if path.name.lower().endswith(endings)), "")
        raise GyrostatError(
            f"{option} {path.name!r} is not a known kind of table{advice and ': ' + advice}. The name must end in "
            f"{', '.join(KINDS)}."
        )
    return kind


def read_table(path: Path, given: FileFormat = FileFormat()) -> pd.DataFrame:  # noqa: B008  (immutable)
    """The table in a CSV, TSV or Parquet file, or one of :mod:`gyrostat.tables.examples` (``example:NAME``).

    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "rows.csv"
    >>> _ = path.write_text("dose;site\\n1,5;north\\n2,0;south\\n")
    >>> frame = read_table(path)
    >>> frame.dose.tolist(), frame.attrs["notes"]
    ([1.5, 2.0], ["Read with --separator ';' and --decimal ','."])
    """
    if path.name.startswith(PREFIX):
        return _noted(example(path.name.removeprefix(PREFIX)), [])
    kind = existing_kind(path)
    try:
        frame = read_parquet(path) if kind in PARQUET else read_text(path, kind, TEXT_KINDS[kind], given)
    except GyrostatError:
        raise
    except (ValueError, OSError) as error:  # pandas and pyarrow raise these for files whose content is something else
        raise unreadable(path, kind, error) from None
    if frame.empty:
        raise GyrostatError(f"{str(path)!r} has no rows: give a table with a line of names and at least one row.")
    return emptied(frame, given.empty)


def existing_kind(path: Path) -> str:
    """The kind of a table that exists."""
    kind = file_kind("DATA", path)
    if not path.is_file():
        raise GyrostatError(f"there is no file {str(path)!r}: check its name and folder.")
    return kind


def unreadable(path: Path, kind: str, error: Exception) -> GyrostatError:
    """The error for a file whose content is something else."""
    reason = str(error).splitlines()[0].rstrip(".") if str(error) else type(error).__name__
    return GyrostatError(f"{str(path)!r} cannot be read as {kind}: {reason}.")


def read_parquet(path: Path) -> pd.DataFrame:
    """A whole Parquet file."""
    from pyarrow import parquet

    refuse_repeated_names(parquet.read_schema(path).names)
    return _noted(pd.read_parquet(path).rename(columns=str), [])


def _noted(frame: pd.DataFrame, notes: list[str]) -> pd.DataFrame:
    frame.attrs[NOTES] = notes
    return frame


def write_table(frame: pd.DataFrame, path: Path, option: str = "--out") -> None:
    """Write a table in the format that the name of the file tells; ``option`` is as in :func:`file_kind`."""
    kind = file_kind(option, path)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if kind in PARQUET:
            frame.to_parquet(path, index=False)
        else:
            frame.to_csv(path, index=False, sep=TEXT_KINDS[kind])
    except OSError as error:
        raise cannot_be_written(option, path, error) from None


def cannot_be_written(option: str, path: Path, error: OSError) -> GyrostatError:
    """The error for a path that cannot be written to."""
    return GyrostatError(f"{option} {str(path)!r} cannot be written ({error.strerror}): choose another path.")
