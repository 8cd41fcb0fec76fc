"""The fold: the largest ridge with a rank-2 minimum, by depth and epsilon."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr

from gyrostat.experiments.declarations import Claim, Experiment, Outcome, within
from gyrostat.figures.declarations import Bars, Figure, Line, Marker, Panel, Points
from gyrostat.papers.wang2023.settings import STARTS, annealed, completion, follow, network, ticker
from gyrostat.theory import fold

FIGURES = {"Figure 1": (0.25, 3), "Figure 2, L = 3": (0.1, 3), "Figure 2, L = 4": (0.1, 4), "Figure 4": (0.2, 3)}
RIDGE = 0.025
"""lambda = .1 of the weight-decay update, in main-text units."""
AROUND = (0.93, 1.07)


def folds_data(
    *,
    seed: int,
    progress: Any = None,
    epsilons: tuple[float, ...],
    depths: tuple[int, ...],
    probes: tuple[tuple[float, int], ...],
    num_steps: int,
) -> xr.Dataset:
    """lambda_c(epsilon, L); and, as an independent check, GD at 7 % less and 7 % more."""
    tick = ticker(progress, len(depths) + len(probes))
    table = np.empty((len(depths), len(epsilons)))
    for i, depth in enumerate(depths):
        table[i] = [fold(epsilon, depth).ridge for epsilon in epsilons]
        tick()
    ends = np.empty((len(probes), len(AROUND), STARTS))
    for i, (epsilon, depth) in enumerate(probes):
        for j, factor in enumerate(AROUND):
            ridge = 4 * factor * fold(epsilon, depth).ridge
            runs = follow(
                network(annealed((0.2, ridge)), depth),
                completion(epsilon, "all"),
                num_steps=num_steps,
                seeds=STARTS,
                seed=seed,
            )
            ends[i, j] = runs.ranks[:, -1]
        tick()
    return xr.Dataset(
        {
            "fold": (("depth", "epsilon"), table),
            "rank": (("probe", "factor", "start"), ends),
            "at_figure": ("figure", [fold(*where).ridge for where in FIGURES.values()]),
        },
        {
            "depth": list(depths),
            "epsilon": list(epsilons),
            "factor": list(AROUND),
            "figure": list(FIGURES),
            "probe": [f"epsilon {e:g}, L = {d}" for e, d in probes],
        },
        {"settings": runs.settings},
    )


def draw_folds(ds: xr.Dataset) -> Figure:
    lines: list[Any] = [
        Line(ds.epsilon.values, ds.fold.sel(depth=d).values, f"fold, L = {d}", role="theory", colour=i)
        for i, d in enumerate(ds.depth.values)
    ]
    lines.append(Marker(RIDGE, "lambda = .1 of weight decay", role="paper"))
    for i, (epsilon, name) in enumerate(
        ((0.25, "Figure 1 (L = 3)"), (0.1, "Figure 2 (L = 3 and 4)"), (0.2, "Figure 4 (L = 3)"))
    ):
        lines.append(Points([epsilon], [RIDGE], name, colour=3 + i))
    probes = [
        Bars(
            ds.probe.values,
            (ds["rank"].sel(factor=f) == 2).mean("start").values,
            f"GD at {f:g} times the fold",
            colour=6 - j,
        )
        for j, f in enumerate(ds.factor.values)
    ]
    return Figure(
        title="Every figure lies below the fold, so there is a rank-2 minimum; those that jump lie close to it",
        panels=[
            Panel(
                title="Largest ridge with a rank-2 minimum",
                xlabel="epsilon",
                ylabel="lambda_c (main-text units)",
                series=lines,
                xscale="log",
            ),
            Panel(
                title="Gradient descent as a check",
                xlabel="",
                ylabel="share of starts that stay at rank 2",
                series=probes,
                ylim=(-0.05, 1.05),
            ),
        ],
        note=(
            "lambda_c by continuation of the minimum of C(A) + lambda L Σ s^(2/L) on [[1, *], [epsilon, 1]]. Right: "
            f"{ds.sizes['start']} starts each; no bar means that every start has left rank 2."
        ),
    )


def _check(ds: xr.Dataset) -> Outcome:
    stays = (ds["rank"] == 2).mean("start")
    below, above = stays.sel(factor=AROUND[0]), stays.sel(factor=AROUND[1])
    return Outcome(
        {"stay_below": float(below.min()), "stay_above": float(above.max())},
        float(below.min()) == 1 and float(above.max()) == 0,
    )


def _below(ds: xr.Dataset) -> Outcome:
    quotients = RIDGE / ds.at_figure
    return within(0.5, 1, **{str(f): quotients.sel(figure=f) for f in ds.figure.values})


def _falls_with_depth(ds: xr.Dataset) -> Outcome:
    steps = ds.fold.diff("depth")
    return within(-np.inf, -1e-6, largest_step=steps.max())


def _falls_with_epsilon(ds: xr.Dataset) -> Outcome:
    steps = ds.fold.diff("epsilon")
    return within(-np.inf, -1e-6, largest_step=steps.max())


FOLD = Experiment(
    name="fold",
    title="The fold of the rank-2 minimum",
    source="ours, for Wang 2023, section 4",
    summary=(
        "Above lambda_c(epsilon, L) the rank-overestimating minimum does not exist, and descent of any kind falls to "
        "rank 1. The settings of the figures lie below it, those that jump close to it."
    ),
    sizes={
        "smoke": {"epsilons": (0.1, 0.2, 0.25), "depths": (3, 4), "probes": ((0.25, 3),), "num_steps": 8000},
        "standard": {
            "epsilons": (0.05, 0.07, 0.1, 0.12, 0.15, 0.2, 0.25, 0.3),
            "depths": (3, 4, 5),
            "probes": ((0.25, 3), (0.1, 3), (0.1, 4)),
            "num_steps": 12_000,
        },
        "full": {
            "epsilons": (0.03, 0.04, 0.05, 0.06, 0.07, 0.08, 0.1, 0.12, 0.15, 0.2, 0.25, 0.3),
            "depths": (3, 4, 5),
            "probes": ((0.25, 3), (0.1, 3), (0.2, 3), (0.1, 4), (0.15, 4)),
            "num_steps": 24_000,
        },
    },
    compute=folds_data,
    draw=draw_folds,
    claims=[
        Claim(
            slug="descent-agrees",
            ours=True,
            statement="GD stays at rank 2 just below the fold and leaves just above it.",
            criterion="all starts at rank 2 at .93 lambda_c and none at 1.07 lambda_c",
            measure=_check,
        ),
        Claim(
            slug="figures-below",
            ours=True,
            statement="Every figure of the paper is set below the fold: there is a rank-2 minimum to jump from.",
            criterion="lambda over lambda_c in [.5, 1] for Figures 1, 2 (both depths) and 4",
            measure=_below,
        ),
        Claim(
            slug="depth",
            ours=True,
            statement="Depth lowers the fold.",
            criterion="lambda_c falls with L at every epsilon",
            measure=_falls_with_depth,
        ),
        Claim(
            slug="epsilon",
            ours=True,
            statement="A smaller missing entry lowers the fold.",
            criterion="lambda_c falls with epsilon at every L",
            measure=_falls_with_epsilon,
        ),
    ],
    weight=10,
)
