"""A model given by a function: any differentiable map from parameters to an array."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from gyrostat import errors
from gyrostat.errors import GyrostatError
from gyrostat.jax_tools.readable_modules import text_of
from gyrostat.models.base import Model
from gyrostat.models.spaces import Space, SymmetricMatrices, space_of
from gyrostat.typing import Params


class FunctionModel(Model):
    """What :meth:`Model.from_function` makes.

    >>> FunctionModel(lambda F, G: F @ G.T, lambda shape: [(shape[0], 2), (shape[1], 2)]).shapes((5, 4))
    ((5, 2), (4, 2))
    """

    function: Callable[..., Any] = eqx.field(static=True)
    sides: Any = eqx.field(static=True)
    is_symmetric: bool = eqx.field(static=True, default=False)
    factor_function: Callable[..., Any] | None = eqx.field(static=True, default=None)

    def __init__(self, product: Any, shapes: Any, symmetric: bool = False, factor: Any = None):
        self.function = errors.function_of("product", product, "the parameters")
        self.sides = shapes if callable(shapes) else _shapes(shapes)
        self.is_symmetric = bool(symmetric)
        self.factor_function = factor if factor is None else errors.function_of("factor", factor, "the parameters")

    def __repr__(self) -> str:
        options = {"symmetric": self.is_symmetric, "factor": self.factor_function}
        parts = [text_of(self.function), text_of(self.sides), *(f"{k}={text_of(v)}" for k, v in options.items() if v)]
        return f"Model.from_function({', '.join(parts)})"

    def shapes(self, shape: tuple[int, ...]) -> tuple[tuple[int, ...], ...]:
        return _shapes(self.sides(shape)) if callable(self.sides) else self.sides

    def space(self, shape: tuple[int, ...]) -> Space:
        side_shapes = self.shapes(shape)
        params = [jax.ShapeDtypeStruct(side, jnp.zeros(()).dtype) for side in side_shapes]
        try:
            output = jax.eval_shape(lambda *params: self.product(params), *params)
        except Exception as error:
            reason = " ".join(str(error).split())[:120]
            raise GyrostatError(
                f"product fails on parameters of shapes {', '.join(map(str, side_shapes))} ({type(error).__name__}: {reason}): "
                "check shapes, and use jax.numpy instead of numpy."
            ) from None
        if not jnp.issubdtype(output.dtype, jnp.floating):
            raise GyrostatError(f"product must give real numbers; got {output.dtype}.")
        if output.shape != tuple(shape):
            raise GyrostatError(
                f"product makes arrays of shape {output.shape}, and the target has shape {tuple(shape)}: change shapes, or the "
                "environments."
            )
        if not self.is_symmetric:
            return space_of(output.shape)
        if len(shape) != 2 or shape[0] != shape[1]:
            raise GyrostatError(f"symmetric=True needs a product that is a square matrix; got shape {output.shape}.")
        self._check_symmetric(side_shapes)
        return SymmetricMatrices(shape[0])

    def _check_symmetric(self, side_shapes: tuple[tuple[int, ...], ...]) -> None:
        """Refuse products that are not symmetric, seen at random parameters."""
        rng = np.random.default_rng(0)
        with jax.ensure_compile_time_eval():
            A = np.asarray(self.product(tuple(jnp.asarray(rng.standard_normal(side)) for side in side_shapes)))
        gap = np.abs(A - A.T).max() / max(np.abs(A).max(), 1e-30)
        if gap > 1e-4:  # products of float32 parameters are symmetric up to rounding
            raise GyrostatError(
                f"symmetric=True, but the product is not symmetric (off by {gap:.2g} of its largest entry): leave it out, or "
                "return (A + A.T) / 2."
            )

    def product(self, params: Params) -> Array:
        return jnp.asarray(self.function(*params))

    @property
    def has_factor(self) -> bool:
        return self.factor_function is not None

    def factor(self, params: Params) -> Array:
        return super().factor(params) if self.factor_function is None else self.factor_function(*params)


def _shapes(shapes: Any) -> tuple[tuple[int, ...], ...]:
    def is_list(value: Any) -> bool:
        return isinstance(value, Sequence) and not isinstance(value, str)

    if not (is_list(shapes) and shapes and all(map(is_list, shapes))):
        raise GyrostatError(
            f"shapes must list the shape of every parameter, such as [(5, 2)] for one matrix; got {errors.shown(shapes)}."
        )
    return tuple(tuple(errors.integer("shapes", n, least=1) for n in shape) for shape in shapes)
