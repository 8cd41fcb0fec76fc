"""Squared losses of several environments as functions of one linear predictor: all that the written peers need."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from gyrostat.benchmarks.invariance.declare import Environment, Line


class Risks(NamedTuple):
    """``R_e(w) = mean (y - [1 X] w)^2 = energy - 2 cross . w + w . gram w`` of every environment e.

    >>> risks = Risks.of([(np.array([[0.0], [2.0]]), np.array([1.0, 3.0]))])
    >>> risks.values(np.array([1.0, 1.0])).tolist(), risks.values(np.zeros(2)).tolist()
    ([0.0], [5.0])
    """

    grams: np.ndarray
    crosses: np.ndarray
    energies: np.ndarray
    counts: np.ndarray

    @classmethod
    def of(cls, environments: Sequence[Environment]) -> Risks:
        """The losses of rows and responses; the first weight is the intercept."""
        found = []
        for X, y in environments:
            Z = np.column_stack([np.ones(len(X)), X])
            found.append((Z.T @ Z / len(y), Z.T @ y / len(y), y @ y / len(y), len(y)))
        return cls(*(np.array(x) for x in zip(*found, strict=True)))

    def values(self, w: np.ndarray) -> np.ndarray:
        """Every ``R_e(w)``."""
        return self.energies - 2 * self.crosses @ w + (self.grams @ w) @ w

    def gradients(self, w: np.ndarray) -> np.ndarray:
        """Every gradient of ``R_e``, a row each."""
        return 2 * (self.grams @ w - self.crosses)

    def least(self, weights: np.ndarray, ridge: float = 0.0) -> np.ndarray:
        """The minimum of the weighted sum of losses and of ``ridge |w|^2`` (free of the intercept); the shortest, if many."""
        gram = np.tensordot(weights, self.grams, axes=1)
        penalty = np.diag(np.append(0.0, np.full(len(gram) - 1, ridge)))
        return np.linalg.lstsq(gram + penalty, weights @ self.crosses, rcond=1e-12)[0]

    @property
    def shares(self) -> np.ndarray:
        """The share of rows of every environment: with these weights all rows count alike."""
        return self.counts / self.counts.sum()


def line(w: np.ndarray) -> Line:
    """The predictor with these weights, the intercept first."""
    return Line(w[1:], float(w[0]))
