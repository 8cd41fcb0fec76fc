"""The diagonal case: linear regression, and data from structural equations."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import xarray as xr

import gyrostat as gs
from gyrostat.experiments.declarations import Claim, Experiment, Outcome, within
from gyrostat.experiments.statistics import last, median, quartiles
from gyrostat.figures.declarations import Bars, Figure, Panel, band
from gyrostat.papers.xu2024.settings import ALPHA, compare


def diagonal_data(*, seed: int, progress: Any = None, seeds: int, num_samples: float) -> xr.Dataset:
    """Linear regression in 100 coordinates: three invariant coefficients, two that vary by environment."""
    beta = np.zeros(100)
    beta[:3] = 1.0, -1.0, 0.7
    law = gs.TwoPoint(mean=1.0, spread=6.0, rank=2, independent=True)
    problem = gs.Problem(gs.VectorEnvironments(beta, [3, 4], law), gs.FreshGaussian(num_samples))
    cells = {
        "hetero": (gs.HeteroSGD(0.1, init_scale=ALPHA, model=gs.Diagonal()), problem),
        "pooled": (gs.PooledSGD(0.1, init_scale=ALPHA, model=gs.Diagonal()), problem),
    }
    ds = compare(
        cells,
        num_steps=200,
        seeds=seeds,
        seed=seed,
        record=("signal_values", "spurious_values", "distance", "spurious"),
        record_at=101,
        progress=progress,
    )
    return ds.assign(true_values=("invariant_direction", beta[:3]))


def draw_diagonal(ds: xr.Dataset) -> Figure:
    def panel(name: str, title: str) -> Panel:
        one = ds.sel(algorithm=name)
        series: list[Any] = [
            band(one.signal_values.isel(invariant_direction=i), f"invariant, true {v:g}", colour=i)
            for i, v in enumerate(ds.true_values.values)
        ]
        series += [
            band(one.spurious_values.isel(spurious_direction=j), f"spurious {j + 1}, mean 1", colour=4 + j)
            for j in range(2)
        ]
        return Panel(title=title, xlabel="step", ylabel="coefficient", series=series, ylim=(-1.4, 1.8))

    return Figure(
        title="Linear regression: coefficients that vary between environments are dropped",
        panels=[panel("hetero", "HeteroSGD"), panel("pooled", "PooledSGD")],
        note="beta_j = u_j^2 - v_j^2, 100 coordinates, isotropic x, eta = 0.1. Medians and quartiles over seeds.",
    )


DIAGONAL = Experiment(
    name="diagonal",
    title="The diagonal case: linear regression",
    source="ours, the diagonal of Xu 2024",
    summary="beta_j = u_j^2 - v_j^2 on isotropic features; two coefficients are 1 - 6 or 1 + 6 depending on the environment.",
    sizes={
        "smoke": {"seeds": 16, "num_samples": 1000.0},
        "standard": {"seeds": 100, "num_samples": 1000.0},
        "full": {"seeds": 400, "num_samples": 1000.0},
    },
    compute=diagonal_data,
    draw=draw_diagonal,
    claims=[
        Claim(
            slug="hetero-recovers",
            ours=True,
            statement="HeteroSGD recovers the invariant coefficients.",
            criterion="median distance <= .35",
            measure=lambda ds: within(0, 0.35, distance=median(last(ds.distance.sel(algorithm="hetero")))),
        ),
        Claim(
            slug="pooled-does-not",
            ours=True,
            statement="Pooled SGD learns the mean of the varying coefficients.",
            criterion="median distance in [1.2, 1.6] (sqrt 2 = both spurious coefficients at 1)",
            measure=lambda ds: within(1.2, 1.6, distance=median(last(ds.distance.sel(algorithm="pooled")))),
        ),
    ],
    weight=3,
)


def structural_rows(rng: np.random.Generator, kind: str, environment: int, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows of a structural model: x1 causes y, y causes x2, and 17 features are noise.

    ``variance``: IRM's example, noise levels .2 and 2, x2 = y + N(0, 1). ``sign``: x2 = a y + N(0, .09), a = -2 or 4.
    """
    spread = ((0.2, 2.0) if kind == "variance" else (1.0, 1.0))[environment]
    cause = spread * rng.standard_normal((n, 2))
    y = cause.sum(axis=1) + spread * rng.standard_normal(n)
    slope, noise = (1.0, 1.0) if kind == "variance" else ((-2.0, 4.0)[environment], 0.3)
    effect = slope * y + noise * rng.standard_normal(n)
    return np.column_stack([cause, effect, rng.standard_normal((n, 17))]), y


