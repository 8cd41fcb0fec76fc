"""Tables that users bring to the page: their columns, and how effects differ between environments."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from gyrostat.errors import GyrostatError
from gyrostat.estimators.invariant.diagnosis import heterogeneity, shown_p
from gyrostat.tables.fit_and_predict import rows_of_table
from gyrostat.tables.table_files import read_table

MOST_ROWS, MOST_FEATURES = 200_000, 60


def describe_columns(path: str) -> dict[str, Any]:
    """The columns of a table, with a guess at the environment (a column of words, few of them different) and the target.

    >>> describe_columns("example:sites")["environment"]
    'site'
    """
    frame = read_table(Path(path))
    words = [name for name in frame if not pd.api.types.is_numeric_dtype(frame[name])]
    several = [name for name in words if 2 <= frame[name].nunique() <= 50]
    numbers = [name for name in frame if name not in words]
    environment = max(several, key=lambda name: frame[name].nunique(), default=frame.columns[-1])
    target = numbers[-1] if numbers else frame.columns[-1]
    columns = list(frame.columns)
    return {"kind": "columns", "columns": columns, "rows": len(frame), "environment": environment, "target": target}


def diagnose_effects(path: str, target: str, environment: str, missing: str) -> dict[str, Any]:
    """:func:`gyrostat.heterogeneity` of a table as plain data."""
    frame = read_table(Path(path))
    if len(frame) > MOST_ROWS:
        raise GyrostatError(f"the table has {len(frame)} rows; the page takes {MOST_ROWS}: use gyrostat fit.")
    rows = rows_of_table(frame, target, environment, "", "", missing)
    if rows.X.shape[1] > MOST_FEATURES:
        raise GyrostatError(
            f"the table has {rows.X.shape[1]} features; the page takes {MOST_FEATURES}: use gyrostat fit."
        )
    with warnings.catch_warnings(record=True) as heard:  # they belong on the page, not on the server's terminal
        warnings.simplefilter("always")
        diagnosis = heterogeneity(rows.X, rows.y, rows.labels)
    return {
        "kind": "diagnosis",
        "rows": len(rows.y),
        "target": target,
        "environment": environment,
        "environments": diagnosis.features.environment.values.tolist(),
        "advice": [*(str(warning.message) for warning in heard), *diagnosis.advice],
        "features": [_feature(diagnosis.features.isel(feature=j)) for j in range(diagnosis.features.sizes["feature"])],
        "tolerance": diagnosis.features.attrs["tolerance"],
    }


def _feature(row: Any) -> dict[str, Any]:
    def numbers(name: str) -> list[float | None]:
        return [float(x) if np.isfinite(x) else None for x in row[name].values]

    share = row.variation.item()
    return {
        "name": str(row.feature.item()),
        "verdict": str(row.verdict.item()),
        "reason": str(row.reason.item()),
        "mean": row["mean"].item(),
        "effect": numbers("effect"),
        "low": numbers("low"),
        "high": numbers("high"),
        "variation": f"{share:.0%}" if share < 10 else "> 1000%",
        "differ_p": shown_p(row.differ_p.item()),
    }
