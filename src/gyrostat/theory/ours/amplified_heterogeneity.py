"""Amplified heterogeneity (ours): what ``OneEnvironment(amplify=kappa)`` changes in the theory.

A step with ``G_e + kappa (G_e - mean of G)`` is, up to the noise of the batches, a step in an environment with
``Sigma_e + kappa (Sigma_e - E Sigma)``. So every predictor applies with that law: a two-point law with spread M behaves as one
with spread M (1 + kappa).
"""

from __future__ import annotations

import math

import numpy as np

from gyrostat import errors
from gyrostat.environments import Finite, Law
from gyrostat.theory.ours.transition import LEARNT, eliminated_by_lyapunov


@errors.explains_formula
def amplified(law: Law, amplify: float) -> Finite:
    """The law of ``Sigma + kappa (Sigma - E Sigma)``; a continuous law becomes the finite law of its quadrature.

    Parameters
    ----------
    law
        The law of the spurious part over environments.
    amplify
        The amplification kappa.

    >>> from gyrostat import TwoPoint
    >>> amplified(TwoPoint(mean=1.0, spread=2.0), 3.0).values.ravel().tolist()
    [-7.0, 9.0]
    """
    kappa = float(errors.number("amplify", amplify, least=0))
    values, weights = law.nodes()
    centre = np.einsum("n,nij->ij", weights, values)
    return Finite(centre + (1 + kappa) * (values - centre), weights / weights.sum())


@errors.explains_formula
def amplification_limit(law: Law, step_size: float) -> float:
    """The kappa at which the least growth factor ``1 + eta Sigma_ii`` of any environment is zero: beyond it signs flip.

    Parameters
    ----------
    law
        The law of the spurious part over environments.
    step_size
        The step size eta.

    >>> from gyrostat import TwoPoint
    >>> round(amplification_limit(TwoPoint(mean=1.0, spread=2.0), 0.05), 6)
    9.5
    """
    eta = float(errors.number("step_size", step_size, above=0))
    values, weights = law.nodes()
    xi = np.diagonal(values, axis1=1, axis2=2)
    centre = weights @ xi
    below = (centre - xi).max(axis=0)
    rooms = [(1 + eta * c) / (eta * b) - 1 if b > 0 else math.inf for c, b in zip(centre, below, strict=True)]
    return float(max(min(rooms, default=math.inf), 0.0))


@errors.explains_formula
def critical_amplification(
    law: Law, step_size: float, *, init_scale: float, num_steps: int, threshold: float = LEARNT
) -> float:
    """The least kappa for which the Lyapunov rule predicts that the spurious part is eliminated; infinity if there is none.

    Up to :func:`amplification_limit`, ``E log(1 + eta Sigma_ii)`` falls as kappa grows: the logarithm is concave, and the
    mean does not change. For a two-point law this is ``M* / M - 1`` with M* of :func:`critical_spread`.

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
    >>> round(critical_amplification(TwoPoint(spread=1.0), 0.05, init_scale=1e-3, num_steps=200), 2)
    3.16
    """

    def holds(kappa: float) -> bool:
        changed = amplified(law, kappa)
        return eliminated_by_lyapunov(
            changed, step_size, init_scale=init_scale, num_steps=num_steps, threshold=threshold
        ).holds

    low, high = 0.0, amplification_limit(law, step_size)
    if holds(low):
        return low
    if not math.isfinite(high) or not holds(high := high * (1 - 1e-9)):
        return math.inf
    while high - low > 1e-9 * (1 + high):
        middle = (low + high) / 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high
