"""The residual itself: factorisation, or infinitely many measurements."""

from __future__ import annotations

from typing import Any

from jaxtyping import PRNGKeyArray

from gyrostat.environments import Environment
from gyrostat.measurements.base import Measurements, Reading, Scene, residual


class Identity(Measurements):
    """``G = A(theta) - A_e``: the limit m -> infinity.

    A mixture of environments is then their mean.
    """

    def sense(self, state: Any, key: PRNGKeyArray, scene: Scene, environment: Environment) -> tuple[Reading, Any]:
        return Reading(residual(scene, environment)), state

    def mix(self, state: Any, key: PRNGKeyArray, scene: Scene) -> tuple[Reading, Any]:
        return Reading(scene.product - scene.environments.mean_target), state
