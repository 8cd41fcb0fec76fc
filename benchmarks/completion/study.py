"""The main comparison: ours and the peers on the same draws of a table, errors at missing cells and CPU seconds."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from benchmarks.completion.peers import PEERS, Peer, tuned
from benchmarks.completion.problems import HiddenCells

OURS = "ours"
EXACT = 1e-5
"""Smaller errors count as this: once a matrix is found, the last digits do not matter."""
FOUND, CELLS = 1e-4, 0.99
"""A matrix is found if this share of its missing cells (``CELLS``) is right to this share of their root mean square
(``FOUND``). Not all cells: single rows may have too few cells to be determined."""


@dataclass(frozen=True)
class CompletionRow:
    """A kind of table: for every method the errors and CPU seconds of all draws, and how many matrices it found."""

    name: str
    shape: tuple[int, int]
    observed: int
    rank: int | None
    methods: dict[str, dict[str, Any]]

    def as_dict(self) -> dict[str, Any]:
        """The row in the form in which a record carries it."""
        return dataclasses.asdict(self)

    @property
    def draws(self) -> int:
        """The number of tables."""
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
        return [name for name, entry in self.methods.items() if name != OURS and not entry["knows_rank"]]

    @property
    def won(self) -> int:
        """Draws on which no rival has less error than ours."""
        errors = [self.methods[name]["errors"] for name in (OURS, *self.rivals)]
        return int(np.sum(np.array(errors[0]) <= np.min(errors, axis=0)))


def compared(problems: Sequence[HiddenCells], peers: Sequence[str]) -> tuple[CompletionRow, list[str]]:
    """All methods on all draws, and a sentence for each method that is left out."""
    first = problems[0]
    predictions: dict[str, Callable[[HiddenCells], np.ndarray]] = {OURS: ours}
    notes = []
    for name in peers:
        if reason := _left_out(PEERS[name], first):
            notes.append(f"completion: {name} is left out {reason}.")
        else:
            predictions[name] = partial(tuned, PEERS[name])
    methods = {
        name: {**_judged(predict, problems), "knows_rank": name != OURS and PEERS[name].knows_rank}
        for name, predict in predictions.items()
    }
    shape = (int(first.seen.shape[0]), int(first.seen.shape[1]))
    return CompletionRow(first.name, shape, len(first.seen), first.rank, methods), notes


def ours(problem: HiddenCells) -> np.ndarray:
    """Our predictions of the test cells: default options, with the same validation cells as the peers."""
    from scipy import sparse

    from gyrostat.estimators import LowRankImputer

    seen, valid, test = problem.seen, problem.valid, problem.test
    X = sparse.coo_matrix((seen.values, (seen.rows, seen.columns)), shape=seen.shape)
    model = LowRankImputer(validation=(valid.rows, valid.columns), random_state=0).fit(X)
    return model.predict(test.rows, test.columns)


def is_found(problem: HiddenCells, predicted: np.ndarray) -> bool:
    """Whether nearly all missing cells are right (see ``FOUND``, ``CELLS``)."""
    return bool(np.mean(np.abs(predicted - problem.test.values) < FOUND * problem.scale) >= CELLS)


def _judged(predict: Callable[[HiddenCells], np.ndarray], problems: Sequence[HiddenCells]) -> dict[str, Any]:
    entry: dict[str, Any] = {"errors": [], "seconds": [], "found": 0}
    for problem in problems:
        start = time.process_time()
        predicted = predict(problem)
        entry["seconds"].append(time.process_time() - start)
        wrong = float(np.sqrt(np.mean((predicted - problem.test.values) ** 2))) / problem.scale
        entry["errors"].append(max(wrong, EXACT) if np.isfinite(wrong) else 1e6)
        entry["found"] += is_found(problem, predicted)
    return entry


def _left_out(peer: Peer, problem: HiddenCells) -> str:
    if not peer.available():
        return f"as {peer.package} is not installed; pip install 'gyrostat[bench]'"
    if peer.knows_rank and problem.rank is None:
        return "where there is no true rank to tell it"
    cells = problem.seen.shape[0] * problem.seen.shape[1]
    return f"above {peer.most_cells:g} cells, where it takes minutes" if cells > peer.most_cells else ""
