"""The deep linear network W_L ... W_1, for square and rectangular targets."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from gyrostat import errors
from gyrostat.errors import GyrostatError
from gyrostat.jax_tools.sequential_lapack import after
from gyrostat.jax_tools.small_products import times
from gyrostat.models.base import Model, Outer, optional_width, space_of_matrices
from gyrostat.models.spaces import RectangularMatrices
from gyrostat.typing import Params


class DeepLinear(Model):
    """``A = W_L ... W_1`` with W_l of size w_l x w_(l-1), w_0 the columns and w_L the rows of the target (Wang 2023).

    ``pullback(W, G)_l = (W_L ... W_(l+1))^T G (W_(l-1) ... W_1)^T``, all with the old layers.

    Parameters
    ----------
    depth
        The number L of layers.
    width
        The width of every hidden layer; by default the smaller side of the target.
    widths
        All of w_0, ..., w_L, instead of ``depth`` and ``width``.

    >>> import numpy as np
    >>> DeepLinear(3, 100).shapes((2, 5))
    ((100, 5), (100, 100), (2, 100))
    >>> DeepLinear().product((np.array([[2.0]]), np.array([[3.0]]), np.array([[1.0], [5.0]]))).tolist()
    [[6.0], [30.0]]
    """

    depth: int = eqx.field(static=True)
    width: int | None = eqx.field(static=True)
    widths: tuple[int, ...] | None = eqx.field(static=True)

    rotates = True

    def __init__(self, depth: int | None = None, width: int | None = None, *, widths: Sequence[int] | None = None):
        if widths is not None:
            if not (depth is None and width is None):
                raise GyrostatError("widths already says the depth and every width: leave depth and width out.")
            if not isinstance(widths, Sequence | np.ndarray) or isinstance(widths, str) or len(widths) == 0:
                raise GyrostatError(
                    "widths must list w_0, ..., w_L, the columns of the target first and its rows last; "
                    f"got {errors.shown(widths)}."
                )
            widths = tuple(errors.integer("widths", w, least=1) for w in widths)
            depth = len(widths) - 1
        why = " (a single layer is the matrix itself and has no hidden layer)"
        self.depth = errors.integer("depth", 3 if depth is None else depth, least=2, least_because=why)
        self.width, self.widths = optional_width("width", width), widths

    def arguments(self) -> Mapping[str, Any]:
        if self.widths is not None:
            return {"widths": self.widths}
        return {"depth": self.depth, "width": self.width}

    def space(self, shape: tuple[int, ...]) -> RectangularMatrices:
        return space_of_matrices(self, shape)

    def shapes(self, shape: tuple[int, ...]) -> tuple[tuple[int, ...], ...]:
        rows, columns = shape
        widths = self.widths or (columns, *[self.width or min(shape)] * (self.depth - 1), rows)
        if (widths[0], widths[-1]) != (columns, rows):
            raise GyrostatError(
                f"widths {widths} do not chain with a target of {rows} rows and {columns} columns: "
                f"begin with {columns} and end with {rows}."
            )
        return tuple(zip(widths[1:], widths[:-1], strict=True))

    def product(self, params: Params) -> Float[Array, "n1 n2"]:
        return forward(params)[-1]

    def pullback(self, params: Params, gradient: Float[Array, "n1 n2"]) -> Params:
        return directions(params, gradient)

    def entry(self, params: Params, row: Int[Array, ""], column: Int[Array, ""]) -> Float[Array, ""]:
        *rest, last = params
        return last[row] @ _images(tuple(rest), column)[-1]

    def entry_pullback(
        self, params: Params, row: Int[Array, ""], column: Int[Array, ""], slope: Float[Array, ""]
    ) -> tuple[Outer, ...]:
        *rest, last = params
        ahead = [jnp.equal(jnp.arange(rest[0].shape[1]), column).astype(float), *_images(tuple(rest), column)]
        back = [slope * last[row]]
        for W in rest[:0:-1]:
            back.append(back[-1] @ W)
        lefts = [*back[::-1], slope * jnp.equal(jnp.arange(len(last)), row)]
        # A layer is updated only after the products that use it: otherwise XLA would keep a copy of it for them.
        lefts = [lefts[0], *(after(before, left) for before, left in itertools.pairwise(lefts))]
        return tuple(map(Outer, lefts, ahead))

    def factor(self, params: Params) -> Float[Array, "n1 k"]:
        return params[-1]

    def cofactor(self, params: Params) -> Float[Array, "n2 k"]:
        return params[0].T

    def rank_limit(self, shape: tuple[int, ...]) -> int:
        return min(min(s) for s in self.shapes(shape))

    def factorise(self, product: Float[Array, "n1 n2"]) -> Params:
        shapes, rank = self.shapes(product.shape), self.rank_limit(product.shape)
        U, s, Vt = jnp.linalg.svd(product, full_matrices=False)
        root = s[:rank] ** (1 / self.depth)
        ends = [Vt[:rank].T, *(jnp.eye(w, rank) for w, _ in shapes[:-1]), U[:, :rank]]
        return tuple((after * root) @ before.T for before, after in itertools.pairwise(ends))

    def rotated(self, params: Params, left: Array, right: Array) -> Params:
        first, *hidden, last = params
        return first @ right.T, *hidden, left @ last


def forward(layers: Params) -> list[Array]:
    """W_1, W_2 W_1, ..., W_L ... W_1, each with as many columns as the target."""
    products = [layers[0]]
    for W in layers[1:]:
        products.append(times(W, products[-1]))
    return products


def _images(layers: Params, column: Int[Array, ""]) -> list[Array]:
    """One column of each product of :func:`forward`."""
    images = [layers[0][:, column]]
    for W in layers[1:]:
        images.append(W @ images[-1])
    return images


def directions(layers: Params, gradient: Array) -> Params:
    """The gradient with respect to each layer, given the gradient with respect to the product."""
    products, back, gradients = forward(layers[:-1]), gradient, []
    for W, before in zip(layers[:0:-1], products[::-1], strict=True):
        gradients.append(times(back, before.T))
        back = times(W.T, back)
    return back, *gradients[::-1]
