"""``gyrostat impute``: a table in a file, its missing cells filled, in another file."""

from __future__ import annotations

import importlib.util
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console

from gyrostat import errors
from gyrostat.errors import GyrostatError

FORMATS = (".csv", ".parquet")


def impute(
    source: Path, out: Path, console: Console, *, ignore: list[str], environments: str | None, seed: int, verbose: bool
) -> None:
    """Read, fill, write, and say what was found."""
    for name, path in (("DATA", source), ("--out", out)):
        _format(name, path)
    frame = read(source)
    table = numbers(frame, [*ignore, *([environments] if environments else [])])
    labels = None if environments is None else frame[environments]
    from gyrostat.estimators import LowRankImputer

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        imputer = LowRankImputer(random_state=seed, verbose=verbose)
        filled = imputer.fit_transform(table, environments=labels)
    holes = int(table.isna().to_numpy().sum())
    whole = frame.copy()
    whole[table.columns] = np.asarray(filled)
    write(whole, out)
    for warning in caught:
        if issubclass(warning.category, UserWarning):
            console.print(f"Note: {warning.message}", markup=False, highlight=False, soft_wrap=True)
    found = "an exact fit" if imputer.exact_ else f"validation error {imputer.validation_error_:.4g}"
    console.print(
        f"{holes} of {table.size} cells filled with a matrix of rank {imputer.rank_} ({found}); written to {out}.",
        markup=False, highlight=False, soft_wrap=True,
    )  # fmt: skip


def read(path: Path) -> Any:
    """The table in a CSV or Parquet file."""
    import pandas as pd

    if not path.is_file():
        raise GyrostatError(f"DATA {str(path)!r} is not a file.")
    try:
        frame = pd.read_csv(path) if _format("DATA", path) == ".csv" else pd.read_parquet(path)
    except (ValueError, OSError) as error:  # pandas and pyarrow raise many kinds of these for files that are no tables
        reason = " ".join(str(error).split())[:200]
        raise GyrostatError(f"DATA {str(path)!r} cannot be read as a table: {reason}") from None
    if frame.empty:
        raise GyrostatError(f"DATA {str(path)!r} holds no rows: give a table with a line of names and a line for each row.")
    return frame


def write(frame: Any, path: Path) -> None:
    """The table as CSV or Parquet, by the file's ending."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if _format("--out", path) == ".csv":
        frame.to_csv(path, index=False)
    else:
        frame.to_parquet(path, index=False)


def numbers(frame: Any, left_out: list[str]) -> Any:
    """The columns to fill, as numbers."""
    for name in left_out:
        errors.choice("column", name, map(str, frame.columns))
    table = frame.drop(columns=left_out)
    for name in table.columns:
        column = table[name]
        if column.isna().all():
            table[name] = column.astype(float)
        elif column.dtype.kind not in "biuf":
            got = errors.shown(column[column.notna()].iloc[0])
            raise GyrostatError(f"column {name!r} holds {got}, which is no number: leave it as it is with --ignore {name}.")
    if not table.shape[1]:
        raise GyrostatError("no column is left to fill: give --ignore fewer names.")
    infinite = [name for name in table.columns if np.isinf(table[name].to_numpy(dtype=float)).any()]
    if infinite:
        raise GyrostatError(f"column {infinite[0]!r} holds infinite values: make them empty, or leave it out with --ignore.")
    return table.astype(float)


def _format(name: str, path: Path) -> str:
    ending = path.suffix.lower()
    if ending not in FORMATS:
        raise GyrostatError(f"{name} must end in .csv or .parquet; got {str(path)!r}.")
    if ending == ".parquet" and not importlib.util.find_spec("pyarrow"):
        raise GyrostatError(f"{name} is a Parquet file, which needs pyarrow: pip install 'gyrostat[datasets]', or use .csv.")
    return ending
