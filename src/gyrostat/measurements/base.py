"""The protocol of measurements, and the scene in which they are asked."""

from __future__ import annotations

import abc
from collections.abc import Callable, Hashable
from typing import Any, NamedTuple

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, PRNGKeyArray

from gyrostat.environments import Environment, Environments
from gyrostat.errors import GyrostatError
from gyrostat.models.spaces import Space


class Entry(NamedTuple):
    """A gradient that is ``slope`` at one entry of the product and zero elsewhere, and the ``value`` of that entry."""

    row: Int[Array, ""]
    column: Int[Array, ""]
    slope: Float[Array, ""]
    value: Float[Array, ""]


class Reading(NamedTuple):
    """What one step sees: the gradient with respect to the product, the mean square of what is left of the responses,
    ``(1/m) sum_i (<X_i, A> - y_i)^2``, and the mean response (NaN if not observed). When a single entry was seen, ``entry``
    says the gradient once more.
    """

    gradient: Array
    residual_square: Float[Array, ""]
    response_mean: Float[Array, ""] | float = float("nan")
    entry: Entry | None = None


class Demand(NamedTuple):
    """What a run will ask of its measurements: at most so many readings, mixed batches or not."""

    queries: int
    mixes: bool


class Scene(NamedTuple):
    """Where a measurement is taken: the drawn environments, the space of the product, and the product now.

    ``entry`` gives one entry of the product without making all of it.
    """

    environments: Environments
    space: Space
    product: Array
    entry: Callable[[Array, Array], Array] | None = None


class Measurements(eqx.Module):
    """A way of seeing the residual ``A(theta) - A_e``.

    State is whatever must be remembered between steps (a fixed design); measurements drawn afresh have none.
    """

    @property
    def vectorises(self) -> bool:
        """Whether many runs should share one vmapped program (False when the state is large)."""
        return True

    def runs_per_call(self, size: int, mixes: bool) -> int:
        """How many runs with products of ``size`` entries go well into one call."""
        return int(np.clip(2 ** np.floor(np.log2(2.4e6 / (48 * size))), 1, 512)) if self.vectorises else 1

    @property
    def group_key(self) -> Hashable:
        """Settings that differ in this do not share a call, because it is large or shared between runs."""
        return None

    @property
    def isotropic(self) -> bool:
        """Whether rotating the residual rotates the reading, without randomness: then a run can be made in a subspace."""
        return False

    @property
    def by_entries(self) -> bool:
        """Whether readings are made entry by entry: then the runs of a small model do well in ``runs_last_loop``."""
        return False

    @property
    def gives_response_mean(self) -> bool:
        """Whether readings carry the mean response."""
        return False

    def init(self, key: PRNGKeyArray, environments: Environments, space: Space, demand: Demand) -> Any:
        """The state before the first step."""
        return ()

    @abc.abstractmethod
    def sense(self, state: Any, key: PRNGKeyArray, scene: Scene, environment: Environment) -> tuple[Reading, Any]:
        """A batch in which every sample comes from one environment."""

    @abc.abstractmethod
    def mix(self, state: Any, key: PRNGKeyArray, scene: Scene) -> tuple[Reading, Any]:
        """A batch in which every sample draws an environment of its own."""

    def check(self, environments: Any, space: Space, mixes: bool) -> None:
        """Refuse, before compilation, what these measurements cannot do."""


def need_finite(measurements: Measurements, environments: Any) -> None:
    """Refuse a continuous law where data must be kept per environment."""
    if not environments.law.is_finite:
        name = type(measurements).__name__
        raise GyrostatError(
            f"{name} keeps data for each environment, so it needs a finite law; got {type(environments.law).__name__}: "
            "use TwoPoint or Finite, or FreshGaussian for a continuous law."
        )


def residual(scene: Scene, environment: Environment) -> Array:
    """``A(theta) - A_e``."""
    return scene.product - scene.environments.target(environment.sigma)


def inner(a: Array, b: Array) -> Float[Array, ""]:
    """The inner product of two elements given as arrays."""
    # A product with ones, then a short sum: XLA does not vectorise a sum over all entries of a matrix.
    return jnp.sum(jnp.ones(len(a)) @ (a * b))
