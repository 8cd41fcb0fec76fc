"""Statistics that claims use: medians, shares, crossings, slopes, intervals. A diverged run counts as a failure."""

from __future__ import annotations

from typing import TypeVar

import numpy as np
import xarray as xr
from numpy.typing import ArrayLike

from gyrostat import errors
from gyrostat.engine.summary import QUARTILES, quantiles_with_infinity
from gyrostat.errors import GyrostatError

Labelled = TypeVar("Labelled", xr.DataArray, xr.Dataset)


@errors.explains_keywords
def last(values: Labelled) -> Labelled:
    """The value at the last recorded step.

    Parameters
    ----------
    values
        An array with a dimension ``step`` or ``record``.
    """
    return values.isel({"step" if "step" in values.dims else "record": -1})


@errors.explains_keywords
def median(values: xr.DataArray, over: str = "seed") -> xr.DataArray:
    """The median over seeds; a diverged run counts as infinite.

    Parameters
    ----------
    values
        An array with the dimension ``over``.
    over
        The dimension of the runs.
    """
    return values.fillna(np.inf).median(over)


def quartiles(values: xr.DataArray, over: str = "seed") -> np.ndarray:
    """The lower quartile, the median and the upper quartile over seeds; a diverged run counts as infinite.

    >>> quartiles(xr.DataArray([1.0, 2.0, np.nan], dims="seed")).tolist()
    [1.5, 2.0, inf]
    """
    return quantiles_with_infinity(values.fillna(np.inf).transpose(over, ...).values, QUARTILES)


@errors.explains_keywords
def share_below(values: xr.DataArray, threshold: float, over: str = "seed") -> xr.DataArray:
    """The share of runs below a threshold; a diverged run is not below it.

    Parameters
    ----------
    values
        An array with the dimension ``over``.
    threshold
        The threshold.
    over
        The dimension of the runs.
    """
    return (values < threshold).mean(over)


@errors.explains_keywords
def crossing(x: np.ndarray, y: np.ndarray, level: float) -> float:
    """The x at which the line through the points last rises above ``level``, NaN if it never does.

    Parameters
    ----------
    x
        Positions.
    y
        Values.
    level
        The level to cross.

    >>> crossing(np.array([1.0, 2.0, 3.0]), np.array([0.0, 0.4, 0.6]), 0.5)
    2.5
    """
    x, y = _paired(x, y)
    up = np.flatnonzero((y[:-1] < level) & (y[1:] >= level))
    if up.size == 0:
        return float("nan")
    i = up[-1]
    return float(x[i] + (level - y[i]) / (y[i + 1] - y[i]) * (x[i + 1] - x[i]))


@errors.explains_keywords
def slope(x: np.ndarray, y: np.ndarray) -> float:
    """The least-squares slope of log y against log x; NaN if a number is not positive and finite, or there are fewer than two.

    Parameters
    ----------
    x
        Positive numbers.
    y
        Positive numbers.

    >>> round(slope(np.array([1.0, 10.0, 100.0]), np.array([3.0, 30.0, 300.0])), 6)
    1.0
    """
    x, y = _paired(x, y)
    if len(x) < 2 or not (np.isfinite(x) & np.isfinite(y) & (x > 0) & (y > 0)).all():
        return float("nan")
    return float(np.polyfit(np.log(x), np.log(y), 1)[0])


def _paired(x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    x, y = np.asarray(x, dtype=float), np.asarray(y, dtype=float)
    if x.ndim != 1 or x.shape != y.shape:
        raise GyrostatError(f"x and y must be lists of the same length; got shapes {x.shape} and {y.shape}.")
    return x, y


@errors.explains_keywords
def wilson(successes: np.ndarray, count: ArrayLike, z: float = 1.96) -> tuple[np.ndarray, np.ndarray]:
    """The Wilson interval of a share: its low and high ends.

    Parameters
    ----------
    successes
        How many succeeded.
    count
        Out of how many.
    z
        The normal quantile; 1.96 for 95 %.

    >>> [round(float(e), 3) for e in wilson(np.array(10), 20)]
    [0.299, 0.701]
    """
    n, z = np.asarray(count, dtype=float), float(errors.number("z", z, least=0, most=100))
    n = np.where(n > 0, n, np.nan)  # no run, no interval
    p = np.asarray(successes) / n
    centre = (p + z**2 / (2 * n)) / (1 + z**2 / n)
    half = z * np.sqrt(p * (1 - p) / n + z**2 / (4 * n**2)) / (1 + z**2 / n)
    return np.clip(centre - half, 0, 1), np.clip(centre + half, 0, 1)
