"""The picture of Figure 1."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr

from gyrostat.figures.declarations import Figure, Line, Marker, Panel, Points
from gyrostat.papers.wang2023.settings import RATIO, RIDGE_RATE

TAIL = 4000
"""Steps of an offshoot."""


def draw_figure1(ds: xr.Dataset) -> Figure:
    steps, shown = ds.step.values, range(ds.sizes["shown"])
    x = steps / 1000
    paths: list[Any] = [Line(x, np.maximum(ds.ratio.values[i], 1e-17), "SGD, one run each", colour=0) for i in shown]
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
            "passes stay"
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
                xlabel="step less jump",
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
                xlabel="(branching less jump) / 1000",
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
        note=(
            "L = 3, w = 100, epsilon = .25; eta = .2, lambda = .1 (eta = .03 in the first 500 steps); offshoots eta = "
            ".02, lambda = .001 for 4000 steps. The relative test loss is (1 - epsilon A_12)^2; rank 1 is s2 / s1 < "
            ".01."
        ),
    )


def _falls(ds: xr.Dataset) -> list[Any]:
    """The runs shown, from their own jumps on, and the rates from a ratio of 1e-6 on, where nothing else acts any more."""
    series: list[Any] = []
    begins = []
    for i in range(ds.sizes["shown"]):
        lag, ratio = ds.step.values - float(ds.jump[i]), ds.ratio.values[i]
        near = (lag >= -400) & (lag <= 800)
        if near.any():
            series.append(Line(lag[near], np.maximum(ratio[near], 1e-17), "SGD, one run each", colour=0))
            begins += list(lag[near & (lag >= 0) & (ratio < 1e-6)][:1])
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
    for i in range(ds.sizes["branch"]):
        series.append(
            Line(ds.offshoot_step.values[i] / 1000, ds.offshoot_path.values[i], "offshoots, low noise", colour=3)
        )
    above = np.flatnonzero(ds.trunk_ratio.values >= RATIO)
    return [*series, Marker(float(x[above[-1]]) if above.size else 0.0, "the jump", axis="x")]


def _all(ds: xr.Dataset) -> list[Any]:
    lag = (ds.branch - ds.jump).transpose("branch", "seed").values.ravel() / 1000
    ends = ds.offshoot.transpose("branch", "seed").values.ravel()
    seen = np.isfinite(lag)
    return [
        Points(lag[seen], ends[seen], "an offshoot each", colour=3),
        Marker(0.0, "the jump", axis="x"),
        Marker(0.2, "threshold of the claim", role="bound"),
    ]


def _share_by(jumped: np.ndarray, steps: np.ndarray) -> np.ndarray:
    return (jumped[:, None] <= steps).mean(axis=0)


def _hazard(ds: xr.Dataset) -> float:
    """Jumps per step at risk, after the warm-up."""
    horizon = float(ds.step[-1])
    return float((ds.jump <= horizon).sum() / np.maximum(np.minimum(ds.jump, horizon) - 500, 1).sum())
