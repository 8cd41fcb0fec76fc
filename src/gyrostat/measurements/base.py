"""The protocol of measurements, and the scene in which they are asked."""

from __future__ import annotations

import abc
from typing import Any, NamedTuple

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from gyrostat.environments import Environment, Environments
from gyrostat.errors import GyrostatError
from gyrostat.spaces import Space


class Reading(NamedTuple):
    """What one step sees: the gradient with respect to the product, and the mean response (NaN if not observed)."""

    gradient: Array
    response_mean: Float[Array, ""] | float = float("nan")


class Scene(NamedTuple):
    """Where a measurement is taken: the drawn environments, the space of the product, and the product now."""

    environments: Environments
    space: Space
    product: Array


class Measurements(eqx.Module):
    """A way of seeing the residual ``A(theta) - A_e``.

    State is whatever must be remembered between steps (a fixed design); measurements drawn afresh have none.
    """

    @property
    def vectorises(self) -> bool:
        """Whether many runs should share one vmapped program (False when the state is large)."""
        return True

    @property
    def gives_response_mean(self) -> bool:
        """Whether readings carry the mean response."""
        return False

    def init(self, key: PRNGKeyArray, environments: Environments, space: Space, queries: int) -> Any:
        """The state before the first step; at most ``queries`` calls of :meth:`sense` will follow."""
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
