"""Update rules in NumPy, without JAX: gradient steps, preconditioned steps, momentum, Adam, and the imbalance step.

They compute what the rules of :mod:`gyrostat.algorithms.update_rules` and ``rules_with_memory`` and the event
:class:`gyrostat.algorithms.events.ImbalanceStep` compute; tests compare them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from gyrostat.engine.numpy_backend.models import NumpyModel, NumpyParams, add_to_diagonal

MARGIN = 2.0
"""As in :mod:`gyrostat.algorithms.events`, which cannot be imported without JAX; a test compares the two."""


class NumpyReading(NamedTuple):
    """What one step sees: the gradient with respect to the product, and the mean square residual of each run."""

    gradient: Any
    residual_square: Any = float("nan")


class NumpyUpdateRule:
    """How a gradient moves the parameters. The rule may overwrite the gradient, its memory and ``spare``.

    As in JAX, a rule without memory defines :meth:`__call__`, and a rule with memory :meth:`init` and :meth:`update`.
    """

    def init(self, params: NumpyParams) -> Any:
        """The memory before the first step: none by default."""
        return None

    def update(
        self,
        memory: Any,
        model: NumpyModel,
        params: NumpyParams,
        reading: NumpyReading,
        step_size: float,
        ridge: float,
        spare: NumpyParams | None = None,
    ) -> tuple[NumpyParams, Any]:
        """The parameters after the step, and the new memory."""
        return self(model, params, reading, step_size, ridge, spare), memory

    def __call__(
        self,
        model: NumpyModel,
        params: NumpyParams,
        reading: NumpyReading,
        step_size: float,
        ridge: float,
        spare: NumpyParams | None = None,
    ) -> NumpyParams:
        """The parameters after the step of a rule without memory."""
        raise NotImplementedError(f"{type(self).__name__} has memory: call update")


@dataclass(frozen=True)
class NumpyGradientStep(NumpyUpdateRule):
    """``theta <- (1 - decay * step_size * ridge) theta - step_size * pullback(theta, G)``.

    >>> from gyrostat.engine.numpy_backend.models import NumpyDiagonal
    >>> theta, reading = (np.array([1.0]), np.array([1.0])), NumpyReading(np.array([2.0]))
    >>> [p.tolist() for p in NumpyGradientStep()(NumpyDiagonal(), theta, reading, 0.25, 0.0)]
    [[0.5], [1.5]]
    """

    decay: float = 2.0

    def __call__(
        self,
        model: NumpyModel,
        params: NumpyParams,
        reading: NumpyReading,
        step_size: float,
        ridge: float,
        spare: NumpyParams | None = None,
    ) -> NumpyParams:
        return model.gradient_step(params, reading.gradient, step_size, 1 - self.decay * step_size * ridge, spare)


@dataclass(frozen=True)
class NumpyPreconditioned(NumpyUpdateRule):
    """``F <- F - step_size * (M G) (G^T G + damping I)^-1`` and likewise for G: ScaledGD, or PrecGD with ``"residual"``."""

    damping: float | str = 0.0

    def __call__(
        self,
        model: NumpyModel,
        params: NumpyParams,
        reading: NumpyReading,
        step_size: float,
        ridge: float,
        spare: NumpyParams | None = None,
    ) -> NumpyParams:
        damping = np.sqrt(reading.residual_square) if isinstance(self.damping, str) else self.damping
        keep = 1 - 2 * step_size * ridge

        def moved(p: np.ndarray, direction: np.ndarray, partner: np.ndarray) -> np.ndarray:
            gram = partner.mT @ partner
            # At the floor of rounding a Gram matrix of superfluous columns is singular, and the step would be noise.
            floor = np.finfo(gram.dtype).eps * np.trace(gram, axis1=-2, axis2=-1)
            add_to_diagonal(gram, (damping + floor)[..., None])
            return keep * p - step_size * np.linalg.solve(gram, direction.mT).mT

        directions = model.pullback(params, reading.gradient)
        return tuple(map(moved, params, directions, model.partners(params)))


@dataclass(frozen=True)
class NumpyMomentum(NumpyUpdateRule):
    """``m <- beta m + g``, then ``theta <- theta - step_size m``, or with ``looks_ahead`` a step of ``g + beta m`` (Nesterov).

    >>> from gyrostat.engine.numpy_backend.models import NumpyDiagonal
    >>> theta, reading = (np.array([1.0]), np.array([1.0])), NumpyReading(np.array([2.0]))
    >>> rule = NumpyMomentum(0.5)
    >>> once, memory = rule.update(rule.init(theta), NumpyDiagonal(), theta, reading, 0.25, 0.0)
    >>> twice, memory = rule.update(memory, NumpyDiagonal(), once, reading, 0.25, 0.0)
    >>> [p.tolist() for p in twice]
    [[0.0], [2.5]]
    """

    beta: float
    looks_ahead: bool = False
    decay: float = 2.0

    def init(self, params: NumpyParams) -> NumpyParams:
        return tuple(np.zeros_like(p) for p in params)

    def update(
        self,
        memory: Any,
        model: NumpyModel,
        params: NumpyParams,
        reading: NumpyReading,
        step_size: float,
        ridge: float,
        spare: NumpyParams | None = None,
    ) -> tuple[NumpyParams, Any]:
        directions = _directions(model, params, reading, ridge, self.decay)
        for m, g in zip(memory, directions, strict=True):
            m *= self.beta
            m += g
        steps = memory
        if self.looks_ahead:
            steps = tuple(g + self.beta * m for m, g in zip(memory, directions, strict=True))
        return tuple(p - step_size * s for p, s in zip(params, steps, strict=True)), memory


@dataclass(frozen=True)
class NumpyAdam(NumpyUpdateRule):
    """Adam, as :class:`gyrostat.Adam`; the memory is the number of steps and the two running means.

    >>> NumpyAdam().init((np.ones(2),))
    (0, (array([0., 0.]),), (array([0., 0.]),))
    """

    beta1: float = 0.9
    beta2: float = 0.999
    epsilon: float = 1e-8
    decay: float = 2.0

    def init(self, params: NumpyParams) -> tuple[int, NumpyParams, NumpyParams]:
        return 0, tuple(np.zeros_like(p) for p in params), tuple(np.zeros_like(p) for p in params)

    def update(
        self,
        memory: Any,
        model: NumpyModel,
        params: NumpyParams,
        reading: NumpyReading,
        step_size: float,
        ridge: float,
        spare: NumpyParams | None = None,
    ) -> tuple[NumpyParams, Any]:
        t, means, squares = memory[0] + 1, memory[1], memory[2]
        for m, v, g in zip(means, squares, _directions(model, params, reading, ridge, self.decay), strict=True):
            m *= self.beta1
            m += (1 - self.beta1) * g
            v *= self.beta2
            v += (1 - self.beta2) * g * g
        mean_scale, square_scale = 1 / (1 - self.beta1**t), 1 / (1 - self.beta2**t)
        steps = (
            mean_scale * m / (np.sqrt(square_scale * v) + self.epsilon) for m, v in zip(means, squares, strict=True)
        )
        return tuple(p - step_size * s for p, s in zip(params, steps, strict=True)), (t, means, squares)


def _directions(
    model: NumpyModel, params: NumpyParams, reading: NumpyReading, ridge: float, decay: float
) -> NumpyParams:
    gradients = model.pullback(params, reading.gradient)
    return tuple(g + decay * ridge * p for p, g in zip(params, gradients, strict=True)) if ridge else gradients


def imbalanced(params: NumpyParams, beta: float) -> NumpyParams:
    """The factors after the imbalance step of Xiong 2024: same product, ``F^T F = beta^2 I``.

    >>> F, G = np.array([[2.0], [0.0]]), np.array([[1.0], [1.0]])
    >>> [x.tolist() for x in imbalanced((F, G), 1.0)]
    [[[1.0], [0.0]], [[2.0], [2.0]]]
    """
    F, G = params
    A, s, Vt = np.linalg.svd(F, full_matrices=False)
    return beta * A, (G @ Vt.T) * (s / beta)


def singular_values(params: NumpyParams) -> np.ndarray:
    """Those of ``F G^T``, without writing it out."""
    F, G = params
    return np.linalg.svd(np.linalg.qr(F)[1] @ np.linalg.qr(G)[1].T, compute_uv=False)


def least_above(values: np.ndarray, residual: float) -> float:
    """The smallest singular value above twice the residual (the largest value if none is): an estimate of sigma_r."""
    return float(min(values[values > MARGIN * residual], default=values[0]))


def automatic_beta(values: np.ndarray, residual: float, step_size: float) -> float:
    """The beta of :func:`gyrostat.algorithms.events.automatic_beta`, from the singular values of the product.

    >>> automatic_beta(np.array([1.0, 0.25, 1e-3]), 0.01, 0.04)
    0.5
    """
    return float(max(np.sqrt(least_above(values, residual)), values[0] * np.sqrt(step_size)))
