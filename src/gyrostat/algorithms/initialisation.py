"""Initialisation: the parameters before the first step, for factors and for layers of a network."""

from __future__ import annotations

import abc
from typing import Any

import equinox as eqx
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


class Start(ReadableModule):
    """Makes the initial parameters of a model for a target of a given shape."""

    @property
    def needs_first_gradient(self) -> bool:
        """Whether the start depends on the data, through the gradient at a product of zero."""
        return False

    def check(self, model: Model, shape: tuple[int, ...]) -> None:
        """Refuse, before compilation, a model that this start cannot serve."""

    @abc.abstractmethod
    def __call__(
        self, model: Model, shape: tuple[int, ...], key: PRNGKeyArray, first_gradient: Array | None = None
    ) -> Params:
        """The parameters at step 0.

        ``first_gradient`` is the gradient at a product of zero, given only if the start :attr:`needs_first_gradient`.
        """


class ScaledIdentity(Start):
    """``U_0 = scale * I`` for matrices and ``u_0 = scale * 1`` for vectors (Xu 2024, Algorithm 3).

    Parameters
    ----------
    scale
        The factor alpha.

    >>> import jax, gyrostat
    >>> ScaledIdentity(0.5)(gyrostat.Symmetric(), (2, 2), jax.random.key(0))[0].tolist()
    [[0.5, 0.0], [0.0, 0.5]]
    """

    scale: Leaf = eqx.field(converter=lambda x: errors.number("init_scale", x, above=0))

    def __call__(
        self, model: Model, shape: tuple[int, ...], key: PRNGKeyArray, first_gradient: Array | None = None
    ) -> Params:
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
    """Independent N(0, scale^2) entries in every parameter.

    Parameters
    ----------
    scale
        The standard deviation of the entries.
    """

    scale: Leaf = eqx.field(converter=lambda x: errors.number("init_scale", x, above=0))

    def __call__(
        self, model: Model, shape: tuple[int, ...], key: PRNGKeyArray, first_gradient: Array | None = None
    ) -> Params:
        return tuple(self.scale * z for z in normals(model, shape, key))


class SymmetricGaussian(Start):
    """``X_0 = scale * N(0, 1/k)`` with k the number of columns (Xiong 2024, Theorem 3.1), in every factor.

    Parameters
    ----------
    scale
        The scale alpha.
    """

    scale: Leaf = eqx.field(converter=lambda x: errors.number("init_scale", x, above=0))

    def __call__(
        self, model: Model, shape: tuple[int, ...], key: PRNGKeyArray, first_gradient: Array | None = None
    ) -> Params:
        return tuple(self.scale / z.shape[-1] ** 0.5 * z for z in normals(model, shape, key))


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

    scale: Leaf = eqx.field(converter=lambda x: errors.number("init_scale", x, above=0))
    ratio: Leaf = eqx.field(converter=lambda x: errors.number("ratio", x, above=0), default=3.0)

    def check(self, model: Model, shape: tuple[int, ...]) -> None:
        _need_two_factors("ImbalancedGaussian", model)

    def __call__(
        self, model: Model, shape: tuple[int, ...], key: PRNGKeyArray, first_gradient: Array | None = None
    ) -> Params:
        F, G = normals(model, shape, key)
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

    scale: Leaf = eqx.field(converter=lambda x: errors.number("init_scale", x, above=0), default=1.0)

    def check(self, model: Model, shape: tuple[int, ...]) -> None:
        _need_two_factors("OrthonormalZero", model)
        rows, width = model.shapes(shape)[0]
        if width > rows:
            raise GyrostatError(f"OrthonormalZero needs width <= {rows} rows for orthonormal columns; got {width}.")

    def __call__(
        self, model: Model, shape: tuple[int, ...], key: PRNGKeyArray, first_gradient: Array | None = None
    ) -> Params:
        left, right = model.shapes(shape)
        return self.scale * haar(key, *left), jnp.zeros(right, dtype=float)


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

    def check(self, model: Model, shape: tuple[int, ...]) -> None:
        wanted, got = model.shapes(shape), tuple(p.shape for p in self.params)
        if wanted != got:
            raise GyrostatError(f"params must have the shapes {wanted} of {type(model).__name__}'s factors; got {got}.")

    def __call__(
        self, model: Model, shape: tuple[int, ...], key: PRNGKeyArray, first_gradient: Array | None = None
    ) -> Params:
        return tuple(jnp.asarray(p, dtype=float) for p in self.params)


