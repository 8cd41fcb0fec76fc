"""The residual itself: factorisation, or infinitely many measurements."""

from __future__ import annotations

from typing import Any

from jaxtyping import Array, PRNGKeyArray

from gyrostat.environments import Environment
from gyrostat.measurements.base import Measurements, Reading, Scene, inner, residual

RUNS_PER_CALL = 64
"""So many runs of a small factorisation stay in a processor's first cache; with more, a step takes half as long again."""


class Identity(Measurements):
    """``G = A(theta) - A_e``: the limit m -> infinity.

    A mixture of environments is then their mean.
    """

    @property
    def isotropic(self) -> bool:
        return True

    @property
    def by_entries(self) -> bool:
        return True

    def runs_per_call(self, size: int, mixes: bool) -> int:
        return min(RUNS_PER_CALL, super().runs_per_call(size, mixes))

    def sense(self, state: Any, key: PRNGKeyArray, scene: Scene, environment: Environment) -> tuple[Reading, Any]:
        return _seen(residual(scene, environment)), state

    def mix(self, state: Any, key: PRNGKeyArray, scene: Scene) -> tuple[Reading, Any]:
        # What is left of single responses also varies over the environments; the mean residual is all that is seen here.
        return _seen(scene.product - scene.environments.mean_target), state


def _seen(error: Array) -> Reading:
    return Reading(error, inner(error, error))
