"""The settings of the paper's figures, and what its experiments share: problem, network, schedules, paths, jumps.

The presets of the lab are made of the same settings.
"""

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

import gyrostat as gs
from gyrostat.diagnostics import jump_times, ranks
from gyrostat.experiments import LabPreset
from gyrostat.figures.declarations import Bars, Line

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


def figure3(epsilon, switch):
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

FATES = {"rank 2": 2, "rank 1": 1, "rank 0": 0, "diverged": -1}

RECORDS = 1001
"""All paths have this many records, so that experiments in one process share their compiled programs."""

STARTS = 8
"""The number of runs of gradient descent as a control; only their starts are random."""


def completion(epsilon, sampling="one"):
    """[[1, *], [epsilon, 1]] with ``"one"`` entry per step, ``"shuffled"`` (one, without replacement) or ``"all"`` (GD)."""
    environments = gs.RectangularEnvironments.of([[1.0, 1 / epsilon], [epsilon, 1.0]])
    order = "shuffled" if sampling == "shuffled" else "iid"
    return gs.Problem(environments, gs.Entries(OBSERVED, batch_size=None if sampling == "all" else 1, order=order))


def noisy(high=HIGH, warm_up=WARM_STEPS):
    """The high phase, with small steps at first."""
    return gs.schedules.WarmUp(warm_up, WARM_SIZE, then=gs.schedules.Constant(*high))


def annealed(high=HIGH, low=LOW, at=NEVER, warm_up=WARM_STEPS):
    """A high phase up to step ``at`` and a low one from then on."""
    return gs.schedules.Annealing(noisy(high, warm_up), gs.schedules.Constant(*low), at)


def network(schedule, depth=3, convention="weight_decay", start=None):
    """The paper's network of width 100; orthogonal at the start, which runs exactly in width 4."""
    return gs.RidgeDescent(
        schedule, model=gs.DeepLinear(depth, WIDTH), start=start or gs.starts.Orthogonal(), convention=convention
    )


class Paths(NamedTuple):
    """Matrices along many runs (seed, record, 2, 2), the steps of the records, and the steps of divergence (-1: none)."""

    steps: np.ndarray
    matrices: np.ndarray
    diverged: np.ndarray
    settings: str

    @property
    def values(self):
        """The singular values (seed, record, 2)."""
        return singular_values(self.matrices)

    @property
    def ratio(self):
        """s2 / s1 (seed, record)."""
        s = self.values
        return s[..., 1] / np.maximum(s[..., 0], 1e-300)

    @property
    def jumped(self):
        """The step from which on a run has rank 1 (or 0), infinite for never or diverged."""
        return jump_times(self.values, self.steps, ratio=RATIO)

    @property
    def ranks(self):
        """The rank at each record (-1 for diverged)."""
        return ranks(self.values, ratio=RATIO)

    def loss(self, epsilon):
        """The test loss over that of a zero in the missing entry, ``(1 - epsilon A_12)^2``."""
        return (1 - epsilon * self.matrices[..., 0, 1]) ** 2


def singular_values(matrices):
    """The singular values of 2 x 2 matrices, NaN where an entry is NaN; the small one is right to 1e-16 times the large one.

    >>> singular_values(np.array([[3.0, 0.0], [4.0, 5.0]])).round(6).tolist()
    [6.708204, 2.236068]
    """
    a, b, c, d = (matrices[..., i, j] for i in (0, 1) for j in (0, 1))
    # s1 +- s2 are the lengths of two vectors: no difference of large squares.
    plus, minus = np.hypot(a + d, b - c), np.hypot(a - d, b + c)
    large = (plus + minus) / 2
    return np.stack([large, np.abs(a * d - b * c) / np.maximum(large, 1e-300)], axis=-1)


def follow(algorithm, problem, *, records=RECORDS, **options):
    """The matrices along the runs of one setting; ``options`` are those of :func:`gyrostat.run`."""
    ds = gs.run(algorithm, problem, record=("product",), record_at=records, **options)
    return Paths(ds.step.values, ds["product"].values, ds.diverged.values, ds.attrs["settings"])


def sgd_and_descent(run):
    """SGD, and gradient descent from a few starts as a control: prefix of variables, sampling, number of runs, dimension."""
    return run.over((("", "one", run.seeds, "seed"), ("gd_", "all", STARTS, "start")))


def share_by(jumps, steps, label, *, unit=1, colour=None):
    """A curve of the share of the runs that have jumped by each step."""
    return Line(steps / unit, (jumps.values[:, None] <= steps).mean(axis=0), label, colour=colour)


def shares_of_ranks(ranks, label, colour):
    """Bars of how many runs end at each rank."""
    return Bars(list(FATES), [(ranks == rank).mean() for rank in FATES.values()], label, colour=colour)


def ticker(progress, total):
    """A function that reports one more of ``total`` parts as done."""
    done = 0

    def tick():
        nonlocal done
        done += 1
        if progress is not None:
            progress(min(done, total), total)

    return tick


def median_interval(values, z=3.29):
    """Order statistics that enclose the median of the law with 99.9 % confidence; infinite values are allowed.

    >>> median_interval(np.arange(101.0))
    (33.0, 67.0)
    """
    ordered, n = np.sort(values), len(values)
    low, high = n / 2 - z * n**0.5 / 2, n / 2 + z * n**0.5 / 2
    return float(ordered[max(int(low), 0)]), float(ordered[min(int(high), n - 1)])


def quantile(values, share):
    """A quantile that is one of the values, so that infinite values are allowed."""
    return float(np.quantile(values, share, method="inverted_cdf"))


def decay_rate(steps, small, ratio):
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


def preset(name, title, setting, note, **values):
    """A figure with most noise as the lab's controls have it."""
    step_size, ridge = setting.high
    of_setting = {"epsilon": setting.epsilon, "depth": setting.depth, "step_size": step_size, "ridge": ridge}
    values = {**of_setting, "num_steps": setting.num_steps, **values}
    return LabPreset(lab="completion", name=name, title=title, values=values, note=note)


_SWITCH = {"schedule": "annealed", "anneal_at": FIGURE2_SWITCH}
_LOW = f"After the switch the figure has η = {FIGURE2.low[0]:g}; here it is a tenth of the step size before."
_THREE, _FOUR = (replace(FIGURE2, depth=depth) for depth in FIGURE2_DEPTHS)
_LENGTH = FIGURE3_SWITCHES[4]

PRESETS = (
    preset(
        "fig1",
        "A jump from rank 2 to rank 1",
        FIGURE1,
        "The figure also branches off runs with little noise, and runs SGD without replacement.",
    ),
    preset("fig2-L3", "Depth 3 does not jump at ε = 0.1", _THREE, _LOW, **_SWITCH),
    preset("fig2-L4", "Depth 4 jumps at ε = 0.1", _FOUR, _LOW, **_SWITCH),
    preset(
        "fig3",
        "An easier matrix, annealed",
        figure3(FIGURE3_EPSILONS[5], _LENGTH),
        "The figure compares seven ε and six lengths of the noisy phase.",
        schedule="annealed",
        anneal_at=_LENGTH,
    ),
    preset(
        "fig4",
        "Quiet and loud phases alternate",
        FIGURE4,
        "The paper does not print the length of a phase.",
        schedule="periodic",
        period=FIGURE4_PERIODS[0],
    ),
)
