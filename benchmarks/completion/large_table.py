"""The suite ``completion-large``: memory and time of one large table. It takes minutes and runs only when it is named."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from benchmarks.measuring import extra_memory
from benchmarks.records import BenchmarkRecord, GroupResult, Report, run_groups


class LargeTableSizes(NamedTuple):
    """The table: rows, columns, observed cells, rank, and noise as a share of the signal."""

    rows: int = 100_000
    columns: int = 20_000
    cells: int = 10_000_000
    rank: int = 10
    noise: float = 0.16


def run(say: Callable[[str], Any], sizes: LargeTableSizes = LargeTableSizes()) -> Report:  # noqa: B008  (immutable)
    """Every record of the suite."""
    return run_groups([(f"{sizes.rows} x {sizes.columns}", fitted)], sizes, say)


def fitted(sizes: LargeTableSizes) -> GroupResult:
    """One fit with default options: CPU seconds, megabytes beyond the table, and the error."""
    from scipy import sparse

    from gyrostat.estimators import LowRankImputer

    n, m, count, r, noise = sizes
    rng = np.random.default_rng(0)
    F, G = rng.standard_normal((n, r)), rng.standard_normal((m, r)) / np.sqrt(r)
    observed = np.unique(rng.integers(0, n * m, count))
    i, j = np.divmod(observed, m)
    signal = np.einsum("ek,ek->e", F[i], G[j])
    X = sparse.csr_matrix((signal + noise * rng.standard_normal(len(i)), (i, j)), shape=(n, m))
    del observed, i, j, signal
    model = LowRankImputer(random_state=0)
    times: list[float] = []

    def work() -> None:
        start = time.process_time(), time.perf_counter()
        model.fit(X)
        times.extend((time.process_time() - start[0], time.perf_counter() - start[1]))

    more, highest = extra_memory(work)
    i, j = rng.integers(0, n, 100_000), rng.integers(0, m, 100_000)
    truth = np.einsum("ek,ek->e", F[i], G[j])
    wrong = float(np.sqrt(np.mean((model.predict(i, j) - truth) ** 2) / np.mean(truth**2)))
    settings = {
        **sizes._asdict(),
        "rank_found": int(model.rank_),
        "error": wrong,
        "wall_seconds": times[1],
        "peak_megabytes": highest,
        "path": [[float(x) for x in stage] for stage in model.path_],
    }
    return [
        BenchmarkRecord("completion/large-seconds", times[0], "CPU seconds", settings=settings),
        BenchmarkRecord("completion/large-memory", more, "MB beyond the table", settings={"peak_megabytes": highest}),
        BenchmarkRecord("completion/large-error", wrong, "error at missing cells over their root mean square"),
    ], []
