"""The auxiliary sequences of the proof of Xu 2024, Theorem 2: calibrated growth and the controller."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from gyrostat import errors
from gyrostat.environments import Law


@errors.explains_formula
def calibration(step_size: float, init_scale: float, num_steps: int) -> np.ndarray:
    """R_t of eq. (25): ``R_{t+1} = (1 - eta R_t^2 + eta) R_t``, R_0 = alpha.

    Parameters
    ----------
    step_size
        The step size eta.
    init_scale
        The scale alpha of the start.
    num_steps
        The number of steps T.

    >>> round(float(calibration(0.05, 1e-3, 300)[-1]), 6)
    1.0
    """
    R = np.empty(num_steps + 1)
    R[0] = errors.number("init_scale", init_scale, above=0)
    for t in range(num_steps):
        R[t + 1] = (1 - step_size * R[t] ** 2 + step_size) * R[t]
    return R


class Envelope(NamedTuple):
    """R_t with the upper and lower sequences of Definition 2, up to the end of phase 1.

    Parameters
    ----------
    middle
        R_t of eq. (25).
    upper, lower
        The sequences of eq. (31).
    """

    middle: np.ndarray
    upper: np.ndarray
    lower: np.ndarray


@errors.explains_formula
def envelope(step_size: float, init_scale: float) -> Envelope:
    """The sequences (25) and (31) until R_t enters (1/3 - eta, 1/3): the T1 of Lemma 5.

    Parameters
    ----------
    step_size
        The step size eta.
    init_scale
        The scale alpha of the start.

    >>> middle, upper, lower = envelope(0.05, 1e-3)
    >>> bool((upper <= 7 / 6 * middle).all() and (lower >= 5 / 6 * middle).all())
    True
    """
    eta = float(errors.number("step_size", step_size, above=0))
    alpha = float(errors.number("init_scale", init_scale, above=0))
    drift = eta / (32 * math.log(1 / alpha))
    rows = [(alpha, alpha, alpha)]
    while rows[-1][0] <= 1 / 3 - eta:
        R, up, low = rows[-1]
        rows.append(
            (
                (1 - eta * R**2 + eta) * R,
                (1 - eta * up**2 + eta) * up + drift * up,
                (1 - eta * low**2 + eta) * low - drift * up,
            )
        )
    return Envelope(*(np.array(column) for column in zip(*rows, strict=True)))


@errors.explains_formula
def phase_one_length(step_size: float, init_scale: float) -> int:
    """T1: the first step at which R_t of (25) lies in (1/3 - eta, 1/3).

    Parameters
    ----------
    step_size
        The step size eta.
    init_scale
        The scale alpha of the start.
    """
    return len(envelope(step_size, init_scale).middle) - 1


@errors.explains_formula
def calibration_line(
    step_size: float, init_scale: float, num_steps: int, *, bound: float, delta: float, ranks: int
) -> np.ndarray:
    """L_t of eq. (38): ``max(alpha, 40 M1 delta sqrt(r1 + r2) R_t)``; ``ranks`` is r1 + r2.

    Parameters
    ----------
    step_size
        The step size eta.
    init_scale
        The scale alpha of the start.
    num_steps
        The number of steps T.
    bound
        M1, the largest strength.
    delta
        The restricted isometry constant.
    ranks
        r1 + r2.
    """
    R = calibration(step_size, init_scale, num_steps)
    return np.maximum(init_scale, 40 * bound * delta * math.sqrt(ranks) * R)


class Controller(NamedTuple):
    """Simulated controller sequences.

    Parameters
    ----------
    peak
        The largest ratio q_i^t / L_t of each run.
    barrier
        The barrier that it must stay below.
    """

    peak: np.ndarray
    barrier: float


@errors.explains_formula
def controller(
    law: Law,
    step_size: float,
    *,
    line: np.ndarray,
    violation: float,
    runs: int = 4000,
    seed: int = 0,
) -> Controller:
    """The controller of Definition 4: ``q <- max((1 + eta Sigma_ii + 2 eta) q, L_t)`` for every spurious direction.

    Directions are independent two-point (or other) factors; ``violation`` is p. The barrier is ``(r2/p)^1.5``, in
    units of L_t (eq. 39).

    Parameters
    ----------
    law
        The law of the spurious part over environments.
    step_size
        The step size eta.
    line
        L_t of eq. (38).
    violation
        The probability p of the barrier.
    runs
        The number of simulated runs.
    seed
        The seed of the random numbers.
    """
    eta, r2 = float(step_size), law.rank
    values, weights = law.nodes()
    xi = np.diagonal(values, axis1=1, axis2=2)
    rng = np.random.default_rng(seed)
    q = np.full((runs, r2), line[0])
    peak = np.ones(runs)
    for L in line[1:]:
        draws = xi[rng.choice(len(weights), size=(runs, r2), p=weights), np.arange(r2)]
        q = np.maximum((1 + eta * draws + 2 * eta) * q, L)
        peak = np.maximum(peak, (q / L).max(axis=1))
    return Controller(peak, (r2 / violation) ** 1.5)
