"""`Model`: the base class of all models."""

from __future__ import annotations

import abc
from typing import NamedTuple

from jaxtyping import Array, Float, Int

from gyrostat import errors
from gyrostat.errors import GyrostatError
from gyrostat.jax_tools.readable_modules import ReadableModule
from gyrostat.models.spaces import Space
from gyrostat.typing import Params


class Outer(NamedTuple):
    """The matrix ``left right^T``, kept as two vectors.

    >>> import numpy as np
    >>> pair = Outer(np.array([1.0, 2.0]), np.array([3.0, 0.0]))
    >>> pair.matrix.tolist(), float(pair.square)
    ([[3.0, 0.0], [6.0, 0.0]], 45.0)
    """

    left: Float[Array, " n"]
    right: Float[Array, " m"]

    @property
    def matrix(self) -> Float[Array, "n m"]:
        """The matrix with all its entries."""
        return self.left[:, None] * self.right

    @property
    def square(self) -> Float[Array, ""]:
        """The sum of the squares of its entries."""
        return (self.left @ self.left) * (self.right @ self.right)


class Model(ReadableModule):
    """A map from parameters (a tuple of arrays) to a product ``A(theta)``, and the pullback of a gradient.

    A model holds hyper-parameters only. Sizes come from the target, so one model serves every dimension.
    """

    @abc.abstractmethod
    def space(self, shape: tuple[int, ...]) -> Space:
        """The space of the product for a target of this shape; an error if the model cannot make such targets."""

    @abc.abstractmethod
    def shapes(self, shape: tuple[int, ...]) -> tuple[tuple[int, ...], ...]:
        """The shape of each parameter for a target of this shape."""

    @abc.abstractmethod
    def product(self, params: Params) -> Array:
        """``A(theta)``."""

    @abc.abstractmethod
    def pullback(self, params: Params, gradient: Array) -> Params:
        """The gradient with respect to the parameters, given the gradient with respect to the product."""

    def entry(self, params: Params, row: Int[Array, ""], column: Int[Array, ""]) -> Float[Array, ""]:
        """One entry of ``A(theta)``."""
        return self.product(params)[row, column]

    def entry_pullback(
        self, params: Params, row: Int[Array, ""], column: Int[Array, ""], slope: Float[Array, ""]
    ) -> tuple[Outer, ...] | None:
        """:meth:`pullback` of a gradient that is ``slope`` at one entry and zero elsewhere, as outer products.

        Only for models that are linear in each parameter and can do it with matrix-vector products; None for others.
        """
        return None

    @abc.abstractmethod
    def factor(self, params: Params) -> Array:
        """The parameters that act on the rows of the product, as one matrix with a row per coordinate: U of Xu 2024."""

    def cofactor(self, params: Params) -> Array | None:
        """The parameters that act on the columns of the product, likewise; None if they are those of :meth:`factor`."""
        return None

    def rank_limit(self, shape: tuple[int, ...]) -> int:
        """The largest rank that the product can have for a target of this shape."""
        return min(shape)

    def factorise(self, product: Array) -> Params:
        """Balanced parameters whose product is as close to the given one as the model allows."""
        raise NotImplementedError(f"{type(self).__name__} cannot factorise")

    def partners(self, params: Params) -> Params:
        """For each parameter, the matrix whose Gram matrix preconditions its gradient (ScaledGD, PrecGD)."""
        raise GyrostatError(f"{type(self).__name__} cannot be preconditioned: use Symmetric or Asymmetric.")

    @property
    def rotates(self) -> bool:
        """Whether an isometry of the coordinates of the product acts on the parameters through :meth:`rotated`."""
        return False

    def rotated(self, params: Params, left: Array, right: Array) -> Params:
        """The parameters in other coordinates of the product, which becomes ``left @ product @ right.T``."""
        return tuple(left @ p for p in params)


def width_of(model: str, width: int | None, dimension: int) -> int:
    """The number of columns of a factor: ``width`` if it is given, else the dimension."""
    return dimension if width is None else errors.integer(f"{model}'s width", width, least=1)
