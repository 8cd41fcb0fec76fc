"""Figure 2: at epsilon = .1 a network of depth 4 jumps and one of depth 3 does not."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr

from gyrostat.experiments.declarations import Claim, Experiment, Outcome, together, within
from gyrostat.experiments.statistics import wilson
from gyrostat.figures.declarations import Figure, Line, Marker, Panel, Printed, Runs
from gyrostat.papers.wang2023.settings import (
    FIGURE2,
    FIGURE2_DEPTHS,
    FIGURE2_SWITCH,
    STARTS,
    annealed,
    completion,
    follow,
    network,
    quantile,
    ticker,
)
from gyrostat.theory import fold

EPSILON, DEPTHS, SWITCH = FIGURE2.epsilon, FIGURE2_DEPTHS, FIGURE2_SWITCH
EFFECTIVE = FIGURE2.high[1] / 4
"""The ridge .1 of the weight-decay update in the main text's units, in which the fold is stated."""


def figure2_data(*, seed: int, progress: Any = None, seeds: int, num_steps: int) -> xr.Dataset:
    """epsilon = .1, L = 3 and 4: eta .03, then .25 to step 5000 (lambda = .1), then .05 with lambda = .001; SGD and GD."""
    tick = ticker(progress, 4)
    parts: dict[str, list[np.ndarray]] = {name: [] for name in ("jump", "ratio", "gd_jump", "gd_ratio")}
    for depth in DEPTHS:
        for prefix, sampling, count in (("", "one", seeds), ("gd_", "all", STARTS)):
            runs = follow(
                network(annealed(FIGURE2.high, FIGURE2.low, SWITCH), depth),
                completion(EPSILON, sampling),
                num_steps=num_steps,
                seeds=count,
                seed=seed,
            )
            for name, x in (("jump", runs.jumped), ("ratio", runs.ratio[:STARTS, ::5])):
                parts[prefix + name].append(x)
            tick()
    dims = {"jump": ("depth", "seed"), "ratio": ("depth", "start", "step")}
    dims |= {f"gd_{name}": tuple("start" if d == "seed" else d for d in ds) for name, ds in dims.items()}
    data = {name: (dims[name], np.array(x)) for name, x in parts.items()}
    data["fold"] = (("depth",), np.array([fold(EPSILON, depth).ridge for depth in DEPTHS]))
    return xr.Dataset(data, {"depth": list(DEPTHS), "step": runs.steps[::5]}, {"settings": runs.settings})


def draw_figure2(ds: xr.Dataset) -> Figure:
    panels = []
    for depth in DEPTHS:
        one = ds.sel(depth=depth)
        series: list[Any] = [Runs(ds.step.values, np.maximum(one.ratio.values[:5], 1e-17), "SGD, five runs", colour=0)]
        series += [
            Line(ds.step.values, one.gd_ratio.values[0], "gradient descent", colour=2),
            Marker(float(SWITCH), "noise and ridge fall", axis="x"),
        ]
        title = f"L = {depth}, fold at {float(one.fold):.4f}, ridge {EFFECTIVE:g}"
        panels.append(Panel(title=title, xlabel="step", ylabel="s2 / s1", series=series, yscale="log", ylim=(1e-17, 3)))
    shares: list[Any] = []
    for i, depth in enumerate(DEPTHS):
        jumped = ds.jump.sel(depth=depth).values
        shares.append(
            Line(ds.step.values, (jumped[:, None] <= ds.step.values).mean(axis=0), f"SGD, L = {depth}", colour=i)
        )
        gd = ds.gd_jump.sel(depth=depth).values
        share = (gd[:, None] <= ds.step.values).mean(axis=0)
        shares.append(Line(ds.step.values, share, f"gradient descent, L = {depth}", colour=2 + i))
    shares.append(Marker(float(SWITCH), "noise and ridge fall", axis="x"))
    panels.append(
        Panel(
            title="When it happens", xlabel="step", ylabel="share of runs at rank 1", series=shares, ylim=(-0.03, 1.03)
        )
    )
    return Figure(
        title="Depth 4 lies just below its fold and jumps by noise; depth 3 lies far below and does not",
        panels=panels,
        printed=[
            Printed(
                quantity=f"networks of depth {depth} that jump by step {SWITCH}",
                paper=printed,
                ours="{1} of {2}".format(*_by_switch(ds, "jump", depth)),
            )
            for depth, printed in ((3, "none of five"), (4, "five of five"))
        ],
        note=(
            "epsilon = 0.1, w = 100; eta = 0.03 to step 500, 0.25 to step 5000 (lambda = 0.1), then 0.05 with lambda = "
            "0.001. The fold is the ridge above which there is no rank-2 minimum, in main-text units."
        ),
    )


