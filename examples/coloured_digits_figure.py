"""The picture of ``coloured_digits.py``, and its command."""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import xarray as xr
from coloured_digits import AGREEMENT, NOISE, run
from scipy import stats

import torch
from gyrostat.figures.declarations import Band, Figure, Heat, Line, Marker, Panel
from gyrostat.figures.matplotlib_renderer import render
from gyrostat.theory.ours import critical_spread
from gyrostat.theory.ours.transition import LEARNT

MEAN = 2 * AGREEMENT - 1
LEFT = 1 - (1 - 2 * NOISE) ** 2
"""What the colour still explains of the noisy labels, as a share, when the shape is known."""


def interval(values: xr.DataArray) -> tuple[xr.DataArray, xr.DataArray, xr.DataArray]:
    """The mean over seeds with its 95 % interval: low end, mean, high end."""
    n, mean = values.sizes["seed"], values.mean("seed")
    half = stats.t.ppf(0.975, n - 1) * values.std("seed", ddof=1) / np.sqrt(n)
    return mean - half, mean, mean + half


def boundary(step_size: float, steps: int) -> float:
    """The spread above which the colour's weights, oscillating between environments, shrink (Lyapunov rule).

    A step multiplies them by ``1 + 2 eta c_e``, c_e being the correlation of colour and residual: ``LEFT (MEAN +- 2 spread)``.
    """
    # A start at the threshold leaves no room: the rule then asks for a negative exponent.
    return critical_spread(2 * step_size * LEFT, init_scale=LEARNT**0.5, num_steps=steps, mean=MEAN) / 2


def predicted_effect(step_size: np.ndarray, spread: float) -> np.ndarray:
    """The colour effect b at which its weights neither grow nor shrink: two steps, one of each environment, make one.

    ``(1 + s (c_1 - b)) (1 + s (c_2 - b)) = 1`` with s = 2 eta; pooled batches have it at ``b = LEFT MEAN``.
    """
    s, variation = 2 * np.asarray(step_size), 2 * spread * LEFT
    return np.maximum(LEFT * MEAN - (np.sqrt(1 + (s * variation) ** 2) - 1) / s, 0)


def _effects(ds: xr.Dataset) -> list[Band | Line | Marker]:
    """What the colour adds to the answers, over step sizes, at one spread."""
    series: list[Band | Line | Marker] = []
    looks = {
        ("quadratic", "pooled"): 1,
        ("quadratic", "hetero"): 0,
        ("rectified", "pooled"): 3,
        ("rectified", "hetero"): 2,
    }
    for (network, batches), colour in looks.items():
        low, mean, high = interval(ds.colour_effect.sel(network=network, batches=batches))
        label = f"{network}, {batches}"
        series.append(Band(ds.step_size.values, low.values, mean.values, high.values, label, colour=colour))
    fine = np.linspace(ds.step_size.values[0], ds.step_size.values[-1], 60)
    series.append(Line(fine, predicted_effect(fine, float(ds.spread)), "predicted, hetero", role="theory"))
    return [*series, Marker(LEFT * MEAN, "predicted, pooled", axis="y", role="bound")]


def _bands(ds: xr.Dataset, along: str) -> list[Band]:
    """Reversed and grey accuracy for both kinds of batches along one axis."""
    looks = {("pooled", "reversed"): 1, ("pooled", "grey"): 4, ("hetero", "reversed"): 0, ("hetero", "grey"): 5}
    series = []
    for (batches, view), colour in looks.items():
        low, mean, high = interval(ds[view].sel(batches=batches))
        series.append(Band(ds[along].values, low.values, mean.values, high.values, f"{batches}, {view}", colour=colour))
    return series


def _paths(ds: xr.Dataset) -> list[Band]:
    series = []
    for batches, colour in (("pooled", 1), ("hetero", 0)):
        low, mean, high = interval(ds.colour_share.sel(batches=batches))
        series.append(Band(ds.step.values, low.values, mean.values, high.values, batches, colour=colour))
    return series


