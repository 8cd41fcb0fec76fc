"""Diagnostics of :mod:`gyrostat.diagnostics` in NumPy, for many seeds at once."""

from __future__ import annotations

import functools
from collections.abc import Callable

import numpy as np

from gyrostat.engine.numpy_backend.environments import DrawnEnvironments


class NumpyView:
    """What a diagnostic may look at: factors U (seed, d, d), their products A, the environments, and scratch room."""

    def __init__(self, U: np.ndarray, A: np.ndarray, environments: DrawnEnvironments, room: np.ndarray):
        self.U, self.A, self.environments, self.room = U, A, environments, room

    @functools.cached_property
    def inside(self) -> np.ndarray:
        """``[U*, V*]^T U``, which several diagnostics need."""
        return self.environments.transposed @ self.U


def _norm(X: np.ndarray) -> np.ndarray:
    rows = X.reshape(len(X), -1)
    return np.sqrt(np.vecdot(rows, rows))


def _signal(view: NumpyView) -> np.ndarray:
    R = view.inside[:, : view.environments.rank]
    return _norm(R @ R.swapaxes(1, 2)) / np.linalg.norm(view.environments.values)


def _spurious(view: NumpyView) -> np.ndarray:
    Q = view.inside[:, view.environments.rank :]
    scale = np.linalg.norm(view.environments.mean) or view.environments.law.rank**0.5
    return _norm(Q @ Q.swapaxes(1, 2)) / scale


def _error(view: NumpyView) -> np.ndarray:
    np.matmul(view.environments.frame, view.inside, out=view.room)
    return _norm(np.subtract(view.U, view.room, out=view.room))


def _distance(view: NumpyView) -> np.ndarray:
    return _norm(np.subtract(view.A, view.environments.invariant, out=view.room))


def _distance_to_mean(view: NumpyView) -> np.ndarray:
    environments = view.environments
    target = environments.target(environments.half_target(environments.mean, environments.values), view.room)
    return _norm(np.subtract(view.A, target, out=view.room))


def _loss(view: NumpyView) -> np.ndarray:
    return (_distance_to_mean(view).astype(float) ** 2 + view.environments.scatter) / 2


def _singular_values(view: NumpyView) -> np.ndarray:
    finite = np.isfinite(view.A).all(axis=(1, 2), keepdims=True)
    values = np.linalg.eigvalsh(np.where(finite, view.A, 0.0))[:, ::-1]
    return np.where(finite[:, :, 0], np.maximum(values, 0.0), np.nan)


NUMPY_DIAGNOSTICS: dict[str, Callable[[NumpyView], np.ndarray]] = {
    "signal": _signal,
    "spurious": _spurious,
    "error": _error,
    "distance": _distance,
    "distance_to_mean": _distance_to_mean,
    "loss": _loss,
    "singular_values": _singular_values,
}
