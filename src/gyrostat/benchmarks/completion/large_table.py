"""The suite ``completion-large``: memory and time of one large table. It takes minutes, and runs only when it is named."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from gyrostat.benchmarks.groups import Found, walk
from gyrostat.benchmarks.records import Record, Report
from gyrostat.benchmarks.speed.memory import extra

__all__ = ["panels", "run"]


class Sizes(NamedTuple):
    """The table: rows, columns, observed cells, rank, and noise as a share of the signal."""

    rows: int = 100_000
    columns: int = 20_000
    cells: int = 10_000_000
    rank: int = 10
    noise: float = 0.16


def run(say: Callable[[str], Any], sizes: Sizes = Sizes()) -> Report:  # noqa: B008  (immutable)
    """Both records of the suite."""
    return walk([(f"{sizes.rows} x {sizes.columns}", fitted)], sizes, say)


def panels(records: Sequence[Record]) -> list:
    """None: there is no curve."""
    return []


def fitted(sizes: Sizes) -> Found:
    """One fit with default options: CPU seconds, megabytes beyond the table, and how good it is."""
    from scipy import sparse

    from gyrostat.estimators import LowRankImputer

    n, m, count, r, noise = sizes
    rng = np.random.default_rng(0)
    F, G = rng.standard_normal((n, r)), rng.standard_normal((m, r)) / np.sqrt(r)
    places = np.unique(rng.integers(0, n * m, count))
    i, j = np.divmod(places, m)
    signal = np.einsum("ek,ek->e", F[i], G[j])
    X = sparse.csr_matrix((signal + noise * rng.standard_normal(len(i)), (i, j)), shape=(n, m))
    del places, i, j, signal
    model = LowRankImputer(random_state=0)
    times: list[float] = []

    def work() -> None:
        start = time.process_time(), time.perf_counter()
        model.fit(X)
        times.extend((time.process_time() - start[0], time.perf_counter() - start[1]))

    more, highest = extra(work)
    i, j = rng.integers(0, n, 100_000), rng.integers(0, m, 100_000)
    truth = np.einsum("ek,ek->e", F[i], G[j])
    wrong = float(np.sqrt(np.mean((model.predict(i, j) - truth) ** 2) / np.mean(truth**2)))
    told = {
        **sizes._asdict(),
        "rank_found": int(model.rank_),
        "error": wrong,
        "wall_seconds": times[1],
        "peak_megabytes": highest,
        "path": [[float(x) for x in stage] for stage in model.path_],
    }
    return [
        Record("completion/large-seconds", times[0], "CPU seconds", settings=told),
        Record("completion/large-memory", more, "MB beyond the table", settings={"peak_megabytes": highest}),
        Record("completion/large-error", wrong, "error at missing cells over their root mean square"),
    ], []
