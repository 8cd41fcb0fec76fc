"""Squared losses of linear models in every environment, their minimum, and the minimum of the largest of them."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

Environment = tuple[np.ndarray, np.ndarray]
"""Rows ``X`` and responses ``y`` of one environment."""


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
        """The minimum of ``max_e R_e(w)``, the shortest if there are many; see :func:`least_largest`."""
        return least_largest(self)

    def of_some(self, chosen: np.ndarray) -> Risks:
        """The losses of the chosen environments."""
        return Risks(*(x[chosen] for x in self))

    @property
    def shares(self) -> np.ndarray:
        """The share of rows of every environment: with these weights every row counts the same."""
        return self.counts / self.counts.sum()


# --- the least error in the worst environment ------------------------------------------------------------------------------

PRECISION = 1e-9
"""How near the largest loss is to the least possible one, as a share of it."""
ROUNDING = 1e-13
"""The same, as a share of the largest mean square of responses: nearer than this, rounding decides."""
SHARPER = 4.0
"""The factor by which the barrier becomes sharper."""
MOST_STEPS = 1000
"""Newton steps for each sharpness; about ten are needed, and more with many environments: their number bounds them."""


class LeastLargestWarning(UserWarning):
    """The least error in the worst environment was not found to the usual precision."""


def least_largest(risks: Risks) -> np.ndarray:
    """The weights with the least largest loss, ``min t`` subject to ``R_e(w) <= t`` for all environments e.

    Newton's method with a logarithmic barrier, ``s t - sum_e log(t - R_e(w))``, for growing s. Its minimum is at most
    E / s above the least possible value, so that the end is known to be near (Boyd and Vandenberghe 2004, section 11.3).

    >>> risks = Risks.of([(np.zeros((2, 1)), np.array([y - 1.0, y + 1.0])) for y in (0.0, 1.0, 4.0)])
    >>> w = least_largest(risks)
    >>> w.round(6).tolist(), risks.values(w).round(6).tolist()
    ([2.0, 0.0], [5.0, 2.0, 5.0])
    """
    E, unit = len(risks.counts), np.sqrt(risks.energies.max())
    if unit == 0:
        return np.zeros(risks.crosses.shape[1])
    back = _to_mean_gram_one(risks.grams.mean(axis=0))
    inside = Risks(back.T @ risks.grams @ back, risks.crosses / unit @ back, risks.energies / unit / unit, risks.counts)
    w = inside.crosses.mean(axis=0)  # least squares with equal weights
    start = float(inside.values(w).max())
    if E == 1 or start <= ROUNDING:
        return unit * (back @ w)
    t, sharp = 1.5 * start, E / start
    while True:
        w, t, is_minimum = _barrier_minimum(inside, w, t, sharp)
        if not is_minimum or E / sharp <= max(PRECISION * t, ROUNDING):
            break
        sharp *= SHARPER
    if E / sharp > 1e-4 * t + 1e-9:
        warnings.warn(
            f"The least error in the worst environment was found only to {E / sharp / t:.1g} of itself: check the units of "
            "the features, and look for features that repeat each other.",
            LeastLargestWarning,
            stacklevel=3,
        )
    return unit * (back @ w)


def _to_mean_gram_one(gram: np.ndarray) -> np.ndarray:
    """The matrix to coordinates in which this mean of grams is the identity, without directions that change no loss."""
    diagonal = np.diagonal(gram)
    units = np.where(diagonal > 0, 1 / np.sqrt(np.where(diagonal > 0, diagonal, 1.0)), 0.0)
    values, vectors = np.linalg.eigh(gram * units * units[:, None])
    seen = values > 1e-12 * values[-1]
    return units[:, None] * vectors[:, seen] / np.sqrt(values[seen])


def _barrier_minimum(risks: Risks, w: np.ndarray, t: float, sharp: float) -> tuple[np.ndarray, float, bool]:
    """The minimum of the barrier function by Newton's method, from a point inside; and whether it was reached."""

    def barrier(w: np.ndarray, t: float) -> float:
        room = t - risks.values(w)
        return sharp * t - float(np.log(room).sum()) if room.min() > 0 else np.inf

    for _ in range(MOST_STEPS):
        room, slopes = t - risks.values(w), risks.gradients(w)
        gradient = np.append((slopes / room[:, None]).sum(axis=0), sharp - np.sum(1 / room))
        along = np.column_stack([slopes, np.full(len(room), -1.0)]) / room[:, None]
        hessian = along.T @ along
        hessian[:-1, :-1] += np.tensordot(2 / room, risks.grams, axes=1)
        unit = 1 / np.sqrt(np.diagonal(hessian))
        step = -unit * np.linalg.lstsq(hessian * unit * unit[:, None], unit * gradient, rcond=None)[0]
        decrease = -float(gradient @ step)
        if decrease < 1e-6:
            return w, t, True
        now, length = barrier(w, t), 1.0
        while barrier(w + length * step[:-1], t + length * step[-1]) > now - 0.1 * length * decrease:
            length /= 2
            if length < 1e-10:
                return w, t, decrease < 1e-2
        w, t = w + length * step[:-1], t + float(length * step[-1])
    return w, t, False
