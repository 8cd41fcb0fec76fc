"""What a prediction is for, and the losses of environments from which the weights for each purpose follow."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gyrostat.estimators.invariant.effects import MeasuredEffects
from gyrostat.estimators.squared_losses import Risks

PURPOSES = ("everywhere", "same-kind", "worst-case")
"""What a prediction is for: what holds in any environment; new environments of the same kind; the worst environment."""


class Pooling(NamedTuple):
    """Squared losses of environments in standard deviations, and what takes weights back to units of the data."""

    risks: Risks
    directions: np.ndarray
    response: float

    @classmethod
    def of(cls, measured: MeasuredEffects) -> Pooling:
        """The losses along the basis of measured effects; the means of all rows are subtracted."""
        return cls(losses_of_effects(measured), measured.basis * measured.units[:, None], measured.scales[1])

    def in_units(self, weights: np.ndarray) -> tuple[np.ndarray, float]:
        """Coefficients, and how far predictions lie above the mean of all rows where features have their means."""
        return self.directions @ weights[1:], float(self.response * weights[0])


def losses_of_effects(measured: MeasuredEffects) -> Risks:
    """The squared losses of environments along the basis, in standard deviations; means of all rows are subtracted."""
    data = measured.data
    counts = data.sizes * (data.counts.sum() / data.sizes.sum())
    means, levels = (x - counts @ x / counts.sum() for x in (data.means, data.levels))
    centres = np.column_stack([np.ones(len(means)), means])
    grams = centres[:, :, None] * centres[:, None, :]
    grams[:, 1:, 1:] += data.grams
    crosses = centres * levels[:, None]
    crosses[:, 1:] += data.crosses
    return Risks(grams, crosses, data.energies + levels**2, counts)
