"""Beyond equal eigenvalues: kappa > 1, indefinite targets, and the need for condition (7)."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr

import gyrostat as gs
from gyrostat.experiments.declarations import Claim, Experiment, Outcome, together, within
from gyrostat.experiments.statistics import last, median, share_below, wilson
from gyrostat.figures.declarations import Figure, Line, Panel, Points, band
from gyrostat.papers.xu2024.settings import ALPHA, compare


def _spectrum(
    values: list[float], model: Any, spread: float, *, seed: int, progress: Any, seeds: int, dimension: int
) -> xr.Dataset:
    environments = gs.RandomEnvironments(
        dimension, rank=len(values), law=gs.TwoPoint(mean=1.0, spread=spread), values=values
    )
    problem = gs.Problem(environments, gs.FreshGaussian(333 * dimension))
    cells = {
        "hetero": (gs.HeteroSGD(0.05, init_scale=ALPHA, model=model), problem),
        "pooled": (gs.PooledSGD(0.05, init_scale=ALPHA, model=model), problem),
    }
    slowest = min(abs(v) for v in values)
    ds = compare(
        cells,
        num_steps=round(10 / (0.05 * slowest)),
        seeds=seeds,
        seed=seed,
        record_at=101,
        progress=progress,
        record=("signal_values", "spurious_values", "spurious", "distance"),
    )
    return ds.assign(true_values=("invariant_direction", values))


def kappa_data(*, seed: int, progress: Any = None, seeds: int, dimension: int) -> xr.Dataset:
    """Eigenvalues 1 and 1/4 (kappa = 4), M = 8, T = 10/(eta sigma_min)."""
    return _spectrum([1.0, 0.25], gs.Symmetric(), 8.0, seed=seed, progress=progress, seeds=seeds, dimension=dimension)


def indefinite_data(*, seed: int, progress: Any = None, seeds: int, dimension: int) -> xr.Dataset:
    """Eigenvalues 1 and -1 with U U^T - V V^T, M = 8."""
    return _spectrum(
        [1.0, -1.0], gs.SymmetricDifference(), 8.0, seed=seed, progress=progress, seeds=seeds, dimension=dimension
    )


def draw_spectrum(ds: xr.Dataset) -> Figure:
    def panel(name: str, title: str) -> Panel:
        one, steps = ds.sel(algorithm=name), ds.step.values
        truths = ds.true_values.values
        series: list[Any] = []
        for i, value in enumerate(truths):
            series.append(
                band(one.signal_values.isel(invariant_direction=i), f"direction with eigenvalue {value:g}", colour=i)
            )
            series.append(Line(steps, np.full(steps.size, value), f"truth {value:g}", role="theory"))
        series.append(band(one.spurious_values.isel(spurious_direction=0), "spurious direction", colour=3))
        return Panel(
            title=title,
            xlabel="step",
            ylabel="u^T A u",
            series=series,
            ylim=(-1.4, 1.6) if truths.min() < 0 else (-0.1, 1.6),
        )

    values = ", ".join(f"{v:g}" for v in ds.true_values.values)
    return Figure(
        title=f"Eigenvalues {values}: HeteroSGD recovers them and drops the spurious one",
        panels=[panel("hetero", "HeteroSGD"), panel("pooled", "PooledSGD")],
        note="Medians and quartiles over seeds; m = 333 d, M = 8, eta = 0.05.",
    )


SPECTRUM_SIZES = {
    "smoke": {"seeds": 12, "dimension": 12},
    "standard": {"seeds": 50, "dimension": 60},
    "full": {"seeds": 200, "dimension": 100},
}


def _spectrum_claims(words: str) -> list[Claim]:
    def recovered(ds: xr.Dataset) -> Outcome:
        recovered_values = last(ds.signal_values.sel(algorithm="hetero")).fillna(np.inf).median("seed")
        gap = np.abs(recovered_values - ds.true_values)
        return together(
            within(0, 0.05, largest_gap=gap.max()),
            within(0, 0.1, spurious=median(last(ds.spurious.sel(algorithm="hetero")))),
        )

    return [
        Claim(
            slug="recovered",
            statement=f"HeteroSGD recovers {words} and eliminates the spurious signal.",
            criterion="medians at the end: every eigenvalue within .05, spurious share <= .1",
            measure=recovered,
        ),
        Claim(
            slug="pooled-spurious",
            ours=True,
            statement="PooledSGD learns the spurious signal there too.",
            criterion="median spurious share >= .8",
            measure=lambda ds: within(0.8, 1.2, spurious=median(last(ds.spurious.sel(algorithm="pooled")))),
        ),
    ]


KAPPA = Experiment(
    name="kappa",
    title="Unequal eigenvalues",
    source="Xu 2024, section D (Theorem 8)",
    summary="A_star with condition number 4; the small eigenvalue takes four times as long.",
    sizes=SPECTRUM_SIZES,
    compute=kappa_data,
    draw=draw_spectrum,
    claims=_spectrum_claims("both eigenvalues of a target with kappa = 4"),
    weight=10,
)

INDEFINITE = Experiment(
    name="indefinite",
    title="Indefinite targets",
    source="Xu 2024, end of section 3.1",
    summary="A_star with eigenvalues 1 and -1, parameterised as U U^T - V V^T.",
    sizes=SPECTRUM_SIZES,
    compute=indefinite_data,
    draw=draw_spectrum,
    claims=_spectrum_claims("a positive and a negative eigenvalue"),
    weight=7,
)


OFF = [0.0, 0.1, 0.25, 0.5, 1.0, 2.0]


def condition7_data(*, seed: int, progress: Any = None, seeds: int, dimension: int) -> xr.Dataset:
    """r2 = 2, diagonal entries 1 +- 6 with independent signs, and a constant off-diagonal entry."""

    def build(off_diagonal: float) -> Any:
        signs = [(a, b) for a in (-1, 1) for b in (-1, 1)]
        sigmas = [[[1 + 6 * a, off_diagonal], [off_diagonal, 1 + 6 * b]] for a, b in signs]
        environments = gs.RandomEnvironments(dimension, law=gs.Finite(sigmas))
        return gs.HeteroSGD(0.05, init_scale=ALPHA), gs.Problem(environments, gs.FreshGaussian(333 * dimension))

    return gs.run_grid(
        build,
        {"off_diagonal": OFF},
        num_steps=200,
        seeds=seeds,
        seed=seed,
        record=("signal", "spurious_values"),
        record_at=41,
        progress=progress,
    )


def _free_of_spurious(ds: xr.Dataset) -> xr.DataArray:
    return share_below(abs(last(ds.spurious_values)).max("spurious_direction"), 0.1)


def draw_condition7(ds: xr.Dataset) -> Figure:
    share, n = _free_of_spurious(ds).values, ds.sizes["seed"]
    low, high = wilson(share * n, n)
    worst = abs(ds.spurious_values).max("spurious_direction")
    return Figure(
        title="A constant off-diagonal entry brings the spurious signal back",
        panels=[
            Panel(
                title="Runs without spurious signal",
                xlabel="off-diagonal entry of Sigma",
                ylabel="share of runs",
                series=[Points(OFF, share, "measured (95 % interval)", low=low, high=high)],
                ylim=(-0.05, 1.05),
            ),
            Panel(
                title="Along the path",
                xlabel="step",
                ylabel="largest spurious value",
                series=[
                    band(worst.sel(off_diagonal=v), f"off-diagonal {v:g}", colour=i)
                    for i, v in enumerate((0.0, 0.5, 2.0))
                ],
                yscale="log",
            ),
        ],
        note=(
            "r2 = 2, diagonal 1 - 6 or 1 + 6 with independent signs, eta = 0.05. Condition (7) asks for far less than "
            "any entry shown."
        ),
    )


CONDITION7 = Experiment(
    name="condition7",
    title="Diagonal dominance is needed",
    source="Xu 2024, Assumption 2, condition (7)",
    summary="Off-diagonal entries that do not oscillate feed one spurious direction from the other.",
    sizes={
        "smoke": {"seeds": 60, "dimension": 12},
        "standard": {"seeds": 60, "dimension": 60},
        "full": {"seeds": 300, "dimension": 60},
    },
    compute=condition7_data,
    draw=draw_condition7,
    claims=[
        Claim(
            slug="diagonal-works",
            statement="Without off-diagonal entries most runs eliminate both spurious directions.",
            criterion="share of runs >= .5",
            measure=lambda ds: within(0.5, 1, share=_free_of_spurious(ds).sel(off_diagonal=0.0)),
        ),
        Claim(
            slug="off-diagonal-breaks",
            statement="Off-diagonal entries of the order of the mean bring the spurious signal back.",
            criterion="share of runs without spurious signal <= .3 at 1 and at 2",
            measure=lambda ds: within(
                0,
                0.3,
                at_one=_free_of_spurious(ds).sel(off_diagonal=1.0),
                at_two=_free_of_spurious(ds).sel(off_diagonal=2.0),
            ),
        ),
    ],
    weight=6,
)
