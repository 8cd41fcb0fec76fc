"""The models of :mod:`gyrostat.models` in NumPy, for many runs at once and without JAX.

Parameters are tuples of arrays with leading axes for runs: ``U`` is (runs, d, width), or (d, width) for a single run. A
function that is given ``spare`` (contiguous arrays of the shapes of the parameters) may overwrite them: for the arrays of a
laboratory's sliders, allocating new memory takes longer than computing what goes there.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np

from gyrostat.errors import GyrostatError

NumpyParams = tuple[np.ndarray, ...]


class NumpyModel(ABC):
    """A map from parameters to a product ``A(theta)``, and the rule that pulls a gradient back, as in ``gyrostat.Model``."""

    @abstractmethod
    def product(
        self, params: NumpyParams, out: np.ndarray | None = None, spare: NumpyParams | None = None
    ) -> np.ndarray:
        """``A(theta)``, written to ``out`` if it is given."""

    @abstractmethod
    def pullback(self, params: NumpyParams, gradient: Any) -> NumpyParams:
        """The direction in parameter space for a gradient with respect to the product."""

    def gradient_step(
        self, params: NumpyParams, gradient: Any, step_size: float, keep: float, spare: NumpyParams | None = None
    ) -> NumpyParams:
        """``keep * theta - step_size * pullback(theta, gradient)``. The gradient may be overwritten."""
        directions = self.pullback(params, gradient)
        return tuple(keep * p - step_size * g for p, g in zip(params, directions, strict=True))

    def partners(self, params: NumpyParams) -> NumpyParams:
        """For each parameter, the matrix whose Gram matrix preconditions its gradient (ScaledGD, PrecGD)."""
        raise GyrostatError(f"{type(self).__name__} cannot be preconditioned.")

    def squared_norm(self, params: NumpyParams, product: np.ndarray) -> np.ndarray:
        """The sum of the squares of all parameters of each run; ``product`` is ``A(theta)``."""
        return sum(np.sum(p * p, axis=tuple(range(1, p.ndim))) for p in params)


class NumpySymmetric(NumpyModel):
    """``A = U U^T`` with ``pullback(U, G) = gradient_factor * G U``.

    >>> model, U = NumpySymmetric(), np.array([[[1.0], [2.0]]])
    >>> model.product((U,)).tolist(), model.pullback((U,), np.eye(2)[None])[0].tolist()
    ([[[1.0, 2.0], [2.0, 4.0]]], [[[1.0], [2.0]]])
    """

    def __init__(self, gradient_factor: float = 1.0):
        self.gradient_factor = gradient_factor

    def product(
        self, params: NumpyParams, out: np.ndarray | None = None, spare: NumpyParams | None = None
    ) -> np.ndarray:
        (U,) = params
        return np.matmul(U, _transposed(U, None if spare is None else spare[0]), out=out)

    def pullback(self, params: NumpyParams, gradient: np.ndarray) -> NumpyParams:
        (U,) = params
        return (self.gradient_factor * (gradient @ U),)

    def gradient_step(
        self,
        params: NumpyParams,
        gradient: np.ndarray,
        step_size: float,
        keep: float,
        spare: NumpyParams | None = None,
    ) -> NumpyParams:
        (U,) = params
        # (keep I - eta G) U takes one pass less over U than keep U - eta (G U).
        gradient *= -step_size * self.gradient_factor
        add_to_diagonal(gradient, keep)
        return (np.matmul(gradient, U, out=None if spare is None else spare[0]),)

    def partners(self, params: NumpyParams) -> NumpyParams:
        return params

    def squared_norm(self, params: NumpyParams, product: np.ndarray) -> np.ndarray:
        return np.trace(product, axis1=-2, axis2=-1)


class NumpySymmetricDifference(NumpyModel):
    """``A = U U^T - V V^T`` with ``pullback((U, V), G) = gradient_factor * (G U, -G V)``.

    >>> NumpySymmetricDifference().product((np.eye(2), 2 * np.eye(2))).tolist()
    [[-3.0, 0.0], [0.0, -3.0]]
    """

    def __init__(self, gradient_factor: float = 1.0):
        self.gradient_factor = gradient_factor

    def product(
        self, params: NumpyParams, out: np.ndarray | None = None, spare: NumpyParams | None = None
    ) -> np.ndarray:
        U, V = params
        A = np.matmul(U, U.mT, out=out)
        A -= V @ V.mT
        return A

    def pullback(self, params: NumpyParams, gradient: np.ndarray) -> NumpyParams:
        U, V = params
        return self.gradient_factor * (gradient @ U), -self.gradient_factor * (gradient @ V)

    def partners(self, params: NumpyParams) -> NumpyParams:
        return params


class NumpyDiagonal(NumpyModel):
    """``beta = u * u - v * v`` with ``pullback((u, v), g) = gradient_factor * (g * u, -g * v)``.

    >>> NumpyDiagonal().product((np.array([2.0, 1.0]), np.array([1.0, 1.0]))).tolist()
    [3.0, 0.0]
    """

    def __init__(self, gradient_factor: float = 1.0):
        self.gradient_factor = gradient_factor

    def product(
        self, params: NumpyParams, out: np.ndarray | None = None, spare: NumpyParams | None = None
    ) -> np.ndarray:
        u, v = params
        beta = np.multiply(u, u, out=out)
        beta -= v * v
        return beta

    def pullback(self, params: NumpyParams, gradient: np.ndarray) -> NumpyParams:
        u, v = params
        g = self.gradient_factor * gradient
        return g * u, -g * v

    def gradient_step(
        self,
        params: NumpyParams,
        gradient: np.ndarray,
        step_size: float,
        keep: float,
        spare: NumpyParams | None = None,
    ) -> NumpyParams:
        u, v = params
        # (keep - eta g) u and (keep + eta g) v take fewer passes than the pullback.
        gradient *= step_size * self.gradient_factor
        return (keep - gradient) * u, (keep + gradient) * v


class NumpyAsymmetric(NumpyModel):
    """``A = F G^T`` with ``pullback((F, G), M) = (M G, M^T F)``.

    The gradient M may be an array or anything with ``@`` and ``mT``, such as a sum of outer products that is never written out.

    >>> NumpyAsymmetric().product((np.array([[1.0], [2.0]]), np.array([[3.0]]))).tolist()
    [[3.0], [6.0]]
    """

    def product(
        self, params: NumpyParams, out: np.ndarray | None = None, spare: NumpyParams | None = None
    ) -> np.ndarray:
        F, G = params
        return np.matmul(F, G.mT, out=out)

    def pullback(self, params: NumpyParams, gradient: Any) -> NumpyParams:
        F, G = params
        return gradient @ G, gradient.mT @ F

    def partners(self, params: NumpyParams) -> NumpyParams:
        F, G = params
        return G, F


def _transposed(U: np.ndarray, spare: np.ndarray | None) -> np.ndarray:
    """A copy of the transposed matrices: with a transposed view, a product takes half as long again."""
    if spare is None:
        return np.ascontiguousarray(U.mT)
    copy = spare.reshape(U.mT.shape)
    np.copyto(copy, U.mT)
    return copy


def add_to_diagonal(matrices: np.ndarray, numbers: float | np.ndarray) -> None:
    """Add numbers, broadcast to (..., d), to the diagonals of contiguous matrices (..., d, d), in place."""
    matrices.reshape(*matrices.shape[:-2], -1)[..., :: matrices.shape[-1] + 1] += numbers
