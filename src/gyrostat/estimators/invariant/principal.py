"""The principal directions in which effects vary between environments."""

from __future__ import annotations

import numpy as np

from gyrostat.estimators.invariant.effects import Effects

SIMULATIONS = 400
"""Sets of effects without any variation that the largest variation seen is compared with."""


def principal_directions(seen: Effects, level: float) -> tuple[np.ndarray, np.ndarray]:
    """An orthogonal basis (d, d) whose first columns are directions of variation between environments, and which those are.

    Eigenvectors of the covariance of effects over environments. One counts as varying, in order from the largest, as long as
    its variance is more than the largest of all but a share ``level`` of simulated sets that vary by errors of estimation only.
    The next column is where the mean effect lies that they leave; what is in none of these has no effect.

    >>> effects = np.array([[1.0, 1.0], [2.0, 0.0], [0.5, 1.5]])
    >>> covariances = np.broadcast_to(1e-4 * np.eye(2), (3, 2, 2))
    >>> W, varies = principal_directions(Effects(covariances, effects, covariances), 0.01)
    >>> np.abs(W).round(2).tolist(), varies.tolist()
    ([[0.71, 0.71], [0.71, 0.71]], [True, False])
    """
    K, d = seen.effects.shape
    values, vectors = _variation(seen.effects)
    most = min(K - 1, d)
    limit = _by_chance(seen, level) if most else np.inf
    count = int(np.cumprod(values[:most] > limit).sum())
    varying = vectors[:, :count]
    basis, _ = np.linalg.qr(np.column_stack([varying, seen.mean - varying @ (varying.T @ seen.mean), np.eye(d)]))
    signs = np.where(seen.mean @ basis < 0, -1.0, 1.0)
    return basis[:, :d] * signs, np.arange(d) < count


def _variation(effects: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Eigenvalues from the largest down and eigenvectors of the covariance over environments."""
    _, s, vectors = np.linalg.svd(effects - effects.mean(axis=0), full_matrices=False)
    return s**2 / len(effects), vectors.T


def _by_chance(seen: Effects, level: float) -> float:
    """The ``1 - level`` quantile of the largest eigenvalue if effects vary by errors only."""
    K, d = seen.effects.shape
    rng = np.random.default_rng(0)  # a number that only errors decide: the same for the same data
    values, vectors = np.linalg.eigh(seen.covariances)
    roots = vectors * np.sqrt(np.maximum(values, 0.0))[:, None, :]
    largest = [_variation((roots @ rng.standard_normal((K, d, 1)))[..., 0])[0][0] for _ in range(SIMULATIONS)]
    return float(np.quantile(largest, 1 - level, method="higher"))
