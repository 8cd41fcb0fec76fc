"""Initialisations: which diverge without a warm-up, and whether the fast orthogonal one jumps as PyTorch's does."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr

import gyrostat as gs
from gyrostat.experiments.declarations import Claim, Experiment, Outcome, within
from gyrostat.experiments.statistics import wilson
from gyrostat.figures.declarations import Bars, Figure, Line, Panel
from gyrostat.papers.wang2023.settings import HIGH, annealed, completion, follow, network, ticker

EPSILON = 0.25
STARTS: dict[str, type[gs.Start]] = {
    "uniform": gs.FanInUniform,
    "Gaussian": gs.FanInGaussian,
    "orthogonal": gs.Orthogonal,
}
SHORT = 1000


def starts_data(*, seed: int, progress: Any = None, seeds: int, num_steps: int) -> xr.Dataset:
    """L = 3, epsilon = .25, eta = .2, lambda = .1: shares that diverge with and without warm-up; jump times."""
    tick = ticker(progress, 5)
    diverged, jumped = np.zeros((2, len(STARTS), seeds)), {}
    for i, (name, start) in enumerate(STARTS.items()):
        for w, warm_up in enumerate((0, 500)):
            long = warm_up > 0 and name != "Gaussian"
            runs = follow(
                network(annealed(HIGH, warm_up=warm_up), start=start()),
                completion(EPSILON),
                num_steps=num_steps if long else SHORT,
                seeds=seeds,
                seed=seed + (7919 if name == "uniform" else 0),
            )
            diverged[w, i] = (runs.diverged >= 0) & (runs.diverged <= SHORT)
            if long:
                jumped[name] = runs.jumped
        tick()
    return xr.Dataset(
        {
            "diverged": (("warm_up", "start", "seed"), diverged),
            "jump_uniform": ("seed", jumped["uniform"]),
            "jump_orthogonal": ("seed", jumped["orthogonal"]),
        },
        {"warm_up": [0, 500], "start": list(STARTS)},
        {"settings": runs.settings, "horizon": float(num_steps)},
    )


def draw_starts(ds: xr.Dataset) -> Figure:
    n = ds.sizes["seed"]
    bars = []
    for i, w in enumerate(ds.warm_up.values):
        hits = ds.diverged.sel(warm_up=w).sum("seed").values
        low, high = wilson(hits, n)
        label = f"warm-up of {w} steps" if w else "no warm-up"
        bars.append(Bars(list(STARTS), hits / n, label, low=low, high=high, colour=i))
    t = np.linspace(0, ds.attrs["horizon"], 400)
    lines = [
        Line(t / 1000, (ds[f"jump_{name}"].values[:, None] <= t).mean(axis=0), f"{name} start", colour=2 + i)
        for i, name in enumerate(("uniform", "orthogonal"))
    ]
    return Figure(
        title=(
            "PyTorch's start diverges without the warm-up, as the text says; orthogonal layers jump at the same times"
        ),
        panels=[
            Panel(
                title="Runs that diverge in 1000 steps", xlabel="", ylabel="share of runs", series=bars, ylim=(0, 1.05)
            ),
            Panel(
                title="When it happens",
                xlabel="step / 1000",
                ylabel="share of runs at rank 1",
                series=lines,
                ylim=(-0.03, 1.03),
            ),
        ],
        note=(
            "L = 3, w = 100, epsilon = 0.25, eta = 0.2, lambda = 0.1. Uniform: +-1/sqrt(fan-in); Gaussian: N(0, "
            "1/fan-in); orthogonal: orthonormal rows or columns. Whiskers: 95 %."
        ),
    )


def _warm_up(ds: xr.Dataset) -> Outcome:
    share = ds.diverged.sel(start="uniform").mean("seed")
    without, with_it = float(share.sel(warm_up=0)), float(share.sel(warm_up=500))
    return Outcome({"without": without, "with": with_it}, without >= 0.9 and with_it <= 0.05)


def _gaussian(ds: xr.Dataset) -> Outcome:
    return within(0.5, 1, **{"with": ds.diverged.sel(start="Gaussian", warm_up=500).mean()})


def _same_law(ds: xr.Dataset) -> Outcome:
    from scipy.stats import ks_2samp

    cap = ds.attrs["horizon"] + 1
    test = ks_2samp(np.minimum(ds.jump_uniform, cap), np.minimum(ds.jump_orthogonal, cap))
    return Outcome({"distance": float(test.statistic), "p": float(test.pvalue)}, bool(test.pvalue >= 0.01))


INITIALISATIONS = Experiment(
    name="initialisations",
    title="Starts, and why there is a warm-up",
    source="Wang 2023, section 4",
    summary=(
        "The paper does not print its initialisation. PyTorch's default diverges at eta = 0.2 without the warm-up and "
        "not with it, as the text reports for its own initialisation. Orthogonal layers are safe, exact in width 4, "
        "and jump at the "
        "same times."
    ),
    sizes={
        "smoke": {"seeds": 64, "num_steps": 8000},
        "standard": {"seeds": 160, "num_steps": 12_000},
        "full": {"seeds": 1000, "num_steps": 20_000},
    },
    compute=starts_data,
    draw=draw_starts,
    claims=[
        Claim(
            slug="warm-up",
            statement="SGD diverges when it starts with a large step size, and not after 500 small steps.",
            criterion="uniform start: >= 90 % diverge without the warm-up, <= 5 % with it",
            measure=_warm_up,
            names={"without": "share that diverges without the warm-up", "with": "share that diverges with it"},
        ),
        Claim(
            slug="gaussian",
            ours=True,
            statement="N(0, 1/fan-in) is not the paper's start: it diverges in spite of the warm-up (ours).",
            criterion="at least half of the runs diverge within 1000 steps",
            measure=_gaussian,
            names={"with": "share that diverges"},
        ),
        Claim(
            slug="same-jumps",
            ours=True,
            statement="Orthogonal layers jump at the same times as PyTorch's start (ours).",
            criterion="two-sample Kolmogorov-Smirnov test of the jump times: p >= .01",
            measure=_same_law,
            names={"distance": "largest distance of the two distributions", "p": "p-value"},
        ),
    ],
    weight=17,
)
