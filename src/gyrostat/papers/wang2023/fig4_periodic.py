"""Figure 4: a periodic schedule. Jumps happen in the noisy periods only; some runs diverge, some collapse."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr

import gyrostat as gs
from gyrostat.experiments.declarations import Claim, Experiment, Outcome, within
from gyrostat.figures.declarations import Bars, Figure, Line, Panel, Printed, Runs
from gyrostat.papers.wang2023.settings import (
    FIGURE4,
    FIGURE4_PERIODS,
    STARTS,
    WARM_SIZE,
    WARM_STEPS,
    completion,
    follow,
    network,
    ticker,
)

EPSILON, PERIODS = FIGURE4.epsilon, FIGURE4_PERIODS
QUIET, LOUD = FIGURE4.low, FIGURE4.high
FATES = ("rank 2", "rank 1", "rank 0", "diverged")


def periodic(length: int) -> gs.WarmUp:
    """Quiet and loud phases in turn, quiet first."""
    turns = gs.Periodic([(length, gs.Constant(*QUIET)), (length, gs.Constant(*LOUD))])
    return gs.WarmUp(WARM_STEPS, WARM_SIZE, then=turns)


def figure4_data(*, seed: int, progress: Any = None, seeds: int, num_steps: int) -> xr.Dataset:
    """L = 3, epsilon = .2: eta .1, lambda .001 alternating with eta .4, lambda .1; SGD and GD, two periods."""
    tick = ticker(progress, 2 * len(PERIODS))
    records = num_steps // 10 + 1
    jump, fate, loss, ratio, quiet, gd_fate, gd_ratio = [], [], [], [], [], [], []
    for length in PERIODS:
        sgd, gd = (
            follow(
                network(periodic(length), FIGURE4.depth),
                completion(EPSILON, sampling),
                num_steps=num_steps,
                seeds=count,
                seed=seed,
                records=records,
            )
            for sampling, count in (("one", seeds), ("all", STARTS))
        )
        jump.append(sgd.jumped)
        fate.append(_fates(sgd.ranks[:, -1]))
        gd_fate.append(_fates(gd.ranks[:, -1]))
        loss.append(sgd.loss(EPSILON)[:5, ::5])
        ratio.append(sgd.ratio[:5, ::5])
        gd_ratio.append(gd.ratio[0, ::5])
        quiet.append(_settled(sgd.steps, sgd.loss(EPSILON), sgd.jumped, length))
        tick()
    return xr.Dataset(
        {
            "jump": (("period", "seed"), np.array(jump)),
            "fate": (("period", "seed"), np.array(fate)),
            "gd_fate": (("period", "start"), np.array(gd_fate)),
            "settled": (("period", "seed"), np.array(quiet)),
            "loss": (("period", "shown", "step"), np.array(loss)),
            "ratio": (("period", "shown", "step"), np.array(ratio)),
            "gd_ratio": (("period", "step"), np.array(gd_ratio)),
        },
        {"period": list(PERIODS), "step": sgd.steps[::5]},
        {"settings": sgd.settings},
    )


def _fates(last: np.ndarray) -> np.ndarray:
    """Numbers of :data:`FATES`: ranks 2, 1, 0 and -1."""
    return 2.0 - last


def _settled(steps: np.ndarray, loss: np.ndarray, jumped: np.ndarray, length: int) -> np.ndarray:
    """The relative test loss at the end of the first quiet phase after the jump, NaN if there is none."""
    losses = np.full(len(jumped), np.nan)
    for i, t in enumerate(jumped):
        ends = np.arange(length, steps[-1] + 1, 2 * length)
        later = ends[ends >= t + length] if np.isfinite(t) else []
        if len(later):
            losses[i] = loss[i, np.searchsorted(steps, later[0])]
    return losses


def loud(steps: np.ndarray, length: int) -> np.ndarray:
    """Whether a step belongs to a loud phase. A jump is recorded up to ten steps late."""
    return (np.asarray(steps) - 10) % (2 * length) >= length


def draw_figure4(ds: xr.Dataset) -> Figure:
    length = PERIODS[1]
    one, x = ds.sel(period=length), ds.step.values
    loud_now = loud(x + 10, length)

    def runs(values: np.ndarray, height: float) -> list[Any]:
        series: list[Any] = [Line(x, np.where(loud_now, height, np.nan), "loud phases", role="bound")]
        return [*series, Runs(x, values, f"SGD, {len(values)} runs", colour=0)]

    ratios = [
        *runs(np.maximum(one.ratio.values, 1e-17), 30.0),
        Line(x, one.gd_ratio.values, "gradient descent", colour=2),
    ]
    panels = [
        Panel(
            title=f"Phases of {length} steps",
            xlabel="step",
            ylabel="s2 / s1",
            series=ratios,
            yscale="log",
            ylim=(1e-17, 100),
        ),
        Panel(
            title=f"Phases of {length} steps",
            xlabel="step",
            ylabel="relative test loss",
            series=runs(one.loss.values, 1.5),
            ylim=(-0.05, 1.6),
        ),
    ]
    fates = [
        Bars(FATES, [(ds.fate.sel(period=p) == k).mean() for k in range(4)], f"SGD, phases of {p}", colour=i)
        for i, p in enumerate(PERIODS)
    ]
    fates.append(Bars(FATES, [(ds.gd_fate == k).mean() for k in range(4)], "gradient descent", colour=2))
    panels.append(Panel(title="How runs end", xlabel="", ylabel="share of runs", series=fates, ylim=(0, 1.05)))
    return Figure(
        title="With a periodic schedule every jump falls into a loud phase; a few runs diverge or lose all rank",
        panels=panels,
        printed=[
            Printed(
                quantity=f"runs that end at rank 1, phases of {p} steps",
                paper="all five shown",
                ours=f"{100 * float((ds.fate.sel(period=p) == FATES.index('rank 1')).mean()):.0f} %",
            )
            for p in PERIODS
        ],
        note=(
            "L = 3, w = 100, epsilon = 0.2; quiet: eta = 0.1, lambda = 0.001; loud: eta = 0.4, lambda = 0.1; quiet first, "
            "eta = 0.03 in the first 500 steps. The printed figure shows none of the runs that diverge."
        ),
    )


def _only_loud(ds: xr.Dataset) -> Outcome:
    inside, count = [], 0
    for length in PERIODS:
        t = ds.jump.sel(period=length).values
        t = t[np.isfinite(t)]
        inside.append(loud(t, length).sum())
        count += len(t)
    if count == 0:
        return Outcome({"jumps": 0.0}, None)
    return Outcome({"jumps": float(count), "share_in_loud": sum(inside) / count}, sum(inside) == count)


def _most(ds: xr.Dataset) -> Outcome:
    shares = {}
    for length in PERIODS:
        fate = ds.fate.sel(period=length).values
        alive = fate < 3
        shares[f"share_{length}"] = float((fate[alive] >= 1).mean()) if alive.any() else float("nan")
    return within(0.9, 1, **shares)


def _fit(ds: xr.Dataset) -> Outcome:
    fine = ds.settled.where(ds.fate == 1).values
    fine = fine[np.isfinite(fine)]
    if fine.size < 5:
        return Outcome({"runs": float(fine.size)}, None)
    return Outcome({"runs": float(fine.size), "share": float((fine < 0.2).mean())}, bool((fine < 0.2).mean() >= 0.9))


def _safe(ds: xr.Dataset) -> Outcome:
    lost = {f"diverged_{p}": float((ds.fate.sel(period=p) == 3).mean()) for p in PERIODS}
    lost |= {f"collapsed_{p}": float((ds.fate.sel(period=p) == 2).mean()) for p in PERIODS}
    return Outcome(lost, sum(lost.values()) == 0)


def _descent(ds: xr.Dataset) -> Outcome:
    return within(1, 1, **{f"rank_2_{p}": (ds.gd_fate.sel(period=p) == 0).mean() for p in PERIODS})


FIG4 = Experiment(
    name="fig4",
    title="A periodic schedule",
    source="Wang 2023, Figure 4",
    summary=(
        "Quiet phases fit, loud phases jump. The length of a phase is not printed; 1000 and 2000 are shown, with "
        "gradient descent on the same schedule."
    ),
    sizes={
        "smoke": {"seeds": 192, "num_steps": 10_000},
        "standard": {"seeds": 240, "num_steps": FIGURE4.num_steps},
        "full": {"seeds": 1000, "num_steps": 20_000},
    },
    compute=figure4_data,
    draw=draw_figure4,
    claims=[
        Claim(
            slug="loud-only",
            statement="All jumps happen in the periods of large eta and lambda.",
            criterion="no lasting jump in a quiet phase",
            measure=_only_loud,
            names={"jumps": "jumps [runs]", "share_in_loud": "share of them in loud phases"},
        ),
        Claim(
            slug="jumps",
            statement="Runs that do not diverge jump.",
            criterion="share at rank 1 or 0 at the end >= .9 of those",
            measure=_most,
            names={f"share_{p}": f"share that jumps, phases of {p} steps" for p in (1000, 2000)},
        ),
        Claim(
            slug="settles",
            statement="After the jump SGD settles at a low test error in the quiet periods.",
            criterion=(
                "relative test loss < .2 at the end of the first quiet phase after the jump in >= .9 of the rank-1 runs"
            ),
            measure=_fit,
            names={"runs": "runs that jump [runs]", "share": "share of them that settle"},
        ),
        Claim(
            slug="safe",
            statement="Runs with the periodic schedule jump and settle (all five shown do).",
            criterion="no run diverges and none collapses to rank 0",
            measure=_safe,
            names={
                f"{fate}_{p}": f"share {word}, phases of {p} steps"
                for fate, word in (("diverged", "that diverges"), ("collapsed", "that ends at rank 0"))
                for p in (1000, 2000)
            },
            expected="fails",
            kind="not typical",
            reason="At eta = 0.4 some runs diverge and a few lose all rank; five good ones are likely, not certain.",
        ),
        Claim(
            slug="descent-stays",
            ours=True,
            statement="Noise causes the jumps: GD on the same schedule stays at rank 2 (control).",
            criterion="every start ends at rank 2",
            measure=_descent,
            names={f"rank_2_{p}": f"share that ends at rank 2, phases of {p} steps" for p in (1000, 2000)},
        ),
    ],
    weight=5,
)
