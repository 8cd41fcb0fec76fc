"""`Problem`: environments and the measurements that are taken of them."""

from __future__ import annotations

from typing import Any

from jaxtyping import PRNGKeyArray

from gyrostat import errors
from gyrostat.environments import Environments
from gyrostat.errors import GyrostatError
from gyrostat.jax_tools.readable_modules import ReadableModule
from gyrostat.measurements.base import Measurements


class Problem(ReadableModule):
    """Environments, given or drawn for every seed, and the measurements that are taken of them.

    Parameters
    ----------
    environments
        What is true everywhere and what varies: given, or drawn for every seed.
    measurements
        How it is seen.

    >>> import gyrostat as gs
    >>> Problem(gs.RandomEnvironments(20, law=gs.TwoPoint(spread=6.0)), gs.FreshGaussian(1600)).shape
    (20, 20)
    """

    environments: Any
    measurements: Measurements

    def __check_init__(self) -> None:
        if isinstance(self.environments, type):
            errors.instance("environments", self.environments, ReadableModule, "Environments or a recipe")
        if not (hasattr(self.environments, "draw") and hasattr(self.environments, "law")):
            raise GyrostatError(
                "environments must be Environments or a recipe such as RandomEnvironments; "
                f"got {errors.shown(self.environments)}."
            )
        errors.instance("measurements", self.measurements, Measurements, "Identity, FreshGaussian, ...")
        kind, data = type(self.environments).__name__, type(self.measurements).__name__
        are_fixed = isinstance(self.environments, Environments)
        if self.measurements.brings_responses and not are_fixed:
            raise GyrostatError(
                f"{data} brings its own responses, but {kind} draws another truth for every seed, which they do not come from: "
                "use Observed(shape, count) for data whose truth is unknown, or Environments for the truth they were made from."
            )
        if are_fixed and not self.environments.knows_truth and not self.measurements.brings_responses:
            raise GyrostatError(
                f"{data} measures the targets of the environments, which {kind} does not know: use DenseData for data that "
                "bring their own responses, or Environments with a known truth."
            )

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of a target."""
        return self.environments.shape

    def draw(self, key: PRNGKeyArray) -> Environments:
        """The environments of one seed."""
        return self.environments.draw(key)
