"""``gyrostat impute``: fills the missing cells of a table in a file and writes the table to another file."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import pandas as pd
from rich.console import Console

from gyrostat import errors
from gyrostat.errors import GyrostatError
from gyrostat.estimators import LowRankImputer
from gyrostat.tables.table_files import file_kind, read_table, write_table


def impute(
    source: Path,
    out: Path,
    console: Console,
    *,
    ignore: list[str],
    environments: str | None,
    seed: int,
    verbose: bool,
    intervals: Path | None = None,
    coverage: float = 0.9,
) -> None:
    """Read the table, fill it, write it, and print a summary."""
    file_kind("--out", out)  # a wrong ending is refused before anything is computed
    errors.number("--coverage", coverage, above=0, most=1)
    if intervals is not None:
        file_kind("--intervals", intervals)
    frame = read_table(source)
    table = numeric_columns(frame, [*ignore, *([environments] if environments else [])])
    labels = None if environments is None else frame[environments]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        imputer = LowRankImputer(random_state=seed, verbose=verbose)
        filled = imputer.fit_transform(table, environments=labels)
    missing = int(table.isna().to_numpy().sum())
    completed = frame.copy()
    completed[table.columns] = np.asarray(filled)
    write_table(completed, out)
    if intervals is not None:
        write_table(filled_cells(table, imputer, coverage), intervals, "--intervals")
    for warning in caught:
        if issubclass(warning.category, UserWarning):
            console.print(f"Note: {warning.message}", markup=False, highlight=False, soft_wrap=True)
    quality = "an exact fit" if imputer.exact_ else f"validation error {imputer.validation_error_:.4g}"
    console.print(
        f"{missing} of {table.size} cells filled with a matrix of rank {imputer.rank_} ({quality}); written to {out}."
        + (f" Each with an interval of {coverage:.0%} in {intervals}." if intervals else ""),
        markup=False,
        highlight=False,
        soft_wrap=True,
    )


def filled_cells(table: pd.DataFrame, imputer: LowRankImputer, coverage: float) -> pd.DataFrame:
    """One row for each filled cell: its row (counted from 1, without the line of names), its column, its value, an interval."""
    rows, columns = np.nonzero(table.isna().to_numpy())
    low, high = imputer.predict_interval(rows, columns, coverage)
    value = imputer.predict(rows, columns)
    return pd.DataFrame({"row": rows + 1, "column": table.columns[columns], "value": value, "low": low, "high": high})


def numeric_columns(frame: pd.DataFrame, left_out: list[str]) -> pd.DataFrame:
    """The columns to fill, as numbers. Columns of text are refused."""
    for name in left_out:
        errors.choice("column", name, map(str, frame.columns))
    table = frame.drop(columns=left_out)
    for name in table.columns:
        column = table[name]
        if column.isna().all():
            table[name] = column.astype(float)
        elif column.dtype.kind not in "biuf":
            got = errors.shown(column[column.notna()].iloc[0])
            raise GyrostatError(
                f"column {name!r} holds {got}, which is not a number: leave the column as it is with --ignore {name}."
            )
    if not table.shape[1]:
        raise GyrostatError("no column is left to fill: give --ignore fewer names.")
    infinite = [name for name in table.columns if np.isinf(table[name].to_numpy(dtype=float)).any()]
    if infinite:
        raise GyrostatError(
            f"column {infinite[0]!r} holds infinite values: make them empty, or leave it out with --ignore."
        )
    return table.astype(float)
