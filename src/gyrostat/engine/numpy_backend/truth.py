"""The drawn truth of some seeds as NumPy arrays."""

from __future__ import annotations

import functools
from collections.abc import Hashable
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np

from gyrostat.engine.numpy_backend import draws
from gyrostat.engine.numpy_backend.noise import SHELF
from gyrostat.environments import RandomEnvironments
from gyrostat.jax_tools.float64 import double
from gyrostat.models.symmetric_coordinates import svec


class Truth(NamedTuple):
    """Bases ``frame`` (seed, d, r1 + r2) of the invariant and then the spurious subspace, transposed, and A_star (seed, d, d).

    What is given ``room`` writes there: new arrays of that size would cost more than the numbers in them.
    """

    frame: np.ndarray
    across: np.ndarray
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

    def half(self, sigma: np.ndarray, values: Any) -> np.ndarray:
        """``[U* diag(values), V* Sigma]``, of which :meth:`whole` makes a matrix; further axes of ``sigma`` come first."""
        r1, r = self.rank, self.frame.shape[2]
        corner = np.zeros((*sigma.shape[:-2], r, r), dtype=self.frame.dtype)
        corner[..., range(r1), range(r1)] = values
        corner[..., r1:, r1:] = sigma
        return self.frame @ corner

    def whole(self, half: np.ndarray, room: np.ndarray) -> np.ndarray:
        """``U* diag(values) U*^T + V* Sigma V*^T``."""
        return np.matmul(half, self.across, out=room)

    def inside(self, A: np.ndarray) -> np.ndarray:
        """The coordinates of ``V*^T A V*``."""
        return svec(self.across[:, self.rank :] @ (A @ self.frame[..., self.rank :]))


@functools.lru_cache
def _second_moment(kind: Hashable) -> float:
    """That of a standard entry of a continuous law, whose quadrature takes longer than a step."""
    z, weights = kind()._quadrature()  # type: ignore[operator]
    return float(weights @ z**2)


def truth(recipe: RandomEnvironments, first: int, seeds: int, dtype: type) -> Truth:
    """The truth of seeds ``first`` ..., as the recipe draws it."""
    d, r1, r2 = recipe.dimension, recipe.rank, recipe.law.rank
    stream = SHELF.keep(("frames", first, d * (r1 + r2)), lambda: _stream(first, d * (r1 + r2)))[:seeds]
    Q, R = np.linalg.qr(stream.reshape(seeds, d, r1 + r2))
    basis = Q * np.where(np.diagonal(R, axis1=1, axis2=2) < 0, -1.0, 1.0)[:, None]
    U, W, shared, overlap = basis[..., :r1], basis[..., r1:], min(r1, r2), float(recipe.overlap)
    tilted = overlap * U[..., :shared] + np.sqrt(1 - overlap**2) * W[..., :shared]
    frame, values = np.concatenate([U, tilted, W[..., shared:]], axis=2), np.asarray(recipe.values)
    made = (frame, frame.swapaxes(1, 2), (U * values) @ U.swapaxes(1, 2))
    arrays: list[np.ndarray] = [np.ascontiguousarray(x, dtype=dtype) for x in made]
    return Truth(arrays[0], arrays[1], arrays[2], values, recipe.law)


def _stream(first: int, count: int) -> np.ndarray:
    with double():
        drawing, _ = draws.run_keys(jnp.asarray(first))
        pieces = [draws.normals(drawing, jnp.asarray(at)) for at in range(0, count, draws.PIECE)]
        return np.concatenate([np.asarray(piece) for piece in pieces], axis=1)[:, :count]
