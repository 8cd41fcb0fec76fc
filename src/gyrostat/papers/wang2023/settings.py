"""The settings of the paper's figures, and what its experiments share: problem, network, schedules, paths, jumps.

The lab builds its presets from the same settings.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

import gyrostat as gs
from gyrostat.diagnostics import jump_times, ranks

OBSERVED = ((0, 0), (1, 0), (1, 1))
"""The observed entries of [[1, *], [epsilon, 1]]."""

WIDTH = 100
HIGH, LOW = (0.2, 0.1), (0.02, 0.001)
"""Figure 1: step size and ridge on the noisy path and on the offshoots."""


@dataclass(frozen=True, kw_only=True)
class CompletionSetting:
    """The setting of a figure: step size and ridge of its phases, with most noise (``high``) and with little (``low``)."""

    epsilon: float
    depth: int = 3
    high: tuple[float, float] = HIGH
    low: tuple[float, float] = LOW
    num_steps: int


FIGURE1 = CompletionSetting(epsilon=0.25, num_steps=20_000)
FIGURE2 = CompletionSetting(epsilon=0.1, high=(0.25, 0.1), low=(0.05, 0.001), num_steps=9000)
FIGURE2_DEPTHS, FIGURE2_SWITCH = (3, 4), 5000
FIGURE3_SWITCHES, FIGURE3_TAIL = (0, 500, 1000, 2000, 4000, 8000), 4000
"""Steps with much noise, and how many with little follow."""
FIGURE3_EPSILONS = (0.07, 0.09, 0.1, 0.12, 0.15, 0.3, 1.0)


def figure3(epsilon: float, switch: int) -> CompletionSetting:
    """Figure 3 at one of its matrices and lengths of the noisy phase."""
    return CompletionSetting(epsilon=epsilon, depth=4, num_steps=switch + FIGURE3_TAIL)


FIGURE4 = CompletionSetting(epsilon=0.2, high=(0.4, 0.1), low=(0.1, 0.001), num_steps=12_000)
FIGURE4_PERIODS = (1000, 2000)
"""Lengths of one phase; the paper does not print it."""

RIDGE_RATE = -3 * float(np.log(1 - HIGH[0] * HIGH[1]))
"""Rate of s2 in Figure 1 when nothing but the ridge acts on it: every layer shrinks by 1 - eta lambda per step."""

WARM_STEPS, WARM_SIZE = 500, 0.03
NEVER = 10**9
RATIO, GONE = 0.01, 1e-4
"""Rank 1 is s2 / s1 below the first; a run that was ever below the second has jumped beyond doubt."""

RECORDS = 1001
"""All paths have this many records, so that experiments in one process share their compiled programs."""

STARTS = 8
"""The number of runs of gradient descent as a control; only their starts are random."""


def completion(epsilon: float, sampling: str = "one") -> gs.Problem:
    """[[1, *], [epsilon, 1]] with ``"one"`` entry per step, ``"shuffled"`` (one, without replacement) or ``"all"`` (GD)."""
    environments = gs.RectangularEnvironments.of([[1.0, 1 / epsilon], [epsilon, 1.0]])
    order = "shuffled" if sampling == "shuffled" else "iid"
    return gs.Problem(environments, gs.Entries(OBSERVED, batch_size=None if sampling == "all" else 1, order=order))


def noisy(high: tuple[float, float] = HIGH, warm_up: int = WARM_STEPS) -> gs.WarmUp:
    """The high phase, with small steps at first."""
    return gs.WarmUp(warm_up, WARM_SIZE, then=gs.Constant(*high))


def annealed(
    high: tuple[float, float] = HIGH, low: tuple[float, float] = LOW, at: int = NEVER, warm_up: int = WARM_STEPS
) -> gs.Annealing:
    """A high phase up to step ``at`` and a low one from then on."""
    return gs.Annealing(noisy(high, warm_up), gs.Constant(*low), at)


def network(schedule: Any, depth: int = 3, convention: str = "weight_decay", start: Any = None) -> gs.RidgeDescent:
    """The paper's network of width 100; orthogonal at the start, which runs exactly in width 4."""
    return gs.RidgeDescent(
        schedule, model=gs.DeepLinear(depth, WIDTH), start=start or gs.Orthogonal(), convention=convention
    )


