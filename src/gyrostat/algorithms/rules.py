"""Rules: how a gradient moves the parameters.

Without memory: :class:`GradientStep`, :class:`RidgeStep`, :class:`Preconditioned`. With memory: :class:`Momentum`,
:class:`Nesterov`, :class:`Adam`, and any transformation of optax as :class:`Optax`. Derive one of your own from
:class:`UpdateRule`. :func:`amplified_heterogeneity` is a transformation of optax for training loops of your own.
"""

from gyrostat.algorithms.optax_amplification import amplified_heterogeneity
from gyrostat.algorithms.update_rules import (
    Adam,
    GradientStep,
    Momentum,
    Nesterov,
    Optax,
    Preconditioned,
    RidgeStep,
    UpdateRule,
)

__all__ = [
    "Adam",
    "GradientStep",
    "Momentum",
    "Nesterov",
    "Optax",
    "Preconditioned",
    "RidgeStep",
    "UpdateRule",
    "amplified_heterogeneity",
]


def __dir__() -> list[str]:
    return __all__
