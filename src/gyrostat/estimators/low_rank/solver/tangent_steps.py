"""Least squares over the tangent space of matrices of fixed rank: a joint step of both factors.

    minimise over F, G   |P(F V^T + U G^T) - y|^2 + sum_j c_j (|f_j|^2 + |g_j|^2)

with orthonormal U and V, where P picks the observed entries. With c near zero this is a Gauss-Newton step; with the weights
of :func:`gyrostat.estimators.low_rank.solver.exact_fit.fit_of_rank` it is a step of iteratively reweighted least squares.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gyrostat.estimators.low_rank.solver.observed_entries import Factors, ObservedEntries, balanced, truncated_svd


class ThinSVD(NamedTuple):
    """A matrix ``U diag(s) V^T`` of low rank."""

    U: np.ndarray
    s: np.ndarray
    V: np.ndarray

    @property
    def factors(self) -> Factors:
        """The same matrix as two factors."""
        root = np.sqrt(self.s)
        return Factors(self.U * root, self.V * root)

    def first(self, rank: int) -> ThinSVD:
        """The ``rank`` largest components."""
        return ThinSVD(self.U[:, :rank], self.s[:rank], self.V[:, :rank])


class TangentStep(NamedTuple):
    """``F V^T + U G^T``, and the observed values minus those of this matrix."""

    F: np.ndarray
    G: np.ndarray
    residual: np.ndarray


class TangentRidge(NamedTuple):
    """Ridge weights of a step.

    ``outside[j]`` weighs the part of column j of F and G that is orthogonal to U and V; ``inside`` weighs ``U^T F``.
    """

    outside: np.ndarray
    inside: np.ndarray

    @classmethod
    def constant(cls, rank: int, weight: float) -> TangentRidge:
        """The same weight everywhere."""
        return cls(np.full(rank, weight), np.full((rank, rank), weight))

    def gradient(self, U: np.ndarray, F: np.ndarray) -> np.ndarray:
        """Half the gradient of the ridge with respect to F."""
        return self.outside * F + U @ ((self.inside - self.outside) * (U.T @ F))


def tangent_step(
    entries: ObservedEntries, point: ThinSVD, ridge: TangentRidge, *, accuracy: float, limit: int
) -> TangentStep:
    """Solve the least-squares problem by preconditioned conjugate gradients, starting from the point itself.

    The preconditioner is nearly exact for either factor alone. G is kept orthogonal to V, so that the part inside both
    spaces belongs to F.
    """
    U, s, V = point
    c = ridge.outside
    U_rows, V_columns = U[entries.rows], V[entries.columns]
    inverse_of_F, inverse_of_G = (_inverse(entries.grams(x, transposed=t), c) for x, t in ((V, False), (U, True)))

    def forward(F: np.ndarray, G: np.ndarray) -> np.ndarray:
        return np.einsum("ek,ek->e", F[entries.rows], V_columns) + np.einsum("ek,ek->e", U_rows, G[entries.columns])

    def outside(B: np.ndarray) -> np.ndarray:
        return B - V @ (V.T @ B)

    def descent(F: np.ndarray, G: np.ndarray, z: np.ndarray) -> tuple[np.ndarray, ...]:
        S.data[:], St.data[:] = z, z[entries.column_order]
        A, B = S @ V - ridge.gradient(U, F), outside(St @ U - c * G)
        return A, B, (inverse_of_F @ A[:, :, None])[..., 0], outside((inverse_of_G @ B[:, :, None])[..., 0])

    F, G = U * s, np.zeros_like(V)
    z = entries.values - forward(F, G)
    S, St = entries.matrix(z.copy()), entries.transposed(z)
    A, B, dF, dG = descent(F, G, z)
    first = energy = np.vdot(A, dF) + np.vdot(B, dG)
    for _ in range(limit):
        if energy <= accuracy**2 * first or energy == 0:
            break
        moved = forward(dF, dG)
        step = energy / (np.vdot(moved, moved) + np.vdot(dF, ridge.gradient(U, dF)) + np.vdot(dG, c * dG))
        F, G, z = F + step * dF, G + step * dG, z - step * moved
        A, B, PA, PB = descent(F, G, z)
        before, energy = energy, np.vdot(A, PA) + np.vdot(B, PB)
        dF, dG = PA + energy / before * dF, PB + energy / before * dG
    return TangentStep(F, G, z)


def _inverse(grams: np.ndarray, weights: np.ndarray) -> np.ndarray:
    k = np.arange(len(weights))
    # A row with fewer entries than components has a singular Gram matrix. A small multiple of its size keeps the inverse
    # finite.
    size = np.trace(grams, axis1=1, axis2=2)[:, None] / len(weights)
    grams[:, k, k] += weights + 1e-10 * size + np.finfo(float).tiny ** 0.5
    return np.linalg.inv(grams)


def retracted(point: ThinSVD, step: TangentStep) -> ThinSVD:
    """The matrix of the point's rank that is nearest to the matrix of the step."""
    k = len(point.s)
    factors, s = balanced(Factors(np.hstack([step.F, point.U]), np.hstack([point.V, step.G])))
    root = np.sqrt(np.maximum(s[:k], np.finfo(float).tiny))
    return ThinSVD(factors.left[:, :k] / root, s[:k], factors.right[:, :k] / root)


def largest_components(entries: ObservedEntries, point: ThinSVD, step: TangentStep, count: int) -> ThinSVD:
    """The largest components of ``F V^T + U G^T`` plus the residual at the observed entries."""
    (U, _, V), (F, G, z) = point, step
    S, St = entries.matrix(z), entries.transposed(z)

    def times(x: np.ndarray) -> np.ndarray:
        return S @ x + F @ (V.T @ x) + U @ (G.T @ x)

    def times_transpose(x: np.ndarray) -> np.ndarray:
        return St @ x + V @ (F.T @ x) + G @ (U.T @ x)

    return ThinSVD(*truncated_svd(times, times_transpose, entries.shape, count, tolerance=1e-4))
