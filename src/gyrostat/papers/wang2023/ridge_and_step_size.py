"""The (lambda, eta) plane: where SGD jumps and gradient descent does not."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import xarray as xr

from gyrostat.experiments.declarations import Claim, Experiment, Outcome, together, within
from gyrostat.figures.declarations import Figure, Heat, Marker, Panel, Points
from gyrostat.papers.wang2023.settings import STARTS, annealed, completion, follow, network, ticker
from gyrostat.theory import fold

EPSILON, DEPTH = 0.25, 3
FIGURE1 = (0.1, 0.2)


def phases_data(
    *, seed: int, progress: Any = None, seeds: int, num_steps: int, ridges: tuple[float, ...], sizes: tuple[float, ...]
) -> xr.Dataset:
    """L = 3, epsilon = .25: shares of SGD and GD runs at rank 1 after ``num_steps`` for many (lambda, eta)."""
    tick = ticker(progress, len(ridges) * len(sizes))
    shares = {
        name: np.empty((len(sizes), len(ridges))) for name in ("sgd", "gd", "diverged", "gd_diverged", "collapsed")
    }
    for i, eta in enumerate(sizes):
        for j, ridge in enumerate(ridges):
            for name, sampling, count in (("sgd", "one", seeds), ("gd", "all", STARTS)):
                runs = follow(
                    network(annealed((eta, ridge)), DEPTH),
                    completion(EPSILON, sampling),
                    num_steps=num_steps,
                    seeds=count,
                    seed=seed,
                )
                last = runs.ranks[:, -1]
                shares[name][i, j] = (last == 1).mean()
                shares["diverged" if name == "sgd" else "gd_diverged"][i, j] = (last == -1).mean()
                if name == "sgd":
                    shares["collapsed"][i, j] = (last == 0).mean()
            tick()
    dims = ("step_size", "ridge")
    return xr.Dataset(
        {**{name: (dims, x) for name, x in shares.items()}, "fold": ((), 4 * fold(EPSILON, DEPTH).ridge)},
        {"step_size": list(sizes), "ridge": list(ridges)},
        {"settings": runs.settings, "runs": seeds, "num_steps": num_steps},
    )


def draw_phases(ds: xr.Dataset) -> Figure:
    x, y = ds.ridge.values, ds.step_size.values

    def heat(title: str, shares: xr.DataArray, label: str) -> Panel:
        marks: list[Any] = [
            Heat(x, y, shares.values, label, low=0.0, high=1.0),
            Marker(float(ds.fold), "fold of the rank-2 minimum", axis="x"),
            Points([FIGURE1[0]], [FIGURE1[1]], "Figure 1", colour=1),
        ]
        return Panel(
            title=title, xlabel="ridge lambda", ylabel="step size eta", series=marks, xscale="log", yscale="log"
        )

    return Figure(
        title=(
            "Descent falls to rank 1 above the fold only; SGD does so in a band below it too, and far above it goes on to "
            "rank 0"
        ),
        panels=[
            heat("SGD", ds.sgd, "share of runs at rank 1"),
            heat("Gradient descent, same schedule", ds.gd, "share of starts at rank 1"),
            heat("SGD that diverges or ends at rank 0", ds.diverged + ds.collapsed, "share of runs"),
        ],
        note=(
            f"L = 3, w = 100, epsilon = 0.25, {ds.attrs['num_steps']} steps, eta at most 0.03 in the first 500. The fold is "
            "drawn in weight-decay units, four times those of the main text."
        ),
    )


def _descent_is_the_fold(ds: xr.Dataset) -> Outcome:
    # Where the ridge has had time to act, and not next to the fold itself, where falling takes arbitrarily long.
    far = abs(np.log(ds.ridge / float(ds.fold))) > 0.1
    reach = ds.step_size * ds.ridge * ds.attrs["num_steps"] > 40
    judged = (far & reach & (ds.gd_diverged == 0)).transpose("step_size", "ridge").values
    falls = ds.gd.values >= 0.5
    predicted = np.broadcast_to((ds.ridge > float(ds.fold)).values, falls.shape)
    below = float(ds.gd.values[judged & ~predicted].max(initial=0.0))
    agree = float((falls == predicted)[judged].mean())
    return Outcome({"cells": float(judged.sum()), "agree": agree, "largest_share_below": below}, agree == 1.0)


def _window(ds: xr.Dataset) -> Outcome:
    below = ds.where(ds.ridge < float(ds.fold), drop=True)
    cells = (below.sgd >= 0.5) & (below.gd == 0)
    return Outcome({"cells": float(cells.sum()), "of": float(cells.size)}, bool(cells.sum() >= 2))


def _always(ds: xr.Dataset) -> Outcome:
    far = ds.where(ds.ridge <= float(ds.fold) / 2, drop=True)
    share = far.sgd.where(far.gd == 0, 0.0)
    usual = share.where(share.step_size <= 0.4, drop=True)
    return Outcome(
        {"largest": float(share.max()), "largest_up_to_eta_.4": float(usual.max())}, float(share.max()) >= 0.1
    )


def _noise_needed(ds: xr.Dataset) -> Outcome:
    near = ds.sgd.sel(ridge=FIGURE1[0])
    small = near.sel(step_size=near.step_size[near.step_size <= 0.05])
    return together(within(0, 0.1, small_steps=small.max()), within(0.3, 1, figure_1=near.sel(step_size=FIGURE1[1])))


def _band(ds: xr.Dataset) -> Outcome:
    """How far below the fold half of the runs jump, for every step size up to .4."""
    lowest = {}
    for eta in ds.step_size.values[ds.step_size.values <= 0.4]:
        often = ds.ridge.values[ds.sgd.sel(step_size=eta).values >= 0.5]
        lowest[f"eta_{eta:g}"] = float(often.min() / float(ds.fold)) if often.size else float("nan")
    values = list(lowest.values())
    falls = all(b <= a for a, b in itertools.pairwise(values))
    return Outcome(lowest, falls and values[0] > 1 and 0.5 <= values[-1] <= 0.95)


def _too_far(ds: xr.Dataset) -> Outcome:
    high = ds.sel(ridge=0.4, step_size=[0.2, 0.4])
    return Outcome(
        {"sgd_at_rank_0": float(high.collapsed.min()), "gd_at_rank_1": float(high.gd.min())},
        bool(high.collapsed.min() >= 0.9 and high.gd.min() == 1),
    )


PHASES = Experiment(
    name="phases",
    title="Where SGD jumps and descent does not",
    source="Wang 2023, section 4 (the plane is ours)",
    summary=(
        "A reviewer of the paper suspected that the effect comes from the choice of lambda and eta. The map over "
        "both shows how far this is so: SGD jumps in a band below the fold, and Figure 1 lies in it."
    ),
    sizes={
        "smoke": {
            "seeds": 64,
            "num_steps": 6000,
            "ridges": (0.05, 0.085, 0.1, 0.2, 0.4),
            "sizes": (0.05, 0.2, 0.4, 0.5),
        },
        "standard": {
            "seeds": 64,
            "num_steps": 10_000,
            "ridges": (0.02, 0.035, 0.05, 0.065, 0.08, 0.09, 0.1, 0.11, 0.13, 0.2, 0.4),
            "sizes": (0.05, 0.1, 0.2, 0.3, 0.4, 0.5),
        },
        "full": {
            "seeds": 256,
            "num_steps": 20_000,
            "ridges": (0.01, 0.02, 0.035, 0.05, 0.06, 0.07, 0.08, 0.09, 0.1, 0.11, 0.12, 0.15, 0.2, 0.3, 0.4, 0.6),
            "sizes": (0.02, 0.035, 0.05, 0.07, 0.1, 0.14, 0.2, 0.24, 0.28, 0.34, 0.4, 0.5),
        },
    },
    compute=phases_data,
    draw=draw_phases,
    claims=[
        Claim(
            slug="descent-is-the-fold",
            ours=True,
            statement="GD falls to rank 1 exactly above the fold (ours).",
            criterion=(
                "share >= .5 agrees with lambda above the fold in every cell that is 10 % off it and had time to move "
                "(eta lambda T > 40)"
            ),
            measure=_descent_is_the_fold,
        ),
        Claim(
            slug="noise-window",
            statement="There are lambda and eta at which SGD jumps and GD does not.",
            criterion="at least two cells below the fold with SGD >= .5 and GD 0",
            measure=_window,
        ),
        Claim(
            slug="any-ridge",
            ours=True,
            statement="There is always a likelihood of jumping: at eta = 0.5 jumps are seen far below the fold, too.",
            criterion="some cell at a ridge of at most half the fold with SGD >= .1 and GD 0",
            measure=_always,
        ),
        Claim(
            slug="band",
            ours=True,
            statement="The band of jumps below the fold widens with the step size (ours).",
            criterion=(
                "smallest ridge with share >= .5 over the fold: never rises with eta <= .4, > 1 at eta = .05, in [.5, "
                ".95] at .4"
            ),
            measure=_band,
        ),
        Claim(
            slug="noise-needed",
            statement="Jumps need large steps: at the ridge of Figure 1, runs with small step sizes do not jump.",
            criterion="share <= .1 for eta <= .05 and >= .3 for eta = .2 at lambda = .1",
            measure=_noise_needed,
        ),
        Claim(
            slug="too-far",
            statement="In the end, SGD underestimates the rank (section 3.2).",
            criterion=(
                "at lambda = .4, eta = .2 and .4, SGD at rank 0 in >= 90 % of the runs where every GD start stays at "
                "rank 1"
            ),
            measure=_too_far,
        ),
    ],
    weight=12,
)
