"""Batches: which environments one step sees.

:class:`OneEnvironment` for all samples of a step, another one for each sample (:class:`Pooled`), or all at every step
(:class:`Full`). Derive a choice of your own from :class:`Batches`.
"""

from __future__ import annotations

import abc
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Int, PRNGKeyArray

from gyrostat import errors
from gyrostat.environments import Law
from gyrostat.environments.laws import Environment
from gyrostat.errors import GyrostatError
from gyrostat.jax_tools.fast_random import fold_in, split
from gyrostat.jax_tools.readable_modules import ReadableModule
from gyrostat.measurements import Measurements, Reading
from gyrostat.measurements.base import Scene
from gyrostat.typing import Leaf

__all__ = ["Batches", "Full", "OneEnvironment", "Pooled"]


def __dir__() -> list[str]:
    return __all__


class Batches(ReadableModule):
    """Chooses the environments of a step and asks the measurements for a reading of them."""

    @property
    def mixes(self) -> bool:
        """Whether samples of several environments share one batch."""
        return False

    def queries(self, law: Law) -> int:
        """The number of readings that one step asks of the measurements."""
        return 1

    def check(self, law: Law) -> None:
        """Refuse, before compilation, a law that these batches cannot serve."""

    @abc.abstractmethod
    def read(
        self,
        measurements: Measurements,
        state: Any,
        step: Int[Array, ""],
        run_key: PRNGKeyArray,
        key: PRNGKeyArray,
        scene: Scene,
    ) -> tuple[Reading, Any]:
        """The reading of step number ``step``; ``key`` belongs to the step and ``run_key`` to the whole run."""


ORDERS = ("iid", "cyclic", "shuffled")

STEPS_CHECKED = 10_000
"""A function that orders the environments is checked at this many steps."""


def _order(name: str, value: Any) -> Any:
    if isinstance(value, str):
        return errors.choice(name, value, ORDERS)
    if callable(value):
        return value
    if not isinstance(value, Sequence | np.ndarray) or len(value) == 0:
        raise GyrostatError(
            f"{name} must be 'iid', 'cyclic', 'shuffled', a list of environments such as [0, 0, 1, 1], or a function of the "
            f"step; got {errors.shown(value)}."
        )
    if any(isinstance(e, str) for e in value):
        raise GyrostatError(
            f"{name} must list environments by number, from 0; got {errors.shown(value)}: `labels` of the data says which "
            "environment has which number."
        )
    return tuple(errors.integer(name, e) for e in value)


def _amplify(name: str, value: Any) -> Any:
    return None if value is None else errors.number(name, value, least=0)


