"""Figure I.2: the condition number and the plateau."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr

import gyrostat as gs
from gyrostat.experiments.declarations import Claim, Experiment, Outcome
from gyrostat.experiments.statistics import median
from gyrostat.figures.declarations import Figure, Panel, Points, Printed, band
from gyrostat.papers.xiong2024.settings import (
    FIGURE_I2,
    FIGURE_I2_CONDITIONS,
    LITERAL,
    designs_of,
    losses,
    over_designs,
    sensing,
    size_text,
)

KAPPAS = FIGURE_I2_CONDITIONS


def figure_i2_data(
    *, seed: int, progress: Any = None, dimension: int, starts: int, designs: int, tau: float
) -> xr.Dataset:
    """k = 4, r = 2, m = 700, alpha = .05, eta = .2: sigma = (1, 1/kappa)."""

    def build(kappa: float, design: int) -> Any:
        (scale,) = FIGURE_I2.scales
        problem = sensing(FIGURE_I2.per_row, design, (1.0, 1 / kappa), dimension)
        return gs.GradientDescent(LITERAL, width=FIGURE_I2.width, start=scale), problem

    ds = over_designs(
        build,
        {"kappa": list(KAPPAS)},
        designs_of(seed, designs),
        progress,
        num_steps=round(tau / LITERAL),
        seeds=starts,
        seed=seed,
        record=("distance", "singular_values"),
        record_at=401,
    )
    return ds.isel(singular_value=slice(0, 3))


def draw_figure_i2(ds: xr.Dataset) -> Figure:
    loss, tau = losses(ds), LITERAL * ds.step.values
    flat = plateau(ds)
    return Figure(
        title="The worse the condition, the longer the loss stays flat before the second component is learnt",
        panels=[
            Panel(
                title="Loss",
                xlabel="eta x iteration",
                ylabel="loss",
                series=[band(loss.sel(kappa=k), f"kappa = {k:g}", x=tau, colour=i) for i, k in enumerate(KAPPAS)],
                yscale="log",
                ylim=(1e-7, 2),
            ),
            Panel(
                title="Length of the plateau",
                xlabel="condition number kappa",
                ylabel="eta x iterations",
                series=[
                    Points(
                        KAPPAS,
                        median(flat),
                        "from sigma_1 to sigma_2 learnt",
                        low=flat.min("seed"),
                        high=flat.max("seed"),
                    )
                ],
                xscale="log",
                yscale="log",
            ),
        ],
        printed=[
            Printed(
                quantity=f"length of the flat part at kappa = {', '.join(f'{k:g}' for k in KAPPAS)}, in eta x iterations",
                paper="longer when kappa is larger",
                ours=", ".join(f"{length:.3g}" for length in median(flat).values),
            ),
            Printed(
                quantity="smallest condition number",
                paper="1.5 in the text, 1.25 in the legend",
                ours="both are run",
            ),
        ],
        note=(
            f"Medians, quartiles (left) and ranges (right); {size_text(ds, FIGURE_I2.per_row)}, "
            "k = 4, r = 2, alpha = 0.05, eta = 0.2. The "
            "text says kappa = 1.5, the legend 1.25: both are shown."
        ),
    )


def plateau(ds: xr.Dataset) -> xr.DataArray:
    """eta x iterations between the first and the second singular value reaching nine tenths of theirs."""
    s = ds.singular_values
    targets = xr.DataArray(np.stack([np.ones(len(KAPPAS)), 1 / np.array(KAPPAS)], 1), dims=("kappa", "singular_value"))
    there = s.isel(singular_value=slice(0, 2)) >= 0.9 * targets
    at = ds.step.isel(step=there.argmax("step")).where(there.any("step"))
    return LITERAL * (at.isel(singular_value=1) - at.isel(singular_value=0))


def _longer(ds: xr.Dataset) -> Outcome:
    flat = median(plateau(ds)).values
    measured = {f"plateau_{k:g}": v for k, v in zip(KAPPAS, flat, strict=True)}
    return Outcome({k: float(v) for k, v in measured.items()}, bool((np.diff(flat) > 0).all()))


FIG_I2 = Experiment(
    name="figI2",
    title="Condition number and the plateau",
    source="Xiong 2024, Figure I.2",
    summary="Gradient descent learns singular values one after the other; the smaller the second, the longer the wait.",
    sizes={
        "smoke": {"dimension": 20, "starts": 3, "designs": 1, "tau": 150.0},
        "standard": {"dimension": 50, "starts": 4, "designs": 2, "tau": FIGURE_I2.time},
        "full": {"dimension": 50, "starts": 5, "designs": 8, "tau": 300.0},
    },
    compute=figure_i2_data,
    draw=draw_figure_i2,
    claims=[
        Claim(
            slug="plateau",
            statement="The loss stays flat for longer when the target is ill-conditioned.",
            criterion="median plateau increases over kappa = 1.25, 1.5, 3, 10",
            measure=_longer,
            names={f"plateau_{k:g}": f"flat for eta x iterations, kappa = {k:g}" for k in KAPPAS},
        ),
    ],
    weight=4,
)