def structural_data(*, seed: int, progress: Any = None, datasets: int, rows: int) -> xr.Dataset:
    """HeteroSGD and pooled SGD on data from both structural models; features scaled to unit pooled variance."""
    environments = gs.Observed((20,), 2)

    def build(model: str, algorithm: str, dataset: int) -> Any:
        rng = np.random.default_rng([seed, dataset, model == "sign"])
        parts = [structural_rows(rng, model, e, rows) for e in (0, 1)]
        X, y = np.concatenate([x for x, _ in parts]), np.concatenate([y for _, y in parts])
        X = X / X.std(axis=0)
        data = gs.DenseData(X, y, np.repeat([0, 1], rows), batch_size=rows // 2)
        step = 0.02 if model == "variance" else 0.1
        # Shuffled: all data sets share one sequence of environments, and an unlucky independent one would hit them all.
        options: dict[str, Any] = {"init_scale": ALPHA, "model": gs.Diagonal()}
        hetero, pooled = gs.HeteroSGD(step, order="shuffled", **options), gs.PooledSGD(step, **options)
        return (hetero if algorithm == "hetero" else pooled), gs.Problem(environments, data)

    coefficients = gs.Diagnostic("coefficients", lambda view: view.product[:3], ("coefficient",))
    axes: dict[str, list] = {
        "model": ["variance", "sign"],
        "algorithm": ["hetero", "pooled"],
        "dataset": list(range(datasets)),
    }
    return gs.run_grid(
        build,
        axes,
        num_steps=lambda model, algorithm, dataset: 600 if model == "variance" else 200,
        seeds=1,
        seed=seed,
        record=(coefficients,),
        record_at=2,
        progress=progress,
    )


def draw_structural(ds: xr.Dataset) -> Figure:
    end = last(ds.coefficients).isel(seed=0)
    names = ["cause 1", "cause 2", "effect of y"]

    def panel(model: str, title: str) -> Panel:
        series = []
        for i, (algorithm, label) in enumerate((("hetero", "HeteroSGD"), ("pooled", "PooledSGD"))):
            low, middle, high = quartiles(end.sel(model=model, algorithm=algorithm), "dataset")
            series.append(Bars(names, middle, label, low=low, high=high, colour=i))
        return Panel(title=title, xlabel="", ylabel="coefficient", series=series)

    return Figure(
        title="Heterogeneity helps when the spurious effect changes sign, not when only noise levels change",
        panels=[
            panel("variance", "IRM's example: x2 = y + noise everywhere"),
            panel("sign", "x2 = a y + noise, a changes sign"),
        ],
        note=(
            f"Bars: medians and quartiles over {ds.sizes['dataset']} data sets with 1 run each, features scaled to unit "
            "variance. Left, the effect of y keeps its coefficient: nothing oscillates."
        ),
    )


def _effect(ds: xr.Dataset, model: str) -> xr.DataArray:
    return abs(last(ds.coefficients).isel(seed=0, coefficient=2)).sel(model=model).median("dataset")


def _left(model: str, *, low: float, high: float) -> Any:
    """The spurious coefficient that HeteroSGD leaves, in units of the one that pooled SGD learns."""

    def measure(ds: xr.Dataset) -> Outcome:
        effect = _effect(ds, model)
        return within(low, high, ratio=effect.sel(algorithm="hetero") / effect.sel(algorithm="pooled"))

    return measure


STRUCTURAL = Experiment(
    name="structural",
    title="Structural equations: what heterogeneity can and cannot do",
    source="ours; the model of Arjovsky et al. 2019 for comparison",
    summary=(
        "A feature caused by y is spurious. If its relation to y changes sign, it oscillates and is dropped. If "
        "only noise levels change, it is learnt, as with pooled SGD."
    ),
    sizes={
        "smoke": {"datasets": 5, "rows": 2000},
        "standard": {"datasets": 20, "rows": 2000},
        "full": {"datasets": 100, "rows": 4000},
    },
    compute=structural_data,
    draw=draw_structural,
    claims=[
        Claim(
            slug="sign-flip-solved",
            ours=True,
            statement="A spurious effect that changes sign between environments is dropped.",
            criterion="median |coefficient| of the effect: hetero at most half of pooled",
            measure=_left("sign", low=0, high=0.5),
        ),
        Claim(
            slug="irm-model-not-solved",
            ours=True,
            statement=(
                "One environment per batch does not solve IRM's structural model (ours): the covariance of the effect with y "
                "is positive in every environment, so its gradient never changes sign and nothing oscillates."
            ),
            criterion="median |coefficient| of the effect: hetero more than half of pooled",
            measure=_left("variance", low=0.5, high=math.inf),
        ),
    ],
    weight=5,
)
