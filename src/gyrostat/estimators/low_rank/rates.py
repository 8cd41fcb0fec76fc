"""By how much the loss of a descent falls in a late step: as the curvature predicts, and as observed."""

from __future__ import annotations

import numpy as np

from gyrostat.estimators.low_rank.factored import DAMPING, Responses, SensedFactors

FLAT = 1e-10
"""Eigenvalues below this share of the largest are directions that do not change any measurement."""


def predicted_rate(data: Responses, found: SensedFactors, step_size: float) -> float:
    """The rate of the loss at the point reached, ``-log(|e'|^2 / |e|^2)`` with ``e' = (I - eta J J^T) e``, linearised there.

    J is the Jacobian of the weighted measurements, preconditioned as the solver does, and e the part of the residual in its
    range. Far along, only the slowest direction is left in e, and this is ``-2 log(1 - eta lambda)``.
    NaN where the step is too long for the curvature (``eta lambda >= 2``): there descent goes on by its nonlinearity.
    """
    J = _jacobian(data, found)
    U, s, _ = np.linalg.svd(J, full_matrices=False)
    values = s**2
    if step_size * values[0] >= 2:
        return float("nan")
    moving = values > FLAT * values[0]
    c = (U.T @ (np.sqrt(data.weights) * data.residual(found.F, found.G)))[moving]
    before, after = np.sum(c**2), np.sum((c * (1 - step_size * values[moving])) ** 2)
    return float(-np.log(after / before)) if after > 0 else float("nan")


def _jacobian(data: Responses, found: SensedFactors) -> np.ndarray:
    F, G, (n1, k) = found.F, found.G, found.F.shape
    J = data.operator.jacobian(F, G)
    if data.centred:
        J = np.stack([data.centre(column) for column in J.T], axis=1)
    J = J * np.sqrt(data.weights)[:, None]
    if found.solver not in ("scaled", "prec"):
        return J
    damping = DAMPING if found.solver == "scaled" else np.sqrt(found.losses[-1])
    blocks = [np.linalg.inv(np.linalg.cholesky(P.T @ P + (damping + 1e-15) * np.eye(k))).T for P in (G, F)]
    parts = (J[:, : n1 * k], J[:, n1 * k :])
    return np.hstack([(p.reshape(len(J), -1, k) @ b).reshape(len(J), -1) for p, b in zip(parts, blocks, strict=True)])


def actual_rate(losses: np.ndarray) -> float:
    """The slope of the log of the loss over the last tenth of the steps (five at least).

    >>> round(actual_rate(np.exp(-0.3 * np.arange(100))), 6)
    0.3
    """
    late = losses[-max(len(losses) // 10, 5) :]
    steps = np.arange(len(late))
    return float("nan") if len(late) < 5 or late.min() <= 0 else float(-np.polyfit(steps, np.log(late), 1)[0])
