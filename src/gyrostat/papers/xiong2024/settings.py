"""The settings of the paper's figures, and what its experiments share: problems, late rates, runs over several designs.

The lab builds its presets from the same settings.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr

import gyrostat as gs
from gyrostat.engine.compile import Cell

DIMENSION = 50
LITERAL, FIGURE = 0.2, 0.03
"""The printed learning rate, and one that fits the axes of the printed figures (ten times theirs in a tenth of the steps)."""


@dataclass(frozen=True, kw_only=True)
class FactorSetting:
    """The setting of a figure or a panel, in dimension n = 50: descent with ``width`` columns from every one of ``scales``.

    ``per_row`` is m / n, the measurements per dimension (the paper's m = 700 is 14); infinite: the matrix itself is seen.
    ``time`` is eta x iterations.
    """

    rank: int = 2
    width: int = 4
    scales: tuple[float, ...] = (0.5, 0.2, 0.05)
    per_row: float = 14
    step_size: float = LITERAL
    time: float

    @property
    def num_steps(self) -> int:
        """The iterations."""
        return round(self.time / self.step_size)


FIGURE11 = FactorSetting(width=5, scales=(0.5, 0.2), per_row=math.inf, step_size=0.01, time=1000)
"""Two factors. One factor has all of the widths, from alpha = .5 and .1."""
FIGURE11_WIDTHS = (5, 3, 2)

FIGURE12A = FactorSetting(width=2, time=100)
FIGURE12B = FactorSetting(scales=(0.5, 0.2, 0.1, 0.05), time=2000)
FIGURE12C = FactorSetting(scales=(0.5, 0.05), time=200)
"""k = 3 too; the imbalance step comes half-way, with beta = 1."""
FIGURE12_AXIS = 90.0
"""The end of the printed axis, 30,000 iterations at .003: enough at the figure's learning rate."""

FIGURE_I1 = FactorSetting(per_row=24, time=14)
"""``time`` is eta x iterations x alpha^2: a smaller start takes longer."""


def figure_i1_steps(scale: float, until: float = FIGURE_I1.time) -> int:
    """The iterations of Figure I.1 from a start of this scale."""
    return max(600, round(until / (FIGURE_I1.step_size * scale**2)))


FIGURE_I2 = FactorSetting(scales=(0.05,), time=150)
FIGURE_I2_CONDITIONS = (1.25, 1.5, 3.0, 10.0)
"""sigma_1 / sigma_2."""

FIGURE_I3 = FactorSetting(scales=(0.5, 1.0, 3.0, 5.0), time=60)
FIGURE_I4 = FactorSetting(rank=5, width=10, per_row=40, step_size=FIGURE, time=48)
"""The imbalance step comes half-way. One factor and plain descent on two are drawn for longer."""
FIGURE_I5 = FactorSetting(step_size=0.003, time=4.8)

FLOOR = 1e-24
"""Losses below this are near rounding (1e-30) and not used in fits."""


def factorisation(values: Sequence[float] = (1.0, 1.0), dimension: int = DIMENSION) -> gs.Problem:
    """Recover diag(values, 0, ...) from the residual itself."""
    return gs.Problem(gs.Environments.diagonal(dimension, values), gs.Identity())


def sensing(
    per_row: float, design: int, values: Sequence[float] = (1.0, 1.0), dimension: int = DIMENSION
) -> gs.Problem:
    """Recover diag(values, 0, ...) from ``per_row * dimension`` Gaussian measurements, shared by all runs of a ``design``.

    The rows are kept in single precision: the reading is off by 1e-6 of itself, and losses still go down to rounding.
    """
    measurements = gs.Dense(round(per_row * dimension), design=design, precision="single")
    return gs.Problem(gs.Environments.diagonal(dimension, values), measurements)


def size_text(ds: xr.Dataset, per_row: float) -> str:
    """The size of the problem of :func:`sensing` that data are from: ``n = 20, m = 280`` at the smoke size."""
    m = json.loads(ds.attrs["settings"])["problem"]["measurements"]["num_samples"]
    return f"n = {round(m / per_row)}, m = {m}"


def design_matrices(problem: gs.Problem) -> np.ndarray:
    """The measurement matrices (m, n, n) of a problem of :func:`sensing`."""
    design = problem.measurements
    assert isinstance(design, gs.Dense)
    rows = design.rows(problem.environments, gs.Asymmetric().space(problem.shape))
    return np.asarray(rows.matrices[0], dtype=np.float64)


def designs_of(seed: int, count: int) -> list[int]:
    """Numbers of designs that belong to this seed alone."""
    return [1000 * (seed % 10**6) + i for i in range(count)]


def over_designs(
    build: Callable[..., Cell],
    settings: Mapping[str, Sequence[Any]],
    designs: Sequence[int],
    progress: Any,
    **options: Any,
) -> xr.Dataset:
    """``run_grid`` of ``build(design=..., **setting)`` for every design; all their runs share the dimension ``seed``."""
    results = []
    for i, design in enumerate(designs):
        step = None if progress is None else _part(progress, i, len(designs))
        results.append(gs.run_grid(lambda **point: build(design=design, **point), settings, progress=step, **options))  # noqa: B023
    joined = xr.concat(results, dim="seed", data_vars="minimal", coords="minimal", compat="override", join="override")
    return joined.assign_coords(seed=np.arange(joined.sizes["seed"]))


def _part(progress: Any, i: int, count: int) -> Any:
    return lambda done, total: progress(i * total + done, count * total)


def losses(ds: xr.Dataset) -> xr.DataArray:
    """``||A - A_star||_F^2 / 2``, the paper's measure."""
    return ds.distance**2 / 2


def late_rate(steps: np.ndarray, loss: np.ndarray, part: float = 0.5) -> float:
    """The rate of ``loss ~ exp(-rate * step)``, fitted to the last ``part`` of what lies above the floor of rounding.

    >>> t = np.arange(100.0)
    >>> round(late_rate(t, np.exp(-0.1 * t)), 6)
    0.1
    """
    good = np.isfinite(loss) & (loss > FLOOR)
    end = steps[good].max(initial=0.0)
    use = good & (steps >= (1 - part) * end)
    if use.sum() < 4:
        return float("nan")
    return float(-np.polyfit(steps[use], np.log(loss[use]), 1)[0])


def late_rates(loss: xr.DataArray, step: xr.DataArray, part: float = 0.5) -> xr.DataArray:
    """:func:`late_rate` of every run."""
    along = "step" if "step" in loss.dims else "record"
    return xr.apply_ufunc(
        lambda y, t: late_rate(t, y, part), loss, step, input_core_dims=[[along], [along]], vectorize=True
    )


def tail_of(steps: np.ndarray, loss: np.ndarray, rate: float, part: float = 0.5) -> tuple[np.ndarray, np.ndarray]:
    """A line of slope ``-rate`` (in log loss) through the middle of the late part of a curve, to draw over it."""
    good = np.isfinite(loss) & (loss > FLOOR)
    end = steps[good].max(initial=0.0)
    t = steps[good & (steps >= (1 - part) * end)]
    if t.size < 2:
        return np.zeros(0), np.zeros(0)
    middle = t[len(t) // 2]
    return t, loss[steps == middle][0] * np.exp(-rate * (t - middle))
