"""Measurements as arrays: a drawn design (the brute force against which exact-in-law draws are tested), and given data."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from gyrostat import errors
from gyrostat.environments import Environments, Observed
from gyrostat.environments.laws import Environment
from gyrostat.errors import GyrostatError
from gyrostat.jax_tools.fast_random import normal
from gyrostat.jax_tools.float64 import double
from gyrostat.measurements.base import Demand, Measurements, Reading, Scene, require_finite_law
from gyrostat.measurements.rows_from_arrays import labelled_rows
from gyrostat.models.spaces import Space
from gyrostat.typing import Leaf

SINGLE = 32_768
"""The longest side of a design in single precision."""

RUNS_PER_CALL = 64
"""The number of runs in one call that share a design, so that the product with it is a matrix product."""


class DesignRows(NamedTuple):
    """Designs as rows: for each environment, the coordinates of every measurement and the noise of every response.

    The leading axis is dropped in a run with one environment, here and in :class:`DesignGram`.
    """

    matrices: Float[Array, "K m size"]
    noises: Float[Array, "K m"]


class DesignGram(NamedTuple):
    """What a reading of a whole batch needs of a design: ``X^T X / m``, ``X^T eps / m``, ``eps^T eps / m`` and the means."""

    gram: Float[Array, "K size size"]
    cross: Float[Array, "K size"]
    energy: Float[Array, " K"]
    mean: Float[Array, "K size"]
    noise: Float[Array, " K"]


class Dense(Measurements):
    """Gaussian measurements written out as arrays, m per environment, drawn once or (``redraw``) at every step.

    ``design`` (any whole number) is the seed of a design that all runs share, so that their products with it become one
    matrix product; by default every run draws its own. ``operator`` is how a whole batch is applied: ``"rows"`` (two
    products with X), ``"gram"`` (one with X^T X), or ``"auto"``, the cheaper of the two. ``precision="single"`` stores and
    applies either in single precision, twice as fast. The relative error of a reading is then about 1e-6; parameters and
    residuals stay in double precision, so a run converges as far as in double precision.

    Parameters
    ----------
    num_samples
        The number m of measurements per environment.
    redraw
        True for new measurements at every step.
    noise
        The standard deviation of the error in each response.
    design
        The seed of a design that all runs share; by default every run draws its own.
    operator
        How a whole batch is applied: ``"rows"``, ``"gram"`` or ``"auto"``.
    precision
        ``"double"``, or ``"single"`` to store and apply the measurements in single precision.

    >>> Dense(100, redraw=True).num_samples
    100
    """

    num_samples: int = errors.field(check=errors.integer, least=1, static=True)
    redraw: bool = eqx.field(static=True, default=False)
    noise: Leaf = errors.nonnegative(default=0.0)
    design: Leaf = errors.field(check=lambda name, value: _design(name, value), default=None)
    operator: str = errors.field(check=errors.choice, options=("auto", "rows", "gram"), static=True, default="auto")
    precision: str = errors.field(check=errors.choice, options=("double", "single"), static=True, default="double")

    def __check_init__(self) -> None:
        if self.redraw and (self.design is not None or self.operator == "gram"):
            raise GyrostatError("redraw draws new measurements at every step: leave design and operator='gram' out.")

    def check(self, environments: Any, space: Space, mixes: bool) -> None:
        if not self.redraw:
            require_finite_law(self, environments)
        if mixes and self.operator == "gram":
            raise GyrostatError("operator='gram' keeps no rows for a Pooled batch to draw from: use 'rows' or 'auto'.")
        if self.precision == "single" and max(self.num_samples, space.size) > SINGLE:
            raise GyrostatError(
                f"precision='single' takes designs of at most {SINGLE} rows and columns, beyond which some releases of JAX "
                f"multiply wrongly; got {self.num_samples} x {space.size}: use precision='double'."
            )

    @property
    def vectorises(self) -> bool:
        return self.redraw or self.design is not None

    @property
    def keeps_state(self) -> bool:
        return True

    def runs_per_call(self, size: int, mixes: bool) -> int:
        if self.design is None:
            return super().runs_per_call(size, mixes)
        return 1 if mixes else RUNS_PER_CALL  # a mixed batch copies its rows for every run

    @property
    def group_key(self) -> Hashable:
        return None if self.design is None else int(self.design)

    @property
    def gives_response_mean(self) -> bool:
        return True

    def rows(self, environments: Any, space: Space) -> DesignRows:
        """The shared design, as arrays.

        >>> import gyrostat as gs
        >>> environments = gs.Environments.diagonal(5)
        >>> Dense(20, design=0).rows(environments, gs.Asymmetric().space(environments.shape)).matrices.shape
        (1, 20, 25)
        """
        if self.design is None:
            raise GyrostatError("design is None, so every run draws its own rows: give a number to share one design.")
        require_finite_law(self, environments)
        with double():
            return self._draw(jax.random.key(self.design), environments.law.count, space)

    def init(
        self, key: PRNGKeyArray, environments: Environments, space: Space, demand: Demand
    ) -> DesignRows | DesignGram | None:
        if self.redraw:
            return None
        drawing = key if self.design is None else jax.random.key(self.design)
        rows = self._draw(drawing, environments.law.count, space)  # type: ignore[attr-defined]
        # A product with the Gram matrix reads size^2 numbers. The two products with the rows read 2 m size numbers, and the
        # transposed one is slower.
        use_gram = self.operator == "gram" or (self.operator == "auto" and space.size < 2.2 * self.num_samples)
        design = _gram(rows) if use_gram and not demand.mixes else rows
        # With one environment its axis is dropped: indexing it in every step would keep XLA from its fast matrix product.
        return type(design)(*(x[0] for x in design)) if len(rows.matrices) == 1 else design

    def sense(self, state: Any, key: PRNGKeyArray, scene: Scene, environment: Environment) -> tuple[Reading, Any]:
        if state is None:
            rows = DesignRows(*(x[0] for x in self._draw(key, 1, scene.space)))
            return self._read(rows, scene, environment), state
        return self._read(state, scene, environment), state

    def read_all(self, state: Any, scene: Scene, environment: Environment) -> Reading:
        return super().read_all(state, scene, environment) if self.redraw else self._read(state, scene, environment)

    def _read(self, design: DesignRows | DesignGram, scene: Scene, environment: Environment) -> Reading:
        target = scene.space.coordinates(scene.environments.target(environment.sigma))
        if design[0].ndim == 3:
            design = type(design)(*(x[environment.index] for x in design))
        if isinstance(design, DesignGram):
            return _gram_reading(scene, design, target)
        return _rows_reading(scene, design.matrices, target, design.noises)

    def mix(self, state: Any, key: PRNGKeyArray, scene: Scene) -> tuple[Reading, Any]:
        choosing, within, drawing = jax.random.split(key, 3)
        environments = jax.vmap(scene.environments.law.environment)(jax.random.split(choosing, self.num_samples))
        if state is None:
            rows = self._draw(drawing, 1, scene.space)
            X, eps = rows.matrices[0], rows.noises[0]
        else:
            row = jax.random.randint(within, (self.num_samples,), 0, self.num_samples)
            where = (row,) if state.matrices.ndim == 2 else (environments.index, row)
            X, eps = state.matrices[where], state.noises[where]
        targets = jax.vmap(lambda s: scene.space.coordinates(scene.environments.target(s)))(environments.sigma)
        return _reading(scene, X, jnp.sum(X * targets, axis=1) + eps), state

    def _draw(self, key: PRNGKeyArray, count: int, space: Space) -> DesignRows:
        matrices, noises = jax.random.split(key)
        # The numbers of jax.random.normal, which XLA would draw again for each of their consumers.
        X = normal(matrices, count * self.num_samples * space.size).reshape(count, self.num_samples, space.size)
        kept = X.astype(jnp.float32) if self.precision == "single" else X
        return DesignRows(kept, self.noise * normal(noises, count * self.num_samples).reshape(count, -1))


class DenseData(Measurements):
    """Given measurements and responses, with the index of the environment of each row.

    :meth:`from_arrays` takes labels of any kind, pandas tables, and one array per environment.

    A batch of one environment is all of its rows, or ``batch_size`` of them drawn with replacement. For each row of a mixed
    batch, an environment is drawn according to its weight, and then one of its rows. A mixed batch has ``batch_size`` rows,
    by default as many as the data.

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
    labels: tuple = eqx.field(static=True)

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

    @property
    def brings_responses(self) -> bool:
        return True

    @property
    def keeps_state(self) -> bool:
        return True

    def runs_per_call(self, size: int, mixes: bool) -> int:
        return 1 if mixes or self.batch_size is not None else RUNS_PER_CALL  # single rows are copied for every run

    @property
    def group_key(self) -> Hashable:
        return id(self.matrices)

    @property
    def gives_response_mean(self) -> bool:
        return True

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
        e = environment.index
        first, count = jnp.asarray(self.starts)[e], jnp.asarray(self.counts)[e]
        rows = first + jax.random.randint(key, (self.batch_size,), 0, count)
        return _reading(scene, state[rows], jnp.asarray(self.responses)[rows]), state

    def read_all(self, state: Any, scene: Scene, environment: Environment) -> Reading:
        e, rows = environment.index, jnp.arange(self.responses.shape[0])
        first, count = jnp.asarray(self.starts)[e], jnp.asarray(self.counts)[e]
        in_environment = (rows >= first) & (rows < first + count)
        return _reading(scene, state, self.responses, in_environment / count)

    def mix(self, state: Any, key: PRNGKeyArray, scene: Scene) -> tuple[Reading, Any]:
        size = self.batch_size or self.responses.shape[0]
        choosing, within = jax.random.split(key)
        e = jax.vmap(scene.environments.law.environment)(jax.random.split(choosing, size)).index
        counts, starts = jnp.asarray(self.counts)[e], jnp.asarray(self.starts)[e]
        rows = starts + jax.random.randint(within, (size,), 0, counts)
        return _reading(scene, state[rows], jnp.asarray(self.responses)[rows]), state


