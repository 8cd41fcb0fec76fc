"""Measurements in units in which one step size fits all, and which rank they ask for."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from gyrostat.estimators.low_rank.factored import Responses, SensedFactors, sensing_descent

CLOSE, TINY = 1.02, 1e-6
"""The smallest rank is taken whose validation error is within so much of the best, and this share of the data."""


class Ranked(NamedTuple):
    """The start of the last descent, its validation error, and those of all ranks."""

    F: np.ndarray
    G: np.ndarray
    error: float
    errors: np.ndarray


def ranked(data: Responses, held: np.ndarray, wide: SensedFactors, step_size: float) -> Ranked:
    """Every rank up to the width, refined without the measurements held out and judged on them."""
    train, test = data.take(~held), data.take(held)
    U, s, Vt = np.linalg.svd(wide.F @ wide.G.T, full_matrices=False)
    tried = []
    for rank in range(1, min(wide.F.shape[1], len(s)) + 1):
        root = np.sqrt(np.maximum(s[:rank], 1e-12 * s[0]))
        F, G = U[:, :rank] * root, Vt[:rank].T * root
        found = sensing_descent(train, F, G, solver="prec", step_size=min(step_size, 0.5), limit=100, tolerance=1e-9)
        wrong = test.residual(found.F, found.G) if held.any() else train.residual(found.F, found.G)
        tried.append((float(np.sqrt(np.mean(wrong**2))), found.F, found.G))
    errors = np.array([error for error, *_ in tried])
    errors[~np.isfinite(errors)] = np.inf
    chosen = int(np.argmax(errors <= CLOSE * errors.min() + TINY))
    return Ranked(*tried[chosen][1:], float(errors[chosen]), errors)


class Scaled:
    """An operator times a number."""

    def __init__(self, inner: Any, unit: float):
        self.inner, self.unit, self.shape = inner, unit, inner.shape

    def see(self, F: np.ndarray, G: np.ndarray) -> np.ndarray:
        """The inner one's, times the number."""
        return self.unit * self.inner.see(F, G)

    def gradient(self, e: np.ndarray) -> Any:
        """Likewise."""
        return self.inner.gradient(self.unit * e)

    def jacobian(self, F: np.ndarray, G: np.ndarray) -> np.ndarray:
        """Likewise."""
        return self.unit * self.inner.jacobian(F, G)

    def take(self, chosen: np.ndarray) -> Scaled:
        """Some of the measurements."""
        return Scaled(self.inner.take(chosen), self.unit)


def strength(data: Responses, random: np.random.RandomState) -> float:
    """The largest singular value of ``sum_i w_i y_i X_i``, by power iteration."""
    # The left vector is drawn although it is not needed, so that all later random numbers stay the same.
    _, v = (random.standard_normal((n, 1)) for n in data.operator.shape)
    M, size = data.operator.gradient(data.weights * data.centre(data.y)), 0.0
    for _ in range(30):
        u = M @ v
        u = u / (np.linalg.norm(u) or 1.0)
        v = M.mT @ u
        size = float(np.linalg.norm(v))
        v = v / (size or 1.0)
    return size
