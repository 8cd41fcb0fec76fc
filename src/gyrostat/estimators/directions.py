"""Which directions of symmetric matrices hold in every environment: what two estimators share."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils import check_random_state

from gyrostat import errors
from gyrostat.errors import GyrostatError
from gyrostat.estimators import sensing
from gyrostat.estimators.descent import orders
from gyrostat.estimators.moments import rows_of
from gyrostat.estimators.sensing import Sensed, sensed, smat, svec
from gyrostat.theory.transition import LEARNT

SHUFFLES = 99
"""Random relabellings that a direction's variation between environments is compared with: a test at level 0.01."""


class OnMatrices(RegressorMixin, BaseEstimator):
    """What the two estimators share: options, and the fit to features that are symmetric matrices."""

    def __init__(
        self, *, tolerance: float = 0.5, step_size: float | str = "auto", num_steps: int | str = "auto",
        num_orders: int = 4, init_scale: float = 1e-2, random_state: Any = None,
    ):  # fmt: skip
        self.tolerance = tolerance
        self.step_size = step_size
        self.num_steps = num_steps
        self.num_orders = num_orders
        self.init_scale = init_scale
        self.random_state = random_state

    def _fit(self, features: np.ndarray, y: np.ndarray, environments: Any, whitening: np.ndarray) -> None:
        tolerance = float(errors.number("tolerance", self.tolerance, above=0))
        alpha = float(errors.number("init_scale", self.init_scale, above=0, most=0.1))
        count = errors.integer("num_orders", self.num_orders, least=1)
        self.environments_, rows = rows_of(environments, len(y), least=2)
        random = check_random_state(self.random_state)
        data = sensed(features, y, rows)
        eta = self._chosen("step_size", lambda: sensing.automatic_step(data))
        steps = int(self._chosen("num_steps", lambda: sensing.automatic_horizon(eta, alpha)))
        kappa = sensing.amplification(data, tolerance, step_size=eta, init_scale=alpha, num_steps=steps)
        turns = orders(len(rows), steps, count if len(rows) > 1 else 1, random)
        at, path, learnt = sensing.descend(data, turns, kappa, step_size=eta, init_scale=alpha)
        if not np.isfinite(learnt).all():
            raise GyrostatError(
                f"step_size={eta:g} makes the descent diverge: give a smaller one, such as {eta / 4:g}."
            )
        values, vectors = np.linalg.eigh(learnt)
        Q = vectors[:, np.abs(values) > LEARNT * max(1.0, np.abs(values).max())]
        A = _refitted(data, Q) * data.unit
        self.matrix_ = whitening @ A @ whitening
        self.intercept_ = float(y.mean() - features.mean(axis=0) @ svec(A))
        self.invariant_directions_ = _unit(whitening @ Q)
        self.spurious_directions_ = _unit(whitening @ _varying(data, Q, random))
        self.path_, self.path_steps_ = whitening @ path @ whitening * data.unit, at
        self.n_iter_, self.step_size_, self.amplification_ = steps, eta, kappa
        self.status_ = _status(path, Q, len(rows))

    def _chosen(self, name: str, automatic: Any) -> float:
        value = getattr(self, name)
        if isinstance(value, str):
            errors.choice(name, value, ("auto",))
            return automatic()
        if name == "num_steps":
            return errors.integer(name, value, least=4)
        return float(errors.number(name, value, above=0))


def _refitted(data: Sensed, Q: np.ndarray) -> np.ndarray:
    """Least squares over the matrices ``Q C Q^T``, every environment counted alike."""
    r = Q.shape[1]
    if r == 0:
        return np.zeros((len(Q), len(Q)))
    within = svec(Q @ smat(np.eye(r * (r + 1) // 2)) @ Q.T).T
    X = np.concatenate([x @ within / np.sqrt(len(x)) for x in data.features])
    y = np.concatenate([v / np.sqrt(len(v)) for v in data.responses])
    return Q @ smat(np.linalg.lstsq(X, y, rcond=1e-10)[0]) @ Q.T


def _varying(data: Sensed, Q: np.ndarray, random: np.random.RandomState) -> np.ndarray:
    """Directions outside Q along which environments differ by more than under random relabellings."""
    if len(data.responses) == 1:
        return np.zeros((len(Q), 0))
    outside = np.eye(len(Q)) - Q @ Q.T
    products = np.concatenate([x * v[:, None] for x, v in zip(data.features, data.responses, strict=True)])
    cuts = np.cumsum([len(v) for v in data.responses])[:-1]

    def variation(order: np.ndarray) -> np.ndarray:
        effects = smat(np.stack([part.mean(axis=0) for part in np.split(products[order], cuts)]))
        away = effects - effects.mean(axis=0)
        return outside @ (away @ away).mean(axis=0) @ outside

    chance = max(np.linalg.norm(variation(random.permutation(len(products))), 2) for _ in range(SHUFFLES))
    values, vectors = np.linalg.eigh(variation(np.arange(len(products))))
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
