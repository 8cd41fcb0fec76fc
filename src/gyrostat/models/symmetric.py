"""Symmetric factorisations: U U^T, and U U^T - V V^T for indefinite targets."""

from __future__ import annotations

from typing import ClassVar

import jax.numpy as jnp
from jaxtyping import Array, Float

from gyrostat import errors
from gyrostat.errors import GyrostatError
from gyrostat.jax_tools.small_products import times
from gyrostat.models.base import Model, optional_width
from gyrostat.models.spaces import SymmetricMatrices
from gyrostat.typing import Leaf, Params


class _SignedSquares(Model):
    """``A = sum_i s_i U_i U_i^T`` with given signs s_i and factors U_i of size d x width."""

    signs: ClassVar[tuple[int, ...]]

    width: int | None = errors.field(check=optional_width, static=True, default=None)
    gradient_factor: Leaf = errors.positive(default=1.0)

    rotates = True

    def space(self, shape: tuple[int, ...]) -> SymmetricMatrices:
        if len(shape) != 2 or shape[0] != shape[1]:
            raise GyrostatError(
                f"{type(self).__name__} makes square symmetric matrices; the target has shape {shape}: "
                "use Diagonal for a vector and Asymmetric for a rectangular matrix, or pass a square symmetric target."
            )
        return SymmetricMatrices(shape[0])

    def shapes(self, shape: tuple[int, ...]) -> tuple[tuple[int, ...], ...]:
        return ((shape[0], self.width or shape[0]),) * len(self.signs)

    def product(self, params: Params) -> Float[Array, "d d"]:
        first, *others = (sign * times(U, U.T) for sign, U in zip(self.signs, params, strict=True))
        return sum(others, start=first)

    def pullback(self, params: Params, gradient: Float[Array, "d d"]) -> Params:
        pairs = zip(self.signs, params, strict=True)
        return tuple(sign * self.gradient_factor * times(gradient, U) for sign, U in pairs)

    def factor(self, params: Params) -> Float[Array, "d k"]:
        return jnp.concatenate(params, axis=1)

    def rank_limit(self, shape: tuple[int, ...]) -> int:
        return min(shape[0], sum(columns for _, columns in self.shapes(shape)))

    def factorise(self, product: Float[Array, "d d"]) -> Params:
        d, width = self.shapes(product.shape)[0]
        values, vectors = jnp.linalg.eigh(product)  # the smallest first
        factors = []
        for sign in self.signs:
            order = slice(None, None, -sign)  # the largest of its sign first; those of the other sign count as zero
            U = vectors[:, order] * jnp.sqrt(jnp.maximum(sign * values[order], 0.0))
            factors.append(jnp.pad(U[:, :width], ((0, 0), (0, max(0, width - d)))))
        return tuple(factors)

    def partners(self, params: Params) -> Params:
        return params


class Symmetric(_SignedSquares):
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

    signs = (1,)


class SymmetricDifference(_SignedSquares):
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

    signs = (1, -1)
