"""The diagonal model u * u - v * v: linear regression with over-parameterised coefficients."""

from __future__ import annotations

import jax.numpy as jnp
from jaxtyping import Array, Float

from gyrostat import errors
from gyrostat.errors import GyrostatError
from gyrostat.models.base import Model
from gyrostat.models.spaces import Vectors
from gyrostat.typing import Leaf, Params


class Diagonal(Model):
    """``beta = u * u - v * v``: the diagonal of :class:`SymmetricDifference`, for regression ``y = <x, beta>``.

    ``pullback((u, v), g) = (g * u, -g * v)``.

    Parameters
    ----------
    gradient_factor
        A factor of the gradient: 1 as printed in eq. (3) of Xu 2024, 2 for the true gradient of its loss.

    >>> import numpy as np
    >>> Diagonal().product((np.array([2.0, 1.0]), np.array([1.0, 1.0]))).tolist()
    [3.0, 0.0]
    """

    gradient_factor: Leaf = errors.positive(default=1.0)

    def space(self, shape: tuple[int, ...]) -> Vectors:
        if len(shape) != 1:
            raise GyrostatError(
                f"Diagonal makes a vector of coefficients; the target has shape {shape}: "
                "use Symmetric or SymmetricDifference for matrices, or Environments of vectors."
            )
        return Vectors(shape[0])

    def shapes(self, shape: tuple[int, ...]) -> tuple[tuple[int, ...], ...]:
        return shape, shape

    def product(self, params: Params) -> Float[Array, " p"]:
        u, v = params
        return u * u - v * v

    def pullback(self, params: Params, gradient: Float[Array, " p"]) -> Params:
        u, v = params
        return self.gradient_factor * gradient * u, -self.gradient_factor * gradient * v

    def factor(self, params: Params) -> Float[Array, "p 2"]:
        return jnp.stack(params, axis=1)
