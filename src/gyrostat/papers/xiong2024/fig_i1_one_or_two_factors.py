"""Figure I.1: one factor against two in sensing."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
import xarray as xr
from jaxtyping import PRNGKeyArray

import gyrostat as gs
from gyrostat.experiments.declarations import Claim, Experiment, Outcome, within
from gyrostat.experiments.statistics import median
from gyrostat.figures.declarations import Figure, Marker, Panel, Printed, band
from gyrostat.measurements.dense import DesignRows
from gyrostat.models.spaces import RectangularMatrices, Space
from gyrostat.papers.xiong2024.settings import FIGURE_I1, LITERAL, designs_of, losses, over_designs, size_text

SCALES = FIGURE_I1.scales
MODELS = {"symmetric": True, "asymmetric": False}
ITERATIONS = 30_000
"""The end of the printed axis."""
AXES = {"figure": 0.003 * ITERATIONS, "literal": LITERAL * ITERATIONS}
"""eta x iteration there, with the learning rate that fits the curves and with the printed one."""


class SameMatrices(gs.Dense):
    """Gaussian matrices with independent entries, projected onto the space of the model: every model sees the same ones."""

    def _draw(self, key: PRNGKeyArray, count: int, space: Space) -> DesignRows:
        full = super()._draw(key, count, RectangularMatrices(*space.shape))
        seen = jax.vmap(jax.vmap(lambda x: space.coordinates(space.project(x.reshape(space.shape)))))
        return full._replace(matrices=seen(full.matrices).astype(full.matrices.dtype))


def figure_i1_data(
    *, seed: int, progress: Any = None, dimension: int, starts: int, designs: int, num_steps: int
) -> xr.Dataset:
    """k = 4, r = 2, m = 24 n, eta = .2: X X^T against F G^T on the same measurements."""
    environments = gs.Environments.diagonal(dimension, (1.0, 1.0))

    def build(kind: str, scale: float, design: int) -> Any:
        # The same size of start for both: alpha N(0, 1/n).
        start = gs.ScaledGaussian(scale / dimension**0.5) if MODELS[kind] else scale
        descent = gs.GradientDescent(LITERAL, width=FIGURE_I1.width, symmetric=MODELS[kind], start=start)
        measurements = SameMatrices(round(FIGURE_I1.per_row * dimension), design=design, precision="single")
        return descent, gs.Problem(environments, measurements)

    ends = [round(tau / LITERAL) for tau in AXES.values()]
    steps = np.union1d(np.geomspace(1, num_steps, 300).round().astype(int), ends)
    return over_designs(
        build,
        {"kind": list(MODELS), "scale": list(SCALES)},
        designs_of(seed, designs),
        progress,
        num_steps=num_steps,
        seeds=starts,
        seed=seed,
        record=("distance",),
        record_at=steps,
    )


def draw_figure_i1(ds: xr.Dataset) -> Figure:
    loss, tau = losses(ds), LITERAL * ds.step.values
    panels = []
    for scale in SCALES:
        series: list[Any] = [
            band(loss.sel(kind=kind, scale=scale), f"{kind}", x=tau, colour=i) for i, kind in enumerate(MODELS)
        ]
        series.append(Marker(AXES["figure"], "end of the axis at eta = .003", axis="x", role="paper"))
        series.append(Marker(AXES["literal"], "end of the axis at eta = .2", axis="x", role="paper"))
        series.append(Marker(8 / scale**2, "eta t alpha^2 = 8", axis="x"))
        panels.append(
            Panel(
                title=f"alpha = {scale:g}",
                xlabel="eta x iteration",
                ylabel="loss",
                series=series,
                xscale="log",
                yscale="log",
                xlim=(1, None),
                ylim=(1e-16, None),
            )
        )
    return Figure(
        title="Two factors overtake one for good when eta t alpha^2 is about 8",
        panels=panels,
        printed=[
            Printed(
                quantity=f"faster at the end of the paper's axis, alpha = {scale:g}",
                paper="asymmetric",
                ours=" and ".join(
                    f"{100 * _lower_at(ds, AXES[name], 0).measured[f'share_alpha_{scale:g}']:.0f} % of the runs at eta = {eta}"
                    for name, eta in (("figure", ".003"), ("literal", ".2"))
                ),
            )
            for scale in SCALES
        ],
        note=(
            "Medians and quartiles over starts and designs; both models see the same measurements. k = 4, r = 2, "
            f"{size_text(ds, FIGURE_I1.per_row)}, eta = 0.2. The printed axis ends at {ITERATIONS:,} iterations: before the "
            "crossing at small alpha if the learning rate is the 0.003 that fits the printed curves, after it if it is the "
            "printed 0.2."
        ),
    )


def overtaking(ds: xr.Dataset) -> xr.DataArray:
    """eta t alpha^2 at which the asymmetric run gets below the symmetric one for good (NaN: not before the end)."""
    loss = losses(ds)
    behind = loss.sel(kind="asymmetric") >= loss.sel(kind="symmetric")
    records = behind.sizes["step"]
    final = records - behind.isel(step=slice(None, None, -1)).argmax("step")
    final = xr.where(behind.any("step"), final, 0)
    overtaken = ds.step.isel(step=np.minimum(final, records - 1)) * LITERAL * ds.scale**2
    return overtaken.where(final < records)


def _overtakes(ds: xr.Dataset) -> Outcome:
    times = median(overtaking(ds))
    return within(3, 15, **{f"alpha_{a:g}": times.sel(scale=a) for a in SCALES})


def _lower_at(ds: xr.Dataset, tau: float, share: float) -> Outcome:
    loss = losses(ds).sel(step=round(tau / LITERAL))
    wins = (loss.sel(kind="asymmetric") < loss.sel(kind="symmetric")).mean("seed")
    return within(share, 1, **{f"share_alpha_{a:g}": wins.sel(scale=a) for a in SCALES})


FIG_I1 = Experiment(
    name="figI1",
    title="One factor against two in sensing",
    source="Xiong 2024, Figure I.1",
    summary=(
        "The same measurements, recovered with X X^T and with F G^T. Curves depend on eta x iteration only, so one run is read "
        "at the end of the printed axis for both learning rates: the printed 0.2, and the 0.003 that fits the printed curves."
    ),
    sizes={
        "smoke": {"dimension": 14, "starts": 12, "designs": 2, "num_steps": ITERATIONS},
        "standard": {"dimension": 24, "starts": 8, "designs": 2, "num_steps": ITERATIONS},
        "full": {"dimension": 50, "starts": 5, "designs": 4, "num_steps": 2 * ITERATIONS},
    },
    compute=figure_i1_data,
    draw=draw_figure_i1,
    claims=[
        Claim(
            slug="overtakes",
            ours=True,
            statement="Asymmetric sensing overtakes symmetric sensing for good when eta t alpha^2 is about 8 (ours).",
            criterion="median of eta t alpha^2 at the last overtaking in [3, 15] (designs scatter by a factor of 2)",
            measure=_overtakes,
        ),
        Claim(
            slug="faster-at-printed-rate",
            statement=(
                "In a typical run asymmetric sensing converges faster than symmetric under every initial scale, with the "
                "printed learning rate 0.2 and the printed 30,000 iterations."
            ),
            criterion=(
                "after 30,000 iterations at eta = .2 the asymmetric loss is lower in half of the runs or more for every "
                "alpha"
            ),
            measure=lambda ds: _lower_at(ds, AXES["literal"], 0.5),
        ),
        Claim(
            slug="faster-at-every-alpha",
            statement=(
                "Asymmetric sensing converges faster than symmetric under every initial scale, with the learning rate 0.003 "
                "that fits the printed curves."
            ),
            criterion=(
                "at the end of the paper's axis (eta t = 90) the asymmetric loss is lower in 90 % of the runs for "
                "every alpha"
            ),
            measure=lambda ds: _lower_at(ds, AXES["figure"], 0.9),
            expected="fails",
            kind="depends on the reading",
            reason=(
                "Two readings were tried, on the same measurements for both models. With the printed 0.2 the statement holds "
                "(faster-at-printed-rate). With 0.003, which the printed curves fit, the axis ends at eta t = 90: past the "
                "crossing at eta t alpha^2 of about 8 for alpha = 0.5, before it for 0.2 and 0.05."
            ),
        ),
    ],
    weight=12,
)
