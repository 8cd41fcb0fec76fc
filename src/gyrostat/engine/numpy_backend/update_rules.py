"""Update rules in NumPy, without JAX: gradient steps, preconditioned steps, and the imbalance step of Xiong 2024.

They compute what the rules of :mod:`gyrostat.algorithms.update_rules` and the event
:class:`gyrostat.algorithms.events.ImbalanceStep` compute; tests compare them.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

import numpy as np

from gyrostat.engine.numpy_backend.models import NumpyModel, NumpyParams, add_to_diagonal

MARGIN = 2.0
"""As in :mod:`gyrostat.algorithms.events`, which cannot be imported without JAX; a test compares the two."""


class NumpyReading(NamedTuple):
    """What one step sees: the gradient with respect to the product, and the mean square residual of each run."""

    gradient: Any
    residual_square: Any = float("nan")


class NumpyUpdateRule(Protocol):
    """How a gradient moves the parameters. The rule may overwrite the gradient and ``spare``."""

    def __call__(
        self,
        model: NumpyModel,
        params: NumpyParams,
        reading: NumpyReading,
        step_size: float,
        ridge: float,
        spare: NumpyParams | None = None,
    ) -> NumpyParams: ...


class NumpyGradientStep(NamedTuple):
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


class NumpyPreconditioned(NamedTuple):
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
