"""Figure I.4: a larger rank."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr

import gyrostat as gs
from gyrostat.experiments.declarations import Claim, Experiment, Outcome, together, within
from gyrostat.experiments.statistics import last, median, slope
from gyrostat.figures.declarations import Figure, Marker, Panel, Printed, band
from gyrostat.papers.xiong2024.settings import FIGURE, FIGURE_I4, designs_of, losses, over_designs, sensing, size_text

SCALES = FIGURE_I4.scales


def figure_i4_data(*, seed: int, progress: Any = None, dimension: int, starts: int, designs: int) -> xr.Dataset:
    """k = 10, r = 5, m = 2000, eta = .03: symmetric, asymmetric, and the imbalance step half-way."""
    numbers, values = designs_of(seed, designs), (1.0,) * FIGURE_I4.rank
    half = FIGURE_I4.num_steps // 2

    def build(symmetric: bool = False, events: tuple = ()) -> Any:
        return lambda scale, design: (
            gs.GradientDescent(FIGURE, width=FIGURE_I4.width, symmetric=symmetric, start=scale, events=events),
            sensing(FIGURE_I4.per_row, design, values, dimension),
        )

    options = {"seeds": starts, "seed": seed, "record": ("distance",), "record_at": 101}
    step = build(events=(gs.ImbalanceStep(at=half, beta=1.0),))
    runs = {
        "symmetric": (build(symmetric=True), SCALES, 2000),
        "asymmetric": (build(), SCALES, 3000),
        "gd": (build(), (0.5, 0.05), 2 * half),
        "step": (step, (0.5, 0.05), 2 * half),
    }
    out: dict[str, Any] = {}
    for name, (make, scales, steps) in runs.items():
        ds = over_designs(make, {"scale": list(scales)}, numbers, progress, num_steps=steps, **options)
        panel = "c" if name in ("gd", "step") else name
        out[name] = losses(ds).rename(scale=f"scale_{panel}", step=f"step_{panel}")
    return xr.Dataset(out, attrs={"settings": ds.attrs["settings"]})


def draw_figure_i4(ds: xr.Dataset) -> Figure:
    def panel(name: str, title: str) -> Panel:
        y = ds[name]
        series = [
            band(y.sel({f"scale_{name}": a}), f"alpha = {a:g}", x=ds[f"step_{name}"].values, colour=i)
            for i, a in enumerate(SCALES)
        ]
        return Panel(title=title, xlabel="iteration", ylabel="loss", series=series, yscale="log")

    series: list[Any] = []
    for i, a in enumerate((0.5, 0.05)):
        series.append(band(ds.gd.sel(scale_c=a), f"GD, alpha = {a:g}", colour=2 * i))
        series.append(band(ds.step.sel(scale_c=a), f"with the step, alpha = {a:g}", colour=2 * i + 1))
    series.append(Marker(float(ds.step_c[-1]) / 2, "the imbalance step", axis="x"))
    return Figure(
        title="With rank 5 and ten columns, too, the imbalance step ends the slow tail of descent",
        panels=[
            panel("symmetric", "(a) X X^T"),
            panel("asymmetric", "(b) F G^T"),
            Panel(title="(c) The imbalance step", xlabel="iteration", ylabel="loss", series=series, yscale="log"),
        ],
        printed=[
            Printed(
                quantity="loss of GD over loss with the imbalance step at the end, alpha = .5 and .05",
                paper="the new method also performs well",
                ours=" and ".join(f"{gain:.2g}" for gain in _below(ds).measured.values()),
            )
        ],
        note=(
            f"Medians and quartiles over starts and designs; r = 5, k = 10, {size_text(ds, FIGURE_I4.per_row)}, "
            "eta = 0.03 (a tenth of the printed "
            "iterations)."
        ),
    )


def _below(ds: xr.Dataset) -> Outcome:
    gain = median(last(ds.gd.rename(step_c="step"))) / median(last(ds.step.rename(step_c="step")))
    measured = {f"gain_alpha_{a:g}": float(gain.sel(scale_c=a)) for a in (0.5, 0.05)}
    return Outcome(measured, measured["gain_alpha_0.5"] >= 30 and measured["gain_alpha_0.05"] >= 100)


def _late_power(ds: xr.Dataset, name: str) -> float:
    """The power of the iteration with which the loss of a median run falls over the second half of its axis, alpha = .5."""
    step = f"step_{name}"
    late = ds[name].sel({f"scale_{name}": 0.5}).isel({step: slice(ds.sizes[step] // 2, None)})
    powers = xr.apply_ufunc(
        lambda y: slope(late[step].values, y), late, input_core_dims=[[step]], vectorize=True, output_dtypes=[float]
    )
    return float(median(powers))


def _similar(ds: xr.Dataset) -> Outcome:
    return together(
        within(-2.2, -1.5, symmetric_power=_late_power(ds, "symmetric")),
        within(-np.inf, -2.5, asymmetric_power=_late_power(ds, "asymmetric")),
    )


FIG_I4 = Experiment(
    name="figI4",
    title="A larger rank",
    source="Xiong 2024, Figure I.4",
    summary="r = 5, k = 10, m = 2000: the phenomena of Figures 1.1 and 1.2 again.",
    sizes={
        "smoke": {"dimension": 20, "starts": 24, "designs": 1},
        "standard": {"dimension": 50, "starts": 12, "designs": 1},
        "full": {"dimension": 50, "starts": 5, "designs": 4},
    },
    compute=figure_i4_data,
    draw=draw_figure_i4,
    claims=[
        Claim(
            slug="step-below-gd",
            statement="The new method also performs well in this setting.",
            criterion="loss of GD over loss with the step at the end: >= 30 at alpha = .5, >= 100 at alpha = .05",
            measure=_below,
        ),
        Claim(
            slug="same-phenomena",
            statement="Symmetric descent is slow and asymmetric descent is fast, as with the smaller rank.",
            criterion=(
                "over the second half of its axis (alpha = .5) the symmetric loss of a median run falls as a power of the "
                "iteration in [-2.2, -1.5], as t^-2 of Theorem 3.1 does, and the asymmetric one at least as the power -2.5"
            ),
            measure=_similar,
            names={
                "symmetric_power": "late power of the iteration, symmetric",
                "asymmetric_power": "late power of the iteration, asymmetric",
            },
        ),
    ],
    weight=31,
)