def _by_switch(ds: xr.Dataset, name: str, depth: int) -> tuple[float, int, int]:
    x = ds[name].sel(depth=depth).values
    hits = int((x <= SWITCH).sum())
    return hits / len(x), hits, len(x)


def _depth(ds: xr.Dataset) -> Outcome:
    (three, a, n), (four, b, _) = (_by_switch(ds, "jump", depth) for depth in DEPTHS)
    holds = wilson(np.array(a), n)[0] <= 0.05 and three <= 0.1 and wilson(np.array(b), n)[1] >= 0.8 and four >= 0.7
    return Outcome({"share_3": three, "share_4": four, "runs": n}, bool(holds))


def _five_of_five(ds: xr.Dataset) -> Outcome:
    share = _by_switch(ds, "jump", 4)[0]
    return within(0.9, 1, probability=share**5)


def _times(ds: xr.Dataset) -> Outcome:
    x = ds.jump.sel(depth=4).values
    jumped = x[np.isfinite(x)]
    if jumped.size < 5:
        return Outcome({"jumped": float(jumped.size)}, None)
    low, high = quantile(jumped, 0.1), quantile(jumped, 0.9)
    return Outcome({"quantile_10": low, "quantile_90": high, "quotient": high / low}, high / low >= 1.5)


def _descent(ds: xr.Dataset) -> Outcome:
    return within(0, 0, **{f"jumped_{depth}": (ds.gd_jump.sel(depth=depth) <= SWITCH).sum() for depth in DEPTHS})


def _near_fold(ds: xr.Dataset) -> Outcome:
    three, four = (EFFECTIVE / float(ds.fold.sel(depth=d)) for d in DEPTHS)
    return together(within(0.9, 1, ridge_over_fold_4=four), within(0, 0.7, ridge_over_fold_3=three))


FIG2 = Experiment(
    name="fig2",
    title="Depth makes a jump likelier",
    source="Wang 2023, Figure 2",
    summary=(
        "The paper has five runs of each depth. Here are shares of many runs, and gradient descent on the same "
        "schedule. Depth acts through the position of the fold."
    ),
    sizes={
        "smoke": {"seeds": 160, "num_steps": 9000},
        "standard": {"seeds": 240, "num_steps": FIGURE2.num_steps},
        "full": {"seeds": 1000, "num_steps": 9000},
    },
    compute=figure2_data,
    draw=draw_figure2,
    claims=[
        Claim(
            slug="depth",
            statement=(
                "At epsilon = 0.1 networks of depth 4 jump in the first 5000 steps and networks of depth 3 do not."
            ),
            criterion="share >= .8 for L = 4 and <= .05 for L = 3 (95 % intervals reach them; shares >= .7 and <= .1)",
            measure=_depth,
            names={"share_3": "share that jumps, L = 3", "share_4": "share that jumps, L = 4", "runs": "of [runs]"},
        ),
        Claim(
            slug="five-of-five",
            statement="All five networks of depth 4 jump.",
            criterion="probability of five of five >= .9",
            measure=_five_of_five,
            names={"probability": "probability that five of five jump"},
            expected="fails",
            kind="not typical",
            reason="About nine runs in ten jump by step 5000, so five of five has a probability of 0.6.",
        ),
        Claim(
            slug="different-times",
            statement="The networks of depth 4 jump at different times.",
            criterion="90 % quantile of the jump times over the 10 % quantile >= 1.5",
            measure=_times,
            names={
                "quantile_10": "10 % have jumped by [steps]",
                "quantile_90": "90 % have jumped by [steps]",
                "quotient": "their quotient",
            },
        ),
        Claim(
            slug="descent-stays",
            ours=True,
            statement="Noise causes the jumps: GD on the same schedule jumps at neither depth (control).",
            criterion="no start jumps by step 5000",
            measure=_descent,
            names={
                "jumped_3": "share of the starts that jump, L = 3",
                "jumped_4": "share of the starts that jump, L = 4",
            },
        ),
        Claim(
            slug="near-the-fold",
            ours=True,
            statement="The ridge lies just below the fold of depth 4 and far below that of depth 3 (ours).",
            criterion="ridge over fold in [.9, 1] for L = 4 and <= .7 for L = 3",
            measure=_near_fold,
            names={"ridge_over_fold_4": "ridge over fold, L = 4", "ridge_over_fold_3": "ridge over fold, L = 3"},
        ),
    ],
    weight=12,
)
