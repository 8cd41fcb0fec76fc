"""Three readings of the paper's update, on the schedule of Figure 1: only one of them reproduces the figure."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr

from gyrostat.algorithms.update_rules import CONVENTIONS
from gyrostat.experiments.declarations import Claim, Experiment, Outcome
from gyrostat.figures.declarations import Bars, Figure, Line, Marker, Panel
from gyrostat.papers.wang2023.settings import HIGH, annealed, completion, follow, network, ticker
from gyrostat.theory import fold

EPSILON, DEPTH = 0.25, 3
RULES = ("weight_decay", "main_text", "appendix")
NAMES = {"weight_decay": "plain weight decay", "main_text": "main text", "appendix": "appendix"}
"""What the figure calls the rules."""
EARLY, LATE = 1000, 8000
FATES = ("rank 2", "rank 1", "rank 0", "diverged")


def conventions_data(*, seed: int, progress: Any = None, seeds: int) -> xr.Dataset:
    """L = 3, epsilon = .25, eta = .2, lambda = .1: ranks and singular values along SGD under each update."""
    tick = ticker(progress, len(RULES))
    ranks, first, ratio = [], [], []
    for rule in RULES:
        runs = follow(network(annealed(), DEPTH, rule), completion(EPSILON), num_steps=LATE, seeds=seeds, seed=seed)
        ranks.append(runs.ranks[:, ::5])
        first.append(np.median(runs.values[..., 0], axis=0)[::5])
        ratio.append(np.median(runs.ratio, axis=0)[::5])
        tick()
    every = np.array(ranks)
    gains, decays = zip(*(CONVENTIONS[rule] for rule in RULES), strict=True)
    return xr.Dataset(
        {
            "rank": (("rule", "seed"), every[..., -1].astype(float)),
            "waits": (("rule", "seed"), (every[..., np.searchsorted(runs.steps[::5], EARLY)] == 2).astype(float)),
            "lands": (("rule", "seed"), (every[..., -1] == 1).astype(float)),
            "largest": (("rule", "step"), np.array(first)),
            "ratio": (("rule", "step"), np.array(ratio)),
            # (1 - d eta lambda) theta - g eta G is the main text's with eta g and lambda d / (2 g).
            "ridge": (("rule",), np.array([HIGH[1] * d / (2 * g) for g, d in zip(gains, decays, strict=True)])),
            "fold": ((), fold(EPSILON, DEPTH).ridge),
        },
        {"rule": list(RULES), "step": runs.steps[::5]},
        {"settings": runs.settings},
    )


def draw_conventions(ds: xr.Dataset) -> Figure:
    x = ds.step.values
    ratios: list[Any] = []
    for i, rule in enumerate(RULES):
        ratios.append(Line(x, np.maximum(ds.ratio.sel(rule=rule).values, 1e-17), NAMES[rule], colour=i))
    ends = [
        Bars(FATES, [(ds["rank"].sel(rule=rule) == 2 - k).mean() for k in range(4)], NAMES[rule], colour=i)
        for i, rule in enumerate(RULES)
    ]
    ridges = [
        Bars(list(NAMES.values()), ds.ridge.values, "the ridge .1 in main-text units", colour=4),
        Marker(float(ds.fold), "fold: no rank-2 minimum above", role="theory"),
    ]
    return Figure(
        title=(
            "Neither printed update reproduces Figure 1: one collapses, one jumps at once; plain weight decay "
            "reproduces it"
        ),
        panels=[
            Panel(title="Median ratio", xlabel="step", ylabel="s2 / s1", series=ratios, yscale="log", ylim=(1e-17, 3)),
            Panel(title=f"At step {LATE}", xlabel="", ylabel="share of runs", series=ends, ylim=(0, 1.05)),
            Panel(title="Why", xlabel="", ylabel="ridge", series=ridges),
        ],
        note=(
            "L = 3, epsilon = 0.25, eta = 0.2, lambda = 0.1, warm-up 500. Main text: (1 - 2 eta lambda) theta - (eta/2) "
            "grad; appendix: (1 - eta lambda) theta - (eta/2) grad; plain weight decay: (1 - eta lambda) theta - eta grad, "
            "grad of (A* - A)^2."
        ),
    )


def _makes_figure1(rule: str) -> Any:
    def measure(ds: xr.Dataset) -> Outcome:
        waits, lands = (float(ds[name].sel(rule=rule).mean()) for name in ("waits", "lands"))
        return Outcome({"rank_2_at_1000": waits, "rank_1_at_8000": lands}, waits >= 0.5 and lands >= 0.5)

    return measure


def _collapses(ds: xr.Dataset) -> Outcome:
    share = float((ds["rank"].sel(rule="main_text") == 0).mean())
    return Outcome({"rank_0_at_8000": share}, share >= 0.9)


def _why(ds: xr.Dataset) -> Outcome:
    ridges = {rule: float(ds.ridge.sel(rule=rule)) for rule in RULES}
    lam = float(ds.fold)
    holds = ridges["weight_decay"] < lam < min(ridges["main_text"], ridges["appendix"])
    return Outcome({**{f"ridge_{rule}": v for rule, v in ridges.items()}, "fold": lam}, holds)


FIGURE_1_SHARES = {"rank_2_at_1000": "share at rank 2, step 1000", "rank_1_at_8000": "share at rank 1, step 8000"}
CRITERION = "rank 2 at step 1000 and rank 1 at step 8000, each in at least half of the runs"

CONVENTIONS_STUDY = Experiment(
    name="conventions",
    title="Three readings of the update",
    source="Wang 2023, sections 2.3 and D",
    summary=(
        "The main text and the appendix print different updates, and neither gives the figures. SGD with weight "
        "decay, as in common software, does; in the main text's units it has twice the step size and a quarter of "
        "the ridge."
    ),
    sizes={"smoke": {"seeds": 64}, "standard": {"seeds": 240}, "full": {"seeds": 1000}},
    compute=conventions_data,
    draw=draw_conventions,
    claims=[
        Claim(
            slug="weight-decay",
            ours=True,
            statement="SGD with weight decay reproduces Figure 1 (ours).",
            criterion=CRITERION,
            measure=_makes_figure1("weight_decay"),
            names=FIGURE_1_SHARES,
        ),
        Claim(
            slug="main-text",
            statement="The update of section 2.3 reproduces Figure 1.",
            criterion=CRITERION,
            measure=_makes_figure1("main_text"),
            names=FIGURE_1_SHARES,
            expected="fails",
            kind="depends on the reading",
            reason="Its ridge 0.1 is four times the fold, so there is no rank-2 minimum, and runs collapse to 0.",
        ),
        Claim(
            slug="appendix",
            statement="The update of section D reproduces Figure 1.",
            criterion=CRITERION,
            measure=_makes_figure1("appendix"),
            names=FIGURE_1_SHARES,
            expected="fails",
            kind="depends on the reading",
            reason=(
                "Its ridge, 0.05 in main-text units, is above the fold, so runs fall to rank 1 at once and not "
                "after a wait."
            ),
        ),
        Claim(
            slug="collapse",
            ours=True,
            statement="Under the main text's update runs collapse to rank 0 (ours).",
            criterion="share at rank 0 at step 8000 >= .9",
            measure=_collapses,
            names={"rank_0_at_8000": "share at rank 0, step 8000"},
        ),
        Claim(
            slug="fold",
            ours=True,
            statement="The fold separates the three updates (ours).",
            criterion="in main-text units the ridge is below the fold for weight_decay and above it for the other two",
            measure=_why,
            names={f"ridge_{rule}": f"ridge, {name}" for rule, name in NAMES.items()},
        ),
    ],
    weight=9,
)
