"""Beyond the paper: the imbalance step when data are heterogeneous, and when responses are noisy."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr

import gyrostat as gs
from gyrostat.experiments.declarations import Claim, Experiment, Outcome, together, within
from gyrostat.experiments.statistics import last, median
from gyrostat.figures.declarations import Figure, Line, Marker, Panel, band
from gyrostat.papers.xiong2024.settings import designs_of, over_designs, sensing

# ------------------------------------------------------------------------------------- heterogeneity

SPREADS = (0.0, 3.0, 6.0, 8.0)
STEP = 0.05


def hetero_methods(width: int, half: int) -> dict[str, gs.Algorithm]:
    """HeteroSGD with one factor, with two, and with two and an imbalance step: the same one-environment batches."""
    two = gs.Asymmetric(width)
    parts: dict[str, Any] = {"batches": gs.OneEnvironment(), "schedule": gs.Constant(STEP)}
    step = (gs.ImbalanceStep(at=half, beta=1.0),)
    return {
        "U U^T": gs.HeteroSGD(STEP, init_scale=1e-3),
        "F G^T": gs.Algorithm(two, gs.ImbalancedGaussian(0.05), **parts),
        "F G^T, imbalance step": gs.Algorithm(two, gs.ImbalancedGaussian(0.05), **parts, events=step),
        "F G^T, F0 orthonormal": gs.Algorithm(two, gs.OrthonormalZero(), **parts),
    }


def hetero_data(*, seed: int, progress: Any = None, seeds: int, dimension: int, num_steps: int) -> xr.Dataset:
    """One invariant and one spurious direction (mean 1, spread M), fresh batches of 80 n: shares learnt, four methods."""
    solvers = hetero_methods(4, num_steps // 2)

    def build(solver: str, spread: float) -> Any:
        environments = gs.RandomEnvironments(dimension, law=gs.TwoPoint(mean=1.0, spread=spread))
        return solvers[solver], gs.Problem(environments, gs.FreshGaussian(80 * dimension))

    return gs.run_grid(
        build,
        {"solver": list(solvers), "spread": list(SPREADS)},
        num_steps=num_steps,
        seeds=seeds,
        seed=seed,
        record=("signal", "spurious", "distance"),
        record_at=121,
        progress=progress,
    )


def late(ds: xr.Dataset, name: str) -> xr.DataArray:
    """The median over seeds of the mean over the last fifth of the run."""
    steps = ds.sizes["step"]
    return median(ds[name].isel(step=slice(4 * steps // 5, None)).mean("step"))


def draw_hetero(ds: xr.Dataset) -> Figure:
    one = ds.sel(solver="F G^T, imbalance step", spread=8.0)
    path: list[Any] = [
        band(one.signal, "invariant", colour=0),
        band(one.spurious, "spurious", colour=1),
        Marker(float(ds.step[-1]) / 2, "the imbalance step", axis="x"),
    ]

    def against_spread(name: str) -> list[Any]:
        y = late(ds, name)
        return [Line(SPREADS, y.sel(solver=m).values, str(m), colour=i) for i, m in enumerate(ds.solver.values)]

    return Figure(
        title="HeteroSGD forgets the spurious signal with two factors too, and the imbalance step does not change that",
        panels=[
            Panel(
                title="F G^T with the step, M = 8",
                xlabel="step",
                ylabel="share of the signal",
                series=path,
                ylim=(-0.05, 1.3),
            ),
            Panel(
                title="Spurious share at the end",
                xlabel="spread M",
                ylabel="share of the spurious signal",
                series=against_spread("spurious"),
            ),
            Panel(
                title="Error at the end",
                xlabel="spread M",
                ylabel="||F G^T - A_star||_F",
                series=against_spread("distance"),
            ),
        ],
        note=(
            "Medians and quartiles over seeds (middle and right: medians of means over late steps); s = 1 - M or 1 + M, eta = "
            "0.05, fresh one-environment batches of 80 n."
        ),
    )


def _forgets(ds: xr.Dataset) -> Outcome:
    y, x = (late(ds, name).sel(spread=8.0) for name in ("spurious", "signal"))
    return together(
        within(0, 0.2, **{f"spurious {m}": y.sel(solver=m) for m in ds.solver.values}),
        within(0.9, 1.1, **{f"invariant {m}": x.sel(solver=m) for m in ds.solver.values}),
    )


def _same_transition(ds: xr.Dataset) -> Outcome:
    y = late(ds, "spurious").sel(spread=3.0)
    return within(-0.1, 0.1, **{str(m): y.sel(solver=m) - y.sel(solver="U U^T") for m in ds.solver.values[1:]})


def _noisier(ds: xr.Dataset) -> Outcome:
    y = late(ds, "distance")
    ratio = y.sel(solver="F G^T, imbalance step") / y.sel(solver="F G^T")
    return within(1.15, np.inf, M_6=ratio.sel(spread=6.0), M_8=ratio.sel(spread=8.0))


HETERO = Experiment(
    name="hetero",
    title="The imbalance step under HeteroSGD",
    source="Beyond Xiong 2024 and Xu 2024 (ours)",
    summary=(
        "One-environment batches with two factors. After an imbalance step F is of full size in all its columns, and "
        "one might expect G to learn the mean of the spurious signal as in a linear regression; it does not."
    ),
    sizes={
        "smoke": {"seeds": 32, "dimension": 12, "num_steps": 400},
        "standard": {"seeds": 50, "dimension": 40, "num_steps": 600},
        "full": {"seeds": 200, "dimension": 60, "num_steps": 1000},
    },
    compute=hetero_data,
    draw=draw_hetero,
    claims=[
        Claim(
            slug="forgets",
            ours=True,
            statement="HeteroSGD forgets the spurious signal with two factors too, balanced or not.",
            criterion="late shares at M = 8: spurious <= .2 and invariant in [.9, 1.1] for all four",
            measure=_forgets,
        ),
        Claim(
            slug="same-transition",
            ours=True,
            statement="Imbalance does not move the transition.",
            criterion="late spurious share at M = 3, near it, within .1 of that of one factor",
            measure=_same_transition,
        ),
        Claim(
            slug="noisier",
            ours=True,
            statement="Imbalance has a price: every column of F carries the noise of the batches.",
            criterion="late error with the step over that without >= 1.15 at M = 6 and 8",
            measure=_noisier,
        ),
    ],
    weight=10,
)

# --------------------------------------------------------------------------------------------- noise

NOISES = (0.0, 0.05, 0.2)


def noise_data(
    *, seed: int, progress: Any = None, starts: int, designs: int, dimension: int, num_steps: int
) -> xr.Dataset:
    """Sensing with 20 n noisy measurements, r = 2, eta = .2, alpha = .05: k = r, and three solvers with k = 4."""
    half = num_steps // 10
    step = (gs.ImbalanceStep(at=half, beta=1.0),)
    solvers = {
        "GD, k = r": gs.GradientDescent(0.2, width=2, start=0.05),
        "GD, k = 4": gs.GradientDescent(0.2, width=4, start=0.05),
        "imbalance step, k = 4": gs.GradientDescent(0.2, width=4, start=0.05, events=step),
        "PrecGD, k = 4": gs.PrecGD(0.2, width=4, start=0.05),
    }

    def build(solver: str, noise: float, design: int) -> Any:
        return solvers[solver], sensing(20, design, dimension=dimension, noise=noise)

    return over_designs(
        build,
        {"solver": list(solvers), "noise": list(NOISES)},
        designs_of(seed, designs),
        progress,
        num_steps=num_steps,
        seeds=starts,
        seed=seed,
        record=("distance",),
        record_at=201,
    )


def draw_noise(ds: xr.Dataset) -> Figure:
    half = int(ds.step[-1]) // 10
    panels = []
    for noise in NOISES:
        series: list[Any] = [
            band(ds.distance.sel(solver=m, noise=noise), str(m), colour=i) for i, m in enumerate(ds.solver.values)
        ]
        series.append(Marker(float(half), "the imbalance step", axis="x"))
        panels.append(
            Panel(
                title=f"Noise {noise:g} in each response",
                xlabel="iteration",
                ylabel="||F G^T - A_star||_F",
                series=series,
                yscale="log",
            )
        )
    return Figure(
        title="Without noise the step pays off; with noise the width decides where every solver ends",
        panels=panels,
        note="Medians and quartiles over starts and designs; m = 20 n, r = 2, eta = 0.2, alpha = 0.05.",
    )


def _no_gain(ds: xr.Dataset) -> Outcome:
    y = median(last(ds.distance)).sel(noise=0.2)
    ratio = y.sel(solver="imbalance step, k = 4") / y.sel(solver="GD, k = 4")
    return within(0.85, 1.15, step_over_gd=ratio)


def _width_costs(ds: xr.Dataset) -> Outcome:
    y = median(last(ds.distance)).sel(noise=0.2)
    ratio = y / y.sel(solver="GD, k = r")
    return within(1.3, np.inf, **{str(m): ratio.sel(solver=m) for m in ds.solver.values[1:]})


def _stopping(ds: xr.Dataset) -> Outcome:
    # Plain descent passes near the oracle's error on its way: the superfluous columns take long to fit the noise.
    y = median(ds.distance.sel(noise=0.2))
    best = y.sel(solver=["GD, k = 4", "PrecGD, k = 4"]).min("step") / last(y.sel(solver="GD, k = r"))
    return together(
        within(0.8, 1.3, gd=best.sel(solver="GD, k = 4")), within(0, np.inf, prec=best.sel(solver="PrecGD, k = 4"))
    )


NOISE = Experiment(
    name="noise",
    title="The imbalance step with noisy responses",
    source="Beyond Xiong 2024 (ours)",
    summary="y_i = <X_i, A_star> + noise. The paper has no noise, but real data do.",
    sizes={
        "smoke": {"starts": 8, "designs": 1, "dimension": 20, "num_steps": 2000},
        "standard": {"starts": 4, "designs": 4, "dimension": 20, "num_steps": 4000},
        "full": {"starts": 8, "designs": 8, "dimension": 50, "num_steps": 10_000},
    },
    compute=noise_data,
    draw=draw_noise,
    claims=[
        Claim(
            slug="no-gain",
            ours=True,
            statement="With noise the imbalance step gains nothing: plain descent ends at the same error.",
            criterion="ratio of median final errors in [.85, 1.15] at noise .2",
            measure=_no_gain,
        ),
        Claim(
            slug="width-costs",
            ours=True,
            statement="The width decides the final error: superfluous columns fit noise, whatever the solver.",
            criterion="final error of every solver with k = 4 over that of k = r >= 1.3 at noise .2",
            measure=_width_costs,
        ),
        Claim(
            slug="early-stopping",
            ours=True,
            statement="Slow descent has an advantage: stopped in time, k = 4 is nearly as good as k = r.",
            criterion="best error on the path of plain GD (k = 4) over the final error with k = r <= 1.3 at noise .2",
            measure=_stopping,
        ),
    ],
    weight=12,
)
