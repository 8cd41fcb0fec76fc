"""What is looked at: the diagnostics of :mod:`gyrostat.diagnostics.signal_and_loss` in NumPy, of some seeds at once."""

from __future__ import annotations

import functools
from collections.abc import Callable

import numpy as np

from gyrostat.engine.numpy_backend.truth import Truth


class Sight:
    """Factors U (seed, d, d), their products A, the truth, room for an array; what several looks need is made once."""

    def __init__(self, U: np.ndarray, A: np.ndarray, of: Truth, room: np.ndarray):
        self.U, self.A, self.of, self.room = U, A, of, room

    @functools.cached_property
    def inside(self) -> np.ndarray:
        """``[U*, V*]^T U``."""
        return self.of.across @ self.U


def _norm(X: np.ndarray) -> np.ndarray:
    rows = X.reshape(len(X), -1)
    return np.sqrt(np.vecdot(rows, rows))


def _signal(at: Sight) -> np.ndarray:
    R = at.inside[:, : at.of.rank]
    return _norm(R @ R.swapaxes(1, 2)) / np.linalg.norm(at.of.values)


def _spurious(at: Sight) -> np.ndarray:
    Q = at.inside[:, at.of.rank :]
    return _norm(Q @ Q.swapaxes(1, 2)) / (np.linalg.norm(at.of.mean) or at.of.law.rank**0.5)


def _error(at: Sight) -> np.ndarray:
    np.matmul(at.of.frame, at.inside, out=at.room)
    return _norm(np.subtract(at.U, at.room, out=at.room))


def _distance(at: Sight) -> np.ndarray:
    return _norm(np.subtract(at.A, at.of.invariant, out=at.room))


def _distance_to_mean(at: Sight) -> np.ndarray:
    target = at.of.whole(at.of.half(at.of.mean, at.of.values), at.room)
    return _norm(np.subtract(at.A, target, out=at.room))


def _loss(at: Sight) -> np.ndarray:
    return (_distance_to_mean(at).astype(float) ** 2 + at.of.scatter) / 2


def _singular_values(at: Sight) -> np.ndarray:
    finite = np.isfinite(at.A).all(axis=(1, 2), keepdims=True)
    values = np.linalg.eigvalsh(np.where(finite, at.A, 0.0))[:, ::-1]
    return np.where(finite[:, :, 0], np.maximum(values, 0.0), np.nan)


LOOKS: dict[str, Callable[[Sight], np.ndarray]] = {
    "signal": _signal,
    "spurious": _spurious,
    "error": _error,
    "distance": _distance,
    "distance_to_mean": _distance_to_mean,
    "loss": _loss,
    "singular_values": _singular_values,
}
