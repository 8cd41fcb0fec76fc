"""`Model`: the base class of all models."""

from __future__ import annotations

import abc
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from gyrostat import errors
from gyrostat.errors import GyrostatError
from gyrostat.jax_tools.readable_modules import ReadableModule
from gyrostat.models.spaces import RectangularMatrices, Space, space_of
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

    A subclass defines :meth:`shapes` and :meth:`product`. The pullback is the derivative of the product unless a faster one
    is given. :meth:`from_function` makes a model without a class.

    >>> import jax.numpy as jnp
    >>> class Squares(Model):
    ...     def shapes(self, shape):
    ...         return (shape,)
    ...     def product(self, params):
    ...         return params[0] ** 2
    >>> Squares().pullback((jnp.array([1.0, 3.0]),), jnp.array([1.0, 10.0]))[0].tolist()
    [2.0, 60.0]
    """

    @staticmethod
    def from_function(
        product: Callable[..., Any],
        shapes: Sequence[tuple[int, ...]] | Callable[[tuple[int, ...]], Sequence[tuple[int, ...]]],
        *,
        symmetric: bool = False,
        factor: Callable[..., Any] | None = None,
    ) -> Model:
        """A model whose product is any differentiable function of its parameters.

        Parameters
        ----------
        product
            ``product(*params)`` gives an array of the shape of the target, computed with ``jax.numpy``. It may use data of
            its own, such as the inputs of a network. Every new function is compiled again, so define it once, outside the
            code that builds the settings of a grid.
        shapes
            The shape of every parameter: a list, or a function of the shape of the target.
        symmetric
            Whether every product is a symmetric matrix. Gaussian measurements are then symmetric, as in Xu 2024.
        factor
            ``factor(*params)`` gives a matrix with a row for each row of the product: what the diagnostic ``error`` and the
            other diagnostics of factors look at. Without it they are refused.

        >>> import jax.numpy as jnp
        >>> import gyrostat as gs
        >>> cubes = gs.Model.from_function(lambda w: w**3, [(2,)])
        >>> problem = gs.Problem(gs.VectorEnvironments([1.0, 0.125]), gs.Identity())
        >>> found = gs.run(gs.PooledGD(0.1, init_scale=0.5, model=cubes), problem, num_steps=400)
        >>> bool(found.distance.isel(step=-1) < 1e-6)
        True
        """
        from gyrostat.models.function_model import FunctionModel

        return FunctionModel(product, shapes, symmetric, factor)

    def space(self, shape: tuple[int, ...]) -> Space:
        """The space of the product for a target of this shape; an error if the model cannot make such targets."""
        return space_of(shape)

    @abc.abstractmethod
    def shapes(self, shape: tuple[int, ...]) -> tuple[tuple[int, ...], ...]:
        """The shape of each parameter for a target of this shape."""

    @abc.abstractmethod
    def product(self, params: Params) -> Array:
        """``A(theta)``."""

    def pullback(self, params: Params, gradient: Array) -> Params:
        """The gradient with respect to the parameters, given the gradient with respect to the product.

        By default the vector-Jacobian product of :meth:`product`.
        """
        params = tuple(jnp.asarray(p) for p in params)
        product, transposed = jax.vjp(self.product, params)
        return transposed(jnp.asarray(gradient, dtype=product.dtype))[0]

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

    @property
    def has_factor(self) -> bool:
        """Whether :meth:`factor` is defined."""
        return type(self).factor is not Model.factor

    def factor(self, params: Params) -> Array:
        """The parameters that act on the rows of the product, as one matrix with a row per coordinate: U of Xu 2024."""
        raise GyrostatError(
            f"{type(self).__name__} has no factor, which error and other diagnostics of factors look at: record signal, "
            "spurious, distance or full_loss instead, or define its factor."
        )

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


def optional_width(name: str, value: int | None) -> int | None:
    """The number of columns of a factor; None leaves it to the target."""
    return None if value is None else errors.integer(name, value, least=1)


def space_of_matrices(model: Model, shape: tuple[int, ...]) -> RectangularMatrices:
    """The space of a model that makes matrices of any two sides."""
    if len(shape) != 2:
        raise GyrostatError(
            f"{type(model).__name__} makes matrices; the target has shape {shape}: use Diagonal for a vector."
        )
    return RectangularMatrices(*shape)
