"""What every compared method takes and gives: rows by environment, their squared losses, and a linear predictor."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy import optimize

from gyrostat.errors import GyrostatError

Environment = tuple[np.ndarray, np.ndarray]
"""Rows ``X`` and responses ``y`` of one environment."""


class LinearPredictor(NamedTuple):
    """A fitted linear predictor ``X @ coef + intercept``, and the status that its method reports."""

    coef: np.ndarray
    intercept: float
    status: str = ""

    def __call__(self, X: np.ndarray) -> np.ndarray:
        return X @ self.coef + self.intercept


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
        """The losses of these environments; the first weight is the intercept."""
        moments = []
        for X, y in environments:
            Z = np.column_stack([np.ones(len(X)), X])
            moments.append((Z.T @ Z / len(y), Z.T @ y / len(y), y @ y / len(y), len(y)))
        return cls(*(np.array(x) for x in zip(*moments, strict=True)))

    def values(self, w: np.ndarray) -> np.ndarray:
        """Every ``R_e(w)``."""
        return self.energies - 2 * self.crosses @ w + (self.grams @ w) @ w

    def gradients(self, w: np.ndarray) -> np.ndarray:
        """Every gradient of ``R_e``, a row each."""
        return 2 * (self.grams @ w - self.crosses)

    def least(self, weights: np.ndarray, ridge: float = 0.0) -> np.ndarray:
        """The minimum of the weighted losses plus ``ridge |w|^2`` (without the intercept); the shortest if there are many."""
        gram = np.tensordot(weights, self.grams, axes=1)
        penalty = np.diag(np.append(0.0, np.full(len(gram) - 1, ridge)))
        return np.linalg.lstsq(gram + penalty, weights @ self.crosses, rcond=1e-12)[0]

    def least_worst(self) -> np.ndarray:
        """The exact minimum of ``max_e R_e(w)``.

        Losses are convex, so it is ``max over weights q of min over w of sum q_e R_e(w)``: concave in q, with gradient ``R_e``.
        """
        E = len(self.counts)

        def dual(q: np.ndarray) -> tuple[float, np.ndarray]:
            values = self.values(self.least(q))
            return -float(q @ values), -values

        minimum = optimize.minimize(
            dual,
            np.full(E, 1 / E),
            jac=True,
            method="SLSQP",
            bounds=[(0, 1)] * E,
            constraints={"type": "eq", "fun": lambda q: q.sum() - 1, "jac": np.ones_like},
            options={"ftol": 1e-12},
        )
        return self.least(np.clip(minimum.x, 0, 1))

    def of_some(self, chosen: np.ndarray) -> Risks:
        """The losses of the chosen environments."""
        return Risks(*(x[chosen] for x in self))

    @property
    def shares(self) -> np.ndarray:
        """The share of rows of every environment: with these weights every row counts the same."""
        return self.counts / self.counts.sum()


def finite_predictions(values: np.ndarray, complete: np.ndarray | bool = True) -> np.ndarray:
    """The same predictions; refused if one of the complete rows has none because its numbers are too large.

    >>> finite_predictions(np.array([1.0, np.nan]), np.array([True, False])).tolist()
    [1.0, nan]
    """
    odd = np.flatnonzero(complete & ~np.isfinite(values))
    if len(odd):
        raise GyrostatError(
            f"X holds numbers that are too large: {len(odd)} predictions, the first in row {odd[0] + 1}, are not finite; check "
            "the units of its columns."
        )
    return values


def predictor(w: np.ndarray) -> LinearPredictor:
    """The predictor with these weights, the intercept first."""
    return LinearPredictor(w[1:], float(w[0]))