class Paths(NamedTuple):
    """Matrices along many runs (seed, record, 2, 2), the steps of the records, and the steps of divergence (-1: none)."""

    steps: np.ndarray
    matrices: np.ndarray
    diverged: np.ndarray
    settings: str

    @property
    def values(self) -> np.ndarray:
        """The singular values (seed, record, 2)."""
        return singular_values(self.matrices)

    @property
    def ratio(self) -> np.ndarray:
        """s2 / s1 (seed, record)."""
        s = self.values
        return s[..., 1] / np.maximum(s[..., 0], 1e-300)

    @property
    def jumped(self) -> np.ndarray:
        """The step from which on a run has rank 1 (or 0), infinite for never or diverged."""
        return jump_times(self.values, self.steps, ratio=RATIO)

    @property
    def ranks(self) -> np.ndarray:
        """The rank at each record (-1 for diverged)."""
        return ranks(self.values, ratio=RATIO)

    def loss(self, epsilon: float) -> np.ndarray:
        """The test loss over that of a zero in the missing entry, ``(1 - epsilon A_12)^2``."""
        return (1 - epsilon * self.matrices[..., 0, 1]) ** 2


def singular_values(matrices: np.ndarray) -> np.ndarray:
    """The singular values of 2 x 2 matrices, NaN where an entry is NaN; the small one is right to 1e-16 times the large one.

    >>> singular_values(np.array([[3.0, 0.0], [4.0, 5.0]])).round(6).tolist()
    [6.708204, 2.236068]
    """
    a, b, c, d = (matrices[..., i, j] for i in (0, 1) for j in (0, 1))
    # s1 +- s2 are the lengths of two vectors: no difference of large squares.
    plus, minus = np.hypot(a + d, b - c), np.hypot(a - d, b + c)
    large = (plus + minus) / 2
    return np.stack([large, np.abs(a * d - b * c) / np.maximum(large, 1e-300)], axis=-1)


def follow(
    algorithm: gs.Algorithm, problem: gs.Problem, *, num_steps: int, seeds: int, seed: int, records: int = RECORDS
) -> Paths:
    """The matrices along the runs of one setting."""
    ds = gs.run(algorithm, problem, num_steps=num_steps, seeds=seeds, seed=seed, record=("product",), record_at=records)
    return Paths(ds.step.values, ds["product"].values, ds.diverged.values, ds.attrs["settings"])


def ticker(progress: Any, total: int) -> Callable[[], None]:
    """A function that reports one more of ``total`` parts as done."""
    done = 0

    def tick() -> None:
        nonlocal done
        done += 1
        if progress is not None:
            progress(min(done, total), total)

    return tick


def median_interval(values: np.ndarray, z: float = 3.29) -> tuple[float, float]:
    """Order statistics that enclose the median of the law with 99.9 % confidence; infinite values are allowed.

    >>> median_interval(np.arange(101.0))
    (33.0, 67.0)
    """
    ordered, n = np.sort(values), len(values)
    low, high = n / 2 - z * n**0.5 / 2, n / 2 + z * n**0.5 / 2
    return float(ordered[max(int(low), 0)]), float(ordered[min(int(high), n - 1)])


def quantile(values: np.ndarray, share: float) -> float:
    """A quantile that is one of the values, so that infinite values are allowed."""
    return float(np.quantile(values, share, method="inverted_cdf"))


def decay_rate(steps: np.ndarray, small: np.ndarray, ratio: np.ndarray) -> float:
    """The rate at which s2 falls while the ratio goes from 1e-6 to 1e-13 for the last time (rounding is at 1e-16).

    The gradient acts on s2 with a strength of order s2^(1 - 2/L) / lambda relative to the ridge, so s2 must be small first.
    """
    fine = np.isfinite(ratio)
    above = np.flatnonzero(fine & (ratio >= 1e-6))
    begin = above[-1] + 1 if above.size else 0
    below = np.flatnonzero(ratio[begin:] < 1e-13)
    end = begin + below[0] if below.size else len(ratio)
    if end - begin < 4:
        return float("nan")
    return float(-np.polyfit(steps[begin:end], np.log(small[begin:end]), 1)[0])
