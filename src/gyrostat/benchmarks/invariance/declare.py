"""What a simulation with a known answer is: its declaration, what it draws, and how far a fit is from the answer."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

Environment = tuple[np.ndarray, np.ndarray]
"""Rows ``X`` and responses ``y`` of one place."""


class Line(NamedTuple):
    """A fitted linear predictor ``X @ coef + intercept``, and what its method says of itself."""

    coef: np.ndarray
    intercept: float
    status: str = ""

    def __call__(self, X: np.ndarray) -> np.ndarray:
        return X @ self.coef + self.intercept


class Draw(NamedTuple):
    """One repetition: environments to learn from, environments to be tested in, the answer.

    Features are ``Z @ scramble``; ``truth`` are the coefficients of Z that hold everywhere (of a classifier: their
    direction), zero for all that is spurious.
    """

    train: list[Environment]
    tests: list[Environment]
    truth: np.ndarray
    scramble: np.ndarray


def distance(line: Line, draw: Draw) -> float:
    """``|beta - truth|^2``."""
    return float(np.sum((draw.scramble @ line.coef - draw.truth) ** 2))


def causal(line: Line, draw: Draw) -> float:
    """The mean squared error of the weights that are not zero in truth, in the coordinates before scrambling."""
    return float(np.mean((draw.scramble @ line.coef - draw.truth)[draw.truth != 0] ** 2))


def non_causal(line: Line, draw: Draw) -> float:
    """The mean squared weight of what has none in truth, in the coordinates before scrambling."""
    return float(np.mean((draw.scramble @ line.coef)[draw.truth == 0] ** 2))


def unseen(line: Line, draw: Draw) -> float:
    """The squared error of predictions in the test environments, each counted alike."""
    return float(np.mean([np.mean((y - line(X)) ** 2) for X, y in draw.tests]))


def wrong_class(line: Line, draw: Draw) -> float:
    """The share of test rows whose label, 1 or -1, has another sign than the prediction."""
    return float(np.mean([np.mean((line(X) > 0) != (y > 0)) for X, y in draw.tests]))


MEASURES: dict[str, Callable[[Line, Draw], float]] = {
    "coefficients": distance,
    "causal weights": causal,
    "non-causal weights": non_causal,
    "unseen environments": unseen,
    "wrong labels": wrong_class,
}
"""Name of an error -> its function."""


@dataclass(frozen=True)
class Simulation:
    """A setting with a known answer.

    ``solvable`` says beforehand whether our method is expected to find it; ``why`` explains the expectation, and stands in
    the page wherever we lose or tie.
    """

    name: str
    source: str
    text: str
    draw: Callable[[np.random.Generator, int], Draw]
    rows: int
    measures: tuple[str, ...]
    solvable: bool
    why: str


def random_rotation(rng: np.random.Generator, d: int) -> np.ndarray:
    """An orthogonal matrix from Haar's measure: QR with the signs of R taken out.

    >>> Q = random_rotation(np.random.default_rng(0), 3)
    >>> bool(np.allclose(Q @ Q.T, np.eye(3)))
    True
    """
    Q, R = np.linalg.qr(rng.standard_normal((d, d)))
    return Q * np.sign(np.diagonal(R))