class Spectral(Start):
    """The balanced factors of the best approximation of ``-G(0)``, the estimate ``(1/m) sum_i y_i X_i`` of the target."""

    @property
    def needs_first_gradient(self) -> bool:
        return True

    def check(self, model: Model, shape: tuple[int, ...]) -> None:
        model.space(shape)
        if type(model).factorise is Model.factorise:
            raise GyrostatError(
                f"{type(model).__name__} has no spectral start: use ScaledIdentity, ScaledGaussian or another model."
            )

    def __call__(
        self, model: Model, shape: tuple[int, ...], key: PRNGKeyArray, first_gradient: Array | None = None
    ) -> Params:
        assert first_gradient is not None
        return model.factorise(-first_gradient)


class _LayerStart(Start):
    """A start of layers, which are matrices with one column per input."""

    scale: Leaf = eqx.field(converter=lambda x: errors.number("init_scale", x, above=0), default=1.0)

    def check(self, model: Model, shape: tuple[int, ...]) -> None:
        if any(len(s) != 2 for s in model.shapes(shape)):
            name = type(model).__name__
            raise GyrostatError(
                f"{type(self).__name__} starts layers; {name} has none: use DeepLinear or ScaledIdentity."
            )


class FanInUniform(_LayerStart):
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

    def __call__(
        self, model: Model, shape: tuple[int, ...], key: PRNGKeyArray, first_gradient: Array | None = None
    ) -> Params:
        shapes = model.shapes(shape)
        keys = jax.random.split(key, len(shapes))
        bounds = [self.scale / s[1] ** 0.5 for s in shapes]
        return tuple(
            b * jax.random.uniform(k, s, dtype=float, minval=-1.0, maxval=1.0)
            for k, s, b in zip(keys, shapes, bounds, strict=True)
        )


class FanInGaussian(_LayerStart):
    """Independent N(0, scale^2 / fan_in) entries; fan_in counts the columns of the layer.

    Parameters
    ----------
    scale
        The factor of the standard deviation ``1 / sqrt(fan_in)``.

    >>> import gyrostat
    >>> _, W, _ = FanInGaussian(0.5)(gyrostat.DeepLinear(3, 100), (2, 4), jax.random.key(0))
    >>> bool(0.045 < W.std() < 0.055)
    True
    """

    def __call__(
        self, model: Model, shape: tuple[int, ...], key: PRNGKeyArray, first_gradient: Array | None = None
    ) -> Params:
        return tuple(self.scale / z.shape[1] ** 0.5 * z for z in normals(model, shape, key))


class Orthogonal(_LayerStart):
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

    def __call__(
        self, model: Model, shape: tuple[int, ...], key: PRNGKeyArray, first_gradient: Array | None = None
    ) -> Params:
        layers: list[Array] = []
        for Z in normals(model, shape, key):
            is_tall = Z.shape[0] >= Z.shape[1]
            Q = orthonormal_columns(Z if is_tall else Z.T)
            layers.append(self.scale * (Q if is_tall else Q.T))
        return tuple(layers)


def _need_two_factors(start: str, model: Model) -> None:
    if not isinstance(model, Asymmetric):
        raise GyrostatError(
            f"{start} starts two factors F and G; {type(model).__name__} has no such factors: use Asymmetric."
        )
