"""What a prediction is for, and the losses of environments from which the weights for each purpose follow."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from gyrostat.estimators.invariant.effects import MeasuredEffects
from gyrostat.estimators.invariant.worst_case import MOST_LEFT_OUT
from gyrostat.estimators.squared_losses import ROUNDING, Risks

EVERYWHERE, LEAST_SQUARES = "everywhere", "least-squares"
PURPOSES = ("best", EVERYWHERE, LEAST_SQUARES, "same-kind", "worst-case")
"""What a prediction is for: ``best`` is the one of the next two with less error in environments left out, what holds in any
environment or all rows together; then new environments of the same kind; the worst environment."""
CLOSE = 0.01
"""Mean square errors that differ by less than this share count as equal."""


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

    def left_out_errors(self, coefficients: Callable[[np.ndarray], np.ndarray]) -> dict[str, float]:
        """Root mean square errors in environments left out (all count the same), one at a time or in ``MOST_LEFT_OUT`` parts.

        ``coefficients`` gives those of what holds everywhere from the chosen environments, in units of the data. Nothing can be
        compared with fewer than three environments, and the answer is empty.
        """
        risks, K = self.risks, len(self.risks.counts)
        if K < 3:
            return {}
        losses, part = np.empty((K, 2)), np.arange(K) % MOST_LEFT_OUT
        for out in range(part.max() + 1):
            others, rest = risks.of_some(part != out), risks.of_some(part == out)
            coef = np.linalg.solve(self.directions, coefficients(part != out))
            level = others.shares @ (others.crosses[:, 0] - others.grams[:, 0, 1:] @ coef)
            both = np.append(level, coef), others.least(others.shares)
            losses[part == out] = np.stack([rest.values(weights) for weights in both], axis=1)
        roots = self.response * np.sqrt(np.maximum(losses, ROUNDING * risks.energies.max()).mean(axis=0))
        return dict(zip((EVERYWHERE, LEAST_SQUARES), roots.tolist(), strict=True))


def best_purpose(left_out_errors: dict[str, float]) -> str:
    """Least squares if its error in environments left out is less; what holds everywhere in a tie, or if nothing is known.

    >>> best_purpose({"everywhere": 3.2, "least-squares": 1.1}), best_purpose({"everywhere": 1.1, "least-squares": 1.1})
    ('least-squares', 'everywhere')
    """
    if not left_out_errors:
        return EVERYWHERE
    ours, plain = (left_out_errors[name] ** 2 for name in (EVERYWHERE, LEAST_SQUARES))
    return LEAST_SQUARES if plain < (1 - CLOSE) * ours else EVERYWHERE


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
