"""When oscillation eliminates the spurious part: the Lyapunov exponent and the critical spread (ours).

While it is small, a spurious direction is multiplied by ``1 + eta xi`` at every step, where xi is the diagonal entry of the
environment's Sigma. Whether it survives T steps from the initial scale alpha depends on that product. These are closed
formulas in NumPy: importing this module does not import JAX.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from gyrostat import errors
from gyrostat.errors import GyrostatError
from gyrostat.theory.condition import Condition

if TYPE_CHECKING:
    from gyrostat.environments import Law

LEARNT = 0.1
"""A spurious part below this share of the signal counts as eliminated."""


@errors.explains_formula
def lyapunov_exponent(law: Law, step_size: float) -> float:
    """``max_i E log |1 + eta Sigma_ii|``: the typical growth rate of a spurious direction per step.

    Parameters
    ----------
    law
        The law of the spurious part over environments.
    step_size
        The step size eta.

    >>> from gyrostat import TwoPoint
    >>> lyapunov_exponent(TwoPoint(mean=1.0, spread=6.0), 0.05) > 0 > lyapunov_exponent(TwoPoint(mean=1.0, spread=7.0), 0.05)
    True
    """
    eta = float(errors.number("step_size", step_size, above=0))
    tiny = np.finfo(float).tiny  # a factor of exactly zero ends the direction: a very negative number stands for log 0
    return float(law.expectation(lambda xi: np.log(np.maximum(np.abs(1 + eta * xi), tiny))).max())


@errors.explains_formula
def effective_step(step_size: float, beta: float) -> float:
    """``step_size / (1 - beta)``: the step that momentum beta makes in the end out of every gradient (ours).

    A gradient moves the parameters by ``step_size beta^k`` in the k-th step after its own. Where parameters change little
    during the 1 / (1 - beta) steps that this takes, a run with momentum follows one without it at the effective step, and
    so do its Lyapunov exponent and its critical spread, up to the effective step ``sqrt((1 - beta) / (25 beta E Sigma_ii^2))``.

    Parameters
    ----------
    step_size
        The step size eta.
    beta
        The momentum.

    >>> round(effective_step(0.005, 0.9), 9)
    0.05
    """
    eta, share = errors.number("step_size", step_size, above=0), errors.number("beta", beta, least=0)
    if not share < 1:
        raise GyrostatError(f"beta must be below 1, or momentum never fades; got {beta!r}.")
    return float(eta / (1 - share))


@errors.explains_formula
def eliminated_by_lyapunov(
    law: Law, step_size: float, *, init_scale: float, num_steps: int, threshold: float = LEARNT
) -> Condition:
    """Our rule: a typical direction, ``alpha exp(lambda T)``, is still below the root of the threshold after T steps.

    Parameters
    ----------
    law
        The law of the spurious part over environments.
    step_size
        The step size eta.
    init_scale
        The scale alpha of the start.
    num_steps
        The number of steps T.
    threshold
        The share of the spurious signal below which it counts as eliminated.

    >>> from gyrostat import TwoPoint
    >>> eliminated_by_lyapunov(TwoPoint(spread=6.0), 0.05, init_scale=1e-3, num_steps=200).holds
    True
    """
    growth = lyapunov_exponent(law, step_size) * num_steps
    room = 0.5 * math.log(threshold) - math.log(init_scale)
    return Condition(
        "spurious part eliminated (Lyapunov rule)",
        "ours",
        growth,
        "<",
        room,
        "lambda T against log(sqrt(threshold)/alpha)",
    )


@errors.explains_formula
def critical_spread(
    step_size: float, *, init_scale: float, num_steps: int, mean: float = 1.0, threshold: float = LEARNT
) -> float:
    """The spread M* of a two-point law at which the verdict of the Lyapunov rule changes, in closed form.

    ``M* = sqrt((1 + eta mean)^2 - exp(2 log(sqrt(threshold)/alpha) / T)) / eta``; zero if every spread is eliminated.

    Parameters
    ----------
    step_size
        The step size eta.
    init_scale
        The scale alpha of the start.
    num_steps
        The number of steps T.
    mean
        The mean of the two-point law.
    threshold
        The share of the spurious signal below which it counts as eliminated.

    >>> round(critical_spread(0.05, init_scale=1e-3, num_steps=200), 2)
    4.16
    """
    eta = float(errors.number("step_size", step_size, above=0))
    room = 0.5 * math.log(threshold) - math.log(init_scale)
    gap = (1 + eta * mean) ** 2 - math.exp(2 * room / num_steps)
    return math.sqrt(max(gap, 0.0)) / eta
