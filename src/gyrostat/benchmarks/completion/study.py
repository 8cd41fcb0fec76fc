"""Ours and the peers on the same draws of a table: errors at missing cells and CPU seconds, tuning included."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from gyrostat.benchmarks.completion.peers import PEERS, Peer, tuned
from gyrostat.benchmarks.completion.tables import Hidden

OURS = "ours"
EXACT = 1e-5
"""Errors below count as this: a matrix that is found is found, whoever's last digits are better."""
FOUND, CELLS = 1e-4, 0.99
"""A matrix is found if so many of its missing cells are right, to so much of their root mean square. Not all: single rows may
have too few cells to be determined."""


@dataclass(frozen=True)
class Row:
    """A kind of table: for every method the errors and CPU seconds of all draws, and how many matrices it found."""

    name: str
    shape: tuple[int, int]
    observed: int
    rank: int | None
    methods: dict[str, dict[str, Any]]

    def as_dict(self) -> dict[str, Any]:
        """As it stands in a record."""
        return dataclasses.asdict(self)

    @property
    def draws(self) -> int:
        """How many tables."""
        return len(self.methods[OURS]["errors"])

    def error(self, method: str) -> float:
        """The median over draws."""
        return float(np.median(self.methods[method]["errors"]))

    def seconds(self, method: str) -> float:
        """The median over draws."""
        return float(np.median(self.methods[method]["seconds"]))

    @property
    def rivals(self) -> list[str]:
        """The peers that are not told the rank."""
        return [name for name, found in self.methods.items() if name != OURS and not found["knows_rank"]]

    @property
    def won(self) -> int:
        """Draws on which no rival has less error than ours."""
        errors = [self.methods[name]["errors"] for name in (OURS, *self.rivals)]
        return int(np.sum(np.array(errors[0]) <= np.min(errors, axis=0)))


def compared(problems: Sequence[Hidden], peers: Sequence[str]) -> tuple[Row, list[str]]:
    """All methods on all draws, and a sentence for each that is left out."""
    first = problems[0]
    takes, notes = {OURS: ours}, []
    for name in peers:
        if left := _left_out(PEERS[name], first):
            notes.append(f"completion: {name} is left out {left}.")
        else:
            takes[name] = partial(tuned, PEERS[name])
    methods = {
        name: {**_judged(predict, problems), "knows_rank": name != OURS and PEERS[name].knows_rank}
        for name, predict in takes.items()
    }
    shape = (int(first.seen.shape[0]), int(first.seen.shape[1]))
    return Row(first.name, shape, len(first.seen), first.rank, methods), notes


def ours(problem: Hidden) -> np.ndarray:
    """Our predictions of the test cells: default options, told the same validation cells as the peers."""
    from scipy import sparse

    from gyrostat.estimators import LowRankImputer

    seen, valid, test = problem.seen, problem.valid, problem.test
    X = sparse.coo_matrix((seen.values, (seen.rows, seen.columns)), shape=seen.shape)
    model = LowRankImputer(validation=(valid.rows, valid.columns), random_state=0).fit(X)
    return model.predict(test.rows, test.columns)


def is_found(problem: Hidden, predicted: np.ndarray) -> bool:
    """Whether nearly all missing cells are right."""
    return bool(np.mean(np.abs(predicted - problem.test.values) < FOUND * problem.scale) >= CELLS)


def _judged(predict: Callable[[Hidden], np.ndarray], problems: Sequence[Hidden]) -> dict[str, Any]:
    found: dict[str, Any] = {"errors": [], "seconds": [], "found": 0}
    for problem in problems:
        start = time.process_time()
        predicted = predict(problem)
        found["seconds"].append(time.process_time() - start)
        wrong = float(np.sqrt(np.mean((predicted - problem.test.values) ** 2))) / problem.scale
        found["errors"].append(max(wrong, EXACT) if np.isfinite(wrong) else 1e6)
        found["found"] += is_found(problem, predicted)
    return found


def _left_out(peer: Peer, problem: Hidden) -> str:
    if not peer.available():
        return f"as {peer.package} is not installed; pip install 'gyrostat[bench]'"
    if peer.knows_rank and problem.rank is None:
        return "where there is no true rank to tell it"
    cells = problem.seen.shape[0] * problem.seen.shape[1]
    return f"above {peer.most_cells:g} cells, where it takes minutes" if cells > peer.most_cells else ""