def _reading(scene: Scene, X: Array, y: Array, weights: Array | None = None) -> Reading:
    w = jnp.full(y.shape, 1 / y.shape[0]) if weights is None else weights
    error = X @ scene.space.coordinates(scene.product) - y
    return Reading(scene.space.element((w * error) @ X), w @ error**2, w @ y)


def _rows_reading(scene: Scene, X: Array, target: Float[Array, " size"], noise: Float[Array, " m"]) -> Reading:
    """The reading of a whole batch. X is applied to the residual, so rounding errors are relative to the residual."""
    b = scene.space.coordinates(scene.product) - target
    error = (X @ b.astype(X.dtype)).astype(b.dtype) - noise
    gradient = (error.astype(X.dtype) @ X).astype(b.dtype) / error.size
    return Reading(
        scene.space.element(gradient), jnp.mean(error**2), jnp.mean(X, axis=0).astype(b.dtype) @ target + noise.mean()
    )


def _gram(rows: DesignRows) -> DesignGram:
    X, eps = rows[0].astype(float), rows[1]
    m = X.shape[1]
    transposed = jnp.swapaxes(X, 1, 2)
    cross = (transposed @ eps[:, :, None])[..., 0] / m
    gram = (transposed @ X / m).astype(rows[0].dtype)
    return DesignGram(gram, cross, jnp.mean(eps**2, axis=1), jnp.mean(X, axis=1), jnp.mean(eps, axis=1))


def _gram_reading(scene: Scene, design: DesignGram, target: Float[Array, " size"]) -> Reading:
    b = scene.space.coordinates(scene.product) - target
    product = (design.gram @ b.astype(design.gram.dtype)).astype(b.dtype)
    square = b @ product - 2 * b @ design.cross + design.energy
    return Reading(scene.space.element(product - design.cross), square, design.mean @ target + design.noise)


def _design(name: str, value: Any) -> np.ndarray | None:
    return None if value is None else np.asarray(errors.integer(name, value, most=errors.LARGEST_SEED))
