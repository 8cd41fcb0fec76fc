"""Starts: the parameters before the first step, for factors and for layers of a network.

Any model: :class:`ScaledIdentity`, :class:`ScaledGaussian`, :class:`SymmetricGaussian`, :class:`Given` arrays. Two factors:
:class:`ImbalancedGaussian`, :class:`OrthonormalZero`, :class:`Spectral`. Layers: :class:`FanInUniform`, :class:`FanInGaussian`,
:class:`Orthogonal`. Derive one of your own from :class:`Start`.
"""

from __future__ import annotations

import abc
from typing import Any, TypeAlias

import jax
import jax.numpy as jnp
from jaxtyping import Array, PRNGKeyArray

from gyrostat import errors
from gyrostat.environments.random_environments import haar, orthonormal_columns
from gyrostat.errors import GyrostatError
from gyrostat.jax_tools.readable_modules import ReadableModule
from gyrostat.models.asymmetric import Asymmetric
from gyrostat.models.base import Model
from gyrostat.typing import Leaf, Params

__all__ = [
    "FanInGaussian",
    "FanInUniform",
    "Given",
    "ImbalancedGaussian",
    "Orthogonal",
    "OrthonormalZero",
    "ScaledGaussian",
    "ScaledIdentity",
    "Spectral",
    "Start",
    "SymmetricGaussian",
]


def __dir__() -> list[str]:
    return __all__


Shape: TypeAlias = tuple[int, ...]


class Start(ReadableModule):
    """Makes the initial parameters of a model for a target of a given shape."""

    @property
    def needs_first_gradient(self) -> bool:
        """Whether the start depends on the data, through the gradient at a product of zero."""
        return False

    def check(self, model: Model, shape: Shape) -> None:
        """Refuse, before compilation, a model that this start cannot serve."""

    @abc.abstractmethod
    def __call__(self, model: Model, shape: Shape, key: PRNGKeyArray, first_gradient: Array | None = None) -> Params:
        """The parameters at step 0.

        ``first_gradient`` is the gradient at a product of zero, given only if the start :attr:`needs_first_gradient`.
        """


class EveryParameterAlike(Start):
    """A start that makes every parameter in the same way, from a key of its own: a subclass says how in :meth:`parameter`."""

    @abc.abstractmethod
    def parameter(self, key: PRNGKeyArray, shape: Shape) -> Array:
        """A parameter of this shape."""

    def __call__(self, model: Model, shape: Shape, key: PRNGKeyArray, first_gradient: Array | None = None) -> Params:
        shapes = model.shapes(shape)
        return tuple(map(self.parameter, jax.random.split(key, len(shapes)), shapes))


class ScaledIdentity(EveryParameterAlike):
    """``U_0 = scale * I`` for matrices and ``u_0 = scale * 1`` for vectors (Xu 2024, Algorithm 3).

    Parameters
    ----------
    scale
        The factor alpha.

    >>> import jax, gyrostat
    >>> ScaledIdentity(0.5)(gyrostat.Symmetric(), (2, 2), jax.random.key(0))[0].tolist()
    [[0.5, 0.0], [0.0, 0.5]]
    """

    scale: Leaf = errors.positive(name="init_scale")

    def parameter(self, key: PRNGKeyArray, shape: Shape) -> Array:
        return self.scale * (jnp.eye(*shape, dtype=float) if len(shape) == 2 else jnp.ones(shape, dtype=float))


class ScaledGaussian(EveryParameterAlike):
    """Independent N(0, scale^2) entries in every parameter.

    Parameters
    ----------
    scale
        The standard deviation of the entries.
    """

    scale: Leaf = errors.positive(name="init_scale")

    def parameter(self, key: PRNGKeyArray, shape: Shape) -> Array:
        return self.scale * jax.random.normal(key, shape, dtype=float)


class FanInGaussian(EveryParameterAlike):
    """Independent N(0, scale^2 / k) entries, with k the number of columns: the fan-in of a layer.

    For a factor with k columns this is ``X_0 = scale * N(0, 1/k)``, the start of Xiong 2024, Theorem 3.1.

    Parameters
    ----------
    scale
        The scale alpha: the factor of the standard deviation ``1 / sqrt(k)``.

    >>> import gyrostat
    >>> _, W, _ = FanInGaussian(0.5)(gyrostat.DeepLinear(3, 100), (2, 4), jax.random.key(0))
    >>> bool(0.045 < W.std() < 0.055)
    True
    """

    scale: Leaf = errors.positive(name="init_scale", default=1.0)

    def parameter(self, key: PRNGKeyArray, shape: Shape) -> Array:
        return self.scale / shape[-1] ** 0.5 * jax.random.normal(key, shape, dtype=float)


SymmetricGaussian = FanInGaussian
"""The old name of :class:`FanInGaussian` for the factor of a symmetric product."""


class FanInUniform(EveryParameterAlike):
    """Independent entries, uniform on +- scale / sqrt(fan_in), the default of ``torch.nn.Linear``; fan_in counts the columns.

    Parameters
    ----------
    scale
        The factor of the bound ``1 / sqrt(fan_in)``.

    >>> import gyrostat
    >>> W, *_ = FanInUniform()(gyrostat.DeepLinear(3, 50), (2, 4), jax.random.key(0))
    >>> W.shape, bool(0.4 < jnp.abs(W).max() <= 0.5)
    ((50, 4), True)
    """

    scale: Leaf = errors.positive(name="init_scale", default=1.0)

    def parameter(self, key: PRNGKeyArray, shape: Shape) -> Array:
        return self.scale / shape[-1] ** 0.5 * jax.random.uniform(key, shape, dtype=float, minval=-1.0, maxval=1.0)


