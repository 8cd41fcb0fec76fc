"""A drawn design, written out as arrays: the brute force against which exact-in-law draws are tested."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from gyrostat import errors
from gyrostat.environments import Environments
from gyrostat.environments.laws import Environment
from gyrostat.errors import GyrostatError
from gyrostat.jax_tools.fast_random import normal
from gyrostat.jax_tools.float64 import double
from gyrostat.measurements.base import Demand, Measurements, Reading, Scene, require_finite_law
from gyrostat.measurements.dense_data import RUNS_PER_CALL, rows_reading
from gyrostat.models.spaces import Space
from gyrostat.typing import Leaf

SINGLE = 32_768
"""The longest side of a design in single precision."""


class DesignRows(NamedTuple):
    """Designs as rows: for each environment, the coordinates of every measurement and the noise of every response.

    The leading axis is dropped in a run with one environment, here and in :class:`DesignGram`.
    """

    matrices: Float[Array, "K m size"]
    noises: Float[Array, "K m"]

    def reading(self, scene: Scene, target: Float[Array, " size"]) -> Reading:
        """The reading of all rows of one environment. X is applied to the residual, so rounding errors are relative to it."""
        X, eps = self
        b = scene.space.coordinates(scene.product) - target
        error = (X @ b.astype(X.dtype)).astype(b.dtype) - eps
        gradient = (error.astype(X.dtype) @ X).astype(b.dtype) / error.size
        response_mean = jnp.mean(X, axis=0).astype(b.dtype) @ target + eps.mean()
        return Reading(scene.space.element(gradient), jnp.mean(error**2), response_mean)


class DesignGram(NamedTuple):
    """What a reading of a whole batch needs of a design: ``X^T X / m``, ``X^T eps / m``, ``eps^T eps / m`` and the means."""

    gram: Float[Array, "K size size"]
    cross: Float[Array, "K size"]
    energy: Float[Array, " K"]
    mean: Float[Array, "K size"]
    noise: Float[Array, " K"]

    @staticmethod
    def of(rows: DesignRows) -> DesignGram:
        """The same design. Its sums are made in double precision; the Gram matrix is kept in that of the rows."""
        X, eps = rows.matrices.astype(float), rows.noises
        transposed, m = jnp.swapaxes(X, 1, 2), X.shape[1]
        gram = (transposed @ X / m).astype(rows.matrices.dtype)
        cross = (transposed @ eps[:, :, None])[..., 0] / m
        return DesignGram(gram, cross, jnp.mean(eps**2, axis=1), jnp.mean(X, axis=1), jnp.mean(eps, axis=1))

    def reading(self, scene: Scene, target: Float[Array, " size"]) -> Reading:
        """That of :meth:`DesignRows.reading`."""
        b = scene.space.coordinates(scene.product) - target
        answer = (self.gram @ b.astype(self.gram.dtype)).astype(b.dtype)
        square = b @ answer - 2 * b @ self.cross + self.energy
        return Reading(scene.space.element(answer - self.cross), square, self.mean @ target + self.noise)


class Dense(Measurements):
    """Gaussian measurements written out as arrays, m per environment, drawn once or at every step.

    Parameters
    ----------
    num_samples
        The number m of measurements per environment.
    redraw
        True for new measurements at every step.
    noise
        The standard deviation of the error in each response.
    design
        The seed of a design that all runs share, any whole number: their products with it become one matrix product. By
        default every run draws its own.
    operator
        How a whole batch is applied: ``"rows"`` (two products with X), ``"gram"`` (one with X^T X) or ``"auto"``, the cheaper
        of the two.
    precision
        ``"double"``, or ``"single"`` to store and apply the measurements in single precision, twice as fast. The relative
        error of a reading is then about 1e-6; parameters and residuals stay in double precision, so a run converges as far.

    >>> Dense(100, redraw=True).num_samples
    100
    """

    num_samples: int = errors.field(check=errors.integer, least=1, static=True)
    redraw: bool = eqx.field(static=True, default=False)
    noise: Leaf = errors.nonnegative(default=0.0)
    design: Leaf = errors.field(check=lambda name, value: _design(name, value), default=None)
    operator: str = errors.field(check=errors.choice, options=("auto", "rows", "gram"), static=True, default="auto")
    precision: str = errors.field(check=errors.choice, options=("double", "single"), static=True, default="double")

    keeps_state = True
    gives_response_mean = True

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

    def runs_per_call(self, size: int, mixes: bool) -> int:
        if self.design is None:
            return super().runs_per_call(size, mixes)
        return 1 if mixes else RUNS_PER_CALL  # a mixed batch copies its rows for every run

    @property
    def group_key(self) -> Hashable:
        return None if self.design is None else int(self.design)

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
        design: Any = self._draw(drawing, environments.law.count, space)  # type: ignore[attr-defined]
        # A product with the Gram matrix reads size^2 numbers. The two products with the rows read 2 m size numbers, and the
        # transposed one is slower.
        is_cheaper = self.operator == "auto" and space.size < 2.2 * self.num_samples
        if (self.operator == "gram" or is_cheaper) and not demand.mixes:
            design = DesignGram.of(design)
        # With one environment its axis is dropped: indexing it in every step would keep XLA from its fast matrix product.
        return jax.tree.map(lambda x: x[0], design) if len(design[0]) == 1 else design

    def sense(self, state: Any, key: PRNGKeyArray, scene: Scene, environment: Environment) -> tuple[Reading, Any]:
        design = jax.tree.map(lambda x: x[0], self._draw(key, 1, scene.space)) if self.redraw else state
        return self._reading_of(design, scene, environment), state

    def read_all(self, state: Any, scene: Scene, environment: Environment) -> Reading:
        if self.redraw:
            return super().read_all(state, scene, environment)
        return self._reading_of(state, scene, environment)

    def _reading_of(self, design: DesignRows | DesignGram, scene: Scene, environment: Environment) -> Reading:
        target = scene.space.coordinates(scene.environments.target(environment.sigma))
        if design[0].ndim == 3:
            design = jax.tree.map(lambda x: x[environment.index], design)
        return design.reading(scene, target)

    def mix(self, state: Any, key: PRNGKeyArray, scene: Scene) -> tuple[Reading, Any]:
        choosing, within, drawing = jax.random.split(key, 3)
        environments = jax.vmap(scene.environments.law.environment)(jax.random.split(choosing, self.num_samples))
        if self.redraw:
            X, eps = (x[0] for x in self._draw(drawing, 1, scene.space))
        else:
            row = jax.random.randint(within, (self.num_samples,), 0, self.num_samples)
            where = (row,) if state.matrices.ndim == 2 else (environments.index, row)
            X, eps = (x[where] for x in state)
        targets = jax.vmap(lambda s: scene.space.coordinates(scene.environments.target(s)))(environments.sigma)
        return rows_reading(scene, X, jnp.sum(X * targets, axis=1) + eps), state

    def _draw(self, key: PRNGKeyArray, count: int, space: Space) -> DesignRows:
        matrices, noises = jax.random.split(key)
        # The numbers of jax.random.normal, which XLA would draw again for each of their consumers.
        X = normal(matrices, count * self.num_samples * space.size).reshape(count, self.num_samples, space.size)
        kept = X.astype(jnp.float32) if self.precision == "single" else X
        return DesignRows(kept, self.noise * normal(noises, count * self.num_samples).reshape(count, -1))


def _design(name: str, value: Any) -> np.ndarray | None:
    return None if value is None else np.asarray(errors.integer(name, value, most=errors.LARGEST_SEED))
