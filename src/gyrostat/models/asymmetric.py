"""The asymmetric factorisation F G^T, for square and rectangular targets."""

from __future__ import annotations

import jax.numpy as jnp
from jaxtyping import Array, Float

from gyrostat import errors
from gyrostat.jax_tools.small_products import times
from gyrostat.models.base import Model, optional_width, space_of_matrices
from gyrostat.models.spaces import RectangularMatrices
from gyrostat.typing import Params


class Asymmetric(Model):
    """``A = F G^T`` with F of size n1 x width and G of size n2 x width (Xiong 2024, eq. 2.1).

    ``pullback((F, G), M) = (M G, M^T F)``, both with the old factors.

    Parameters
    ----------
    width
        The number of columns k of the factors; by default the smaller side of the target.

    >>> import numpy as np
    >>> Asymmetric().product((np.array([[1.0], [2.0]]), np.array([[3.0]]))).tolist()
    [[3.0], [6.0]]
    """

    width: int | None = errors.field(check=optional_width, static=True, default=None)

    rotates = True

    def space(self, shape: tuple[int, ...]) -> RectangularMatrices:
        return space_of_matrices(self, shape)

    def shapes(self, shape: tuple[int, ...]) -> tuple[tuple[int, ...], ...]:
        rows, columns = shape
        width = self.width or min(shape)
        return (rows, width), (columns, width)

    def product(self, params: Params) -> Float[Array, "n1 n2"]:
        F, G = params
        return times(F, G.T)

    def pullback(self, params: Params, gradient: Float[Array, "n1 n2"]) -> Params:
        F, G = params
        return times(gradient, G), times(gradient.T, F)

    def factor(self, params: Params) -> Float[Array, "n1 k"]:
        return params[0]

    def cofactor(self, params: Params) -> Float[Array, "n2 k"]:
        return params[1]

    def rank_limit(self, shape: tuple[int, ...]) -> int:
        return min(*shape, self.shapes(shape)[0][1])

    def factorise(self, product: Float[Array, "n1 n2"]) -> Params:
        width = self.shapes(product.shape)[0][1]
        U, s, Vt = jnp.linalg.svd(product, full_matrices=False)
        root = jnp.sqrt(s)
        pad = ((0, 0), (0, max(0, width - s.size)))
        return jnp.pad((U * root)[:, :width], pad), jnp.pad((Vt.T * root)[:, :width], pad)

    def partners(self, params: Params) -> Params:
        F, G = params
        return G, F

    def rotated(self, params: Params, left: Array, right: Array) -> Params:
        F, G = params
        return left @ F, right @ G
