"""Descent on two factors with given measurements on the NumPy backend, and the rates at which it converges.

The algorithms are those of Xiong 2024 and their peers: gradient descent, the imbalance step, ScaledGD and PrecGD.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gyrostat.engine.numpy_backend.loop import DescentState, constant, descend
from gyrostat.engine.numpy_backend.models import NumpyAsymmetric, NumpyModel, NumpyParams
from gyrostat.engine.numpy_backend.update_rules import (
    NumpyGradientStep,
    NumpyPreconditioned,
    NumpyReading,
    NumpyUpdateRule,
    automatic_beta,
    imbalanced,
    least_above,
    singular_values,
)
from gyrostat.estimators.low_rank.measurement_operators import Responses

SOLVERS = ("auto", "gd", "imbalance", "scaled", "prec")
STABLE = 1e3
"""A descent whose loss is this many times the first one has diverged."""
LATE = 0.02
"""The share of the first residual at which the imbalance step is made, and "auto" chooses (docs/descent.md)."""
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
    rule, losses, converged = SolverRule(solver), [], False
    size = data.loss(data.centre(data.y))

    def sense(state: DescentState) -> NumpyReading:
        e = data.residual(*state.params)
        return NumpyReading(data.gradient(e), data.loss(e))

    for state in descend(NumpyAsymmetric(), (F, G), sense, rule, constant(step_size), limit):
        if state.step == limit:
            break
        losses.append(state.reading.residual_square)
        if not np.isfinite(losses[-1]) or losses[-1] > STABLE * max(losses[0], size):
            break
        converged = losses[-1] <= tolerance**2 * size or _stalled(losses, tolerance)
        if converged:
            break
    F, G = state.params
    return SensedFactors(F, G, np.array(losses), converged, rule.solver)


def stable_descent(
    data: Responses, F: np.ndarray, G: np.ndarray, *, solver: str, step_size: float, limit: int, tolerance: float
) -> tuple[SensedFactors, float]:
    """The descent with the largest of the steps ``step_size / 2^k`` that does not diverge, and that step."""
    for halvings in range(HALVINGS):
        eta = step_size * 0.5**halvings
        with np.errstate(over="ignore", invalid="ignore"):  # divergence is what is looked for
            found = sensing_descent(data, F, G, solver=solver, step_size=eta, limit=limit, tolerance=tolerance)
        if found.fell:
            break
    return found, eta


def _stalled(losses: list[float], tolerance: float, span: int = 10) -> bool:
    return len(losses) > 5 * span and losses[-1] > (1 - tolerance) * losses[-1 - span]


class SolverRule(NumpyUpdateRule):
    """The update rule of a solver: ``"gd"``, ``"scaled"``, ``"prec"``, or one that is decided on during the descent.

    ``"imbalance"`` takes gradient steps and makes the imbalance step of Xiong 2024 once, when the residual is small. ``"auto"``
    does the same if the singular values are alike by then, and changes to PrecGD if they are not.
    """

    def __init__(self, solver: str):
        self.solver, self.decided = solver, solver not in ("imbalance", "auto")
        self.steps, self.first = 0, 0.0

    def __call__(
        self,
        model: NumpyModel,
        params: NumpyParams,
        reading: NumpyReading,
        step_size: float,
        ridge: float,
        spare: NumpyParams | None = None,
    ) -> NumpyParams:
        loss = reading.residual_square
        if self.steps == 0:
            self.first = loss
        if not self.decided and loss <= LATE**2 * self.first:
            params = self._decide(params, np.sqrt(loss), step_size)
        elif self.solver == "auto" and self.steps >= PATIENCE:
            self.solver, self.decided = "prec", True  # noise, or very different singular values: PrecGD suits both
        self.steps += 1
        return RULES[self.solver](model, params, reading, step_size, ridge, spare)

    def _decide(self, params: NumpyParams, residual: float, step_size: float) -> NumpyParams:
        """The factors after the imbalance step, or the same factors (``"auto"``, unequal singular values) for PrecGD."""
        self.decided, values = True, singular_values(params)
        if self.solver == "auto" and values[0] > ALIKE * least_above(values, residual):
            self.solver = "prec"
            return params
        self.solver = "imbalance"
        return imbalanced(params, automatic_beta(values, residual, step_size))


RULES: dict[str, NumpyUpdateRule] = {
    **dict.fromkeys(("auto", "gd", "imbalance"), NumpyGradientStep()),
    "scaled": NumpyPreconditioned(DAMPING),
    "prec": NumpyPreconditioned("residual"),
}
"""The update rule of every solver, as long as it has not changed to another."""


# --- rates ----------------------------------------------------------------------------------------


def predicted_rate(data: Responses, found: SensedFactors, step_size: float) -> float:
    """The rate of the loss at the point reached, ``-log(|e'|^2 / |e|^2)`` with ``e' = (I - eta J J^T) e``, linearised there.

    J is the Jacobian of the weighted measurements, preconditioned as in the solver, and e is the part of the residual in its
    range. Late in a descent, only the slowest direction is left in e, and this is ``-2 log(1 - eta lambda)``.
    It is NaN if the step is too long for the curvature (``eta lambda >= 2``), where descent only continues because it is
    nonlinear.
    """
    J = _jacobian(data, found)
    U, s, _ = np.linalg.svd(J, full_matrices=False)
    values = s**2
    if step_size * values[0] >= 2:
        return float("nan")
    moving = values > FLAT * values[0]
    e = np.sqrt(data.weights) * data.residual(found.F, found.G)
    c = (U.T @ (e if data.shared is None else data.shared.evened(e)))[moving]
    before, after = np.sum(c**2), np.sum((c * (1 - step_size * values[moving])) ** 2)
    return float(-np.log(after / before)) if after > 0 else float("nan")


def _jacobian(data: Responses, found: SensedFactors) -> np.ndarray:
    F, G, (n1, k) = found.F, found.G, found.F.shape
    J = data.operator.jacobian(F, G)
    if data.centred:
        J = np.stack([data.centre(column) for column in J.T], axis=1)
    J = J * np.sqrt(data.weights)[:, None]
    J = J if data.shared is None else data.shared.evened(J)
    if found.solver not in ("scaled", "prec"):
        return J
    damping = DAMPING if found.solver == "scaled" else np.sqrt(found.losses[-1])
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
