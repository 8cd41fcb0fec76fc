"""Descent on two factors with given measurements: the algorithms of Xiong 2024 and its peers on the NumPy backend."""

from __future__ import annotations

from typing import Any, NamedTuple

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

STABLE = 1e3
"""A descent whose loss is this many times the first one has diverged."""
LATE = 0.02
"""The share of the first residual at which the imbalance step is made, and "auto" chooses (docs/descent.md)."""
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


class SensedFactors(NamedTuple):
    """Factors at the end, the losses of all steps, whether the descent converged, and the solver that it ended with."""

    F: np.ndarray
    G: np.ndarray
    losses: np.ndarray
    converged: bool
    solver: str


def sensing_descent(
    data: Responses, F: np.ndarray, G: np.ndarray, *, solver: str, step_size: float, limit: int, tolerance: float
) -> SensedFactors:
    """Steps until the loss falls by less than ``tolerance`` of itself in ten steps, or to ``tolerance**2`` of the data."""
    rule, weights, losses, converged = SolverRule(solver), data.weights, [], False
    size = float(weights @ data.centre(data.y) ** 2)

    def sense(state: DescentState) -> NumpyReading:
        e = data.residual(*state.params)
        return NumpyReading(data.operator.gradient(weights * e), float(weights @ e**2))

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


def _stalled(losses: list[float], tolerance: float, span: int = 10) -> bool:
    return len(losses) > 5 * span and losses[-1] > (1 - tolerance) * losses[-1 - span]


class SolverRule:
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
