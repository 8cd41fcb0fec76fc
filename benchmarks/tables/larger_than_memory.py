"""A fit of rows that are read in parts beside the same fit in memory: numbers, CPU seconds, and memory that is allocated."""

from __future__ import annotations

import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from gyrostat.estimators import InvariantLinearRegressor
from gyrostat.tables.table_files import read_table
from gyrostat.tables.table_parts import table_parts

ROW_GROUP = 50_000
"""Rows of a row group."""


class FitCost(NamedTuple):
    """Coefficients, CPU seconds with reading, and the most memory beyond that before the fit, in megabytes.

    Pages of files do not count: the system takes them back when it needs them.
    """

    coefficients: np.ndarray
    seconds: float
    megabytes: float


def write_rows(path: Path, rows: int, features: int, environments: int, seed: int = 0) -> None:
    """A Parquet file in which the effect of the first feature is the same everywhere and that of the second is not."""
    import pyarrow as pa
    from pyarrow import parquet

    rng = np.random.default_rng(seed)
    effects = rng.standard_normal(environments)
    names = [f"x{j}" for j in range(features)]
    schema = pa.schema([*((name, pa.float64()) for name in names), ("site", pa.string()), ("y", pa.float64())])
    with parquet.ParquetWriter(path, schema) as writer:
        for start in range(0, rows, ROW_GROUP):
            n = min(ROW_GROUP, rows - start)
            X, site = rng.standard_normal((n, features)), rng.integers(environments, size=n)
            y = X[:, 0] + effects[site] * X[:, 1] + rng.standard_normal(n)
            frame = pd.DataFrame(X, columns=names).assign(site=np.char.add("s", site.astype(str)), y=y)
            writer.write_table(pa.Table.from_pandas(frame, schema=schema, preserve_index=False))


def measured(fit: Callable[[], Any]) -> FitCost:
    """What a fit costs; it returns the estimator."""
    done, sizes = threading.Event(), [_own_megabytes()]

    def watch() -> None:
        while not done.wait(0.005):
            sizes.append(_own_megabytes())

    watcher, start = threading.Thread(target=watch), time.process_time()
    watcher.start()
    try:
        model = fit()
    finally:
        done.set()
        watcher.join()
    return FitCost(model.coef_, time.process_time() - start, max(sizes) - sizes[0])


def _own_megabytes() -> float:
    """The memory of this process without pages of files, which the system takes back when it needs them (Linux only)."""
    status = Path("/proc/self/status")
    lines = status.read_text().splitlines() if status.exists() else []
    return next((int(line.split()[1]) / 1024 for line in lines if line.startswith("RssAnon:")), float("nan"))


def in_memory(path: Path) -> InvariantLinearRegressor:
    """The fit of the whole table in memory."""
    frame = read_table(path)
    X = frame.drop(columns=["site", "y"])
    return InvariantLinearRegressor(random_state=0).fit(X, frame["y"], environments=frame["site"])


def in_parts(path: Path) -> InvariantLinearRegressor:
    """The fit of rows that are read in row groups."""
    return InvariantLinearRegressor(random_state=0).fit_parts(table_parts(path, target="y", environment="site"))


def both(rows: int, features: int, environments: int) -> tuple[FitCost, FitCost]:
    """The costs of both fits of one table."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.parquet"
        write_rows(path, rows, features, environments)
        parts = measured(lambda: in_parts(path))
        return measured(lambda: in_memory(path)), parts
