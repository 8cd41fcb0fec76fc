"""Figures 1 and 2: why a signal that changes sign from batch to batch is not learnt."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr

import gyrostat as gs
from gyrostat.experiments.declarations import Claim, Experiment, Outcome, together, within
from gyrostat.experiments.statistics import last, median
from gyrostat.figures.declarations import Figure, Line, Panel, Runs, band
from gyrostat.papers.xu2024.fig5_fig6_thm3_thm6_pooled import figure5_data
from gyrostat.papers.xu2024.settings import FIGURE2, FIGURE2_SPREADS
from gyrostat.theory import exact_moments, moment_growth


def draw_figure1(ds: xr.Dataset) -> Figure:
    def panel(algorithm: str, title: str) -> Panel:
        one = ds.sel(algorithm=algorithm)
        some = one.spurious.isel(seed=slice(0, 5)).transpose("seed", "step").values
        return Panel(
            title=title,
            xlabel="step",
            ylabel="share of the signal learnt",
            series=[
                band(one.signal, "invariant (median, quartiles)", colour=0),
                Runs(ds.step.values, some, f"spurious, {len(some)} single runs", colour=1),
            ],
            ylim=(-0.05, 1.6),
        )

    return Figure(
        title="Data from one environment at a time oscillate, and the oscillation keeps the spurious signal away",
        panels=[
            panel("pooled", "Batches mix environments (PooledSGD)"),
            panel("hetero", "Every batch from one environment (HeteroSGD)"),
        ],
        note=(
            "Left: the spurious signal looks stable on average and is learnt like the invariant one. Right: it "
            "changes from batch to batch, is multiplied up and down, and shrinks on balance."
        ),
    )


def _keeps(ds: xr.Dataset) -> Outcome:
    signal, spurious = median(last(ds.signal)), median(last(ds.spurious))
    return together(
        within(
            0.9, 1.1, hetero_invariant=signal.sel(algorithm="hetero"), pooled_invariant=signal.sel(algorithm="pooled")
        ),
        within(0, 0.1, hetero_spurious=spurious.sel(algorithm="hetero")),
        within(0.8, 1.2, pooled_spurious=spurious.sel(algorithm="pooled")),
    )


FIG1 = Experiment(
    name="fig1",
    title="Pooled training learns both signals; one environment at a time learns only the invariant one",
    source="Xu 2024, Figure 1",
    summary="The paper's drawing, made from real runs in the setting of Figure 5.",
    sizes={"smoke": {"seeds": 12}, "standard": {"seeds": 50}, "full": {"seeds": 200}},
    compute=figure5_data,
    draw=draw_figure1,
    claims=[
        Claim(
            slug="core-only",
            statement=(
                "Training on one environment at a time keeps the invariant signal only; pooled training keeps both."
            ),
            criterion="medians at the end: invariant in [.9, 1.1] for both; spurious <= .1 (hetero), >= .8 (pooled)",
            measure=_keeps,
            names={
                f"{name}_{part}": f"share of the {part} signal, {label}"
                for name, label in (("hetero", "HeteroSGD"), ("pooled", "PooledSGD"))
                for part in ("invariant", "spurious")
            },
        )
    ],
    weight=6,
)


def moments(*, seed: int, progress: Any = None, num_steps: int, step_size: float = FIGURE2.step_size) -> xr.Dataset:
    """Exact means and 0.1-moments of the product of factors 1 + eta xi, for several spreads."""
    tables = {
        power: np.stack([exact_moments(gs.TwoPoint(spread=M), step_size, power, num_steps) for M in FIGURE2_SPREADS])
        for power in (1.0, 0.1)
    }
    medians = np.stack([_median_path(M, step_size, num_steps) for M in FIGURE2_SPREADS])
    fine = np.arange(1.0, 15.0, 0.01)
    growth = [moment_growth(gs.TwoPoint(spread=M), step_size, 0.1) for M in fine]
    return xr.Dataset(
        {
            "mean": (("spread", "step"), tables[1.0]),
            "tenth": (("spread", "step"), tables[0.1]),
            "median": (("spread", "step"), medians),
            "tenth_growth": ("fine_spread", np.array(growth)),
        },
        coords={"spread": list(FIGURE2_SPREADS), "step": np.arange(num_steps + 1), "fine_spread": fine},
        attrs={"step_size": step_size},
    )


def _median_path(spread: float, step_size: float, num_steps: int) -> np.ndarray:
    """The median of |q_t| at even t, that of t - 1 at odd t: half of the factors are of each kind."""
    low, high = 1 + step_size * (1 - spread), 1 + step_size * (1 + spread)
    return abs(low * high) ** (np.arange(num_steps + 1) // 2)


def draw_figure2(ds: xr.Dataset) -> Figure:
    def lines(name: str) -> list[Line]:
        return [
            Line(ds.step.values, ds[name].sel(spread=M).values, f"M = {M:g}", colour=i)
            for i, M in enumerate(FIGURE2_SPREADS)
        ]

    stable = (1 + ds.attrs["step_size"]) ** ds.step.values
    return Figure(
        title="The mean of the oscillating signal grows, its 0.1-moment falls once M is large enough",
        panels=[
            Panel(
                title="Mean",
                xlabel="step t",
                ylabel="E |q_t|",
                series=[*lines("mean"), Line(ds.step.values, stable, "(1 + eta)^t", role="theory")],
                yscale="log",
            ),
            Panel(
                title="0.1-moment",
                xlabel="step t",
                ylabel="E |q_t|^0.1",
                series=[
                    *lines("tenth"),
                    Line(ds.step.values, stable**0.1, "a signal that never changes", role="theory"),
                ],
            ),
        ],
        note=(
            "Exact binomial sums at eta = 0.05. All means equal (1 + eta)^t: they come from runs too rare to be seen."
        ),
    )


def _mean_grows(ds: xr.Dataset) -> Outcome:
    end = ds.sel(spread=FIGURE2.spread).isel(step=-1)
    return together(within(1.5, np.inf, mean=end["mean"]), within(0, 0.5, median=end["median"]))


def _tenth_falls(ds: xr.Dataset) -> Outcome:
    path = ds.tenth.sel(spread=FIGURE2.spread).values
    return together(within(-np.inf, 0.0, largest_increase=np.diff(path).max()), within(0, 0.99, final=path[-1]))


def _tenth_threshold(ds: xr.Dataset) -> Outcome:
    falls = ds.fine_spread.values[ds.tenth_growth.values < 1]
    return within(6.0, 7.0, least_spread=falls.min() if falls.size else np.nan)


FIG2 = Experiment(
    name="fig2",
    title="The mean of the spurious factor grows, its 0.1-moment falls",
    source="Xu 2024, Figure 2",
    summary="q_t is the product of the factors 1 + eta xi. The paper does not print its M; five values are shown.",
    sizes={"smoke": {"num_steps": 60}, "standard": {"num_steps": FIGURE2.num_steps}, "full": {"num_steps": 200}},
    compute=moments,
    draw=draw_figure2,
    claims=[
        Claim(
            slug="mean-grows",
            statement="E |q_t| grows, although most runs fall: the mean comes from runs too rare to be seen (M = 8).",
            criterion="final mean >= 1.5 and final median <= .5, M = 8",
            measure=_mean_grows,
        ),
        Claim(
            slug="tenth-moment-falls",
            statement="E |q_t|^0.1 falls (shown for M = 8).",
            criterion="every step down, M = 8",
            measure=_tenth_falls,
        ),
        Claim(
            slug="needs-m-above-six",
            ours=True,
            statement="At eta = 0.05 the 0.1-moment falls only for spreads above a threshold between 6 and 7.",
            criterion="least spread with E |1 + eta xi|^0.1 < 1 in [6, 7]",
            measure=_tenth_threshold,
            names={"least_spread": "smallest M at which the moment falls"},
        ),
    ],
)
