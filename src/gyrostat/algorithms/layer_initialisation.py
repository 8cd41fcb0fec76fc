"""Starts of layered networks: PyTorch's uniform one, Gaussian by fan-in, orthogonal."""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, PRNGKeyArray

from gyrostat import errors
from gyrostat.algorithms.initialisation import Start, normals
from gyrostat.errors import GyrostatError
from gyrostat.models.base import Model, Params
from gyrostat.models.spaces import Leaf


class _Layers(Start):
    """A start of matrices of which each column is an input."""

    scale: Leaf = eqx.field(converter=lambda x: errors.number("init_scale", x, above=0), default=1.0)

    def check(self, model: Model, shape: tuple[int, ...]) -> None:
        if any(len(s) != 2 for s in model.shapes(shape)):
            name = type(model).__name__
            raise GyrostatError(
                f"{type(self).__name__} starts layers; {name} has none: use DeepLinear or ScaledIdentity."
            )


class FanInUniform(_Layers):
    """Independent entries, uniform between -+ scale / sqrt(fan_in), fan_in being the columns: ``torch.nn.Linear``'s.

    >>> import gyrostat
    >>> W, *_ = FanInUniform()(gyrostat.DeepLinear(3, 50), (2, 4), jax.random.key(0))
    >>> W.shape, bool(0.4 < jnp.abs(W).max() <= 0.5)
    ((50, 4), True)
    """

    def __call__(self, model: Model, shape: tuple[int, ...], key: PRNGKeyArray, seen: Array | None = None) -> Params:
        shapes = model.shapes(shape)
        keys = jax.random.split(key, len(shapes))
        bounds = [self.scale / s[1] ** 0.5 for s in shapes]
        return tuple(
            b * jax.random.uniform(k, s, dtype=float, minval=-1.0, maxval=1.0)
            for k, s, b in zip(keys, shapes, bounds, strict=True)
        )


class FanInGaussian(_Layers):
    """Independent N(0, scale^2 / fan_in) entries, fan_in being the columns of the layer.

    >>> import gyrostat
    >>> _, W, _ = FanInGaussian(0.5)(gyrostat.DeepLinear(3, 100), (2, 4), jax.random.key(0))
    >>> bool(0.045 < W.std() < 0.055)
    True
    """

    def __call__(self, model: Model, shape: tuple[int, ...], key: PRNGKeyArray, seen: Array | None = None) -> Params:
        return tuple(self.scale / z.shape[1] ** 0.5 * z for z in normals(model, shape, key))


class Orthogonal(_Layers):
    """``scale`` times uniformly random matrices with orthonormal columns or rows, whichever are fewer.

    Square hidden layers are then orthogonal, and a run stays in few dimensions of each for ever (``reduction``).

    >>> import gyrostat
    >>> _, W, _ = Orthogonal()(gyrostat.DeepLinear(3, 6), (2, 4), jax.random.key(0))
    >>> bool(jnp.allclose(W @ W.T, jnp.eye(6), atol=1e-5))
    True
    """

    def __call__(self, model: Model, shape: tuple[int, ...], key: PRNGKeyArray, seen: Array | None = None) -> Params:
        layers: list[Array] = []
        for Z in normals(model, shape, key):
            tall = Z if Z.shape[0] >= Z.shape[1] else Z.T
            Q, R = jnp.linalg.qr(tall)
            Q = Q * jnp.where(jnp.diagonal(R) < 0, -1.0, 1.0)  # uniform only with R's diagonal positive
            layers.append(self.scale * (Q if tall is Z else Q.T))
        return tuple(layers)
