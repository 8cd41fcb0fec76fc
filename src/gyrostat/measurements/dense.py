"""Measurements as arrays: the brute force that the exact-in-law engines are checked against, and given data."""

from __future__ import annotations

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from gyrostat import errors
from gyrostat.environments import Environment, Environments
from gyrostat.errors import GyrostatError
from gyrostat.measurements.base import Measurements, Reading, Scene, need_finite
from gyrostat.spaces import Leaf, Space


class Dense(Measurements):
    """Gaussian measurements written out as arrays, m per environment, drawn once or (``redraw``) at every step.

    >>> Dense(100, redraw=True).num_samples
    100
    """

    num_samples: int = eqx.field(static=True, converter=lambda x: errors.integer("num_samples", x, least=1))
    redraw: bool = eqx.field(static=True, default=False)
    noise: Leaf = eqx.field(converter=lambda x: errors.number("noise", x, least=0), default=0.0)

    def check(self, environments: Any, space: Space, mixes: bool) -> None:
        if not self.redraw:
            need_finite(self, environments)

    @property
    def vectorises(self) -> bool:
        return self.redraw

    @property
    def gives_response_mean(self) -> bool:
        return True

    def init(self, key: PRNGKeyArray, environments: Environments, space: Space, queries: int) -> Any:
        if self.redraw:
            return ()
        matrices, noises = jax.random.split(key)
        shape = (environments.law.count, self.num_samples)  # type: ignore[attr-defined]
        X = jax.random.normal(matrices, (*shape, space.size), dtype=float)
        return X, self.noise * jax.random.normal(noises, shape, dtype=float)

    def sense(self, state: Any, key: PRNGKeyArray, scene: Scene, environment: Environment) -> tuple[Reading, Any]:
        X, eps = self._draw(key, scene) if self.redraw else (state[0][environment.index], state[1][environment.index])
        target = scene.space.coordinates(scene.environments.target(environment.sigma))
        return _reading(scene, X, X @ target + eps), state

    def mix(self, state: Any, key: PRNGKeyArray, scene: Scene) -> tuple[Reading, Any]:
        places, rows, drawing = jax.random.split(key, 3)
        drawn = jax.vmap(scene.environments.law.draw)(jax.random.split(places, self.num_samples))
        if self.redraw:
            X, eps = self._draw(drawing, scene)
        else:
            row = jax.random.randint(rows, (self.num_samples,), 0, self.num_samples)
            X, eps = state[0][drawn.index, row], state[1][drawn.index, row]
        targets = jax.vmap(lambda s: scene.space.coordinates(scene.environments.target(s)))(drawn.sigma)
        return _reading(scene, X, jnp.sum(X * targets, axis=1) + eps), state

    def _draw(self, key: PRNGKeyArray, scene: Scene) -> tuple[Array, Array]:
        matrices, noises = jax.random.split(key)
        X = jax.random.normal(matrices, (self.num_samples, scene.space.size), dtype=float)
        return X, self.noise * jax.random.normal(noises, (self.num_samples,), dtype=float)


class DenseData(Measurements):
    """Given measurements and responses, with the number of the environment that each row belongs to.

    A batch of one environment is all of its rows, or ``batch_size`` of them drawn with replacement; a mixture draws
    an environment by its weight and a row of it, ``batch_size`` times (by default as many as there are rows).

    >>> import numpy as np
    >>> data = DenseData(np.eye(3), [1.0, 2.0, 3.0], environment=[0, 0, 1])
    >>> data.counts.tolist()
    [2, 1]
    """

    matrices: Leaf
    responses: Leaf
    starts: Leaf
    counts: Leaf
    batch_size: int | None = eqx.field(static=True)
    shape: tuple[int, ...] = eqx.field(static=True)

    def __init__(self, matrices: Any, responses: Any, environment: Any, *, batch_size: int | None = None):
        X = errors.array("matrices", matrices, ndim=(2, 3))
        y = errors.array("responses", responses, ndim=1)
        labels = np.asarray(environment)
        if not np.issubdtype(labels.dtype, np.integer):
            raise GyrostatError(f"environment must hold whole numbers 0, 1, ...; got {labels.dtype}.")
        if not len(X) == len(y) == len(labels):
            raise GyrostatError(
                f"matrices, responses and environment must have the same length; got {len(X)}, {len(y)}, {len(labels)}."
            )
        if len(X) == 0:
            raise GyrostatError("matrices holds no rows: give at least one measurement.")
        self.shape = X.shape[1:]
        counts = np.bincount(labels) if labels.min() >= 0 else np.zeros(1, dtype=int)
        if (counts == 0).any():
            raise GyrostatError(
                "environment must use every number from 0 to its largest; some have no rows: renumber them."
            )
        order = np.argsort(labels, kind="stable")
        self.matrices = X[order]
        self.responses, self.counts = y[order], counts
        self.starts = np.concatenate([[0], np.cumsum(counts)[:-1]])
        self.batch_size = None if batch_size is None else errors.integer("batch_size", batch_size, least=1)

    @property
    def vectorises(self) -> bool:
        return False

    @property
    def gives_response_mean(self) -> bool:
        return True

    def check(self, environments: Any, space: Space, mixes: bool) -> None:
        need_finite(self, environments)
        if space.shape != self.shape:
            raise GyrostatError(
                f"matrices have shape {self.shape} each, the target has {space.shape}: make them equal."
            )
        if environments.law.count != len(self.counts):
            raise GyrostatError(
                f"the law lists {environments.law.count} environments, the data hold {len(self.counts)}: make them equal."
            )

    def init(self, key: PRNGKeyArray, environments: Environments, space: Space, queries: int) -> Float[Array, "N size"]:
        return jax.vmap(lambda x: space.coordinates(space.project(x)))(jnp.asarray(self.matrices))

    def sense(self, state: Any, key: PRNGKeyArray, scene: Scene, environment: Environment) -> tuple[Reading, Any]:
        e, counts, starts = environment.index, jnp.asarray(self.counts), jnp.asarray(self.starts)
        if self.batch_size is None:
            rows = jnp.arange(self.responses.shape[0])
            mine = (rows >= starts[e]) & (rows < starts[e] + counts[e])
            return _reading(scene, state, self.responses, mine / counts[e]), state
        rows = starts[e] + jax.random.randint(key, (self.batch_size,), 0, counts[e])
        return _reading(scene, state[rows], jnp.asarray(self.responses)[rows]), state

    def mix(self, state: Any, key: PRNGKeyArray, scene: Scene) -> tuple[Reading, Any]:
        size = self.batch_size or self.responses.shape[0]
        places, within = jax.random.split(key)
        drawn = jax.vmap(scene.environments.law.draw)(jax.random.split(places, size)).index
        counts, starts = jnp.asarray(self.counts)[drawn], jnp.asarray(self.starts)[drawn]
        rows = starts + jax.random.randint(within, (size,), 0, counts)
        return _reading(scene, state[rows], jnp.asarray(self.responses)[rows]), state


def _reading(scene: Scene, X: Array, y: Array, weights: Array | None = None) -> Reading:
    w = jnp.full(y.shape, 1 / y.shape[0]) if weights is None else weights
    error = X @ scene.space.coordinates(scene.product) - y
    return Reading(scene.space.element((w * error) @ X), w @ y)
