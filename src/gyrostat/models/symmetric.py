"""Symmetric factorisations: U U^T, and U U^T - V V^T for indefinite targets."""

from __future__ import annotations

import jax.numpy as jnp
from jaxtyping import Array, Float

from gyrostat import errors
from gyrostat.errors import GyrostatError
from gyrostat.jax_tools.small_products import times
from gyrostat.models.base import Model, optional_width
from gyrostat.models.spaces import SymmetricMatrices
from gyrostat.typing import Leaf, Params


class _SymmetricFactors(Model):
    """What :class:`Symmetric` and :class:`SymmetricDifference` share: factors of size d x width."""

    width: int | None = errors.field(check=optional_width, static=True, default=None)
    gradient_factor: Leaf = errors.positive(default=1.0)

    def space(self, shape: tuple[int, ...]) -> SymmetricMatrices:
        if len(shape) != 2 or shape[0] != shape[1]:
            raise GyrostatError(
                f"{type(self).__name__} makes square symmetric matrices; the target has shape {shape}: "
                "use Diagonal for a vector and Asymmetric for a rectangular matrix, or pass a square symmetric target."
            )
        return SymmetricMatrices(shape[0])

    def _columns(self, shape: tuple[int, ...]) -> int:
        return self.width or shape[0]

    def partners(self, params: Params) -> Params:
        return params

    @property
    def rotates(self) -> bool:
        return True


def _root(values: Float[Array, " d"], vectors: Float[Array, "d d"], width: int) -> Float[Array, "d width"]:
    """A factor of the part of a matrix with the ``width`` largest eigenvalues; negative ones are dropped."""
    scaled = vectors * jnp.sqrt(jnp.maximum(values, 0.0))
    kept = scaled[:, ::-1][:, :width]
    return jnp.pad(kept, ((0, 0), (0, width - kept.shape[1])))


class Symmetric(_SymmetricFactors):
    """``A = U U^T`` with U of size d x width (Xu 2024, eq. 3).

    ``pullback(U, G) = factor * G U``. The factor is 1 as printed in eq. (3); the true gradient of the loss (2)
    has a 2, and with it the step size of the paper's Figure 6 diverges.

    Parameters
    ----------
    width
        The number of columns of U; by default d.
    gradient_factor
        A factor of the gradient: 1 as printed in eq. (3) of Xu 2024, 2 for the true gradient of its loss.

    >>> import numpy as np
    >>> Symmetric().product((np.array([[1.0], [2.0]]),)).tolist()
    [[1.0, 2.0], [2.0, 4.0]]
    """

    def shapes(self, shape: tuple[int, ...]) -> tuple[tuple[int, ...], ...]:
        return ((shape[0], self._columns(shape)),)

    def product(self, params: Params) -> Float[Array, "d d"]:
        (U,) = params
        return times(U, U.T)

    def pullback(self, params: Params, gradient: Float[Array, "d d"]) -> Params:
        (U,) = params
        return (self.gradient_factor * times(gradient, U),)

    def factor(self, params: Params) -> Float[Array, "d k"]:
        return params[0]

    def rank_limit(self, shape: tuple[int, ...]) -> int:
        return min(self.shapes(shape)[0])

    def factorise(self, product: Float[Array, "d d"]) -> Params:
        values, vectors = jnp.linalg.eigh(product)
        return (_root(values, vectors, self._columns(product.shape)),)


class SymmetricDifference(_SymmetricFactors):
    """``A = U U^T - V V^T``: the parameterisation for indefinite targets (Xu 2024, end of section 3.1).

    ``pullback((U, V), G) = (G U, -G V)``, so U grows in the directions in which V shrinks.

    Parameters
    ----------
    width
        The number of columns of U and of V; by default d.
    gradient_factor
        A factor of the gradient: 1 as printed in eq. (3) of Xu 2024, 2 for the true gradient of its loss.

    >>> import numpy as np
    >>> SymmetricDifference().product((np.eye(2), 2 * np.eye(2))).tolist()
    [[-3.0, 0.0], [0.0, -3.0]]
    """

    def shapes(self, shape: tuple[int, ...]) -> tuple[tuple[int, ...], ...]:
        return ((shape[0], self._columns(shape)),) * 2

    def product(self, params: Params) -> Float[Array, "d d"]:
        U, V = params
        return times(U, U.T) - times(V, V.T)

    def pullback(self, params: Params, gradient: Float[Array, "d d"]) -> Params:
        U, V = params
        return self.gradient_factor * times(gradient, U), -self.gradient_factor * times(gradient, V)

    def factor(self, params: Params) -> Float[Array, "d k"]:
        return jnp.concatenate(params, axis=1)

    def rank_limit(self, shape: tuple[int, ...]) -> int:
        return min(shape[0], 2 * self._columns(shape))

    def factorise(self, product: Float[Array, "d d"]) -> Params:
        values, vectors = jnp.linalg.eigh(product)
        width = self._columns(product.shape)
        return _root(values, vectors, width), _root(-values[::-1], vectors[:, ::-1], width)
