"""The residual itself: matrix factorisation, or the limit of infinitely many measurements."""

from __future__ import annotations

from typing import Any

from jaxtyping import Array, PRNGKeyArray

from gyrostat.environments.laws import Environment
from gyrostat.measurements.base import Measurements, Reading, Scene, inner, residual

RUNS_PER_CALL = 64
"""The number of runs of a small factorisation that fit in the first cache of a processor; with more, a step takes half as
long again."""


class Identity(Measurements):
    """``G = A(theta) - A_e``: the limit m -> infinity.

    A mixed batch then sees the mean over the environments.
    """

    isotropic = True
    by_entries = True

    def runs_per_call(self, size: int, mixes: bool) -> int:
        return min(RUNS_PER_CALL, super().runs_per_call(size, mixes))

    def sense(self, state: Any, key: PRNGKeyArray, scene: Scene, environment: Environment) -> tuple[Reading, Any]:
        return self.read_all(state, scene, environment), state

    def read_all(self, state: Any, scene: Scene, environment: Environment) -> Reading:
        return _reading(residual(scene, environment))

    def mix(self, state: Any, key: PRNGKeyArray, scene: Scene) -> tuple[Reading, Any]:
        # The residuals of single responses also vary over the environments; only the mean residual is seen here.
        return _reading(scene.product - scene.environments.mean_target), state


def _reading(error: Array) -> Reading:
    return Reading(error, inner(error, error))
