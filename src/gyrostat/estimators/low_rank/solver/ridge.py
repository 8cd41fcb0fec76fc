"""Completion with the representation cost of a deep linear network as the ridge, along a path of ridges.

The cost of depth L of a matrix with singular values s is ``sum_i s_i^(2/L)`` (times L/2), a Schatten penalty. In the
balanced basis ``F = U sqrt(s)``, ``G = V sqrt(s)`` it is majorised by ``sum_i w_i (|f_i|^2 + |g_i|^2) / 2`` with
``w_i = lambda (2/L) s_i^(2/L - 1)``, so that rows of F and of G are ridge regressions in turns.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gyrostat.estimators.low_rank.solver.observed import Factors, Observed, balanced
from gyrostat.estimators.low_rank.solver.spectrum import strongest


class Ridge(NamedTuple):
    """``(1/2) sum over entries (A_ij - y_ij)^2 + strength * sum_i s_i^(2 / depth)``."""

    strength: float
    depth: float = 3.0

    @property
    def power(self) -> float:
        """q = 2 / L."""
        return 2 / self.depth

    def weights(self, singular_values: np.ndarray) -> np.ndarray:
        """The ridge of every component."""
        q = self.power
        return self.strength * q * np.maximum(singular_values, np.finfo(float).tiny) ** (q - 1)

    def fold(self, curvature: float) -> tuple[float, float]:
        """Where ``curvature (s - t)^2 / 2 + strength s^q`` loses its minimum at s > 0: that s, and that t.

        >>> Ridge(1.0, depth=2.0).fold(1.0)
        (0.0, 1.0)
        """
        q, lam = self.power, self.strength / curvature
        s = (lam * q * (1 - q)) ** (1 / (2 - q))
        return s, s + lam * q * (s ** (q - 1) if s > 0 else 1.0)


def largest(seen: Observed, depth: float) -> float:
    """The ridge at which the strongest component of the entries is at its fold: no component is worth its cost above."""
    if not seen.values.any():
        return 1.0
    top = strongest(seen, seen.values, 1)[1][0]
    # fold(strength) grows as strength^(1 / (2 - q)), so that one value gives all
    _, at_one = Ridge(1.0, depth).fold(seen.share)
    return float((top / seen.share / at_one) ** (2 - 2 / depth))


def sweep(seen: Observed, factors: Factors, ridge: Ridge) -> tuple[Factors, np.ndarray]:
    """Both factors once, by ridge regressions, and their singular values; components below the fold are dropped."""
    factors, s = balanced(factors)
    w = ridge.weights(s)
    F = solved(seen, factors.right, w, transposed=False)
    G = solved(seen, F, w, transposed=True)
    factors, s = balanced(Factors(F, G))
    kept = s > max(0.3 * ridge.fold(seen.share)[0], 1e-9 * s[0]) if s.size else slice(None)
    return Factors(factors.left[:, kept], factors.right[:, kept]), s[kept]


def solved(seen: Observed, factor: np.ndarray, weights: np.ndarray, *, transposed: bool) -> np.ndarray:
    """One factor by ridge regressions on the other: the rows' (the columns', if ``transposed``)."""
    if factor.shape[1] == 0:
        return np.zeros((seen.shape[int(transposed)], 0))
    k = np.arange(len(weights))
    found = (seen.transposed(seen.values) if transposed else seen.matrix(seen.values)) @ factor
    for rows in seen.blocks(len(k), transposed=transposed):
        grams = seen.grams(factor, transposed=transposed, rows=rows)
        grams[:, k, k] += weights
        found[rows] = np.linalg.solve(grams, found[rows, :, None])[..., 0]
    return found


def residual(seen: Observed, factors: Factors) -> np.ndarray:
    """What the factors leave of the observed values."""
    return seen.values - factors.at(seen.rows, seen.columns)


def grown(seen: Observed, factors: Factors, ridge: Ridge, most: int, at_once: int = 4) -> Factors:
    """With the strongest components of the residual that are worth their cost, at most ``at_once`` and ``most`` in all."""
    room = min(at_once, most - factors.rank)
    left = residual(seen, factors)
    if room <= 0 or not left.any():
        return factors
    U, s, V = strongest(seen, left, room)
    s = s / seen.share
    new = s > ridge.fold(seen.share)[1]
    root = np.sqrt(s[new])
    return Factors(np.hstack([factors.left, U[:, new] * root]), np.hstack([factors.right, V[:, new] * root]))
