"""The gradient of one step for some seeds side by side: ``G = weight * residual + size * noise (+ a few directions)``.

These are the formulas of :mod:`gyrostat.measurements.fresh_gaussian`, of which the docstring says why they are exact in law.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

import numpy as np
from scipy.linalg import blas

from gyrostat.engine.numpy_backend.truth import Truth
from gyrostat.models.symmetric_coordinates import diagonal, dimension_of, smat


class Reading(Protocol):
    """Turns products A (seed, d, d) into ``rate`` times their gradients, in place, at step ``t`` of the current block.

    ``room`` is of the same shape: what is written there is not kept. New arrays of this size would cost more than the step.
    """

    def __call__(self, A: np.ndarray, room: np.ndarray, t: int, rate: float) -> None: ...


def flat(X: np.ndarray) -> np.ndarray:
    """Matrices as rows."""
    return X.reshape(len(X), -1)


def combine(X: np.ndarray, a: np.ndarray, W: np.ndarray, b: np.ndarray) -> None:
    """``x <- a x + b w`` for rows x and w, with a number of each for every row."""
    scale, add = (blas.dscal, blas.daxpy) if X.dtype == np.float64 else (blas.sscal, blas.saxpy)
    for x, w, p, q in zip(X, W, a.tolist(), b.tolist(), strict=True):
        scale(p, x)
        add(w, x, a=q)


class Population(NamedTuple):
    """Infinitely many measurements of one target per step: ``halves`` (step, seed, d, r) are those of :meth:`Truth.half`."""

    truth: Truth
    halves: np.ndarray

    def __call__(self, A: np.ndarray, room: np.ndarray, t: int, rate: float) -> None:
        A -= self.truth.whole(self.halves[t], room)
        A *= A.dtype.type(rate)


class Single(NamedTuple):
    """Batches that come from one environment each; with more voices, their sum with the given shares.

    ``halves`` is (step, voice, seed, d, r), ``shares`` and ``squares`` are (step, voice, seed), ``noise`` is
    (step, voice, seed, d, d).
    """

    truth: Truth
    halves: np.ndarray
    shares: np.ndarray
    squares: np.ndarray
    noise: np.ndarray
    samples: float

    def __call__(self, A: np.ndarray, room: np.ndarray, t: int, rate: float) -> None:
        if self.shares.shape[1] == 1:
            self._read(A, room, t, 0, rate)
            return
        product = A.copy()
        A[:] = 0.0
        for k in range(self.shares.shape[1]):
            M = product.copy()
            self._read(M, room, t, k, rate)
            A += M

    def _read(self, M: np.ndarray, room: np.ndarray, t: int, k: int, rate: float) -> None:
        M -= self.truth.whole(self.halves[t, k], room)
        x, w, chi2 = flat(M), flat(self.noise[t, k]), self.squares[t, k]
        # Without label noise the span is the residual's own direction, and no normal number is needed in it.
        norm, share = np.sqrt(np.vecdot(x, x)), rate / self.samples * self.shares[t, k]
        across, chi = np.vecdot(x, w) / np.where(norm > 0, norm, 1.0), np.sqrt(chi2)
        combine(x, share * (chi2 - chi * across), w, share * chi * norm)


class Mixed(NamedTuple):
    """Batches in which every sample has an environment of its own; ``span`` gives the law of their part in the span.

    ``seen`` is the noise in the coordinates of the spurious directions (step, seed, s), ``known`` is A_star there (seed, s).
    """

    truth: Truth
    span: Any
    noise: np.ndarray
    seen: np.ndarray
    known: np.ndarray
    samples: float

    def __call__(self, A: np.ndarray, room: np.ndarray, t: int, rate: float) -> None:
        of, share = self.truth, rate / self.samples
        inside = of.inside(A) - self.known
        A -= of.whole(of.half(smat(inside), of.values), room)
        x, w = flat(A), flat(self.noise[t])
        norm = np.sqrt(np.vecdot(x, x).astype(float))
        safe = np.where(norm > 0, norm, 1.0)
        along, energy = self.span(np.concatenate([inside, norm[:, None]], axis=1), t)
        across = np.sqrt(energy)
        combine(x, share * (along[:, -1] - across * np.vecdot(x, w) / safe) / safe, w, share * across)
        A += of.whole(of.half(smat(share * (along[:, :-1] - across[:, None] * self.seen[t])), 0.0), room)


class FiniteSpan(NamedTuple):
    """Samples of a list of environments: coordinates of their Sigmas (place, p), chi-squares and normals of every step."""

    places: np.ndarray
    squares: np.ndarray
    normals: np.ndarray

    def __call__(self, base: np.ndarray, t: int) -> tuple[np.ndarray, np.ndarray]:
        z, chi2 = self.normals[t], self.squares[t]
        c = base[:, None] - self.places
        square = np.vecdot(c, c)
        energy = square * chi2
        # z without its part along c, as in `gyrostat.measurements.fresh_gaussian._group`.
        length = np.sqrt(energy)
        z = z - c * (np.vecdot(c, z) / np.where(square > 0, square, 1.0))[..., None]
        return (chi2[..., None] * c + length[..., None] * z).sum(axis=1), energy.sum(axis=1)


class ContinuousSpan(NamedTuple):
    """Samples with a Sigma each: the moments of a batch (step, seed, q, q) that :func:`draws.moments` gives."""

    moments: np.ndarray
    centre: float
    spread: float

    def __call__(self, base: np.ndarray, t: int) -> tuple[np.ndarray, np.ndarray]:
        k = np.concatenate([base, np.full((len(base), 1), -self.spread)], axis=1)
        k[:, diagonal(dimension_of(base.shape[1] - 1))] -= self.centre
        along = np.einsum("bij,bj->bi", self.moments[t], k)
        return along[:, : base.shape[1]], np.vecdot(along, k)
