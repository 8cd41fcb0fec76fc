"""Figures 5 and 6, Theorems 3 and 6: what pooled training learns."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr

import gyrostat as gs
from gyrostat.experiments.declarations import Claim, Experiment, Outcome, together, within
from gyrostat.experiments.statistics import last, median
from gyrostat.figures.declarations import Figure, Line, Marker, Panel, Printed, band
from gyrostat.papers.xu2024.settings import (
    ALPHA,
    FIGURE5,
    FIGURE5_POOLED_SAMPLES,
    FIGURE6_STEP_SIZES,
    FIGURE6_TIME,
    compare,
    figure6,
)
from gyrostat.theory import calibration, pooled_gap

# ---------------------------------------------------------------------------------------------- Figure 5


def figure5_data(*, seed: int, progress: Any = None, seeds: int) -> xr.Dataset:
    """HeteroSGD with m = 2800 against PooledSGD with m = 5600, d = 40, ranks (3, 2), E s = .5, eta = .1, M = 4."""
    environments, eta, steps = FIGURE5.environments, FIGURE5.step_size, FIGURE5.num_steps
    batch, pooled_batch = gs.FreshGaussian(FIGURE5.num_samples), gs.FreshGaussian(FIGURE5_POOLED_SAMPLES)
    cells = {
        "hetero": (gs.HeteroSGD(eta, init_scale=ALPHA), gs.Problem(environments, batch)),
        "pooled": (gs.PooledSGD(eta, init_scale=ALPHA), gs.Problem(environments, pooled_batch)),
    }
    return compare(cells, num_steps=steps, seeds=seeds, seed=seed, record_at=steps + 1, progress=progress)


def draw_figure5(ds: xr.Dataset) -> Figure:
    steps = ds.step.values
    truth = calibration(FIGURE5.step_size, ALPHA, int(steps[-1]))[steps] ** 2

    def panel(algorithm: str, title: str) -> Panel:
        one = ds.sel(algorithm=algorithm)
        series = [
            band(one.signal, "invariant", colour=0),
            band(one.spurious, "spurious", colour=1),
            Line(steps, truth, "R_t^2 of eq. (25)", role="theory"),
        ]
        return Panel(title=title, xlabel="step", ylabel="share of the signal", series=series, ylim=(-0.05, 1.3))

    errors = Panel(
        title="Error",
        xlabel="step",
        ylabel="||E||",
        series=[
            band(ds.error.sel(algorithm=name), label, colour=i)
            for i, (name, label) in enumerate((("hetero", "HeteroSGD"), ("pooled", "PooledSGD")), start=2)
        ],
        ylim=(0, None),
    )
    return Figure(
        title="HeteroSGD drops the spurious signal, PooledSGD learns both",
        panels=[panel("hetero", "HeteroSGD, m = 2800"), panel("pooled", "PooledSGD, m = 5600"), errors],
        printed=[
            Printed(
                quantity=f"share of the spurious signal at the end, {label} (median)",
                paper=printed,
                ours=float(median(last(ds.spurious.sel(algorithm=name)))),
            )
            for name, label, printed in (("hetero", "HeteroSGD", "eliminated"), ("pooled", "PooledSGD", "learnt"))
        ],
        note="Medians and quartiles over seeds; d = 40, ranks (3, 2), s = 0.5 - 4 or 0.5 + 4, eta = 0.1.",
    )


def _hetero_only(ds: xr.Dataset) -> Outcome:
    one = ds.sel(algorithm="hetero")
    return together(
        within(0.95, 1.05, invariant=median(last(one.signal))), within(0, 0.05, spurious=median(last(one.spurious)))
    )


def _pooled_both(ds: xr.Dataset) -> Outcome:
    one = ds.sel(algorithm="pooled")
    low = float(last(one.spurious).quantile(0.05))
    return together(
        within(0.95, 1.05, invariant=median(last(one.signal))), within(0.85, 1.15, spurious_5th_percentile=low)
    )


FIG5 = Experiment(
    name="fig5",
    title="HeteroSGD against PooledSGD",
    source="Xu 2024, Figure 5",
    summary=(
        "The same environments, one per batch or mixed in every batch. The paper does not print eta and M: 0.1 and 4 "
        "fit its axes."
    ),
    sizes={"smoke": {"seeds": 12}, "standard": {"seeds": 100}, "full": {"seeds": 400}},
    compute=figure5_data,
    draw=draw_figure5,
    claims=[
        Claim(
            slug="hetero-invariant-only",
            statement="HeteroSGD recovers the invariant signal and eliminates the spurious one.",
            criterion="medians at the end: invariant in [.95, 1.05], spurious <= .05",
            measure=_hetero_only,
            names={"invariant": "share of the invariant signal", "spurious": "share of the spurious signal"},
        ),
        Claim(
            slug="pooled-no-distinction",
            statement="PooledSGD fits both signals without distinction, in practically every run.",
            criterion="median invariant in [.95, 1.05]; 5 % quantile of the spurious share in [.85, 1.15]",
            measure=_pooled_both,
            names={
                "invariant": "share of the invariant signal",
                "spurious_5th_percentile": "5 % quantile of the share of the spurious signal",
            },
        ),
    ],
    weight=7,
)

# ---------------------------------------------------------------------------------------------- Figure 6


def figure6_data(*, seed: int, progress: Any = None, seeds: int, horizon: float) -> xr.Dataset:
    """PooledSGD with a batch of 80: d = 30, ranks (5, 5), s = .5 +- 4."""

    def build(step_size: float) -> Any:
        setting = figure6(step_size, horizon)
        problem = gs.Problem(setting.environments, gs.FreshGaussian(setting.num_samples))
        return gs.PooledSGD(step_size, init_scale=ALPHA), problem

    return gs.run_grid(
        build,
        {"step_size": list(FIGURE6_STEP_SIZES)},
        num_steps=lambda step_size: figure6(step_size, horizon).num_steps,
        seeds=seeds,
        seed=seed,
        record=("distance", "distance_to_mean", "signal", "spurious"),
        record_at=201,
        progress=progress,
    )


def draw_figure6(ds: xr.Dataset) -> Figure:
    def panel(name: str, title: str) -> Panel:
        series = [
            band(ds[name].sel(step_size=eta), f"eta = {eta:g}", x=eta * ds.step.sel(step_size=eta).values, colour=i)
            for i, eta in enumerate(FIGURE6_STEP_SIZES)
        ]
        return Panel(title=title, xlabel="eta x step", ylabel="Frobenius distance", series=series, ylim=(0, None))

    return Figure(
        title="With a batch of 80 PooledSGD reaches neither the invariant nor the pooled solution",
        panels=[
            panel("distance", "Distance to A_star"),
            panel("distance_to_mean", "Distance to A_star + mean spurious part"),
        ],
        printed=[
            Printed(
                quantity=f"distance to {what} at the end, eta = {', '.join(f'{eta:g}' for eta in FIGURE6_STEP_SIZES)} (median)",
                paper="the trajectory stays away from it",
                ours=", ".join(f"{_neither(ds).measured[f'{name}_eta_{eta:g}']:.2f}" for eta in FIGURE6_STEP_SIZES),
            )
            for name, what in (("distance", "A_star"), ("distance_to_mean", "A_star + mean spurious part"))
        ],
        note="Medians and quartiles over seeds; d = 30, ranks (5, 5).",
    )


def _neither(ds: xr.Dataset) -> Outcome:
    late = ds.isel(record=slice(-50, None)).mean("record")
    near = {
        f"{name}_eta_{eta:g}": float(median(late[name].sel(step_size=eta)))
        for name in ("distance", "distance_to_mean")
        for eta in FIGURE6_STEP_SIZES
    }
    return within(0.8, 1e3, **near)


def _larger_worse(ds: xr.Dataset) -> Outcome:
    late = median(ds.distance.isel(record=slice(-50, None)).mean("record")).values
    return together(within(0, np.inf, growth_01_to_05=late[1] - late[0], growth_05_to_1=late[2] - late[1]))


FIG6 = Experiment(
    name="fig6",
    title="PooledSGD with a small batch",
    source="Xu 2024, Figure 6 (section B.2)",
    summary="m = 80 against 465 degrees of freedom: the isometry fails and the noise of single batches takes over.",
    sizes={
        "smoke": {"seeds": 6, "horizon": 15},
        "standard": {"seeds": 60, "horizon": FIGURE6_TIME},
        "full": {"seeds": 200, "horizon": 60},
    },
    compute=figure6_data,
    draw=draw_figure6,
    claims=[
        Claim(
            slug="neither-limit",
            statement="The trajectory stays far from A_star and from A_star plus the mean spurious part.",
            criterion="median over seeds of the late distance >= .8 for both limits and all three step sizes",
            measure=_neither,
        ),
        Claim(
            slug="noise-grows",
            statement="The larger the step, the farther from A_star the trajectory stays.",
            criterion="late distances increase with eta",
            measure=_larger_worse,
            names={
                "growth_01_to_05": "growth of the distance, eta = .01 to .05",
                "growth_05_to_1": "growth of the distance, eta = .05 to .1",
            },
        ),
    ],
    weight=10,
)

# ---------------------------------------------------------------------------------------- Theorems 3 and 6


def _pooled_path(algorithm: Any, measurements: Any, seeds: int, seed: int, progress: Any) -> xr.Dataset:
    environments = gs.RandomEnvironments(40, rank=2, law=gs.TwoPoint(mean=1.0, spread=6.0, rank=3))
    ds = gs.run(
        algorithm,
        gs.Problem(environments, measurements),
        num_steps=300,
        seeds=seeds,
        seed=seed,
        record_at=301,
        record=("distance", "distance_to_mean", "signal", "spurious"),
        progress=progress,
    )
    return ds.assign_attrs(gap=pooled_gap(2, 3), mean_norm=5**0.5)


def theorem3_data(*, seed: int, progress: Any = None, seeds: int, num_samples: int) -> xr.Dataset:
    """PooledSGD on fresh batches, ranks (2, 3), E Sigma = I."""
    return _pooled_path(gs.PooledSGD(0.05, init_scale=ALPHA), gs.FreshGaussian(num_samples), seeds, seed, progress)


def theorem6_data(*, seed: int, progress: Any = None, seeds: int, num_samples: int) -> xr.Dataset:
    """PooledGD on fixed data: all samples of both environments at every step."""
    return _pooled_path(gs.PooledGD(0.05, init_scale=ALPHA), gs.FixedGaussian(num_samples), seeds, seed, progress)


def draw_pooled_path(ds: xr.Dataset, algorithm: str) -> Figure:
    steps = ds.step.values
    x = calibration(0.05, ALPHA, int(steps[-1]))[steps] ** 2
    ideal = np.sqrt(2 * (1 - x) ** 2 + 3 * x**2)
    return Figure(
        title=f"{algorithm} approaches the pooled solution and never comes near the invariant one",
        panels=[
            Panel(
                title="Distances along the path",
                xlabel="step",
                ylabel="Frobenius distance",
                series=[
                    band(ds.distance, "to A_star", colour=0),
                    band(ds.distance_to_mean, "to A_star + mean spurious part", colour=1),
                    Line(steps, ideal, "without noise: both signals grow as R_t^2", role="theory"),
                    Marker(ds.attrs["gap"], "sqrt(r1 r2/(r1 + r2)), our sharp constant", role="bound"),
                ],
                ylim=(0, 2.4),
            ),
        ],
        note="Medians and quartiles over seeds; d = 40, ranks (2, 3), s = 1 - 6 or 1 + 6, eta = 0.05.",
    )


def _reaches_mean(ds: xr.Dataset) -> Outcome:
    return within(0, 0.15, relative_distance=last(ds.distance_to_mean).max() / ds.attrs["mean_norm"])


def _keeps_away(ds: xr.Dataset) -> Outcome:
    nearest = ds.distance.min("step") / ds.attrs["gap"]
    return within(0.9, 1.1, nearest_over_gap_min=nearest.min(), nearest_over_gap_median=median(nearest))


def _theorem(name: str, what: str, compute: Any, sizes: Any, weight: float) -> Experiment:
    return Experiment(
        name=name,
        title=f"{what} learns the spurious signal too",
        source=f"Xu 2024, Theorem {name[-1]}",
        summary="U* and V* orthogonal, E Sigma = I: the limit is A_star + V V^T, and the path keeps away from A_star.",
        sizes=sizes,
        compute=compute,
        draw=lambda ds: draw_pooled_path(ds, what),
        claims=[
            Claim(
                slug="reaches-the-mean",
                statement=f"{what} ends near A_star plus the mean spurious part.",
                criterion="relative distance at the end <= .15 in every run",
                measure=_reaches_mean,
            ),
            Claim(
                slug="keeps-away",
                statement=(
                    "At all times the distance to A_star is at least of order sqrt(min(r1, r2)); sharply, sqrt(r1 "
                    "r2/(r1 + r2))."
                ),
                criterion="least distance over the path within 10 % of the sharp constant (worst run and median)",
                measure=_keeps_away,
            ),
        ],
        weight=weight,
    )


THEOREM3 = _theorem(
    "thm3",
    "PooledSGD",
    theorem3_data,
    {
        "smoke": {"seeds": 6, "num_samples": 100_000},
        "standard": {"seeds": 50, "num_samples": 100_000},
        "full": {"seeds": 200, "num_samples": 100_000},
    },
    4,
)
THEOREM6 = _theorem(
    "thm6",
    "PooledGD",
    theorem6_data,
    {
        "smoke": {"seeds": 2, "num_samples": 4_000_000},
        "standard": {"seeds": 16, "num_samples": 4_000_000},
        "full": {"seeds": 50, "num_samples": 4_000_000},
    },
    3,
)
