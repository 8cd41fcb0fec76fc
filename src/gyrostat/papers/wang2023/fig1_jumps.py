"""Figure 1: SGD waits in the rank-2 minimum and falls to rank 1 for good; gradient descent and shuffled passes do not."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr

import gyrostat as gs
from gyrostat.experiments.declarations import Claim, Experiment, Outcome, together, within
from gyrostat.experiments.statistics import wilson
from gyrostat.figures.declarations import Figure, Line, Marker, Panel, Points, Printed, Runs
from gyrostat.papers.wang2023.settings import (
    FIGURE1,
    GONE,
    HIGH,
    LOW,
    OBSERVED,
    RATIO,
    RECORDS,
    RIDGE_RATE,
    STARTS,
    annealed,
    completion,
    decay_rate,
    follow,
    median_interval,
    network,
    noisy,
    quantile,
    ticker,
)
from gyrostat.theory import turning_rate

EPSILON = FIGURE1.epsilon
SHOWN = 6
TAIL = 4000
"""Steps of an offshoot."""


def figure1_data(
    *, seed: int, progress: Any = None, seeds: int, shuffled: int, num_steps: int, branches: int
) -> xr.Dataset:
    """L = 3, epsilon = .25: SGD, GD and shuffled SGD on one schedule, and offshoots of SGD with little noise."""
    at = [1000 * (k + 1) for k in range(branches)]
    tick = ticker(progress, 3 + branches)
    runs = {}
    for name, sampling, count in (("sgd", "one", seeds), ("gd", "all", STARTS), ("shuffled", "shuffled", shuffled)):
        algorithm = network(annealed())
        runs[name] = follow(algorithm, completion(EPSILON, sampling), num_steps=num_steps, seeds=count, seed=seed)
        tick()
    sgd, ratio, jumped = runs["sgd"], runs["sgd"].ratio, runs["sgd"].jumped
    rates = [decay_rate(sgd.steps, s[:, 1], r) for s, r in zip(sgd.values, ratio, strict=True)]
    expected = [RIDGE_RATE + _turning(A[r < 1e-6]) for A, r in zip(sgd.matrices, ratio, strict=True)]
    chosen = _typical(jumped, at)
    ends, path, when = [], [], []
    for t in at:
        branch = gs.offshoots(
            network(noisy()),
            completion(EPSILON),
            at=[t],
            schedule=gs.Constant(*LOW),
            num_steps=TAIL,
            seeds=seeds,
            seed=seed,
            record=("product",),
            record_at=RECORDS,
        )
        matrices = branch["product"].isel(branch=0).values
        loss = (1 - EPSILON * matrices[..., 0, 1]) ** 2
        ends.append(loss[:, -1])
        path.append(loss[chosen, ::20])
        when.append(
            branch.step.isel(branch=0).values[::20] if "branch" in branch.step.dims else branch.step.values[::20]
        )
        tick()
    after = [r[sgd.steps >= t + 500].max(initial=-1.0) for r, t in zip(ratio, jumped, strict=True)]
    return xr.Dataset(
        {
            "jump": ("seed", jumped),
            "in_window": ("seed", ((jumped >= 1000) & (jumped <= 3000)).astype(float)),
            "shuffled_jump": ("pass", runs["shuffled"].jumped),
            "gd_jump": ("start", runs["gd"].jumped),
            "returned": ("seed", _returned(ratio)),
            "after": ("seed", np.where(np.array(after) < 0, np.nan, after)),
            "rate": ("seed", rates),
            "over_ridge": ("seed", np.array(rates) / RIDGE_RATE),
            "expected_rate": ("seed", expected),
            "ratio": (("shown", "step"), ratio[:SHOWN]),
            "shuffled_ratio": (("shown", "step"), runs["shuffled"].ratio[:SHOWN]),
            "gd_ratio": (("start", "step"), runs["gd"].ratio),
            "trunk_loss": ("step", sgd.loss(EPSILON)[chosen]),
            "trunk_ratio": ("step", ratio[chosen]),
            "offshoot": (("branch", "seed"), np.array(ends)),
            "offshoot_path": (("branch", "record"), np.array(path)),
            "offshoot_step": (("branch", "record"), np.array(when)),
        },
        {"step": sgd.steps, "branch": at, "seed": np.arange(seeds)},
        {"settings": sgd.settings},
    )


def _turning(matrices: np.ndarray) -> float:
    """The rate that noise adds to the decay of s2, averaged over the records at rank 1; NaN without any."""
    if not len(matrices):
        return float("nan")
    truth = [[1.0, np.nan], [EPSILON, 1.0]]
    return float(turning_rate(matrices, truth, OBSERVED, step_size=HIGH[0], depth=3).mean())


def _typical(jumped: np.ndarray, at: list[int]) -> int:
    """The first run that jumps well inside the times of the offshoots."""
    inside = (jumped > at[0]) & (jumped < at[-1])
    return int(np.argmax(inside)) if inside.any() else 0


def _returned(ratio: np.ndarray) -> np.ndarray:
    """Whether a run that was at a ratio below 1e-4 was at .01 later."""
    gone = np.maximum.accumulate(ratio < GONE, axis=1)
    return (gone & (ratio >= RATIO)).any(axis=1).astype(float)


# --- the figure --------------------------------------------------------------------------------------------------------------


def draw_figure1(ds: xr.Dataset) -> Figure:
    steps = ds.step.values
    x = steps / 1000
    paths: list[Any] = [Runs(x, np.maximum(ds.ratio.values, 1e-17), f"SGD, {ds.sizes['shown']} runs", colour=0)]
    paths += [
        Line(x, ds.shuffled_ratio.values[0], "without replacement", colour=1),
        Line(x, ds.gd_ratio.values[0], "gradient descent", colour=2),
    ]
    hazard = _hazard(ds)
    shares: list[Any] = [
        Line(x, _share_by(ds.jump.values, steps), "SGD", colour=0),
        Line(x, _share_by(ds.shuffled_jump.values, steps), "without replacement", colour=1),
        Line(x, _share_by(ds.gd_jump.values, steps), "gradient descent", colour=2),
        Line(
            x, 1 - np.exp(-hazard * np.maximum(steps - 500, 0)), f"constant hazard {hazard:.1e} per step", role="theory"
        ),
        Marker(2.0, "the jump of the printed figure", axis="x", role="paper"),
    ]
    fits = (ds.offshoot < 0.2).mean("seed").values
    leaving = [
        Line(
            ds.branch.values / 1000,
            _share_by(ds.jump.values, ds.branch.values),
            "runs at rank 1 when they branch",
            colour=0,
        ),
        Points(ds.branch.values / 1000, fits, "offshoots that fit the missing entry", colour=3),
    ]
    xlabel = "step / 1000"
    return Figure(
        title=(
            "With replacement SGD falls to rank 1 after a random time and never comes back; descent and shuffled "
            "passes stay at rank 2"
        ),
        panels=[
            Panel(
                title="Ratio of singular values",
                xlabel=xlabel,
                ylabel="s2 / s1",
                series=paths,
                yscale="log",
                ylim=(1e-17, 3),
            ),
            Panel(
                title="The same around the jump",
                xlabel="steps after the jump",
                ylabel="s2 / s1",
                series=_falls(ds),
                yscale="log",
                ylim=(1e-17, 3),
            ),
            Panel(
                title="When it happens",
                xlabel=xlabel,
                ylabel="share of runs at rank 1",
                series=shares,
                ylim=(-0.03, 1.03),
            ),
            Panel(
                title="One run and its offshoots",
                xlabel=xlabel,
                ylabel="relative test loss",
                series=_one_run(ds),
                ylim=(-0.05, 1.3),
            ),
            Panel(
                title="All offshoots",
                xlabel="steps from the jump to the branching / 1000",
                ylabel="relative test loss, end",
                series=_all(ds),
                ylim=(-0.05, 1.3),
            ),
            Panel(
                title="Offshoots by their time",
                xlabel="branching step / 1000",
                ylabel="share",
                series=leaving,
                ylim=(-0.03, 1.03),
            ),
        ],
        printed=[
            Printed(
                quantity="step of the jump",
                paper="around 2000 (one run)",
                ours=f"{quantile(ds.jump.values, 0.5):.0f} (median)",
            ),
            Printed(
                quantity="runs that jump between steps 1000 and 3000",
                paper="the run shown",
                ours=f"{100 * float(ds.in_window.mean()):.0f} %",
            ),
            Printed(quantity="runs that come back to rank 2", paper="none", ours=int(ds.returned.sum())),
        ],
        note=(
            "L = 3, w = 100, epsilon = 0.25; eta = 0.2, lambda = 0.1 (eta = 0.03 in the first 500 steps); offshoots eta = "
            "0.02, lambda = 0.001 for 4000 steps. The relative test loss is (1 - epsilon A_12)^2; rank 1 is s2 / s1 < "
            "0.01."
        ),
    )


def _falls(ds: xr.Dataset) -> list[Any]:
    """The runs shown, from their own jumps on, and the rates from a ratio of 1e-6 on, where nothing else acts."""
    falls, begins = [], []
    for i in range(ds.sizes["shown"]):
        lag, ratio = ds.step.values - float(ds.jump[i]), ds.ratio.values[i]
        near = (lag >= -400) & (lag <= 800)
        if near.any():
            falls.append((lag[near], np.maximum(ratio[near], 1e-17)))
            begins += list(lag[near & (lag >= 0) & (ratio < 1e-6)][:1])
    x, y = zip(*falls, strict=True) if falls else ((), ())
    series = [Runs(x, y, f"SGD, {len(falls)} runs", colour=0)]
    if not begins:
        return series
    t = np.array([0.0, 380.0])
    rate = float(np.nanmedian(ds.expected_rate))
    return [
        *series,
        Line(np.median(begins) + t, 1e-6 * np.exp(-RIDGE_RATE * t), "the ridge alone", role="paper"),
        Line(np.median(begins) + t, 1e-6 * np.exp(-rate * t), "ridge and turning by noise", role="theory"),
    ]


def _one_run(ds: xr.Dataset) -> list[Any]:
    x = ds.step.values / 1000
    early = x <= (float(ds.branch[-1]) + TAIL) / 1000
    series: list[Any] = [Line(x[early], ds.trunk_loss.values[early], "high noise", colour=0)]
    series.append(Runs(ds.offshoot_step.values / 1000, ds.offshoot_path.values, "offshoots, low noise", colour=3))
    above = np.flatnonzero(ds.trunk_ratio.values >= RATIO)
    return [*series, Marker(float(x[above[-1]]) if above.size else 0.0, "the jump", axis="x")]


def _all(ds: xr.Dataset) -> list[Any]:
    lag = (ds.branch - ds.jump).transpose("branch", "seed").values.ravel() / 1000
    ends = ds.offshoot.transpose("branch", "seed").values.ravel()
    finite = np.isfinite(lag)
    return [
        Points(lag[finite], ends[finite], "an offshoot each", colour=3),
        Marker(0.0, "the jump", axis="x"),
        Marker(0.2, "threshold of the claim", role="bound"),
    ]


def _share_by(jumped: np.ndarray, steps: np.ndarray) -> np.ndarray:
    return (jumped[:, None] <= steps).mean(axis=0)


def _hazard(ds: xr.Dataset) -> float:
    """Jumps per step at risk, after the warm-up."""
    horizon = float(ds.step[-1])
    return float((ds.jump <= horizon).sum() / np.maximum(np.minimum(ds.jump, horizon) - 500, 1).sum())


# --- the claims --------------------------------------------------------------------------------------------------------------


def _most_jump(ds: xr.Dataset) -> Outcome:
    n, hits = ds.sizes["seed"], int((ds.jump <= 20_000).sum())
    return Outcome({"share": hits / n, "jumped": hits, "runs": n}, bool(wilson(np.array(hits), n)[1] >= 0.9))


def _median(ds: xr.Dataset) -> Outcome:
    low, high = median_interval(ds.jump.values)
    measured = {f"quantile_{q}": quantile(ds.jump.values, q / 100) for q in (5, 25, 50, 75)}
    return Outcome({**measured, "low": low, "high": high}, high >= 4000 and low <= 6500)


def _about_2000(ds: xr.Dataset) -> Outcome:
    return within(0.5, 1, share=ds.in_window.mean())


def _one_way(ds: xr.Dataset) -> Outcome:
    jumped = int(np.isfinite(ds.jump).sum())
    after = float(np.nanmax(ds.after)) if jumped else float("nan")
    return together(
        within(0, 0, returned=ds.returned.sum()),
        within(0, 1e-7, largest_ratio_500_later=after),
        within(5, jumped=jumped),
    )


def _rate(ds: xr.Dataset) -> Outcome:
    both = np.isfinite(ds.rate) & np.isfinite(ds.expected_rate)
    quotient = (ds.rate / ds.expected_rate).where(both).median()
    return together(within(0.97, 1.03, quotient=quotient), within(5, runs=both.sum()))


def _faster_than_ridge(ds: xr.Dataset) -> Outcome:
    return within(1.03, quotient=ds.over_ridge.median())


def _descent_stays(ds: xr.Dataset) -> Outcome:
    late = ds.gd_ratio.where(ds.step > 1000, drop=True)
    return together(
        within(0.1, 0.4, least=late.min(), most=late.max()), within(0, 0, jumped=np.isfinite(ds.gd_jump).sum())
    )


def _shuffled(ds: xr.Dataset) -> Outcome:
    return within(0, 0.02, share=np.isfinite(ds.shuffled_jump).mean())


def _offshoots(ds: xr.Dataset) -> Outcome:
    after = (ds.branch >= ds.jump).transpose("branch", "seed")
    fits = (ds.offshoot < 0.2).transpose("branch", "seed")
    measured = {"agree": float((after == fits).mean()), "share_after": float(after.mean())}
    return together(within(0.97, 1, agree=measured["agree"]), within(0.1, 0.9, share_after=measured["share_after"]))


FIG1 = Experiment(
    name="fig1",
    title="A jump from rank 2 to rank 1, and offshoots before and after it",
    source="Wang 2023, Figure 1",
    summary=(
        "The paper shows one run. Here are the distribution of the jump time, and two controls on the same "
        "schedule: gradient descent, and SGD that sees every entry once per pass. Only sampling with replacement "
        "jumps."
    ),
    sizes={
        "smoke": {"seeds": 64, "shuffled": 16, "num_steps": 20_000, "branches": 4},
        "standard": {"seeds": 240, "shuffled": 120, "num_steps": FIGURE1.num_steps, "branches": 8},
        "full": {"seeds": 1000, "shuffled": 400, "num_steps": 40_000, "branches": 16},
    },
    compute=figure1_data,
    draw=draw_figure1,
    claims=[
        Claim(
            slug="jumps",
            statement="SGD reaches rank 1.",
            criterion="share of runs at rank 1 by step 20,000: 95 % interval reaches .9",
            measure=_most_jump,
            names={"share": "share of the runs that jump", "jumped": "that is [runs]", "runs": "of [runs]"},
        ),
        Claim(
            slug="when",
            ours=True,
            statement="Half of the runs have jumped by step 5000 (ours).",
            criterion="99.9 % interval of the median jump time meets [4000, 6500]",
            measure=_median,
            names={f"quantile_{q}": f"{q} % of the runs have jumped by step" for q in (5, 25, 50, 75)}
            | {"low": "median, lower end of the interval [steps]", "high": "median, upper end of the interval [steps]"},
        ),
        Claim(
            slug="about-2000",
            statement="The jump happens around step 2000.",
            criterion="half of the runs jump in [1000, 3000]",
            measure=_about_2000,
            names={"share": "share of the runs that jump in this window"},
            expected="fails",
            kind="not typical",
            reason="The printed run was an early one: about a quarter of all runs jump in that window.",
        ),
        Claim(
            slug="one-way",
            statement="The probability of jumping back is zero.",
            criterion="no run below a ratio of 1e-4 comes back to .01; 500 steps after its jump none is above 1e-7",
            measure=_one_way,
            names={
                "returned": "runs that come back to rank 2 [runs]",
                "largest_ratio_500_later": "largest s2 / s1 after 500 more steps",
                "jumped": "of [runs]",
            },
        ),
        Claim(
            slug="decay",
            ours=True,
            statement=(
                "After the jump, s2 decays at the rate of the ridge plus the rate at which noise turns the first "
                "singular pair (ours)."
            ),
            criterion=(
                "rate of s2 between ratios of 1e-6 and 1e-13 over -L log(1 - eta lambda) + turning_rate: median over "
                "the runs within 3 % of 1"
            ),
            measure=_rate,
            names={"quotient": "rate over theory", "runs": "measured in [runs]"},
        ),
        Claim(
            slug="faster-than-ridge",
            ours=True,
            statement=(
                "After the jump s2 decays faster than the ridge alone explains (ours): noise turns the first singular pair "
                "in every step, and the part orthogonal to it shrinks by the cosine."
            ),
            criterion="median rate of s2 between ratios of 1e-6 and 1e-13 over -L log(1 - eta lambda) above 1.03",
            measure=_faster_than_ridge,
            names={"quotient": "rate over that of the ridge alone"},
        ),
        Claim(
            slug="descent-stays",
            ours=True,
            statement="GD is stuck at the rank-2 minimum (control on the same schedule).",
            criterion="no start jumps, and s2 / s1 stays in [.1, .4] after step 1000",
            measure=_descent_stays,
            names={"least": "smallest s2 / s1", "most": "largest s2 / s1", "jumped": "starts that jump [starts]"},
        ),
        Claim(
            slug="shuffled-stays",
            statement="Without replacement jumps may not be possible (section 3.2).",
            criterion="at most 2 % of the shuffled runs jump",
            measure=_shuffled,
            names={"share": "share of the shuffled runs that jump"},
        ),
        Claim(
            slug="offshoots",
            statement="Offshoots fit the missing entry exactly when they leave after the jump.",
            criterion=(
                "relative test loss < .2 agrees with leaving after the jump in >= 97 % of the offshoots; 10-90 % "
                "leave after"
            ),
            measure=_offshoots,
            names={"agree": "share of the offshoots that agree", "share_after": "share that leave after the jump"},
        ),
    ],
    weight=9,
)
