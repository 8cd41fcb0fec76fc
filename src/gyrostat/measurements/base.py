"""What measurements are: the base class, the scene that they are taken of, and the reading that they give."""

from __future__ import annotations

import abc
from collections.abc import Callable, Hashable
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, PRNGKeyArray

from gyrostat.environments import Environments
from gyrostat.environments.laws import Environment
from gyrostat.errors import GyrostatError
from gyrostat.jax_tools.readable_modules import ReadableModule
from gyrostat.models.spaces import Space
from gyrostat.typing import Params


class EntryGradient(NamedTuple):
    """A gradient that is ``slope`` at one entry of the product and zero elsewhere, and the ``value`` of that entry."""

    row: Int[Array, ""]
    column: Int[Array, ""]
    slope: Float[Array, ""]
    value: Float[Array, ""]


class Reading(NamedTuple):
    """What one step sees of the residual.

    ``gradient`` is taken with respect to the product. ``residual_square`` is ``(1/m) sum_i (<X_i, A> - y_i)^2``, and
    ``response_mean`` the mean of the y_i (NaN if they are not observed). If the batch is a single entry of the product,
    ``entry`` is the gradient in sparse form.

    ``at(params)`` is the reading of the same batch (the same environments, samples and noise) at other parameters, for rules
    that ask for a gradient elsewhere. The next step sees nothing of it.
    """

    gradient: Array
    residual_square: Float[Array, ""]
    response_mean: Float[Array, ""] | float = float("nan")
    entry: EntryGradient | None = None
    at: Callable[[Params], Reading] | None = None


class Demand(NamedTuple):
    """What a run asks of its measurements: the largest number of readings, and whether batches mix environments."""

    queries: int
    mixes: bool


class Scene(NamedTuple):
    """What measurements are taken of: the environments of the run, the space of the product, and its current value.

    ``entry`` computes one entry of the product without the others.
    """

    environments: Environments
    space: Space
    product: Array
    entry: Callable[[Array, Array], Array] | None = None


class Measurements(ReadableModule):
    """A way to see the residual ``A(theta) - A_e``.

    The state holds what must be kept between steps, such as a fixed design; measurements drawn anew at every step need none.
    """

    @property
    def vectorises(self) -> bool:
        """Whether many runs should share one vmapped program (False when the state is large)."""
        return True

    def runs_per_call(self, size: int, mixes: bool) -> int:
        """The best number of runs in one call, for products with ``size`` entries."""
        return int(np.clip(2 ** np.floor(np.log2(2.4e6 / (48 * size))), 1, 512)) if self.vectorises else 1

    @property
    def group_key(self) -> Hashable:
        """Settings with different keys do not share a call; the key stands for data that is large or that runs share."""
        return None

    @property
    def isotropic(self) -> bool:
        """Whether readings are deterministic and commute with rotations; a run can then be reduced to a subspace."""
        return False

    @property
    def by_entries(self) -> bool:
        """Whether readings are computed entry by entry, so that runs of a small model gain from vector instructions."""
        return False

    @property
    def keeps_state(self) -> bool:
        """Whether the state never changes; runs then share what is the same for all of them, such as one design."""
        return False

    @property
    def brings_responses(self) -> bool:
        """Whether the responses are given data, which do not depend on the targets of the environments."""
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
        """A batch in which every sample draws its own environment."""

    def read_all(self, state: Any, scene: Scene, environment: Environment) -> Reading:
        """The reading of all data of an environment, if the state keeps them: its residuals are those of the training loss."""
        raise GyrostatError(
            f"{type(self).__name__} keeps no data that a training loss could be computed of: record 'full_loss', that of "
            "infinitely many samples."
        )

    def check(self, environments: Any, space: Space, mixes: bool) -> None:
        """Refuse, before compilation, what these measurements cannot do."""

    def check_second_reading(self) -> None:
        """Refuse to read a batch again at other parameters, if the same key does not make the same samples there."""


def require_finite_law(measurements: Measurements, environments: Any) -> None:
    """Refuse a continuous law, because data must be kept for each environment."""
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
    if jnp.ndim(a) > 2:
        return jnp.sum(a * b)
    # A product with ones and a short sum: XLA does not vectorise a sum over all entries of a matrix.
    return jnp.sum(jnp.ones(len(a)) @ (a * b))
