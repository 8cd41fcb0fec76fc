"""Figure 1.1: one factor converges as 1/T^2 when it is too wide, two factors converge linearly."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr

import gyrostat as gs
from gyrostat.experiments.declarations import Claim, Experiment, Outcome, within
from gyrostat.experiments.statistics import last, median, slope
from gyrostat.figures.declarations import Figure, Line, Panel, Printed, band
from gyrostat.papers.xiong2024.settings import FIGURE11, FIGURE11_WIDTHS, factorisation, late_rates, losses, tail_of
from gyrostat.theory import exact_width_rate, imbalanced_rate, symmetric_tail

ETA, RANK, SCALES = FIGURE11.step_size, FIGURE11.rank, FIGURE11.scales
WIDTHS = FIGURE11_WIDTHS


def figure11_data(*, seed: int, progress: Any = None, seeds: int, horizon: int) -> xr.Dataset:
    """n = 50, r = 2, eta = .01: X X^T with k = 5, 3, 2 from alpha = .5 and .1, and F G^T with k = 5 from alpha = .5 and .2."""
    steps = np.unique(np.concatenate([np.round(np.geomspace(1, horizon, 120)), np.arange(0, 1001, 20)])).astype(int)
    options = {"num_steps": horizon, "seeds": seeds, "seed": seed, "record_at": steps, "progress": progress}

    def one(width: int, scale: float) -> Any:
        return gs.GradientDescent(ETA, width=width, symmetric=True, start=scale), factorisation()

    def two(start: float) -> Any:
        return gs.GradientDescent(ETA, width=FIGURE11.width, start=start), factorisation()

    symmetric = gs.run_grid(one, {"width": WIDTHS, "scale": (0.5, 0.1)}, record=("distance",), **options)
    asymmetric = gs.run_grid(two, {"start": SCALES}, record=("distance", "factor_values"), **options)
    smallest = last(asymmetric.factor_values).isel(component=-1) ** 2
    return xr.Dataset(
        {"symmetric": losses(symmetric), "asymmetric": losses(asymmetric), "smallest": smallest},
        attrs={"settings": symmetric.attrs["settings"]},
    )


def draw_figure11(ds: xr.Dataset) -> Figure:
    steps = ds.step.values
    late = steps >= steps[-1] / 100
    one = ds.symmetric.sel(scale=0.5)
    wide = [band(one.sel(width=k), f"k = {k}", colour=i) for i, k in enumerate(WIDTHS)]
    tails = [
        Line(
            steps[late],
            symmetric_tail(ETA, k, RANK, steps[late]) / 2,
            "(k - r)/(4 eta t)^2 / 2",
            role="theory",
        )
        for k in WIDTHS[:2]
    ]
    early = steps <= 1200
    exact = one.sel(width=2, step=steps[early])
    line = tail_of(steps[early], exact.median("seed").values, exact_width_rate(ETA, 1.0))
    panels = [
        Panel(
            title="(a) X X^T, r = 2: log-log",
            xlabel="iteration",
            ylabel="loss",
            series=[*wide, *tails],
            xscale="log",
            yscale="log",
            ylim=(1e-12, 1e3),
        ),
        Panel(
            title="(b) The same: log-linear, the first iterations",
            xlabel="iteration",
            ylabel="loss",
            series=[
                *[band(one.sel(width=k, step=steps[early]), f"k = {k}", colour=i) for i, k in enumerate(WIDTHS)],
                Line(*line, "rate -2 log(1 - 2 eta), k = 2", role="theory"),
            ],
            yscale="log",
            ylim=(1e-22, 1e3),
        ),
        _versus(ds),
    ]
    return Figure(
        title="A factor that is too wide slows gradient descent to 1/T^2; two factors make it linear again",
        panels=panels,
        printed=[
            Printed(quantity=f"slope of the loss in T, log-log, {name}", paper="-2", ours=value)
            for name, value in (
                ("k = 3", _slopes(ds).measured["slope_k_3"]),
                ("k = 5", _slopes(ds).measured["slope_k_5"]),
            )
        ],
        note="Medians and quartiles over seeds; n = 50, eta = 0.01. The slope of the tail does not depend on alpha.",
    )


def _versus(ds: xr.Dataset) -> Panel:
    steps = ds.step.values
    series: list[Any] = [band(ds.symmetric.sel(scale=0.5, width=5), "X X^T, alpha = .5", colour=0)]
    for i, scale in enumerate(SCALES):
        y = ds.asymmetric.sel(start=scale)
        rate = imbalanced_rate(ETA, float(ds.smallest.sel(start=scale).median()))
        series.append(band(y, f"F G^T, alpha = {scale:g}", colour=i + 1))
        series.append(
            Line(
                *tail_of(steps, y.median("seed").values, rate), "rate -2 log(1 - eta lambda_min(F^T F))", role="theory"
            )
        )
    title = "(c) One factor against two, k = 5"
    return Panel(
        title=title, xlabel="iteration", ylabel="loss", series=series, yscale="log", ylim=(1e-25, 1e3), xlim=(0, 3e4)
    )


def _slopes(ds: xr.Dataset) -> Outcome:
    late = ds.step.values >= ds.step.values[-1] / 10
    y = median(ds.symmetric.sel(scale=0.5)).isel(step=late)
    measured = {f"slope_k_{k}": slope(ds.step.values[late], y.sel(width=k).values) for k in WIDTHS[:2]}
    return within(-2.03, -1.97, **measured)


def _constant(ds: xr.Dataset) -> Outcome:
    T = int(ds.step[-1])
    measured = {
        f"constant_k_{k}_alpha_{a:g}": float(median(2 * last(ds.symmetric.sel(width=k, scale=a))))
        / float(symmetric_tail(ETA, k, RANK, np.array(T)))
        for k in WIDTHS[:2]
        for a in (0.5, 0.1)
    }
    return within(0.98, 1.02, **measured)


def _exact_rate(ds: xr.Dataset) -> Outcome:
    y = ds.symmetric.sel(width=2)
    ratio = late_rates(y, ds.step, 0.6) / exact_width_rate(ETA, 1.0)
    return within(
        0.995, 1.005, ratio_alpha_05=median(ratio.sel(scale=0.5)), ratio_alpha_01=median(ratio.sel(scale=0.1))
    )


def _asymmetric_rate(ds: xr.Dataset) -> Outcome:
    predicted = -2 * np.log(1 - ETA * ds.smallest)
    ratio = late_rates(ds.asymmetric, ds.step) / predicted
    return within(0.99, 1.01, **{f"ratio_alpha_{a:g}": median(ratio.sel(start=a)) for a in SCALES})


def _faster(ds: xr.Dataset) -> Outcome:
    # Where the asymmetric run from alpha = .5 has reached 1e-20, the symmetric one of the same width is far behind.
    y = median(ds.asymmetric.sel(start=0.5))
    there = int(np.argmax(y.values < 1e-20))
    if not y.values[there] < 1e-20:
        return Outcome({"log10_gap": float("nan")}, None)
    gap = np.log10(float(median(ds.symmetric.sel(width=5, scale=0.5)).isel(step=there))) - np.log10(float(y[there]))
    return within(10, np.inf, log10_gap=gap)


FIG11 = Experiment(
    name="fig1.1",
    title="Symmetric factorisation slows down, asymmetric does not",
    source="Xiong 2024, Figure 1.1",
    summary=(
        "Gradient descent on ||X X^T - Sigma||^2 with k >= r columns, and on ||F G^T - Sigma||^2 from an imbalanced "
        "start."
    ),
    sizes={
        "smoke": {"seeds": 4, "horizon": 60_000},
        "standard": {"seeds": 64, "horizon": FIGURE11.num_steps},
        "full": {"seeds": 256, "horizon": 1_000_000},
    },
    compute=figure11_data,
    draw=draw_figure11,
    claims=[
        Claim(
            slug="slope",
            statement="Over-parameterised symmetric factorisation converges as 1/T^2.",
            criterion="slope of log ||E||^2 against log t over the last decade in [-2.03, -1.97] for k = 3 and 5",
            measure=_slopes,
        ),
        Claim(
            slug="sharp-constant",
            ours=True,
            statement="The sharp constant (ours): t^2 ||E||^2 16 eta^2 / (k - r) tends to 1 for every alpha.",
            criterion="within 2 % at the last step for k = 3, 5 and alpha = .5, .1",
            measure=_constant,
        ),
        Claim(
            slug="exact-width",
            statement="With k = r the convergence is linear, at the rate -2 log(1 - 2 eta sigma_r).",
            criterion="median fitted rate within .5 %",
            measure=_exact_rate,
            names={
                "ratio_alpha_05": "fitted rate over theory, alpha = 0.5",
                "ratio_alpha_01": "fitted rate over theory, alpha = 0.1",
            },
        ),
        Claim(
            slug="asymmetric-rate",
            statement="Two factors converge linearly, at the rate -2 log(1 - eta lambda_min(F^T F)).",
            criterion="median fitted rate within 1 % for alpha = .5 and .2",
            measure=_asymmetric_rate,
        ),
        Claim(
            slug="exponentially-faster",
            statement="Asymmetric parameterisation is exponentially faster than symmetric.",
            criterion="ten orders of magnitude at the step where F G^T (k = 5, alpha = .5) passes 1e-20",
            measure=_faster,
            names={"log10_gap": "gap of the losses [powers of ten]"},
        ),
    ],
    weight=7,
)
