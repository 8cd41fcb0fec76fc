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
from gyrostat.jax_tools.frozen_randomness import check_no_frozen_numbers
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
        for name, value in (("product", product), ("factor", factor)):
            if not (callable(value) or (name == "factor" and value is None)):
                raise GyrostatError(f"{name} must be a function of the parameters; got {errors.shown(value)}.")
        self.function, self.factor_function, self.is_symmetric = product, factor, bool(symmetric)
        self.sides = shapes if callable(shapes) else _shapes(shapes)

    def __repr__(self) -> str:
        options = {"symmetric": self.is_symmetric, "factor": self.factor_function}
        given = [text_of(self.function), text_of(self.sides), *(f"{k}={text_of(v)}" for k, v in options.items() if v)]
        return f"Model.from_function({', '.join(given)})"

    def shapes(self, shape: tuple[int, ...]) -> tuple[tuple[int, ...], ...]:
        return _shapes(self.sides(shape)) if callable(self.sides) else self.sides

    def space(self, shape: tuple[int, ...]) -> Space:
        made = self._made(shape)
        if made != tuple(shape):
            raise GyrostatError(
                f"product makes arrays of shape {made}, and the target has shape {tuple(shape)}: change shapes, or the "
                "environments."
            )
        if not self.is_symmetric:
            return space_of(made)
        if len(made) != 2 or made[0] != made[1]:
            raise GyrostatError(f"symmetric=True needs a product that is a square matrix; got shape {made}.")
        self._check_symmetric(shape)
        return SymmetricMatrices(made[0])

    def _made(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """The shape of the product; an error that names the parameters if it cannot be computed."""
        shapes = self.shapes(shape)
        params = [jax.ShapeDtypeStruct(s, jnp.zeros(()).dtype) for s in shapes]
        try:
            made = jax.eval_shape(lambda *p: jnp.asarray(self.function(*p)), *params)
        except Exception as error:
            reason = " ".join(str(error).split())[:120]
            listed = ", ".join(map(str, shapes))
            raise GyrostatError(
                f"product fails on parameters of shapes {listed} ({type(error).__name__}: {reason}): check shapes, and use "
                "jax.numpy instead of numpy."
            ) from None
        if not jnp.issubdtype(made.dtype, jnp.floating):
            raise GyrostatError(f"product must give real numbers; got {made.dtype}.")
        check_no_frozen_numbers("product", self.function, *params)
        return made.shape

    def _check_symmetric(self, shape: tuple[int, ...]) -> None:
        """Refuse products that are not symmetric, seen at random parameters."""
        rng = np.random.default_rng(0)
        with jax.ensure_compile_time_eval():
            A = np.asarray(self.product(tuple(jnp.asarray(rng.standard_normal(s)) for s in self.shapes(shape))))
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


def _shapes(given: Any) -> tuple[tuple[int, ...], ...]:
    if not isinstance(given, Sequence) or isinstance(given, str) or not given:
        raise GyrostatError(
            f"shapes must list the shape of every parameter, such as [(5, 2), (4, 2)]; got {errors.shown(given)}."
        )
    if not all(isinstance(shape, Sequence) and not isinstance(shape, str) for shape in given):
        raise GyrostatError(
            f"shapes must list a tuple for every parameter, such as [(5, 2)] for one matrix; got {errors.shown(given)}."
        )
    return tuple(tuple(errors.integer("shapes", n, least=1) for n in shape) for shape in given)
