"""Tables that users bring to the page: their columns, what ``gyrostat fit`` finds in them, and the comparison of methods.

The work is that of the commands, with the same sentences; the page also gets the commands.
"""

from __future__ import annotations

import io
import shlex
import warnings
from collections.abc import Iterator, Sequence
from contextlib import chdir, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from rich.console import Console

from gyrostat.errors import GyrostatError
from gyrostat.estimators.invariant.diagnosis import HeterogeneityReport
from gyrostat.estimators.invariant.verdicts import shown_p
from gyrostat.tables.fit_and_predict import MODEL, fit, rows_of_table
from gyrostat.tables.method_comparison import FARTHEST, HEADINGS, PANELS, cells, compare_on_table
from gyrostat.tables.summary_page import compared, percent
from gyrostat.tables.table_files import read_table

MOST_ROWS, MOST_FEATURES = 200_000, 60


@dataclass(frozen=True, kw_only=True)
class TableRequest:
    """A table and what the user chose: columns, excluded columns, rows with missing values, the family of the outcome.

    The file ``name`` is in ``folder``, to which results are written, too. ``family`` may be empty.
    """

    folder: str
    name: str
    target: str
    environment: str
    drop: Sequence[str]
    missing: str
    family: str

    def command(self, verb: str) -> str:
        """The command that does the same to the user's file.

        >>> chosen = {"target": "y", "environment": "site", "missing": "error", "family": "", "drop": ["day", "room"]}
        >>> TableRequest(folder="", name="my table.csv", **chosen).command("fit")
        "gyrostat fit 'my table.csv' --target y --environment site --drop day,room"
        """
        words = ["gyrostat", verb, self.name, "--target", self.target, "--environment", self.environment]
        words += ["--drop", ",".join(self.drop)] if self.drop else []
        words += ["--missing", self.missing] if self.missing != "error" else []
        words += ["--family", self.family] if self.family and verb == "fit" else []
        return shlex.join(words)

    @property
    def options(self) -> dict[str, Any]:
        """What both commands take."""
        shared = {"target": self.target, "environment": self.environment, "missing": self.missing}
        return {**shared, "drop": ",".join(self.drop)}


class QuietConsole(Console):
    """A console that keeps the sentences that are printed on it, and shows nothing."""

    def __init__(self) -> None:
        super().__init__(file=io.StringIO())
        self.sentences: list[str] = []

    def print(self, *objects: Any, **options: Any) -> None:
        self.sentences += [text for text in objects if isinstance(text, str)]


def describe_columns(folder: str, name: str) -> dict[str, Any]:
    """The columns of a table, with a guess at the environment (a column of words, few of them different) and the target.

    >>> describe_columns(".", "example:sites")["environment"]
    'site'
    """
    with chdir(folder):
        frame = read_table(Path(name))
    words = [column for column in frame if not pd.api.types.is_numeric_dtype(frame[column])]
    several = [column for column in words if 2 <= frame[column].nunique() <= 50]
    numbers = [column for column in frame if column not in words]
    environment = max(several, key=lambda column: frame[column].nunique(), default=frame.columns[-1])
    target = numbers[-1] if numbers else frame.columns[-1]
    columns = list(frame.columns)
    return {"kind": "columns", "columns": columns, "rows": len(frame), "environment": environment, "target": target}


def fit_table(asked: TableRequest) -> dict[str, Any]:
    """What ``gyrostat fit`` finds, says and writes, as plain data."""
    console, family, out = QuietConsole(), asked.family or None, Path("fit-results")
    with chdir(asked.folder), _warnings_heard(console):  # in the folder, names are those that the user knows
        rows = _checked(asked)
        _, report = fit(Path(asked.name), out=out, console=console, family=family, **asked.options)
        model, page = ((out / name).read_text(encoding="utf-8") for name in (MODEL, "summary.html"))
    features = report.features
    return {
        "kind": "fit",
        "rows": rows,
        "environments": [str(label) for label in features.environment.values],
        "confidence": f"{features.attrs['confidence']:.0%}",
        "sentences": [text for text in console.sentences if str(out) not in text],
        "features": [_feature(report, j) for j in range(features.sizes["feature"])],
        "command": asked.command("fit"),
        "model": model,
        "page": page,
    }


def compare_table(asked: TableRequest) -> dict[str, Any]:
    """What ``gyrostat compare-methods`` finds and says, as plain data, the least mean error first."""
    console, out = QuietConsole(), Path("comparison-results")
    with chdir(asked.folder), _warnings_heard(console):
        _checked(asked)
        found = compare_on_table(Path(asked.name), out=out, console=console, **asked.options)
    table = found.table.sort_values("mean", kind="stable")
    return {
        "kind": "comparison",
        "headings": HEADINGS,
        "methods": [cells(str(name), row) for name, row in table.iterrows()],
        "ratios": {error: _ratios(table, error) for error in PANELS},
        "titles": PANELS,
        "farthest": FARTHEST,
        "sentences": [text for text in console.sentences if str(out) not in text],
        "command": asked.command("compare-methods"),
    }


def _ratios(table: pd.DataFrame, error: str) -> dict[str, list[float]]:
    return {end: table[f"{error}_ratio{end}"].clip(upper=FARTHEST).tolist() for end in ("", "_low", "_high")}


def _checked(asked: TableRequest) -> int:
    """The rows that a request is about; refuses what the page cannot do while someone waits."""
    if odd := next((name for name in asked.drop if "," in name), None):
        raise GyrostatError(f"column {odd!r} has a comma in its name and cannot be left out: give it another name.")
    frame = read_table(Path(asked.name))
    if len(frame) > MOST_ROWS:
        raise GyrostatError(f"the table has {len(frame)} rows; the page takes {MOST_ROWS}: use gyrostat fit.")
    drop = ",".join(asked.drop)
    rows = rows_of_table(frame, asked.target, asked.environment, "", drop, asked.missing)
    if rows.X.shape[1] > MOST_FEATURES:
        raise GyrostatError(
            f"the table has {rows.X.shape[1]} features; the page takes {MOST_FEATURES}: "
            "leave some out, or use gyrostat fit."
        )
    return len(rows)


@contextmanager
def _warnings_heard(console: QuietConsole) -> Iterator[None]:
    """Warnings belong on the page, not on the server's terminal."""
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        yield
    console.sentences[:0] = dict.fromkeys(str(warning.message) for warning in heard)


def _feature(report: HeterogeneityReport, j: int) -> dict[str, Any]:
    row = report.features.isel(feature=j)

    def numbers(name: str) -> list[float | None]:
        return [float(x) if np.isfinite(x) else None for x in row[name].values]

    return {
        "name": str(row.feature.item()),
        "verdict": str(row.verdict.item()),
        "reason": str(row.reason.item()),
        "mean_effect": compared(row)[0],
        "mean": row["mean"].item() if np.isfinite(row["mean"]) else None,
        "effect": numbers("effect"),
        "low": numbers("low"),
        "high": numbers("high"),
        "variation": percent(row.variation.item()),
        "differ_p": shown_p(row.differ_p.item()),
    }
