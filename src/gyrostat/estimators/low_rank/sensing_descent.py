"""Descent on two factors with given measurements, in NumPy, and the rates at which it converges.

The algorithms are those of Xiong 2024 and their peers: gradient descent, the imbalance step, ScaledGD and PrecGD.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gyrostat.estimators.low_rank.measurement_operators import Responses

SOLVERS = ("auto", "gd", "imbalance", "scaled", "prec")
STABLE = 1e3
"""A descent whose loss is this many times the first one has diverged."""
LATE = 0.02
"""The share of the first residual at which the imbalance step is made, and "auto" chooses (docs/descent.md)."""
MARGIN = 2.0
"""A singular value above this many residuals is one of the matrix, as in :mod:`gyrostat.algorithms.events`, which needs JAX."""
ALIKE = 2.0
"""The condition number up to which the imbalance step is the fastest (docs/descent.md)."""

PATIENCE = 100
"""The number of steps that "auto" waits for that residual."""
HALVINGS = 14
"""The number of steps tried, each half as long as the one before."""
DAMPING = 1e-2
"""ScaledGD adds this to its Gram matrices: without it superfluous columns are divided by nearly zero."""
FLAT = 1e-10
"""Eigenvalues below this share of the largest belong to directions that do not change any measurement."""


class SensedFactors(NamedTuple):
    """Factors at the end, the losses of all steps, whether the descent converged, and the solver that it ended with."""

    F: np.ndarray
    G: np.ndarray
    losses: np.ndarray
    converged: bool
    solver: str

    @property
    def fell(self) -> bool:
        """Whether the loss is finite and no larger than at the start."""
        return bool(np.isfinite(self.losses[-1]) and self.losses[-1] <= self.losses[0])


def sensing_descent(
    data: Responses, F: np.ndarray, G: np.ndarray, *, solver: str, step_size: float, limit: int, tolerance: float
) -> SensedFactors:
    """Steps until the loss falls by less than ``tolerance`` of itself in ten steps, or to ``tolerance**2`` of the data."""
    losses: list[float] = []
    converged, is_decided = False, solver not in ("imbalance", "auto")
    size = data.loss(data.centre(data.y))
    for step in range(limit):
        e = data.residual(F, G)
        losses.append(data.loss(e))
        if not np.isfinite(losses[-1]) or losses[-1] > STABLE * max(losses[0], size):
            break
        converged = losses[-1] <= tolerance**2 * size or _stalled(losses, tolerance)
        if converged:
            break
        M = data.gradient(e)
        if not is_decided and losses[-1] <= LATE**2 * losses[0]:
            is_decided = True
            # The singular values of F G^T, without writing it out. Those above the residual are true (Weyl's inequality);
            # the residual of few measurements is too small, hence the margin.
            values = np.linalg.svd(np.linalg.qr(F)[1] @ np.linalg.qr(G)[1].T, compute_uv=False)
            least = min(values[values > MARGIN * np.sqrt(losses[-1])], default=values[0])
            if solver == "auto" and values[0] > ALIKE * least:
                solver = "prec"
            else:
                solver = "imbalance"
                F, G = imbalanced(F, G, max(np.sqrt(least), values[0] * np.sqrt(step_size)))
        elif solver == "auto" and step >= PATIENCE:
            solver, is_decided = "prec", True  # noise, or very different singular values: PrecGD suits both
        toward_F, toward_G = M @ G, M.mT @ F
        if solver in ("scaled", "prec"):
            damping = DAMPING if solver == "scaled" else np.sqrt(losses[-1])
            toward_F, toward_G = _preconditioned(toward_F, G, damping), _preconditioned(toward_G, F, damping)
        F, G = F - step_size * toward_F, G - step_size * toward_G
    return SensedFactors(F, G, np.array(losses), converged, solver)


def imbalanced(F: np.ndarray, G: np.ndarray, beta: float) -> tuple[np.ndarray, np.ndarray]:
    """The factors after the imbalance step of Xiong 2024: same product, ``F^T F = beta^2 I``.

    >>> F, G = imbalanced(np.array([[2.0], [0.0]]), np.array([[1.0], [1.0]]), 1.0)
    >>> F.tolist(), G.tolist()
    ([[1.0], [0.0]], [[2.0], [2.0]])
    """
    A, s, Vt = np.linalg.svd(F, full_matrices=False)
    return beta * A, (G @ Vt.T) * (s / beta)


def _preconditioned(direction: np.ndarray, partner: np.ndarray, damping: float) -> np.ndarray:
    """``direction (P^T P + damping I)^-1`` for the other factor P: ScaledGD, or PrecGD if the damping is the residual."""
    gram = partner.T @ partner
    # At the floor of rounding a Gram matrix of superfluous columns is singular, and the step would be noise.
    gram += (damping + np.finfo(gram.dtype).eps * np.trace(gram)) * np.eye(len(gram))
    return np.linalg.solve(gram, direction.T).T


def stable_descent(
    data: Responses, F: np.ndarray, G: np.ndarray, *, solver: str, step_size: float, limit: int, tolerance: float
) -> tuple[SensedFactors, float]:
    """The descent with the largest of the steps ``step_size / 2^k`` that does not diverge, and that step."""
    for halvings in range(HALVINGS):
        eta = step_size * 0.5**halvings
        with np.errstate(over="ignore", invalid="ignore"):  # divergence is what is looked for
            sensed = sensing_descent(data, F, G, solver=solver, step_size=eta, limit=limit, tolerance=tolerance)
        if sensed.fell:
            break
    return sensed, eta


def _stalled(losses: list[float], tolerance: float, span: int = 10) -> bool:
    return len(losses) > 5 * span and losses[-1] > (1 - tolerance) * losses[-1 - span]


# --- rates ----------------------------------------------------------------------------------------


def predicted_rate(data: Responses, sensed: SensedFactors, step_size: float) -> float:
    """The rate of the loss at the point reached, ``-log(|e'|^2 / |e|^2)`` with ``e' = (I - eta J J^T) e``, linearised there.

    J is the Jacobian of the weighted measurements, preconditioned as in the solver, and e is the part of the residual in its
    range. Late in a descent, only the slowest direction is left in e, and this is ``-2 log(1 - eta lambda)``.
    It is NaN if the step is too long for the curvature (``eta lambda >= 2``), where descent only continues because it is
    nonlinear.
    """
    J = _jacobian(data, sensed)
    U, s, _ = np.linalg.svd(J, full_matrices=False)
    values = s**2
    if step_size * values[0] >= 2:
        return float("nan")
    moving = values > FLAT * values[0]
    e = np.sqrt(data.weights) * data.residual(sensed.F, sensed.G)
    c = (U.T @ (e if data.shared is None else data.shared.evened(e)))[moving]
    before, after = np.sum(c**2), np.sum((c * (1 - step_size * values[moving])) ** 2)
    return float(-np.log(after / before)) if after > 0 else float("nan")


def _jacobian(data: Responses, sensed: SensedFactors) -> np.ndarray:
    F, G, (n1, k) = sensed.F, sensed.G, sensed.F.shape
    J = data.operator.jacobian(F, G)
    if data.centred:
        J = np.stack([data.centre(column) for column in J.T], axis=1)
    J = J * np.sqrt(data.weights)[:, None]
    J = J if data.shared is None else data.shared.evened(J)
    if sensed.solver not in ("scaled", "prec"):
        return J
    damping = DAMPING if sensed.solver == "scaled" else np.sqrt(sensed.losses[-1])
    blocks = [np.linalg.inv(np.linalg.cholesky(P.T @ P + (damping + 1e-15) * np.eye(k))).T for P in (G, F)]
    parts = (J[:, : n1 * k], J[:, n1 * k :])
    return np.hstack([(p.reshape(len(J), -1, k) @ b).reshape(len(J), -1) for p, b in zip(parts, blocks, strict=True)])


def actual_rate(losses: np.ndarray) -> float:
    """The slope of the log of the loss over the last tenth of the steps (at least five).

    >>> round(actual_rate(np.exp(-0.3 * np.arange(100))), 6)
    0.3
    """
    late = losses[-max(len(losses) // 10, 5) :]
    steps = np.arange(len(late))
    return float("nan") if len(late) < 5 or late.min() <= 0 else float(-np.polyfit(steps, np.log(late), 1)[0])
