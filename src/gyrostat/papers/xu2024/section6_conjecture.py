"""The conjecture of section 6 of Xu 2024: which of heterogeneity, stochasticity and over-parameterisation are needed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import xarray as xr

from gyrostat.experiments.declarations import Claim, Experiment, Outcome, together, within
from gyrostat.experiments.statistics import median, share_below, wilson
from gyrostat.figures.declarations import Bars, Figure, Marker, Panel
from gyrostat.papers.xu2024.axis_aligned_runs import AxisSetting, AxisStep, axis_runs
from gyrostat.papers.xu2024.settings import ALPHA

DIMENSION, ETA, STEPS = 12, 0.05, 300
SPREADS = [2.0, 10.0]
"""Well below and well above the transition, which is near 4."""
WIDTHS = [1, 2, DIMENSION]
PATTERNS = {
    "2 equal": [-1.0] * 5 + [1.0] * 5,
    "weights 0.3, 0.4, 0.3": [-1.0] * 3 + [0.0] * 4 + [1.0] * 3,
    "5 equal": [-2.0, -2.0, -1.0, -1.0, 0.0, 0.0, 1.0, 1.0, 2.0, 2.0],
    "10 equal": list(np.arange(10.0)),
    "weights 0.7, 0.3": [-1.0] * 7 + [1.0] * 3,
    "weights 0.3, 0.7": [-1.0] * 3 + [1.0] * 7,
}


def conjecture_data(*, seed: int, progress: Any = None, seeds: int) -> xr.Dataset:
    """Signal and spurious share at the end for several widths, laws and a fixed order, below and above the transition."""
    cells = {
        "width": [[_narrow(width, spread, seeds, [seed, 0, width]) for spread in SPREADS] for width in WIDTHS],
        "law": [[_other_law(law, spread, seeds, [seed, 1, i]) for spread in SPREADS] for i, law in enumerate(PATTERNS)],
        "cyclic": [_deterministic(spread, seeds, [seed, 2]) for spread in SPREADS],
    }
    parts: dict[str, xr.DataArray] = {}
    for name, ends in cells.items():
        dims = ("spread", "part", "seed") if name == "cyclic" else (name, "spread", "part", "seed")
        both = xr.DataArray(np.array(ends), dims=dims)
        parts |= {f"{name}_signal": both.isel(part=0), f"{name}_spurious": both.isel(part=1)}
    return xr.Dataset(parts, coords={"width": WIDTHS, "law": list(PATTERNS), "spread": SPREADS})


def _setting(spread: float, num_samples: float = 333.0 * DIMENSION) -> AxisSetting:
    return AxisSetting(DIMENSION, (1.0,), 1, spread, ETA, ALPHA, num_samples)


def _narrow(width: int, spread: float, runs: int, key: list[int]) -> np.ndarray:
    """U of size d x width, from a random start."""
    rng = np.random.default_rng(key)
    start = ALPHA * rng.standard_normal((runs, DIMENSION, width))
    return _end(axis_runs(_setting(spread), STEPS, runs=runs, rng=rng, start=start))


def _other_law(law: str, spread: float, runs: int, key: list[int]) -> np.ndarray:
    """Another list of environments, of mean 1 and standard deviation ``spread``."""
    rng = np.random.default_rng(key)
    z = np.array(PATTERNS[law])
    signs = (z - z.mean()) / z.std()
    steps = axis_runs(_setting(spread), STEPS, runs=runs, rng=rng, signs=lambda t: rng.choice(signs, size=(runs, 1)))
    return _end(steps)


def _deterministic(spread: float, runs: int, key: list[int]) -> np.ndarray:
    """Two environments in turn, and exact gradients: nothing is random."""
    exact, rng = _setting(spread, np.inf), np.random.default_rng(key)
    return _end(axis_runs(exact, STEPS, runs=runs, rng=rng, signs=lambda t: np.full((runs, 1), (-1.0) ** t)))


def _end(steps: Iterator[AxisStep]) -> np.ndarray:
    """The invariant and the spurious share at the last step."""
    *_, end = steps
    return np.sum(end.U[:, :2] ** 2, axis=2).T


def draw_conjecture(ds: xr.Dataset) -> Figure:
    widths = [f"width {w}" for w in ds.width.values]
    names = [*widths, *ds.law.values.tolist(), "in turn, exact"]
    parts = (ds.width_spurious, ds.law_spurious, ds.cyclic_spurious)
    n = ds.sizes["seed"]

    def bars(spread: float, label: str, colour: int) -> Bars:
        free = np.concatenate([np.atleast_1d(share_below(part.sel(spread=spread), 0.1).values) for part in parts])
        low, high = wilson(free * n, n)
        return Bars(names, free, label, low=low, high=high, colour=colour)

    signals = np.concatenate([np.atleast_1d(median(part.sel(spread=SPREADS[1])).values) for part in _signals(ds)])
    return Figure(
        title="Heterogeneity is needed; width and randomness are not",
        panels=[
            Panel(
                title="Runs without spurious signal",
                xlabel="",
                ylabel="share of runs",
                series=[bars(SPREADS[0], "M = 2", 0), bars(SPREADS[1], "M = 10", 1)],
                ylim=(0, 1.05),
            ),
            Panel(
                title="Invariant signal at M = 10",
                xlabel="",
                ylabel="share of the signal (median)",
                series=[Bars(names, signals, "M = 10", colour=1), Marker(1.0, "learnt in full")],
                ylim=(0, 1.2),
            ),
        ],
        note=(
            f"d = {DIMENSION}, ranks (1, 1), η = 0.05, {STEPS} steps, m = {333 * DIMENSION}, {n} runs (95 % "
            "intervals). M is the standard deviation of s, whose mean is 1, for every list of environments. A "
            "single column cannot hold two signals (M = 2)."
        ),
    )


def _signals(ds: xr.Dataset) -> tuple[xr.DataArray, ...]:
    return ds.width_signal, ds.law_signal, ds.cyclic_signal


def _works(name: str) -> Callable[[xr.Dataset], Outcome]:
    """At the large spread, the least share of runs without spurious signal, and the signal, over all settings of a kind."""

    def measure(ds: xr.Dataset) -> Outcome:
        end = ds.sel(spread=SPREADS[1])
        free, signal = share_below(end[f"{name}_spurious"], 0.1), median(end[f"{name}_signal"])
        return together(within(0.8, 1, least_share=free.min()), within(0.9, 1.1, least_signal=signal.min()))

    return measure


def _learns_both(ds: xr.Dataset) -> Outcome:
    low = ds.sel(spread=SPREADS[0])
    # A factor of one column cannot hold two signals.
    wide = low.width_spurious.sel(width=WIDTHS[1:])
    shares = {"laws": low.law_spurious, "widths": wide, "in_turn": low.cyclic_spurious}
    return within(0, 0.2, **{name: share_below(values, 0.1).max() for name, values in shares.items()})


def _indispensable(ds: xr.Dataset) -> Outcome:
    """Without any randomness, the share of runs that still eliminate the spurious signal."""
    return within(0, 0.2, share_without_randomness=share_below(ds.cyclic_spurious.sel(spread=SPREADS[1]), 0.1))


CONJECTURE = Experiment(
    name="conjecture",
    title="What is indispensable",
    source="Xu 2024, section 6",
    summary=(
        "The authors conjecture that heterogeneity and stochasticity are indispensable, and that "
        "over-parameterisation may not be. We tried factors of one, two and d columns, a fixed order with exact "
        "gradients, up to ten environments, and unequal weights."
    ),
    sizes={"smoke": {"seeds": 24}, "standard": {"seeds": 120}, "full": {"seeds": 1000}},
    compute=conjecture_data,
    draw=draw_conjecture,
    claims=[
        Claim(
            slug="heterogeneity-indispensable",
            statement=(
                "Heterogeneity is indispensable: at M = 2 the spurious signal is learnt, whatever the width, the "
                "order and the law."
            ),
            criterion="share of runs without spurious signal at most 0.2 in every setting (of at least two columns)",
            measure=_learns_both,
        ),
        Claim(
            slug="over-parameterisation-not-needed",
            statement=(
                "Over-parameterisation may not be needed: factors of one and of two columns recover A_star alone at "
                "M = 10."
            ),
            criterion=(
                "for every width: share of runs without spurious signal at least 0.8, median signal in [0.9, 1.1]"
            ),
            measure=_works("width"),
        ),
        Claim(
            slug="stochasticity-indispensable",
            statement="Stochasticity is indispensable.",
            criterion=(
                "two environments in turn, exact gradients, M = 10: share of runs without spurious signal at most 0.2"
            ),
            measure=_indispensable,
            expected="fails",
            kind="depends on the reading",
            reason=(
                "Nothing is random in these runs, and they eliminate the spurious signal: what counts is that a "
                "step sees one environment, not that chance chooses it. If stochasticity means single environments "
                "instead of the pool, the conjecture holds: pooled training learns both signals (Figure 5)."
            ),
        ),
        Claim(
            slug="many-environments",
            ours=True,
            statement="More than two environments, and unequal weights, work as well at the same mean and variance.",
            criterion=(
                "for every law at M = 10: share of runs without spurious signal at least 0.8, median signal in "
                "[0.9, 1.1]"
            ),
            measure=_works("law"),
        ),
    ],
    weight=2,
)
