"""Descent on two factors with given measurements: the steps of :mod:`gyrostat.algorithms` in NumPy, without compiling."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from gyrostat.algorithms.events import MARGIN

STABLE = 1e3
"""A loss of so many times the first one has diverged."""
LATE = 0.02
"""The share of the first residual at which the imbalance step is made, and "auto" makes up its mind (docs/descent.md)."""
ALIKE = 2.0
"""The condition number up to which the imbalance step is the fastest (docs/descent.md)."""

PATIENCE = 100
"""Steps that "auto" waits for that residual."""
DAMPING = 1e-2
"""What ScaledGD adds to its Gram matrices: without it superfluous columns are divided by nearly zero."""


class Responses(NamedTuple):
    """An operator, its responses, and for each the number of the group (environment) it belongs to.

    Groups have an intercept of their own (unless ``centred`` is False) and are counted alike.
    """

    operator: Any
    y: np.ndarray
    groups: np.ndarray
    centred: bool

    def residual(self, F: np.ndarray, G: np.ndarray) -> np.ndarray:
        """``<X_i, F G^T> - y_i``, about the mean of its group."""
        return self.centre(self.operator.see(F, G) - self.y)

    def centre(self, e: np.ndarray) -> np.ndarray:
        """Less the mean of its group."""
        if not self.centred:
            return e
        counts = np.bincount(self.groups)
        return e - (np.bincount(self.groups, e) / np.maximum(counts, 1))[self.groups]

    @property
    def weights(self) -> np.ndarray:
        """They sum to one, groups alike."""
        counts = np.bincount(self.groups)
        return 1 / (counts[self.groups] * np.count_nonzero(counts))

    def take(self, chosen: np.ndarray) -> Responses:
        """Some of the measurements."""
        return Responses(self.operator.take(chosen), self.y[chosen], self.groups[chosen], self.centred)


class Descent(NamedTuple):
    """Factors at the end, losses and squared gradients of all steps, whether it converged, and how it went on."""

    F: np.ndarray
    G: np.ndarray
    losses: np.ndarray
    converged: bool
    solver: str


def descend(
    data: Responses, F: np.ndarray, G: np.ndarray, *, solver: str, step_size: float, limit: int, tolerance: float
) -> Descent:
    """Steps until the loss falls by less than ``tolerance`` of itself in ten steps, or to ``tolerance**2`` of the first."""
    w, eta, losses, made = data.weights, step_size, [], solver not in ("imbalance", "auto")
    size = float(w @ data.centre(data.y) ** 2)
    for t in range(limit):
        e = data.residual(F, G)
        losses.append(float(w @ e**2))
        if not np.isfinite(losses[-1]) or losses[-1] > STABLE * max(losses[0], size):
            return Descent(F, G, np.array(losses), False, solver)
        if losses[-1] <= tolerance**2 * size or _still(losses, tolerance):
            return Descent(F, G, np.array(losses), True, solver)
        if not made and losses[-1] <= LATE**2 * losses[0]:
            made, (F, G, solver) = True, _decided(F, G, solver, np.sqrt(losses[-1]), eta)
        elif solver == "auto" and t >= PATIENCE:
            made, solver = True, "prec"  # noise, or very different singular values: both ask for it
        F, G = _step(data, F, G, w * e, solver, eta, np.sqrt(losses[-1]))
    return Descent(F, G, np.array(losses), False, solver)


def _still(losses: list[float], tolerance: float, span: int = 10) -> bool:
    return len(losses) > 5 * span and losses[-1] > (1 - tolerance) * losses[-1 - span]


def _step(
    data: Responses, F: np.ndarray, G: np.ndarray, e: np.ndarray, solver: str, eta: float, residual: float
) -> tuple[np.ndarray, np.ndarray]:
    dF, dG = data.operator.adjoint(e, F, G)
    if solver in ("scaled", "prec"):
        damping = residual if solver == "prec" else DAMPING
        return F - eta * _preconditioned(dF, G, damping), G - eta * _preconditioned(dG, F, damping)
    return F - eta * dF, G - eta * dG


def _preconditioned(direction: np.ndarray, partner: np.ndarray, damping: float) -> np.ndarray:
    gram = partner.T @ partner
    floor = np.finfo(float).eps * np.trace(gram)  # as in gyrostat.algorithms.update_rules.Preconditioned
    return np.linalg.solve(gram + (damping + floor) * np.eye(len(gram)), direction.T).T


def _decided(
    F: np.ndarray, G: np.ndarray, solver: str, residual: float, eta: float
) -> tuple[np.ndarray, np.ndarray, str]:
    """After the imbalance step of Xiong 2024, or (``auto``, unequal singular values) on the way to PrecGD."""
    s = np.linalg.svd(np.linalg.qr(F)[1] @ np.linalg.qr(G)[1].T, compute_uv=False)
    smallest = min(s[s > MARGIN * residual], default=s[0])
    if solver == "auto" and s[0] > ALIKE * smallest:
        return F, G, "prec"
    return *imbalanced(F, G, max(np.sqrt(smallest), s[0] * np.sqrt(eta))), "imbalance"


def imbalanced(F: np.ndarray, G: np.ndarray, beta: float) -> tuple[np.ndarray, np.ndarray]:
    """``F^T F = beta^2 I`` with the same product: :func:`gyrostat.algorithms.events.imbalanced` in NumPy."""
    A, s, Vt = np.linalg.svd(F, full_matrices=False)
    return beta * A, (G @ Vt.T) * (s / beta)
