"""Amplified heterogeneity (ours): what ``OneEnvironment(amplify=kappa)`` changes in the theory.

A step with ``G_e + kappa (G_e - mean of G)`` is, up to the noise of the batches, a step in an environment with
``Sigma_e + kappa (Sigma_e - E Sigma)``. So every predictor serves when it is given that law: a two-point law with spread M
behaves as one with M (1 + kappa).
"""

from __future__ import annotations

import math

import numpy as np

from gyrostat import errors
from gyrostat.environments import Finite, Law
from gyrostat.theory.error_law import between_signals
from gyrostat.theory.transition import LEARNT, eliminated_by_lyapunov


def amplified(law: Law, amplify: float) -> Finite:
    """The law of ``Sigma + kappa (Sigma - E Sigma)``; a continuous one becomes the finite one of its quadrature.

    >>> from gyrostat import TwoPoint
    >>> amplified(TwoPoint(mean=1.0, spread=2.0), 3.0).values.ravel().tolist()
    [-7.0, 9.0]
    """
    kappa = float(errors.number("amplify", amplify, least=0))
    values, weights = law.nodes()
    centre = np.einsum("n,nij->ij", weights, values)
    return Finite(centre + (1 + kappa) * (values - centre), weights / weights.sum())


def amplification_limit(law: Law, step_size: float) -> float:
    """The kappa at which the least growth factor ``1 + eta Sigma_ii`` of any environment is zero: beyond it signs flip.

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


def critical_amplification(
    law: Law, step_size: float, *, init_scale: float, num_steps: int, threshold: float = LEARNT
) -> float:
    """The least kappa for which the Lyapunov rule says that the spurious part is eliminated; infinity if none does.

    Up to :func:`amplification_limit`, ``E log(1 + eta Sigma_ii)`` falls as kappa grows: the logarithm is concave, and the
    mean stays. For a two-point law this is ``M* / M - 1`` with M* of :func:`critical_spread`.

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


def amplified_error_law(
    law: Law, amplify: float, *, dimension: int, rank: int, step_size: float, num_samples: float, runs: int = 2000
) -> float:
    """:func:`error_law` with amplification: the median of ||U U^T - A_star||_F at the end, the price of kappa.

    A step on e weighs the batch of e by ``c_ee = 1 + kappa (1 - w_e)`` and that of j by ``c_ej = -kappa w_j``, each with noise
    of its own. So in that law S becomes ``E_e sum_j c_ej^2 ||Sigma_j||_F^2``, the error itself counts
    ``E_e sum_j c_ej^2`` times, and the factors between the two signals are those of the amplified law.

    >>> from gyrostat import TwoPoint
    >>> options = {"dimension": 60, "rank": 1, "step_size": 0.05, "num_samples": 8000}
    >>> [round(amplified_error_law(TwoPoint(spread=1.0), k, **options), 2) for k in (5.0, 7.0)]
    [0.09, 0.11]
    """
    eta = float(errors.number("step_size", step_size, above=0, most=1))
    kappa = float(errors.number("amplify", amplify, least=0))
    values, w = law.nodes()
    squares = (np.diag(np.full(len(w), 1 + kappa)) - kappa * w) ** 2
    S, C = float(w @ squares @ np.einsum("nij,nij->n", values, values)), float(w @ squares.sum(axis=1))
    across = eta / (2 - eta) * max(dimension - rank - law.rank, 0) * rank
    within = eta / (1 - eta) * rank * (rank + 1) / 2 if eta < 1 else math.inf
    between = between_signals(amplified(law, kappa), eta, rank=rank, runs=runs)
    share = float(np.median(across + within + between)) / num_samples
    return math.sqrt(S * share / (1 - C * share)) if C * share < 1 else math.inf