def _plane(ds: xr.Dataset) -> Panel:
    """How much hetero batches lose when the colour is reversed, with the predicted boundary."""
    hetero = ds.sel(batches="hetero")
    lost = (hetero.grey - hetero.reversed).mean("seed").transpose("spread", "step_size")
    fine = np.linspace(ds.step_size.values[0], ds.step_size.values[-1], 60)
    line = np.array([boundary(eta, ds.attrs["steps"]) for eta in fine])
    shown = line <= ds.spread.values[-1] + 0.05
    return Panel(
        title="Quadratic, hetero: accuracy lost when the colour is reversed",
        xlabel="step size",
        ylabel="spread of the agreement",
        series=[
            Heat(ds.step_size.values, ds.spread.values, lost.values, "grey minus reversed accuracy", low=0, high=0.2),
            Line(fine[shown], line[shown], "predicted: the colour shrinks above", role="theory"),
        ],
    )


def draw(ds: xr.Dataset) -> Figure:
    """Accuracy over step sizes and spreads, the plane with its predicted boundary, and paths of the first layer."""
    wide, eta = float(ds.spread[-1]), float(ds.step_size.sel(step_size=0.4, method="nearest"))
    quadratic, rectified = ds.sel(network="quadratic"), ds.sel(network="rectified")
    accuracy, ylim = "test accuracy", (0.55, 1.0)
    sign = Marker(AGREEMENT - 0.5, "above: the colour's sign changes", axis="x")
    panels = [
        Panel(
            title=f"Quadratic, spread {wide:g}",
            xlabel="step size",
            ylabel=accuracy,
            series=_bands(quadratic.sel(spread=wide), "step_size"),
            ylim=ylim,
        ),
        Panel(
            title=f"Rectified, spread {wide:g}",
            xlabel="step size",
            ylabel=accuracy,
            series=_bands(rectified.sel(spread=wide), "step_size"),
            ylim=ylim,
        ),
        _plane(quadratic),
        Panel(
            title=f"Quadratic, step size {eta:g}",
            xlabel="spread of the agreement",
            ylabel=accuracy,
            series=[*_bands(quadratic.sel(step_size=eta), "spread"), sign],
            ylim=ylim,
        ),
        Panel(
            title=f"Quadratic, spread {wide:g}, step size {eta:g}",
            xlabel="step",
            ylabel="share of the first layer on the colours",
            series=_paths(quadratic.sel(spread=wide, step_size=eta)),
        ),
        Panel(
            title=f"What the colour adds, spread {wide:g}",
            xlabel="step size",
            ylabel="colour effect",
            series=_effects(ds.sel(spread=wide)),
        ),
    ]
    note = (
        f"Means and 95 % intervals over {ds.sizes['seed']} seeds. Colour agrees with the label with probability "
        f"{AGREEMENT:g} + spread and {AGREEMENT:g} - spread in two environments; {NOISE:.0%} of the training labels are wrong. "
        "Reversed: test digits in the colour of the other label; grey: half of each ink."
    )
    return Figure(title="Coloured digits: one environment per batch against pooled batches", panels=panels, note=note)


def main() -> None:
    parser = argparse.ArgumentParser(description="Train on coloured digits; draw; write the numbers.")
    parser.add_argument("--seeds", type=int, default=10, help="splits, colourings and starts")
    parser.add_argument(
        "--out", type=Path, default=Path("coloured-digits"), help="folder for the picture and the numbers"
    )
    chosen = parser.parse_args()
    torch.set_num_threads(1)  # threads cost more than they give to so small a network
    found = run(chosen.seeds)
    for path in render(draw(found), chosen.out / "coloured-digits"):
        print(path)
    found.mean("seed").to_dataframe().to_csv(chosen.out / "coloured-digits.csv")
