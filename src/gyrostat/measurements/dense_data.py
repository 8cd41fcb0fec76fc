"""Given measurements and responses: rows of data of one's own."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, PRNGKeyArray

from gyrostat import errors
from gyrostat.environments import Environments, Observed
from gyrostat.environments.laws import Environment
from gyrostat.errors import GyrostatError
from gyrostat.measurements.base import Demand, Measurements, Reading, Scene, require_finite_law
from gyrostat.measurements.rows_from_arrays import labelled_rows
from gyrostat.models.spaces import Space
from gyrostat.typing import Leaf

RUNS_PER_CALL = 64
"""The number of runs in one call that share a design, so that the product with it is a matrix product."""


class DenseData(Measurements):
    """Given measurements and responses, with the index of the environment of each row.

    :meth:`from_arrays` takes labels of any kind, pandas tables, and one array per environment.

    A batch of one environment is all of its rows, or ``batch_size`` of them drawn with replacement. For each row of a mixed
    batch, an environment is drawn according to its weight, and then one of its rows. A mixed batch has ``batch_size`` rows,
    by default as many as the data. ``training_loss`` is the loss on all rows.

    Parameters
    ----------
    matrices
        The measurement matrices, one per row of the data.
    responses
        The response of each.
    environment
        The index of the environment of each.
    batch_size
        How many rows of an environment a batch draws, with replacement; by default all of them.

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
    labels: tuple[Any, ...] = eqx.field(static=True)

    brings_responses = True
    keeps_state = True
    gives_response_mean = True

    def __init__(self, matrices: Any, responses: Any, environment: Any, *, batch_size: int | None = None):
        X = errors.array("matrices", matrices, ndim=tuple(range(2, 10)))
        y = errors.array("responses", responses, ndim=1)
        labels = np.atleast_1d(environment)
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
        self.labels = tuple(range(len(counts)))

    @staticmethod
    def from_arrays(X: Any, y: Any, environments: Any = None, *, batch_size: int | None = None) -> DenseData:
        """Your own rows (X_i, y_i), with labels of any kind, from NumPy, pandas or lists with an array per environment.

        Environments are numbered in the order in which their labels first appear; ``labels`` holds them in that order, and
        :meth:`observed` makes the environments of a :class:`Problem` with these data.

        Args:
            X: the inputs, (N, p) for a target that is a vector or (N, n1, n2) for one that is a matrix; a DataFrame of
                numbers; or a list with one such array for each environment.
            y: the N responses; or, with a list for X, a list with the responses of each environment.
            environments: a label for each row: numbers, strings, dates, categories, any mixture. With lists, a name for
                each environment (by default 0, 1, ...).
            batch_size: the rows of a batch, drawn with replacement; all rows of an environment by default.

        >>> data = DenseData.from_arrays([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]], [1.0, 2.0, 3.0], ["north", "south", "north"])
        >>> data.labels, data.counts.tolist(), data.observed().shape
        (('north', 'south'), [2, 1], (2,))
        """
        rows = labelled_rows(X, y, environments)
        data = DenseData(rows.inputs, rows.responses, rows.codes, batch_size=batch_size)
        object.__setattr__(data, "labels", rows.labels)
        return data

    def observed(self, weights: Any = None) -> Observed:
        """The environments of these data, whose truth is unknown: as many as there are labels.

        Args:
            weights: the probability that a batch comes from each environment, in the order of ``labels``; equal ones by
                default. ``data.counts / data.counts.sum()`` weighs them by their rows.

        >>> import gyrostat as gs
        >>> data = DenseData.from_arrays([[1.0], [2.0]], [1.0, 2.0], ["a", "b"])
        >>> gs.Problem(data.observed(), data).shape
        (1,)
        """
        return Observed(self.shape, len(self.counts), weights)

    def arguments(self) -> Mapping[str, Any]:
        labels = np.repeat(np.arange(len(self.counts)), self.counts)
        data = {"matrices": self.matrices, "responses": self.responses, "environment": labels}
        return {**data, "batch_size": self.batch_size}

    def runs_per_call(self, size: int, mixes: bool) -> int:
        return 1 if mixes or self.batch_size is not None else RUNS_PER_CALL  # single rows are copied for every run

    @property
    def group_key(self) -> Hashable:
        return id(self.matrices)

    def check(self, environments: Any, space: Space, mixes: bool) -> None:
        require_finite_law(self, environments)
        if space.shape != self.shape:
            raise GyrostatError(
                f"matrices have shape {self.shape} each, the target has {space.shape}: make them equal."
            )
        if environments.law.count != len(self.counts):
            raise GyrostatError(
                f"the law lists {environments.law.count} environments, the data hold {len(self.counts)}: make them equal."
            )

    def init(
        self, key: PRNGKeyArray, environments: Environments, space: Space, demand: Demand
    ) -> Float[Array, "N size"]:
        return jax.vmap(lambda x: space.coordinates(space.project(x)))(jnp.asarray(self.matrices))

    def sense(self, state: Any, key: PRNGKeyArray, scene: Scene, environment: Environment) -> tuple[Reading, Any]:
        if self.batch_size is None:
            return self.read_all(state, scene, environment), state
        return self._reading_of_some(state, key, scene, environment.index, self.batch_size), state

    def read_all(self, state: Any, scene: Scene, environment: Environment) -> Reading:
        first, count = self._place_of(environment.index)
        rows = jnp.arange(self.responses.shape[0])
        in_environment = (rows >= first) & (rows < first + count)
        return rows_reading(scene, state, self.responses, in_environment / count)

    def mix(self, state: Any, key: PRNGKeyArray, scene: Scene) -> tuple[Reading, Any]:
        size = self.batch_size or self.responses.shape[0]
        choosing, within = jax.random.split(key)
        environments = jax.vmap(scene.environments.law.environment)(jax.random.split(choosing, size))
        return self._reading_of_some(state, within, scene, environments.index, size), state

    def _reading_of_some(
        self, state: Array, key: PRNGKeyArray, scene: Scene, index: Int[Array, "*size"], size: int
    ) -> Reading:
        """The reading of random rows: all of one environment, or each of its own."""
        first, count = self._place_of(index)
        rows = first + jax.random.randint(key, (size,), 0, count)
        return rows_reading(scene, state[rows], jnp.asarray(self.responses)[rows])

    def _place_of(self, index: Int[Array, "*size"]) -> tuple[Array, Array]:
        """The first row of an environment, and how many it has."""
        return jnp.asarray(self.starts)[index], jnp.asarray(self.counts)[index]


def rows_reading(
    scene: Scene, X: Float[Array, "m size"], y: Float[Array, " m"], weights: Array | None = None
) -> Reading:
    """The mean over rows and their responses, with equal weights by default."""
    w = jnp.full(y.shape, 1 / y.shape[0]) if weights is None else weights
    error = X @ scene.space.coordinates(scene.product) - y
    return Reading(scene.space.element((w * error) @ X), w @ error**2, w @ y)
