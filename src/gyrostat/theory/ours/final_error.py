"""Our law for the error that HeteroSGD ends with: the accumulated isometry noise of all steps, also with amplification."""

from __future__ import annotations

import math

import numpy as np

from gyrostat import errors
from gyrostat.environments import Law
from gyrostat.theory.ours.amplified_heterogeneity import amplified


@errors.explains_formula
def error_law(law: Law, *, dimension: int, rank: int, step_size: float, num_samples: float, runs: int = 2000) -> float:
    """The median of ||U U^T - A_star||_F once the invariant part is learnt and the spurious part eliminated.

    Then the residual is ``-V Sigma_e V^T`` up to the error itself, of mean squared size ``S = E ||Sigma||_F^2``. Each step
    kicks U by ``eta sqrt(S/m) W U`` with W a Gaussian matrix. Across the signal, kicks decay by 1 - eta a step and leave
    variance ``eta/(2 - eta)`` per entry; within the signal block they decay by 1 - 2 eta; between the two signals they
    are multiplied by ``1 + eta (xi - 1)``, a random recursion with heavy tails (X, sampled in ``runs`` runs of 10/eta
    steps; ``runs=0`` leaves it out):

        error^2 = (S + error^2)/m * [ eta/(2 - eta) (d - r1 - r2) r1  +  eta/(1 - eta) r1 (r1 + 1)/2  +  X ]

    Parameters
    ----------
    law
        The law of the spurious part over environments.
    dimension
        The side d of the matrix (n in Xiong 2024).
    rank
        The rank r1 of the invariant part.
    step_size
        The step size eta.
    num_samples
        The number m of measurements in a batch.
    runs
        The number of simulated runs.

    >>> from gyrostat import TwoPoint
    >>> round(error_law(TwoPoint(spread=6.0), dimension=100, rank=1, step_size=0.05, num_samples=8000), 2)
    0.11
    """
    eta = float(errors.number("step_size", step_size, above=0))
    S = law.second_moment
    share = _accumulated_noise(law, eta, dimension=dimension, rank=rank, runs=runs) / num_samples
    return math.sqrt(S * share / (1 - share)) if share < 1 else math.inf


def _accumulated_noise(law: Law, eta: float, *, dimension: int, rank: int, runs: int) -> float:
    """The bracket of :func:`error_law`: the squared size of the kicks, across, within and between the signals."""
    if eta >= 1:
        return math.inf
    r1, r2 = rank, law.rank
    across = eta / (2 - eta) * max(dimension - r1 - r2, 0) * r1
    within = eta / (1 - eta) * r1 * (r1 + 1) / 2
    between = between_signals(law, eta, rank=r1, runs=runs) if runs else 0.0
    return float(np.median(across + within + between))


def between_signals(law: Law, step_size: float, *, rank: int, runs: int = 2000, seed: int = 0) -> np.ndarray:
    """Samples of X above: ``sum k_ij^2`` over the r1 r2 entries, ``k <- (1 + eta (xi_j - 1)) k + eta z``, at stationarity."""
    eta, r2 = float(step_size), law.rank
    values, weights = law.nodes()
    xi = np.diagonal(values, axis1=1, axis2=2)
    rng = np.random.default_rng(seed)
    k = np.zeros((runs, r2, rank))
    for _ in range(math.ceil(10 / eta)):
        factor = 1 + eta * (xi[rng.choice(len(weights), size=runs, p=weights)] - 1)
        k = factor[:, :, None] * k + eta * rng.standard_normal(k.shape)
        np.clip(k, -1e6, 1e6, out=k)  # a supercritical law grows without bound; its samples only need to stay large
    return (k**2).sum(axis=(1, 2))


@errors.explains_formula
def amplified_error_law(
    law: Law, amplify: float, *, dimension: int, rank: int, step_size: float, num_samples: float, runs: int = 2000
) -> float:
    """:func:`error_law` with amplification kappa: the median of ||U U^T - A_star||_F at the end.

    A step on e weighs the batch of e by ``c_ee = 1 + kappa (1 - w_e)`` and that of j by ``c_ej = -kappa w_j``, each with
    its own noise. So in that law S becomes ``E_e sum_j c_ej^2 ||Sigma_j||_F^2``, the error itself counts
    ``E_e sum_j c_ej^2`` times, and the factors between the two signals are those of the amplified law.

    Parameters
    ----------
    law
        The law of the spurious part over environments.
    amplify
        The amplification kappa.
    dimension
        The side d of the matrix (n in Xiong 2024).
    rank
        The rank r1 of the invariant part.
    step_size
        The step size eta.
    num_samples
        The number m of measurements in a batch.
    runs
        The number of simulated runs.

    >>> from gyrostat import TwoPoint
    >>> options = {"dimension": 60, "rank": 1, "step_size": 0.05, "num_samples": 8000}
    >>> [round(amplified_error_law(TwoPoint(spread=1.0), k, **options), 2) for k in (5.0, 7.0)]
    [0.09, 0.11]
    """
    eta = float(errors.number("step_size", step_size, above=0, most=1))
    kappa = float(errors.number("amplify", amplify, least=0))
    C, S = weighted_sizes(law, kappa)
    share = _accumulated_noise(amplified(law, kappa), eta, dimension=dimension, rank=rank, runs=runs) / num_samples
    return math.sqrt(S * share / (1 - C * share)) if C * share < 1 else math.inf


def weighted_sizes(law: Law, kappa: float) -> tuple[float, float]:
    """``C = E_e sum_j c_ej^2``, which multiplies what all environments share, and ``S = E_e sum_j c_ej^2 ||Sigma_j||_F^2``."""
    values, w = law.nodes()
    squares = (np.diag(np.full(len(w), 1 + kappa)) - kappa * w) ** 2
    return float(w @ squares.sum(axis=1)), float(w @ squares @ np.einsum("nij,nij->n", values, values))
