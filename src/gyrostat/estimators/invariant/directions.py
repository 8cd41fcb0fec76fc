"""Which directions of symmetric matrices hold in every environment: what two estimators share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils import check_random_state

from gyrostat import errors
from gyrostat.errors import GyrostatError
from gyrostat.estimators.invariant.descent import orders
from gyrostat.estimators.invariant.matrix_descent import (
    amplification,
    automatic_horizon,
    automatic_step,
    descend,
    sensed,
)
from gyrostat.estimators.invariant.sensing import Part
from gyrostat.models.symmetric_coordinates import smat
from gyrostat.theory.transition import LEARNT

SHUFFLES, BLOCKS = 99, 1000
"""Random signs and relabellings that effects and their variation are compared with (tests at level 0.01), and of how many
blocks of rows.
"""


class OnMatrices(RegressorMixin, BaseEstimator):
    """What the two estimators share: options, and the fit to features that are symmetric matrices."""

    def __init__(
        self,
        *,
        tolerance: float = 0.5,
        step_size: float | str = "auto",
        num_steps: int | str = "auto",
        num_orders: int = 4,
        init_scale: float = 1e-2,
        random_state: Any = None,
    ):
        self.tolerance = tolerance
        self.step_size = step_size
        self.num_steps = num_steps
        self.num_orders = num_orders
        self.init_scale = init_scale
        self.random_state = random_state

    def _fit(self, parts: Sequence[Part], back: np.ndarray) -> None:
        """Find A for the rows of every environment; ``back`` takes directions to those of the data."""
        tolerance = float(errors.number("tolerance", self.tolerance, above=0))
        alpha = float(errors.number("init_scale", self.init_scale, above=0, most=0.1))
        count = errors.integer("num_orders", self.num_orders, least=1)
        random = check_random_state(self.random_state)
        data = sensed(parts)
        eta = self._chosen("step_size", lambda: automatic_step(data))
        steps = int(self._chosen("num_steps", lambda: automatic_horizon(eta, alpha)))
        kappa = amplification(data, tolerance, step_size=eta, init_scale=alpha, num_steps=steps)
        turns = orders(len(parts), steps, count if len(parts) > 1 else 1, random)
        at, path, learnt = descend(data, turns, kappa, step_size=eta, init_scale=alpha)
        if not np.isfinite(learnt).all():
            raise GyrostatError(
                f"step_size={eta:g} makes the descent diverge: give a smaller one, such as {eta / 4:g}."
            )
        values, vectors = np.linalg.eigh(learnt)
        blocks = _block_means(parts, random)
        Q = _present(blocks, vectors[:, np.abs(values) > LEARNT * max(1.0, np.abs(values).max())], random)
        self.matrix_ = back @ _refitted(parts, Q) @ back
        self.invariant_directions_ = _unit(back @ Q)
        self.spurious_directions_ = _unit(back @ _varying(blocks, Q, random))
        self.path_, self.path_steps_ = back @ path @ back * data.unit, at
        self.n_iter_, self.step_size_, self.amplification_ = steps, eta, kappa
        self.status_ = _status(path, Q, len(parts))

    def _chosen(self, name: str, automatic: Any) -> float:
        value = getattr(self, name)
        if isinstance(value, str):
            errors.choice(name, value, ("auto",))
            return automatic()
        if name == "num_steps":
            return errors.integer(name, value, least=4)
        return float(errors.number(name, value, above=0))


def _refitted(parts: Sequence[Part], Q: np.ndarray) -> np.ndarray:
    """Least squares over the matrices ``Q C Q^T``, all rows counted alike."""
    r = Q.shape[1]
    if r == 0:
        return np.zeros((len(Q), len(Q)))
    X, y = np.concatenate([part.inside(Q) for part in parts]), np.concatenate([part.responses for part in parts])
    return Q @ smat(np.linalg.lstsq(X, y, rcond=1e-10)[0]) @ Q.T


def _block_means(parts: Sequence[Part], random: np.random.RandomState) -> list[np.ndarray]:
    """The mean of ``y_i X_i`` over random blocks of rows of every environment, as coordinates.

    Tests then shuffle blocks rather than rows: the same chances, and the data are passed over once.
    """
    size = max(1, sum(len(part.responses) for part in parts) // BLOCKS)

    def split(n: int) -> list[np.ndarray]:
        return np.array_split(random.permutation(n), max(1, n // size))  # nobody is left out

    return [part.means(part.responses, split(len(part.responses))) for part in parts]


def _present(blocks: list[np.ndarray], Q: np.ndarray, random: np.random.RandomState) -> np.ndarray:
    """The directions in Q whose mean effect is larger than any when the signs of blocks are random."""

    def mean(sign: Any) -> np.ndarray:
        return smat(np.mean([np.mean(sign(len(m)) * m, axis=0) for m in blocks], axis=0))

    flipped = (mean(lambda n: random.choice([-1.0, 1.0], (n, 1))) for _ in range(SHUFFLES))
    chance = max(np.linalg.norm(E, 2) for E in flipped)
    strength = np.abs(np.einsum("ir,ij,jr->r", Q, mean(lambda n: 1.0), Q))
    return Q[:, strength > chance]


def _varying(blocks: list[np.ndarray], Q: np.ndarray, random: np.random.RandomState) -> np.ndarray:
    """Directions outside Q along which environments differ by more than under random relabellings of blocks."""
    if len(blocks) == 1:
        return np.zeros((len(Q), 0))
    outside = np.eye(len(Q)) - Q @ Q.T
    pooled, cuts = np.concatenate(blocks), np.cumsum([len(m) for m in blocks])[:-1]

    def variation(order: np.ndarray) -> np.ndarray:
        effects = smat(np.stack([part.mean(axis=0) for part in np.split(pooled[order], cuts)]))
        away = effects - effects.mean(axis=0)
        return outside @ (away @ away).mean(axis=0) @ outside

    chance = max(np.linalg.norm(variation(random.permutation(len(pooled))), 2) for _ in range(SHUFFLES))
    values, vectors = np.linalg.eigh(variation(np.arange(len(pooled))))
    return vectors[:, values > chance]


def _unit(directions: np.ndarray) -> np.ndarray:
    return directions / np.linalg.norm(directions, axis=0)


def _status(path: np.ndarray, Q: np.ndarray, environments: int) -> str:
    if environments == 1:
        return "one environment"
    if Q.shape[1] == 0:
        return "nothing invariant"
    n = len(path)
    inside = Q.T @ path @ Q
    moved = inside[n // 2 : 3 * n // 4].mean(axis=0) - inside[3 * n // 4 :].mean(axis=0)
    return "moving" if np.abs(moved).max() > LEARNT else "settled"
