"""Rank-one measurements x x^T: a two-layer network with quadratic activation."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from gyrostat import errors
from gyrostat.environments.laws import Environment
from gyrostat.errors import GyrostatError
from gyrostat.jax_tools.fast_random import normal
from gyrostat.measurements.base import Measurements, Reading, Scene
from gyrostat.models.spaces import Space, SymmetricMatrices
from gyrostat.typing import Leaf


class RankOne(Measurements):
    """``X_i = x_i x_i^T`` with x_i ~ N(0, I), drawn at every step (Xu 2024, eq. 14-16 and Algorithm 4).

    They do not satisfy the restricted isometry property: the mean of ``<X, M> X`` is ``2 M + trace(M) I``, and
    Algorithm 4 corrects for the trace by its shrinkage. Samples with a prediction above ``truncation`` are left
    out of the gradient (the R of Algorithm 4; values below about 12 bias the signal).

    Parameters
    ----------
    num_samples
        The number m of measurements in a batch.
    truncation
        The R of Algorithm 4: samples with a larger prediction are left out.
    noise
        The standard deviation of the error in each response.

    >>> RankOne(1000).gives_response_mean
    True
    """

    num_samples: int = errors.field(check=errors.integer, least=1, static=True)
    truncation: Leaf = errors.field(check=lambda name, value: _truncation(name, value), default=np.inf)
    noise: Leaf = errors.nonnegative(default=0.0)

    gives_response_mean = True

    def check(self, environments: Any, space: Space, mixes: bool) -> None:
        if not isinstance(space, SymmetricMatrices):
            raise GyrostatError("RankOne measures symmetric matrices: use the Symmetric or SymmetricDifference model.")

    def sense(self, state: Any, key: PRNGKeyArray, scene: Scene, environment: Environment) -> tuple[Reading, Any]:
        x, eps = self._draw(key, scene)
        y = _quadratic(x, scene.environments.target(environment.sigma)) + eps
        return self._reading(scene, x, y), state

    def mix(self, state: Any, key: PRNGKeyArray, scene: Scene) -> tuple[Reading, Any]:
        drawing, choosing = jax.random.split(key)
        x, eps = self._draw(drawing, scene)
        sigmas = jax.vmap(lambda k: scene.environments.law.environment(k).sigma)(
            jax.random.split(choosing, self.num_samples)
        )
        z = x @ scene.environments.spurious_basis
        y = _quadratic(x, scene.environments.invariant) + jnp.einsum("ni,nij,nj->n", z, sigmas, z) + eps
        return self._reading(scene, x, y), state

    def _draw(self, key: PRNGKeyArray, scene: Scene) -> tuple[Array, Array]:
        vectors, noises = jax.random.split(key)
        m, d = self.num_samples, scene.space.shape[0]
        return normal(vectors, m * d).reshape(m, d), self.noise * normal(noises, m)

    def _reading(self, scene: Scene, x: Float[Array, "m d"], y: Float[Array, " m"]) -> Reading:
        predicted = _quadratic(x, scene.product)
        error = jnp.where(predicted <= self.truncation, predicted - y, 0.0)
        gradient = (x * error[:, None]).T @ x / self.num_samples
        return Reading(gradient, jnp.mean((predicted - y) ** 2), y.mean())


def _quadratic(x: Float[Array, "m d"], A: Float[Array, "d d"]) -> Float[Array, " m"]:
    return jnp.sum((x @ A) * x, axis=1)


def _truncation(name: str, value: Any) -> np.ndarray:
    leaves_none_out = np.ndim(value) == 0 and value == np.inf
    return np.asarray(np.inf) if leaves_none_out else errors.number(name, value, above=0)