class OneEnvironment(Batches):
    """Every batch comes from ONE environment (HeteroSGD, Xu 2024, Algorithms 2 and 3).

    ``order`` is ``"iid"`` (drawn from the law), ``"cyclic"`` (a fixed order) or ``"shuffled"`` (a new random order for
    every pass). The last two visit all environments equally often, so they need equal weights. It may also be a list of
    environments, such as ``[0, 0, 1, 1]``, which is repeated until the run ends, or a function of the step number that
    gives the environment: ``lambda t: (t // 50) % 2``. The mean over the environments, in diagnostics and in theory, is
    that of the law's weights, however often such an order visits each.

    ``amplify=kappa`` (ours) steps with ``G_e + kappa (G_e - mean of G over all environments)``, as if environment e had the
    target ``A_e + kappa (A_e - mean of A)``. The part that all environments share is unchanged. The spread of the rest
    grows by 1 + kappa, which can turn too little heterogeneity into enough; the noise of the batches grows too. Every step
    needs a batch of every environment, so it costs as much as a step of :class:`Full` and the law must be finite.

    Parameters
    ----------
    order
        ``"iid"``, ``"cyclic"``, ``"shuffled"``, a list of environments that is repeated, or a function of the step
        number.
    amplify
        The factor kappa by which differences between environments are enlarged; None for none.

    >>> OneEnvironment("cyclic", amplify=7.0).order
    'cyclic'
    >>> OneEnvironment([0, 0, 1, 1]).order
    (0, 0, 1, 1)
    """

    order: str | Sequence[int] | Callable = errors.field(check=_order, static=True, default="iid")
    # None is not the same as zero: it reads one environment only, as the papers do.
    amplify: Leaf = errors.field(check=_amplify, default=None)

    def queries(self, law: Law) -> int:
        return 1 if self.amplify is None else law.count  # type: ignore[attr-defined]

    def check(self, law: Law) -> None:
        if self.amplify is not None and not law.is_finite:
            raise GyrostatError(
                f"amplify compares a batch with batches of all other environments; {type(law).__name__} is continuous, and "
                "no step sees them all: use a Finite law, or leave amplify out."
            )
        if self.amplify is not None and law.count == 1:  # type: ignore[attr-defined]
            raise GyrostatError(
                "amplify compares environments and the law has one only: give it two, or leave amplify out."
            )
        if self.order == "iid":
            return
        if not law.is_finite:
            raise GyrostatError(
                f"order={errors.shown(self.order)} goes through a list of environments; {type(law).__name__} is continuous: "
                "use order='iid' or a Finite law."
            )
        count: int = law.count  # type: ignore[attr-defined]
        if isinstance(self.order, str):
            if np.ptp(np.asarray(law.weights)) > 1e-9:  # type: ignore[attr-defined]
                raise GyrostatError(
                    f"order={self.order!r} visits environments equally often; the weights differ: use order='iid'."
                )
            return
        visited = _visited(self.order) if callable(self.order) else np.asarray(self.order)
        wrong = visited[(visited < 0) | (visited >= count)]
        if wrong.size:
            raise GyrostatError(
                f"order must name environments from 0 to {count - 1}, of which the law has {count}; got {wrong[0]}."
            )

    def read(
        self,
        measurements: Measurements,
        state: Any,
        step: Int[Array, ""],
        run_key: PRNGKeyArray,
        key: PRNGKeyArray,
        scene: Scene,
    ) -> tuple[Reading, Any]:
        choosing, sensing = split(key) if self.order == "iid" else (key, key)
        law: Any = scene.environments.law
        environment = self._choose(law, step, run_key, choosing)
        if self.amplify is None:
            return measurements.sense(state, sensing, scene, environment)
        readings, state = _all_readings(measurements, state, sensing, scene)
        e, kappa = environment.index, self.amplify
        is_chosen = jnp.equal(e, jnp.arange(law.count))
        amplified = _weighted_sum((1 + kappa) * is_chosen - kappa * jnp.asarray(law.weights), readings)
        # The residual is that of the batch itself. The mean response is amplified as the gradient is, because Shrinkage
        # subtracts it from a trace in that gradient.
        return amplified._replace(residual_square=readings.residual_square[e]), state

    def _choose(self, law: Any, step: Int[Array, ""], run_key: PRNGKeyArray, key: PRNGKeyArray) -> Environment:
        if self.order == "iid":
            return law.environment(key)
        if self.order == "cyclic":
            return law.at(step % law.count)
        if isinstance(self.order, tuple):
            return law.at(jnp.asarray(self.order)[step % len(self.order)])
        if callable(self.order):
            return law.at(jnp.asarray(self.order(step)))
        permutation = jax.random.permutation(fold_in(run_key, step // law.count), law.count)
        return law.at(permutation[step % law.count])


def _visited(order: Callable) -> np.ndarray:
    """The environments of the first steps."""
    try:
        visited = np.asarray(jax.vmap(lambda t: jnp.asarray(order(t)))(jnp.arange(STEPS_CHECKED)))
    except Exception as error:
        raise GyrostatError(
            f"order cannot be traced as a function of the step ({type(error).__name__}): write it with jax.numpy, with "
            "jnp.where instead of if."
        ) from None
    if visited.shape != (STEPS_CHECKED,) or not np.issubdtype(visited.dtype, np.integer):
        raise GyrostatError(
            f"order must give one whole number for a step; got {visited.dtype} of shape {visited.shape[1:]}: use // for "
            "division."
        )
    return visited


class Pooled(Batches):
    """Every sample of a batch draws its own environment (PooledSGD, Xu 2024, eq. 4 and 116)."""

    @property
    def mixes(self) -> bool:
        return True

    def read(
        self,
        measurements: Measurements,
        state: Any,
        step: Int[Array, ""],
        run_key: PRNGKeyArray,
        key: PRNGKeyArray,
        scene: Scene,
    ) -> tuple[Reading, Any]:
        return measurements.mix(state, key, scene)


class Full(Batches):
    """All environments at every step, averaged by their weights (PooledGD, Xu 2024, Theorem 6)."""

    def queries(self, law: Law) -> int:
        return law.count  # type: ignore[attr-defined]

    def check(self, law: Law) -> None:
        if not law.is_finite:
            raise GyrostatError(
                f"Full goes through all environments at every step; {type(law).__name__} is continuous: "
                "use Pooled or a Finite law."
            )

    def read(
        self,
        measurements: Measurements,
        state: Any,
        step: Int[Array, ""],
        run_key: PRNGKeyArray,
        key: PRNGKeyArray,
        scene: Scene,
    ) -> tuple[Reading, Any]:
        law: Any = scene.environments.law
        if law.count == 1:
            return measurements.sense(state, key, scene, law.at(0))
        readings, state = _all_readings(measurements, state, key, scene)
        return _weighted_sum(jnp.asarray(law.weights), readings), state


def _all_readings(measurements: Measurements, state: Any, key: PRNGKeyArray, scene: Scene) -> tuple[Reading, Any]:
    """The readings of all environments of a finite law, in order."""
    law: Any = scene.environments.law

    def one(state: Any, index: Array) -> tuple[Any, Reading]:
        reading, state = measurements.sense(state, fold_in(key, index), scene, law.at(index))
        return state, _averageable(reading)

    state, readings = jax.lax.scan(one, state, jnp.arange(law.count))
    return readings, state


def _weighted_sum(weights: Array, readings: Reading) -> Reading:
    return jax.tree.map(lambda x: jnp.tensordot(weights, x, axes=1), readings)


def _averageable(reading: Reading) -> Reading:
    """A reading without the position of its entry, which cannot be averaged, in floating point."""
    return jax.tree.map(lambda x: jnp.asarray(x, dtype=float), reading._replace(entry=None))
