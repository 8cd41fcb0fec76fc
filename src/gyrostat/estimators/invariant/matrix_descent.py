"""HeteroSGD with amplified heterogeneity on ``U U^T - V V^T``: the kernel of two estimators."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from gyrostat.estimators.invariant.descent import RECORDS
from gyrostat.estimators.invariant.matrix_rows import EnvironmentRows, Gradient
from gyrostat.models.symmetric_coordinates import smat
from gyrostat.theory.transition import critical_spread

STRONGEST_STEP, MOST_STEPS = 0.1, 20_000
WEAKEST = 0.2
"""The smallest eigenvalue of the mean effect, as a share of the largest, that the run is long enough for."""


class Sensed(NamedTuple):
    """Gradients of every environment in units in which ``<X, M>^2`` is ``|M|^2`` in the mean over directions M, and the mean
    effect has norm one; the effects there; and ``unit``, which takes a matrix back to the units of the data.
    """

    readers: list[Gradient]
    effects: np.ndarray
    unit: float

    def gradients(self, A: np.ndarray) -> np.ndarray:
        """Coordinates (environments, runs, D) of all gradients at matrices (runs, d, d)."""
        return np.stack([read(A) for read in self.readers])


def sensed(parts: Sequence[EnvironmentRows]) -> Sensed:
    """Rows and responses of all environments, scaled together."""
    size = np.sqrt(np.mean([part.variance for part in parts])) or 1.0
    effects = np.stack([part.effect for part in parts]) / size
    effect = float(np.linalg.norm(effects.mean(axis=0), 2)) or 1.0
    return Sensed([part.gradient(float(size), effect) for part in parts], effects / effect, float(effect / size))


def automatic_step(data: Sensed) -> float:
    """0.1, or less where some direction of the features has far more variance than the others (steps would be unstable)."""
    A = np.ones_like(data.effects[:1])
    zero, largest = data.gradients(0 * A), 1.0
    for _ in range(20):  # power iteration: a tenth is near enough
        A = smat((data.gradients(A / np.linalg.norm(A)) - zero).mean(axis=0))
        largest = float(np.linalg.norm(A))
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
    eta, (runs, steps), d = step_size, turns.shape, data.effects.shape[-1]
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
                G = data.gradients(A)
                mine = G[turns[:, t], np.arange(runs)]
                g = smat(mine + kappa * (mine - G.mean(axis=0)))
                U, V = U - eta * g @ U, V + eta * g @ V
    return at, np.array(path), late
