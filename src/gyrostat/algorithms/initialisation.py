"""Starts: where the parameters are before the first step."""

from __future__ import annotations

import abc
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, PRNGKeyArray

from gyrostat import errors
from gyrostat.environments.random_environments import haar
from gyrostat.errors import GyrostatError
from gyrostat.models.asymmetric import Asymmetric
from gyrostat.models.base import Model, Params
from gyrostat.models.spaces import Leaf


class Start(eqx.Module):
    """Makes the initial parameters of a model for a target of a given shape."""

    @property
    def looks(self) -> bool:
        """Whether the start needs a first reading of the data."""
        return False

    def check(self, model: Model, shape: tuple[int, ...]) -> None:
        """Refuse, before compilation, a model that this start cannot serve."""

    @abc.abstractmethod
    def __call__(self, model: Model, shape: tuple[int, ...], key: PRNGKeyArray, seen: Array | None = None) -> Params:
        """The parameters at step 0; ``seen`` is the gradient at a product of zero if the start looks at the data."""


class ScaledIdentity(Start):
    """``U_0 = scale * I`` for matrices and ``u_0 = scale * 1`` for vectors (Xu 2024, Algorithm 3).

    >>> import jax, gyrostat
    >>> ScaledIdentity(0.5)(gyrostat.Symmetric(), (2, 2), jax.random.key(0))[0].tolist()
    [[0.5, 0.0], [0.0, 0.5]]
    """

    scale: Leaf = eqx.field(converter=lambda x: errors.number("init_scale", x, above=0))

    def __call__(self, model: Model, shape: tuple[int, ...], key: PRNGKeyArray, seen: Array | None = None) -> Params:
        return tuple(
            self.scale * (jnp.eye(*s, dtype=float) if len(s) == 2 else jnp.ones(s, dtype=float))
            for s in model.shapes(shape)
        )


def normals(model: Model, shape: tuple[int, ...], key: PRNGKeyArray) -> Params:
    """Independent N(0, 1) entries in every parameter."""
    shapes = model.shapes(shape)
    keys = jax.random.split(key, len(shapes))
    return tuple(jax.random.normal(k, s, dtype=float) for k, s in zip(keys, shapes, strict=True))


class ScaledGaussian(Start):
    """Independent N(0, scale^2) entries in every parameter."""

    scale: Leaf = eqx.field(converter=lambda x: errors.number("init_scale", x, above=0))

    def __call__(self, model: Model, shape: tuple[int, ...], key: PRNGKeyArray, seen: Array | None = None) -> Params:
        return tuple(self.scale * z for z in normals(model, shape, key))


class SymmetricGaussian(Start):
    """``X_0 = scale * N(0, 1/k)`` with k the number of columns (Xiong 2024, Theorem 3.1), the same in every factor."""

    scale: Leaf = eqx.field(converter=lambda x: errors.number("init_scale", x, above=0))

    def __call__(self, model: Model, shape: tuple[int, ...], key: PRNGKeyArray, seen: Array | None = None) -> Params:
        return tuple(self.scale / z.shape[-1] ** 0.5 * z for z in normals(model, shape, key))


class ImbalancedGaussian(Start):
    """``F_0 = scale * N(0, 1/n1)`` and ``G_0 = (scale / ratio) * N(0, 1/n2)`` (Xiong 2024, Theorem 4.2).

    The imbalance ``F^T F - G^T G`` is then positive definite, of size scale^2, and stays so when the step is small.

    >>> import jax, gyrostat
    >>> F, G = ImbalancedGaussian(0.5)(gyrostat.Asymmetric(2), (50, 50), jax.random.key(0))
    >>> 2 < float(jnp.linalg.norm(F) / jnp.linalg.norm(G)) < 4
    True
    """

    scale: Leaf = eqx.field(converter=lambda x: errors.number("init_scale", x, above=0))
    ratio: Leaf = eqx.field(converter=lambda x: errors.number("ratio", x, above=0), default=3.0)

    def check(self, model: Model, shape: tuple[int, ...]) -> None:
        _need_two_factors("ImbalancedGaussian", model)

    def __call__(self, model: Model, shape: tuple[int, ...], key: PRNGKeyArray, seen: Array | None = None) -> Params:
        F, G = normals(model, shape, key)
        return self.scale / F.shape[0] ** 0.5 * F, self.scale / self.ratio / G.shape[0] ** 0.5 * G


class OrthonormalZero(Start):
    """``F_0 = scale * (random orthonormal columns)`` and ``G_0 = 0``: all the imbalance from the first step on.

    >>> import jax, gyrostat
    >>> F, G = OrthonormalZero()(gyrostat.Asymmetric(2), (5, 4), jax.random.key(0))
    >>> bool(jnp.allclose(F.T @ F, jnp.eye(2), atol=1e-6)), float(abs(G).max())
    (True, 0.0)
    """

    scale: Leaf = eqx.field(converter=lambda x: errors.number("init_scale", x, above=0), default=1.0)

    def check(self, model: Model, shape: tuple[int, ...]) -> None:
        _need_two_factors("OrthonormalZero", model)
        rows, width = model.shapes(shape)[0]
        if width > rows:
            raise GyrostatError(f"OrthonormalZero needs width <= {rows} rows for orthonormal columns; got {width}.")

    def __call__(self, model: Model, shape: tuple[int, ...], key: PRNGKeyArray, seen: Array | None = None) -> Params:
        left, right = model.shapes(shape)
        return self.scale * haar(key, *left), jnp.zeros(right, dtype=float)


class Given(Start):
    """Parameters given as arrays, one per factor of the model.

    >>> import jax, gyrostat
    >>> Given(jnp.eye(3, 2))(gyrostat.Symmetric(2), (3, 3), jax.random.key(0))[0].shape
    (3, 2)
    """

    params: tuple[Leaf, ...]

    def __init__(self, *params: Any):
        self.params = tuple(errors.array("params", p, ndim=(1, 2)) for p in params)

    def check(self, model: Model, shape: tuple[int, ...]) -> None:
        wanted, got = model.shapes(shape), tuple(p.shape for p in self.params)
        if wanted != got:
            raise GyrostatError(f"params must have the shapes {wanted} of {type(model).__name__}'s factors; got {got}.")

    def __call__(self, model: Model, shape: tuple[int, ...], key: PRNGKeyArray, seen: Array | None = None) -> Params:
        return tuple(jnp.asarray(p, dtype=float) for p in self.params)


class Spectral(Start):
    """The balanced factors of the best approximation of ``-G(0)``, the estimate ``(1/m) sum_i y_i X_i`` of the target."""

    @property
    def looks(self) -> bool:
        return True

    def check(self, model: Model, shape: tuple[int, ...]) -> None:
        model.space(shape)
        if type(model).factorise is Model.factorise:
            raise GyrostatError(
                f"{type(model).__name__} has no spectral start: use ScaledIdentity, ScaledGaussian or another model."
            )

    def __call__(self, model: Model, shape: tuple[int, ...], key: PRNGKeyArray, seen: Array | None = None) -> Params:
        assert seen is not None
        return model.factorise(-seen)


def _need_two_factors(start: str, model: Model) -> None:
    if not isinstance(model, Asymmetric):
        raise GyrostatError(
            f"{start} starts two factors F and G; {type(model).__name__} has none such: use Asymmetric."
        )
