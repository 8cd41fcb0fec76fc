"""HeteroSGD with amplified heterogeneity on data whose features are symmetric matrices: the kernel of two estimators."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from gyrostat.estimators.descent import RECORDS
from gyrostat.theory.transition import critical_spread

STRONGEST_STEP, MOST_STEPS = 0.1, 20_000
WEAKEST = 0.2
"""The smallest eigenvalue of the mean effect, as a share of the largest, that the run is long enough for."""


class Sensed(NamedTuple):
    """Features (matrices in isometric coordinates) and responses of every environment, about their means and scaled.

    Features are such that ``<X, M>^2`` is ``|M|^2`` in the mean over directions M, responses such that the mean effect has
    norm one; ``unit`` takes a matrix back to the units of the data.
    """

    features: list[np.ndarray]
    responses: list[np.ndarray]
    unit: float

    @property
    def effects(self) -> np.ndarray:
        """``(1/n_e) sum_i y_i X_i``, the matrix that environment e asks for if its features are isotropic."""
        return np.stack([smat(X.T @ y / len(y)) for X, y in zip(self.features, self.responses, strict=True)])

    def gradients(self) -> Callable[[np.ndarray], np.ndarray]:
        """A function from coordinates (D, runs) to the gradients of every environment, (K, D, runs).

        It goes through the rows twice, or through their second moments if there are more rows than coordinates.
        """
        readers = [_reader(X, y) for X, y in zip(self.features, self.responses, strict=True)]
        return lambda b: np.stack([read(b) for read in readers])


def sensed(features: np.ndarray, responses: np.ndarray, rows: list[np.ndarray]) -> Sensed:
    """Features (n, D) and responses by environment, centred there and scaled together."""
    X = [features[mine] - features[mine].mean(axis=0) for mine in rows]
    y = [responses[mine] - responses[mine].mean() for mine in rows]
    size = np.sqrt(np.mean([np.mean(x**2) for x in X])) or 1.0
    scaled = Sensed([x / size for x in X], y, 1.0)
    effect = np.linalg.norm(scaled.effects.mean(axis=0), 2) or 1.0
    return Sensed(scaled.features, [v / effect for v in y], float(effect / size))


def svec(matrices: np.ndarray) -> np.ndarray:
    """Isometric coordinates of symmetric matrices: the upper triangle, off the diagonal times the root of two.

    >>> svec(np.array([[1.0, 2.0], [2.0, 3.0]])).round(3).tolist()
    [1.0, 2.828, 3.0]
    """
    i, j = np.triu_indices(matrices.shape[-1])
    return matrices[..., i, j] * np.where(i == j, 1.0, np.sqrt(2.0))


def smat(coordinates: np.ndarray) -> np.ndarray:
    """The symmetric matrices with these coordinates."""
    d = int(np.sqrt(2 * coordinates.shape[-1]))
    i, j = np.triu_indices(d)
    out = np.zeros((*coordinates.shape[:-1], d, d))
    out[..., i, j] = out[..., j, i] = coordinates / np.where(i == j, 1.0, np.sqrt(2.0))
    return out


def automatic_step(data: Sensed) -> float:
    """0.1, or less where some direction of the features has far more variance than the others (steps would be unstable)."""
    read, b = data.gradients(), np.ones((data.features[0].shape[1], 1))
    zero = read(0 * b)
    largest = 1.0
    for _ in range(20):  # power iteration: a tenth is near enough
        b = (read(b / np.linalg.norm(b)) - zero).mean(axis=0)
        largest = float(np.linalg.norm(b))
    return min(STRONGEST_STEP, 0.25 / largest) if largest > 0 else STRONGEST_STEP


def automatic_horizon(step_size: float, init_scale: float) -> int:
    """Twice the time in which the weakest eigenvalue worth learning grows from the start to its size."""
    needed = 2 * np.log(np.sqrt(WEAKEST) / init_scale) / np.log1p(step_size * WEAKEST)
    return int(np.clip(np.ceil(needed), 100, MOST_STEPS))


def amplification(data: Sensed, tolerance: float, *, step_size: float, init_scale: float, num_steps: int) -> float:
    """The kappa at which the Lyapunov rule changes its mind at a spread of ``tolerance`` for an effect of norm one.

    No more than what leaves ``1 - eta |G|`` positive in every environment.
    """
    effects, eta = data.effects, step_size
    largest = max(float(np.linalg.norm(B, 2)) for B in effects - effects.mean(axis=0))
    if len(effects) == 1 or largest == 0:
        return 0.0
    star = critical_spread(eta, init_scale=init_scale, num_steps=num_steps)
    return float(max(min(star / tolerance, (1 - eta) / (eta * largest)) - 1, 0.0))


def descend(
    data: Sensed, turns: np.ndarray, kappa: float, *, step_size: float, init_scale: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Run ``U U^T - V V^T`` once for each row of ``turns``: recorded steps, the mean product over the runs there, and its
    mean over the last half of the steps.
    """
    eta, (runs, steps), read = step_size, turns.shape, data.gradients()
    d = smat(data.features[0][:1]).shape[-1]
    U = np.tile(init_scale * np.eye(d), (runs, 1, 1))
    V, path, late, since = U.copy(), [], np.zeros((d, d)), steps // 2
    at = np.unique(np.linspace(0, steps, min(RECORDS, steps) + 1).round().astype(int))
    recorded = set(at.tolist())
    with np.errstate(over="ignore", invalid="ignore"):  # divergence is for the caller to see
        for t in range(steps + 1):
            A = U @ np.swapaxes(U, 1, 2) - V @ np.swapaxes(V, 1, 2)
            if t in recorded:
                path.append(A.mean(axis=0))
            if t > since:
                late += A.mean(axis=0) / (steps - since)
            if t < steps:
                G = read(svec(A).T)
                mine = G[turns[:, t], :, np.arange(runs)]
                g = smat(mine + kappa * (mine - G.mean(axis=0).T))
                U, V = U - eta * g @ U, V + eta * g @ V
    return at, np.array(path), late


def _reader(X: np.ndarray, y: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
    n, D = X.shape
    if n <= D:
        return lambda b: X.T @ (X @ b - y[:, None]) / n
    gram, cross = X.T @ X / n, (X.T @ y / n)[:, None]
    return lambda b: gram @ b - cross
