"""What a mixed batch reads: (4) and (118) of Xu 2024.

The engine draws the law of a batch and never the batch, so its readings are compared with moments in closed form.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr

import gyrostat as gs
from gyrostat.algorithms.batches import Full, Pooled
from gyrostat.experiments.declarations import Claim, Experiment, Outcome, within
from gyrostat.figures.declarations import Dots, Figure, Marker, Panel
from gyrostat.jax_tools.float64 import double
from gyrostat.measurements.base import Scene
from gyrostat.models.spaces import SymmetricMatrices

DIMENSION, SPREAD, BATCH = 6, 5.0, 20.0
POOLED = np.diag([1.0, 1.0] + [0.0] * (DIMENSION - 2))
"""A_star plus the mean spurious part."""
STRENGTHS, WEIGHTS = (-4.0, 1.0, 6.0), (0.5, 0.3, 0.2)
"""Environments in batches of infinitely many samples."""


def laws_data(*, seed: int, progress: Any = None, draws: int) -> xr.Dataset:
    """Every measured moment over its theory."""
    with double():
        key = jax.random.key(seed)
        moments = {
            "mixed: equal counts": _equal_counts(jax.random.fold_in(key, 0), draws),
            "mixed: drawn counts": _drawn_counts(jax.random.fold_in(key, 1), draws),
            "whole: full batch": _whole_reading(Full()),
            "whole: mixed batch": _whole_reading(Pooled()),
        }
    return xr.Dataset({"moment": ("law", list(moments.values()))}, {"law": list(moments)}, {"draws": draws})


def _scene(product: np.ndarray, law: gs.Finite) -> Scene:
    """A_star = e1 e1^T and spurious direction v = e2."""
    axes = np.eye(DIMENSION)
    return Scene(gs.Environments(axes[:, :1], axes[:, 1:2], law), SymmetricMatrices(DIMENSION), jnp.asarray(product))


def _drawn(function: Callable[..., Any]) -> Callable[..., np.ndarray]:
    """``function(key, ...)`` for many keys, compiled once for all its other arguments."""
    many = jax.jit(lambda keys, arguments: jax.vmap(lambda key: function(key, *arguments))(keys))
    return lambda key, count, *arguments: np.asarray(many(jax.random.split(key, count), arguments))


def _equal_counts(key: Any, draws: int) -> float:
    """The variance of v^T G v, if the two environments have equal counts, over 2 M^2/m: at POOLED w_i = +-M <X_i, v v^T>."""
    law = gs.TwoPoint(spread=SPREAD)
    draw = _drawn(lambda k, batch, scene, e: batch.sense((), k, scene, law.at(e))[0].gradient)
    half, scene = gs.FreshGaussian(BATCH / 2), _scene(POOLED, law)
    keys = jax.random.split(key, 3)  # the first is that of a check which is a test now
    equal = sum(draw(keys[1 + e], draws, half, scene, jnp.asarray(e))[:, 1, 1] for e in (0, 1)) / 2
    return float(np.mean(equal**2) / (2 * SPREAD**2 / BATCH))


def _drawn_counts(key: Any, draws: int) -> float:
    """The variance of v^T G v, if every sample draws its environment, over 3 M^2/m."""
    scene = _scene(POOLED, gs.TwoPoint(spread=SPREAD))
    G = _drawn(lambda k, batch: batch.mix((), k, scene)[0].gradient[1, 1])(key, draws, gs.FreshGaussian(BATCH))
    return float(np.mean(G**2) / (3 * SPREAD**2 / BATCH))


def _whole_reading(batches: Full | Pooled) -> float:
    """G of infinitely many samples over A - sum_e w_e A_e: the ratio of two entries that is farthest from 1."""
    U = np.cos(np.arange(DIMENSION**2)).reshape(DIMENSION, DIMENSION)
    product = 0.5 * U @ U.T
    M = product - np.diag([1.0, np.dot(STRENGTHS, WEIGHTS)] + [0.0] * (DIMENSION - 2))
    key, scene = jax.random.key(0), _scene(product, gs.Finite(STRENGTHS, WEIGHTS))
    reading, _ = batches.read(gs.Identity(), (), jnp.asarray(0), key, key, scene)
    ratios = (np.asarray(reading.gradient) / M).ravel()
    return float(ratios[np.argmax(np.abs(ratios - 1))])


def draw_laws(ds: xr.Dataset) -> Figure:
    moment = ds.moment.values
    series = [Dots(ds.law.values.tolist(), moment, "measured", low=moment, high=moment), Marker(1.0, "1", axis="x")]
    return Figure(
        title="A mixed batch has the law of samples that each draw their environment",
        panels=[
            Panel(title="Measured moments over theory", xlabel="ratio", ylabel="moment", series=series, xlim=(0.8, 1.2))
        ],
        note=f"{ds.attrs['draws']} batches of {BATCH:.0f} samples; whole: infinitely many samples.",
    )


def _moments(prefix: str, low: float, high: float) -> Callable[[xr.Dataset], Outcome]:
    """All moments whose name starts so lie in [low, high]."""

    def measure(ds: xr.Dataset) -> Outcome:
        names = [name for name in ds.law.values.tolist() if name.startswith(prefix)]
        found = {name.partition(": ")[2].replace(" ", "_"): float(ds.moment.sel(law=name)) for name in names}
        return within(low, high, **found)

    return measure


LAWS = Experiment(
    name="laws",
    title="The law of mixed batches",
    source="Xu 2024, (4), (118) and Theorem 6",
    summary=(
        "The engine never draws a batch, only what a step reads from it; what it reads of mixed batches is compared with "
        "moments of the data in closed form."
    ),
    sizes={"smoke": {"draws": 4096}, "standard": {"draws": 16_384}, "full": {"draws": 131_072}},
    compute=laws_data,
    draw=draw_laws,
    claims=[
        Claim(
            slug="mixed-batch",
            ours=True,
            statement=(
                "In a mixed batch every sample draws its environment, so the variance along v v^T is 3/2 of that "
                "with equal counts."
            ),
            criterion="variance over 3 M^2/m, and over 2 M^2/m with equal counts, in [0.87, 1.13]",
            measure=_moments("mixed", 0.87, 1.13),
        ),
        Claim(
            slug="whole-population",
            ours=True,
            statement=(
                "With infinitely many samples, a mixed batch (4) and a full batch (Theorem 6) read A - sum_e w_e A_e, with the "
                "weights of the environments."
            ),
            criterion="every entry of both readings over its theory in [1 - 1e-9, 1 + 1e-9], for weights 0.5, 0.3 and 0.2",
            measure=_moments("whole", 1 - 1e-9, 1 + 1e-9),
        ),
    ],
    weight=4,
)
