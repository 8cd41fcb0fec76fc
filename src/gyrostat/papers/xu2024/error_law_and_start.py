"""Two laws of whole runs of HeteroSGD: the error that it ends with, within 5 %, and how the start delays the signal."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import xarray as xr

import gyrostat as gs
from gyrostat.experiments.declarations import Claim, Experiment, Outcome, together, within
from gyrostat.experiments.statistics import median
from gyrostat.figures.declarations import Figure, Line, Marker, Panel, band
from gyrostat.theory import calibration, error_law

DIMENSION, SPREAD, ETA, BATCH, STEPS = 24, 16.0, 0.05, 20_000.0, 640
STARTS = [1e-2, 1e-3, 1e-4]
LATE = slice(320, None, 20)
"""Steps at which the error is read: the signal is learnt, and errors 1/eta steps apart are nearly independent."""


def error_data(*, seed: int, progress: Any = None, seeds: int) -> xr.Dataset:
    """The late errors and the signal along the path, for three starts."""

    def build(init_scale: float) -> Any:
        environments = gs.RandomEnvironments(DIMENSION, law=gs.TwoPoint(spread=SPREAD))
        return gs.HeteroSGD(ETA, init_scale=init_scale), gs.Problem(environments, gs.FreshGaussian(BATCH))

    runs = gs.run_grid(
        build,
        {"init_scale": STARTS},
        num_steps=STEPS,
        seeds=seeds,
        seed=seed,
        record=("signal", "distance"),
        record_at=STEPS + 1,
        progress=progress,
    )
    law = error_law(gs.TwoPoint(spread=SPREAD), dimension=DIMENSION, rank=1, step_size=ETA, num_samples=BATCH)
    return xr.Dataset(
        {
            "error": runs.distance.isel(step=LATE).rename(step="late_step"),
            "law": ((), law),
            "half_time": (runs.signal > 0.5).argmax("step"),
            "theory_half_time": ("init_scale", [_half_time(alpha) for alpha in STARTS]),
            "first": runs.signal.isel(step=0, drop=True),
            "signal": runs.signal.isel(step=slice(0, LATE.start)),
        }
    )


def _half_time(alpha: float) -> float:
    """The first step at which R_t^2 of (25) is above 1/2."""
    return float((calibration(ETA, alpha, STEPS) ** 2 > 0.5).argmax())


def draw_error(ds: xr.Dataset) -> Figure:
    steps, alphas = ds.step.values, ds.init_scale.values
    late = (ds.error / ds.law).stack(run=("seed", "init_scale")).transpose("run", "late_step")
    paths: list[Any] = []
    for i, alpha in enumerate(alphas):
        paths.append(band(ds.signal.isel(init_scale=i), f"α = {alpha:g}", colour=i))
    for alpha in alphas:
        theory = calibration(ETA, float(alpha), int(steps[-1])) ** 2
        paths.append(Line(steps, theory, f"Rₜ² of (25), α = {alpha:g}", role="theory"))
    return Figure(
        title="The error at the end and the delay of the start are as predicted",
        panels=[
            Panel(
                title="Error over our law",
                xlabel="step",
                ylabel="ratio",
                series=[
                    band(late, "measured", over="run"),
                    Marker(1.0, "our law"),
                    Marker(1.05, "± 5 %", role="bound", colour=6),
                    Marker(0.95, "± 5 %", role="bound", colour=6),
                ],
            ),
            Panel(title="Invariant signal", xlabel="step", ylabel="share of the signal", series=paths),
        ],
        note=(
            f"d = {DIMENSION}, ranks (1, 1), s = 1 − 16 or 1 + 16, η = 0.05, m = 20000; medians and quartiles of "
            f"{ds.sizes['seed']} runs for each α."
        ),
    )


def _within_five_percent(ds: xr.Dataset) -> Outcome:
    ratio = (ds.error / ds.law).fillna(np.inf)
    return within(0.95, 1.05, ratio=ratio.median())


def _start(ds: xr.Dataset) -> Outcome:
    """U_0 = alpha I exactly; the half-times are those of (25), and their differences those of log(1/alpha)/log(1 + eta)."""
    half = median(ds.half_time.astype(float))
    predicted = math.log(STARTS[0] / STARTS[-1]) / math.log1p(ETA)
    delay = float(half.isel(init_scale=-1) - half.isel(init_scale=0)) / predicted
    return together(
        within(1 - 1e-9, 1 + 1e-9, first_over_square=(ds.first / ds.init_scale**2).mean()),
        within(0.97, 1.03, half_time_over_theory=(half / ds.theory_half_time).mean(), delay_over_theory=delay),
    )


ERROR_LAW = Experiment(
    name="error-law",
    title="The error and the start, to a few per cent",
    source="Xu 2024, Theorem 2, Algorithm 3 and (25); ours",
    summary=(
        "The median error at the end against gyrostat.theory.error_law, and the growth of the signal from U_0 = "
        "alpha I."
    ),
    sizes={"smoke": {"seeds": 48}, "standard": {"seeds": 160}, "full": {"seeds": 2000}},
    compute=error_data,
    draw=draw_error,
    claims=[
        Claim(
            slug="within-five-percent",
            ours=True,
            statement="Ours: the median error at the end is that of gyrostat.theory.error_law within 5 %.",
            criterion="median over runs, starts and late steps of error over law in [0.95, 1.05]",
            measure=_within_five_percent,
        ),
        Claim(
            slug="start",
            ours=True,
            statement=(
                "Algorithm 3 starts from U_0 = alpha I, and the signal grows as R_t^2 of (25): a start ten times "
                "smaller costs log(10)/log(1 + eta) steps."
            ),
            criterion=(
                "signal at step 0 over alpha^2 equal to 1 (1e-9); half-time and delay over theory in [0.97, 1.03]"
            ),
            measure=_start,
        ),
    ],
    weight=5,
)
