"""The environments that seeds draw, as NumPy arrays."""

from __future__ import annotations

import functools
from collections.abc import Hashable
from typing import Any, NamedTuple

import numpy as np

from gyrostat.engine.numpy_backend.cached_draws import environment_normals
from gyrostat.environments import RandomEnvironments
from gyrostat.models.symmetric_coordinates import svec


class DrawnEnvironments(NamedTuple):
    """The subspaces and the truth of several seeds.

    ``frame`` (seed, d, r1 + r2) holds bases of the invariant and then of the spurious subspace, ``transposed`` its transpose,
    ``invariant`` A_star (seed, d, d), ``values`` the r1 eigenvalues of A_star. Functions with an argument ``room`` write to
    it: allocating arrays of that size would take longer than computing their numbers.
    """

    frame: np.ndarray
    transposed: np.ndarray
    invariant: np.ndarray
    values: np.ndarray
    law: Any

    @property
    def rank(self) -> int:
        """r1."""
        return len(self.values)

    @property
    def mean(self) -> np.ndarray:
        """E Sigma."""
        if not self.law.is_finite:
            return float(self.law.centre) * np.eye(self.law.rank)
        return np.einsum("n,nij->ij", self.law.weights, self.law.values)

    @property
    def scatter(self) -> float:
        """E ||Sigma - E Sigma||_F^2."""
        if not self.law.is_finite:
            return self.law.rank * float(self.law.spread) ** 2 * _second_moment(self.law.__class__)
        gap = np.asarray(self.law.values) - self.mean
        return float(np.einsum("n,nij,nij->", self.law.weights, gap, gap))

    def half_target(self, sigma: np.ndarray, values: Any) -> np.ndarray:
        """``[U* diag(values), V* Sigma]``, which :meth:`target` completes; further axes of ``sigma`` come first."""
        r1, r = self.rank, self.frame.shape[2]
        corner = np.zeros((*sigma.shape[:-2], r, r), dtype=self.frame.dtype)
        corner[..., range(r1), range(r1)] = values
        corner[..., r1:, r1:] = sigma
        return self.frame @ corner

    def target(self, half: np.ndarray, room: np.ndarray) -> np.ndarray:
        """``U* diag(values) U*^T + V* Sigma V*^T``."""
        return np.matmul(half, self.transposed, out=room)

    def spurious_coordinates(self, A: np.ndarray) -> np.ndarray:
        """The isometric coordinates of ``V*^T A V*``."""
        return svec(self.transposed[:, self.rank :] @ (A @ self.frame[..., self.rank :]))


@functools.lru_cache
def _second_moment(kind: Hashable) -> float:
    """The second moment of a standard entry of a continuous law; its quadrature takes longer than a step."""
    z, weights = kind()._quadrature()  # type: ignore[operator]
    return float(weights @ z**2)


def drawn_environments(recipe: RandomEnvironments, first_seed: int, seeds: int, dtype: type) -> DrawnEnvironments:
    """The environments of seeds ``first_seed``, ..., as the recipe draws them."""
    d, r1, r2 = recipe.dimension, recipe.rank, recipe.law.rank
    stream = environment_normals(first_seed, d * (r1 + r2))[:seeds]
    Q, R = np.linalg.qr(stream.reshape(seeds, d, r1 + r2))
    basis = Q * np.where(np.diagonal(R, axis1=1, axis2=2) < 0, -1.0, 1.0)[:, None]
    U, W, shared, overlap = basis[..., :r1], basis[..., r1:], min(r1, r2), float(recipe.overlap)
    tilted = overlap * U[..., :shared] + np.sqrt(1 - overlap**2) * W[..., :shared]
    frame, values = np.concatenate([U, tilted, W[..., shared:]], axis=2), np.asarray(recipe.values)
    return DrawnEnvironments(
        frame=np.ascontiguousarray(frame, dtype=dtype),
        transposed=np.ascontiguousarray(frame.mT, dtype=dtype),
        invariant=np.ascontiguousarray((U * values) @ U.mT, dtype=dtype),
        values=values,
        law=recipe.law,
    )
