"""Starts: where the parameters are before the first step."""

from __future__ import annotations

import abc

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import PRNGKeyArray

from gyrostat import errors
from gyrostat.models.base import Model, Params
from gyrostat.spaces import Leaf


class Start(eqx.Module):
    """Makes the initial parameters of a model for a target of a given shape."""

    @abc.abstractmethod
    def __call__(self, model: Model, shape: tuple[int, ...], key: PRNGKeyArray) -> Params:
        """The parameters at step 0."""


class ScaledIdentity(Start):
    """``U_0 = scale * I`` for matrices and ``u_0 = scale * 1`` for vectors (Xu 2024, Algorithm 3).

    >>> import jax, gyrostat
    >>> ScaledIdentity(0.5)(gyrostat.Symmetric(), (2, 2), jax.random.key(0))[0].tolist()
    [[0.5, 0.0], [0.0, 0.5]]
    """

    scale: Leaf = eqx.field(converter=lambda x: errors.number("init_scale", x, above=0))

    def __call__(self, model: Model, shape: tuple[int, ...], key: PRNGKeyArray) -> Params:
        return tuple(
            self.scale * (jnp.eye(*s, dtype=float) if len(s) == 2 else jnp.ones(s, dtype=float))
            for s in model.shapes(shape)
        )


class ScaledGaussian(Start):
    """Independent N(0, scale^2) entries in every parameter."""

    scale: Leaf = eqx.field(converter=lambda x: errors.number("init_scale", x, above=0))

    def __call__(self, model: Model, shape: tuple[int, ...], key: PRNGKeyArray) -> Params:
        shapes = model.shapes(shape)
        return tuple(
            self.scale * jax.random.normal(k, s, dtype=float)
            for k, s in zip(jax.random.split(key, len(shapes)), shapes, strict=True)
        )
