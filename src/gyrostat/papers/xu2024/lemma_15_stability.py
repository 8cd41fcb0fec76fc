"""Lemma 15 of Xu 2024: small disturbances keep the invariant part."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr

from gyrostat.experiments.declarations import Claim, Experiment, Outcome, together, within
from gyrostat.figures.declarations import Figure, Marker, Panel, Points
from gyrostat.papers.xu2024.axis_aligned_runs import AxisSetting, axis_runs, factor_norms, operator_norm
from gyrostat.theory import envelope

STABLE = AxisSetting(
    dimension=16, values=(1.0, 1.0), spurious_rank=2, spread=10.0, step_size=0.05, init_scale=1e-4, num_samples=1e10
)
STABLE_BATCHES = (1e10, 1e12)


def lemma15_data(*, seed: int, progress: Any = None, runs: int) -> xr.Dataset:
    """g of (88) in every run, where the singular values of R are from then on in units of g, and how long it takes."""
    cells = [
        _stable_runs(STABLE._replace(num_samples=m), runs, np.random.default_rng([seed, i]))
        for i, m in enumerate(STABLE_BATCHES)
    ]
    dims = ("num_samples", "seed")
    return xr.Dataset(
        {name: (dims, np.array([cell[name] for cell in cells])) for name in cells[0]},
        coords={"num_samples": list(STABLE_BATCHES)},
    )


def _stable_runs(setting: AxisSetting, runs: int, rng: np.random.Generator) -> dict[str, np.ndarray]:
    T1 = len(envelope(setting.step_size, setting.init_scale).middle) - 1
    sigma, size = [], []
    for step in axis_runs(setting, T1 + round(80 / setting.step_size), runs=runs, rng=rng):
        if step.t > T1:
            now = factor_norms(setting, step.U)
            error = operator_norm(step.U.swapaxes(1, 2) @ step.noise)
            sigma.append(now["sigma"])
            # The norm of Q is at most its Frobenius norm.
            size.append(np.sum(now["q"] ** 2, axis=1) + now["e"] ** 2 + 4 * error)
    g = np.max(size, axis=0)
    return _stability(np.array(sigma), g, setting.step_size)


def _stability(sigma: np.ndarray, g: np.ndarray, eta: float) -> dict[str, np.ndarray]:
    """The extreme (sigma - 1)/g from 8 log(1/g)/eta steps after T1 on, and the time to 1 - 5g in units of log(1/g)/eta."""
    steps = np.arange(len(sigma))[:, None]
    late = steps >= 8 / eta * np.log(1 / np.minimum(g, 0.5))
    low = np.where(late, sigma.min(2) - 1, np.inf).min(0) / g
    high = np.where(late, sigma.max(2) - 1, -np.inf).max(0) / g
    reached = (sigma.min(2) >= 1 - 5 * g).argmax(0)
    return {"g": g, "low": low, "high": high, "time": eta * reached / np.log(1 / np.minimum(g, 0.5))}


def draw_lemma15(ds: xr.Dataset) -> Figure:
    worst = np.maximum(abs(ds.low), abs(ds.high))
    series = [
        Points(ds.g.values[i], worst.values[i], f"m = {m:.0e}", colour=i) for i, m in enumerate(ds.num_samples.values)
    ]
    return Figure(
        title="Small disturbances keep the singular values of R near 1",
        panels=[
            Panel(
                title="From 8 log(1/g)/η steps after T₁ on",
                xlabel="g of (88)",
                ylabel="largest |σ − 1| / g of a run",
                series=[
                    *series,
                    Marker(5.0, "5: the lemma, from below", role="bound"),
                    Marker(1.0, "1: the lemma, from above", role="bound"),
                    Marker(0.01, "g = 0.01", axis="x"),
                ],
                xscale="log",
                yscale="log",
            )
        ],
        note=f"d = 16, ranks (2, 2), s = 1 − 10 or 1 + 10, η = 0.05; {ds.sizes['seed']} runs for each batch size m.",
    )


def _stable(ds: xr.Dataset) -> Outcome:
    good = ds.where(ds.g < 0.01)
    return together(
        within(0.5, 1, share_of_runs_with_small_g=(ds.g < 0.01).mean()),
        within(-5, 1, least=good.low.min(), largest=good.high.max()),
    )


LEMMA15 = Experiment(
    name="lemma15",
    title="Stability of the invariant part",
    source="Xu 2024, Lemma 15",
    summary="If Q, E and the isometry error stay below g, the singular values of R stay between 1 - 5g and 1 + g.",
    sizes={"smoke": {"runs": 4}, "standard": {"runs": 40}, "full": {"runs": 200}},
    compute=lemma15_data,
    draw=draw_lemma15,
    claims=[
        Claim(
            slug="lemma-15",
            statement=(
                "Lemma 15: 1 - 5g <= sigma <= 1 + g for all singular values of R, from 8 log(1/g)/eta steps after "
                "T1 on."
            ),
            criterion="(sigma - 1)/g in [-5, 1] in every run with g < 0.01, which at least half of the runs have",
            measure=_stable,
        ),
        Claim(
            slug="time",
            statement="Lemma 15, its proof: it takes at most 8 log(1/g)/eta steps to reach 1 - 5g.",
            criterion="steps over log(1/g)/eta in every run with g < 0.01 in (0, 8]",
            measure=lambda ds: within(1e-3, 8, largest=ds.time.where(ds.g < 0.01).max()),
        ),
    ],
    weight=2,
)