class Orthogonal(EveryParameterAlike):
    """``scale`` times uniformly random matrices with orthonormal columns or rows, whichever are fewer.

    Square hidden layers are then orthogonal, and a run changes only a few dimensions of each layer. The exact reduction of
    the engine makes use of this.

    Parameters
    ----------
    scale
        The factor of the orthonormal matrices.

    >>> import gyrostat
    >>> _, W, _ = Orthogonal()(gyrostat.DeepLinear(3, 6), (2, 4), jax.random.key(0))
    >>> bool(jnp.allclose(W @ W.T, jnp.eye(6), atol=1e-5))
    True
    """

    scale: Leaf = errors.positive(name="init_scale", default=1.0)

    def check(self, model: Model, shape: Shape) -> None:
        if any(len(s) != 2 for s in model.shapes(shape)):
            name = type(model).__name__
            raise GyrostatError(f"Orthogonal starts layers; {name} has none: use DeepLinear or ScaledIdentity.")

    def parameter(self, key: PRNGKeyArray, shape: Shape) -> Array:
        Z = jax.random.normal(key, shape, dtype=float)
        return self.scale * (orthonormal_columns(Z) if shape[0] >= shape[1] else orthonormal_columns(Z.T).T)


class ImbalancedGaussian(Start):
    """``F_0 = scale * N(0, 1/n1)`` and ``G_0 = (scale / ratio) * N(0, 1/n2)`` (Xiong 2024, Theorem 4.2).

    The imbalance ``F^T F - G^T G`` is then positive definite, of size scale^2, and stays so for small step sizes.

    Parameters
    ----------
    scale
        The scale alpha of F.
    ratio
        How many times larger F is than G.

    >>> import jax, gyrostat
    >>> F, G = ImbalancedGaussian(0.5)(gyrostat.Asymmetric(2), (50, 50), jax.random.key(0))
    >>> 2 < float(jnp.linalg.norm(F) / jnp.linalg.norm(G)) < 4
    True
    """

    scale: Leaf = errors.positive(name="init_scale")
    ratio: Leaf = errors.positive(default=3.0)

    def check(self, model: Model, shape: Shape) -> None:
        _need_two_factors(self, model)

    def __call__(self, model: Model, shape: Shape, key: PRNGKeyArray, first_gradient: Array | None = None) -> Params:
        F, G = ScaledGaussian(1.0)(model, shape, key)
        return self.scale / F.shape[0] ** 0.5 * F, self.scale / self.ratio / G.shape[0] ** 0.5 * G


class OrthonormalZero(Start):
    """``F_0 = scale * (random orthonormal columns)`` and ``G_0 = 0``: the largest imbalance possible at the start.

    Parameters
    ----------
    scale
        The factor of the orthonormal columns.

    >>> import jax, gyrostat
    >>> F, G = OrthonormalZero()(gyrostat.Asymmetric(2), (5, 4), jax.random.key(0))
    >>> bool(jnp.allclose(F.T @ F, jnp.eye(2), atol=1e-6)), float(abs(G).max())
    (True, 0.0)
    """

    scale: Leaf = errors.positive(name="init_scale", default=1.0)

    def check(self, model: Model, shape: Shape) -> None:
        _need_two_factors(self, model)
        rows, width = model.shapes(shape)[0]
        if width > rows:
            raise GyrostatError(f"OrthonormalZero needs width <= {rows} rows for orthonormal columns; got {width}.")

    def __call__(self, model: Model, shape: Shape, key: PRNGKeyArray, first_gradient: Array | None = None) -> Params:
        left, right = model.shapes(shape)
        return self.scale * haar(key, *left), jnp.zeros(right, dtype=float)


def _need_two_factors(start: Start, model: Model) -> None:
    if not isinstance(model, Asymmetric):
        raise GyrostatError(
            f"{type(start).__name__} starts two factors F and G; {type(model).__name__} has no such factors: use Asymmetric."
        )


class Given(Start):
    """Parameters given as arrays, one per factor of the model.

    Parameters
    ----------
    params
        One array per factor of the model.

    >>> import jax, gyrostat
    >>> Given(jnp.eye(3, 2))(gyrostat.Symmetric(2), (3, 3), jax.random.key(0))[0].shape
    (3, 2)
    """

    params: tuple[Leaf, ...]

    def __init__(self, *params: Any):
        self.params = tuple(errors.array("params", p, ndim=(1, 2)) for p in params)

    def check(self, model: Model, shape: Shape) -> None:
        wanted, got = model.shapes(shape), tuple(p.shape for p in self.params)
        if wanted != got:
            raise GyrostatError(f"params must have the shapes {wanted} of {type(model).__name__}'s factors; got {got}.")

    def __call__(self, model: Model, shape: Shape, key: PRNGKeyArray, first_gradient: Array | None = None) -> Params:
        return tuple(jnp.asarray(p, dtype=float) for p in self.params)


class Spectral(Start):
    """The balanced factors of the best approximation of ``-G(0)``, the estimate ``(1/m) sum_i y_i X_i`` of the target."""

    @property
    def needs_first_gradient(self) -> bool:
        return True

    def check(self, model: Model, shape: Shape) -> None:
        model.space(shape)
        if type(model).factorise is Model.factorise:
            raise GyrostatError(
                f"{type(model).__name__} has no spectral start: use ScaledIdentity, ScaledGaussian or another model."
            )

    def __call__(self, model: Model, shape: Shape, key: PRNGKeyArray, first_gradient: Array | None = None) -> Params:
        assert first_gradient is not None
        return model.factorise(-first_gradient)
