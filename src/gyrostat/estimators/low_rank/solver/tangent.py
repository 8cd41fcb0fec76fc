"""Least squares over the tangent space of matrices of some rank: the joint step of both factors.

    minimise over F, G   |P(F V^T + U G^T) - y|^2 + sum_j c_j (|f_j|^2 + |g_j|^2)

with orthonormal U and V, and P the observed entries. With c near zero it is a Gauss-Newton step; with the weights of
:mod:`gyrostat.estimators.low_rank.solver.reweighted` it is a step of iteratively reweighted least squares.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gyrostat.estimators.low_rank.solver.observed import Factors, Observed, balanced
from gyrostat.estimators.low_rank.solver.spectrum import top


class Point(NamedTuple):
    """A matrix ``U diag(s) V^T`` of low rank."""

    U: np.ndarray
    s: np.ndarray
    V: np.ndarray

    @property
    def factors(self) -> Factors:
        """The same matrix in two factors."""
        root = np.sqrt(self.s)
        return Factors(self.U * root, self.V * root)


class Step(NamedTuple):
    """``F V^T + U G^T`` and what it leaves of the observed values."""

    F: np.ndarray
    G: np.ndarray
    residual: np.ndarray


class Weights(NamedTuple):
    """Ridges of the step: ``outside[j]`` of what of F's and G's column j is orthogonal to U and V, ``inside`` of U^T F."""

    outside: np.ndarray
    inside: np.ndarray

    @classmethod
    def flat(cls, rank: int, size: float) -> Weights:
        """The same everywhere."""
        return cls(np.full(rank, size), np.full((rank, rank), size))

    def times(self, U: np.ndarray, F: np.ndarray) -> np.ndarray:
        """The ridge's gradient in F."""
        return self.outside * F + U @ ((self.inside - self.outside) * (U.T @ F))


def solve(seen: Observed, point: Point, weights: Weights, *, accuracy: float, limit: int) -> Step:
    """Preconditioned conjugate gradients from the point itself; the preconditioner is nearly exact in either factor alone.

    G is kept orthogonal to V: what is inside both is F's.
    """
    U, s, V = point
    c = weights.outside
    Ur, Vc = U[seen.rows], V[seen.columns]
    rows, columns = (_inverse(seen.grams(x, transposed=t), c) for x, t in ((V, False), (U, True)))

    def forward(F: np.ndarray, G: np.ndarray) -> np.ndarray:
        return np.einsum("ek,ek->e", F[seen.rows], Vc) + np.einsum("ek,ek->e", Ur, G[seen.columns])

    def outside(B: np.ndarray) -> np.ndarray:
        return B - V @ (V.T @ B)

    def descent(F: np.ndarray, G: np.ndarray, z: np.ndarray) -> tuple[np.ndarray, ...]:
        S.data[:], St.data[:] = z, z[seen.turned]
        A, B = S @ V - weights.times(U, F), outside(St @ U - c * G)
        return A, B, (rows @ A[:, :, None])[..., 0], outside((columns @ B[:, :, None])[..., 0])

    F, G = U * s, np.zeros_like(V)
    z = seen.values - forward(F, G)
    S, St = seen.matrix(z.copy()), seen.transposed(z)
    A, B, dF, dG = descent(F, G, z)
    first = energy = np.vdot(A, dF) + np.vdot(B, dG)
    for _ in range(limit):
        if energy <= accuracy**2 * first or energy == 0:
            break
        moved = forward(dF, dG)
        step = energy / (np.vdot(moved, moved) + np.vdot(dF, weights.times(U, dF)) + np.vdot(dG, c * dG))
        F, G, z = F + step * dF, G + step * dG, z - step * moved
        A, B, PA, PB = descent(F, G, z)
        before, energy = energy, np.vdot(A, PA) + np.vdot(B, PB)
        dF, dG = PA + energy / before * dF, PB + energy / before * dG
    return Step(F, G, z)


def _inverse(grams: np.ndarray, weights: np.ndarray) -> np.ndarray:
    k = np.arange(len(weights))
    # A row with fewer entries than components has a singular Gram matrix: a little of its size keeps the inverse finite.
    size = np.trace(grams, axis1=1, axis2=2)[:, None] / len(weights)
    grams[:, k, k] += weights + 1e-10 * size + np.finfo(float).tiny ** 0.5
    return np.linalg.inv(grams)


def retracted(point: Point, step: Step) -> Point:
    """The matrix of the point's rank nearest to that of the step."""
    k = len(point.s)
    factors, s = balanced(Factors(np.hstack([step.F, point.U]), np.hstack([point.V, step.G])))
    root = np.sqrt(np.maximum(s[:k], np.finfo(float).tiny))
    return Point(factors.left[:, :k] / root, s[:k], factors.right[:, :k] / root)


def leading(seen: Observed, point: Point, step: Step, count: int) -> Point:
    """The strongest components of ``F V^T + U G^T`` plus the residual at the observed entries."""
    (U, _, V), (F, G, z) = point, step
    S, St = seen.matrix(z), seen.transposed(z)

    def times(x: np.ndarray) -> np.ndarray:
        return S @ x + F @ (V.T @ x) + U @ (G.T @ x)

    def transposed(x: np.ndarray) -> np.ndarray:
        return St @ x + V @ (F.T @ x) + G @ (U.T @ x)

    return Point(*top(times, transposed, seen.shape, count, tolerance=1e-4))
