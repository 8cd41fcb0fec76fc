"""`Problem`: environments and the measurements that are taken of them."""

from __future__ import annotations

from typing import Any

import equinox as eqx
from jaxtyping import PRNGKeyArray

from gyrostat import errors
from gyrostat.environments import Environments
from gyrostat.errors import GyrostatError
from gyrostat.measurements.base import Measurements


class Problem(eqx.Module):
    """Environments, given or drawn for every seed, and the measurements that are taken of them.

    >>> import gyrostat as gs
    >>> Problem(gs.RandomEnvironments(20, law=gs.TwoPoint(spread=6.0)), gs.FreshGaussian(1600)).shape
    (20, 20)
    """

    environments: Any
    measurements: Measurements

    def __check_init__(self) -> None:
        if not (hasattr(self.environments, "draw") and hasattr(self.environments, "law")):
            raise GyrostatError(
                "environments must be Environments or a recipe such as RandomEnvironments; "
                f"got {errors.shown(self.environments)}."
            )
        if not isinstance(self.measurements, Measurements):
            got = errors.shown(self.measurements)
            raise GyrostatError(f"measurements must be Identity, FreshGaussian, ...; got {got}.")

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of a target."""
        return self.environments.shape

    def draw(self, key: PRNGKeyArray) -> Environments:
        """The environments of one seed."""
        return self.environments.draw(key)
