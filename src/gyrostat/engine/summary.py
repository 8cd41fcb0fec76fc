"""Diverged runs in statistics: :func:`summary` counts them as infinite, and results and warnings say how many there are."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from gyrostat import errors
from gyrostat.errors import DivergenceWarning, GyrostatError

if TYPE_CHECKING:
    import xarray as xr

QUARTILES = (0.25, 0.5, 0.75)


@errors.explains_keywords
def summary(result: xr.Dataset, *, over: str = "seed", quantiles: Sequence[float] = QUARTILES) -> xr.Dataset:
    """The median and the quartiles over the runs of a result, and the share of runs that diverged.

    A diverged run counts as infinite from the step at which it diverged. ``result.median("seed")`` leaves such runs out
    instead, and can look perfect when nine runs of ten have diverged.

    Parameters
    ----------
    result:
        What :func:`gyrostat.run`, :func:`gyrostat.run_grid`, :func:`gyrostat.engine.offshoots` or :func:`gyrostat.sweep`
        returned, or a part of it (``result.isel(step=-1)``).
    over:
        The dimension to summarise, which the result no longer has.
    quantiles:
        The quantiles to take, as in ``xarray.Dataset.quantile``; the values between two runs are interpolated.

    Returns
    -------
    A Dataset in which every recorded variable has a dimension ``quantile`` in place of ``over``, with ``diverged_share``, the
    share of the runs that diverged, and ``runs``, their number. A variable that is NaN for another reason (the truth is
    unknown) stays NaN.

    >>> import gyrostat as gs
    >>> problem = gs.Problem(gs.RandomEnvironments(20, law=gs.TwoPoint(spread=8.0)), gs.FreshGaussian(4000))
    >>> end = gs.summary(gs.run(gs.HeteroSGD(0.05), problem, num_steps=200, seeds=16)).isel(step=-1)
    >>> bool(end.signal.sel(quantile=0.5) > 0.9), float(end.diverged_share)
    (True, 0.0)
    """
    import xarray as xr

    if not isinstance(result, xr.Dataset) or "diverged" not in result or over not in result["diverged"].dims:
        what = "a Dataset" if isinstance(result, xr.Dataset) else f"an object of type {type(result).__name__}"
        raise GyrostatError(
            f"result must hold the variable 'diverged' along {over!r}, as what gs.run, gs.run_grid and gs.sweep return does; "
            f"got {what} without it."
        )
    q = errors.array("quantiles", quantiles, ndim=1)
    if q.size == 0 or (q < 0).any() or (q > 1).any():
        raise GyrostatError(f"quantiles must list numbers between 0 and 1; got {errors.shown(quantiles)}.")
    result = result.compute()  # what dask holds in chunks
    steps = result["diverged"]
    is_run, diverged = steps.notnull(), has_diverged(steps)  # in a sweep, the step of a run that is not computed is NaN

    def over_last_axis(values: np.ndarray, counted: np.ndarray) -> np.ndarray:
        first, is_counted = (np.moveaxis(x, -1, 0) for x in (values, np.broadcast_to(counted, values.shape)))
        return np.moveaxis(quantiles_with_infinity(first, q, is_counted), 0, -1)

    data: dict[str, xr.DataArray] = {}
    for name, values in result.drop_vars("diverged").data_vars.items():
        if over not in values.dims and "quantile" not in values.dims:
            data[str(name)] = values
        elif values.dtype.kind == "f" and "quantile" not in values.dims:
            if name != "reached":  # a run may reach the tolerance, and diverge later
                is_lost = steps <= values["step"] if "step" in values.coords else values.isnull()
                values = values.where(~(is_lost & diverged), np.inf)
            levels = xr.apply_ufunc(
                over_last_axis, values, is_run, input_core_dims=[[over], [over]], output_core_dims=[["quantile"]]
            )
            data[str(name)] = levels.transpose("quantile", ...).assign_attrs(values.attrs)
    runs = is_run.sum(over)
    data["diverged_share"] = (diverged.sum(over) / runs.where(runs > 0)).assign_attrs(
        long_name="share of the runs that diverged", units="1", one_means="all runs diverged"
    )
    data["runs"] = runs.assign_attrs(long_name="number of runs", units="runs", one_means="one run")
    meaning = {"long_name": f"quantile over {over}", "units": "1", "one_means": "the largest of the runs"}
    statistic = f"quantiles over {over}; a diverged run counts as infinite"
    whole = xr.Dataset(data, attrs={**result.attrs, "statistic": statistic})
    return whole.assign_coords(quantile=("quantile", q, meaning))


def has_diverged(steps: Any) -> Any:
    """Whether runs diverged, from the steps at which they did: infinite for never, or -1 in the store of a sweep.

    >>> has_diverged(np.array([12.0, np.inf, -1.0, np.nan])).tolist()
    [True, False, False, False]
    """
    return (steps >= 0) & np.isfinite(steps)


def never_is_infinite(steps: np.ndarray) -> np.ndarray:
    """Steps at which something happened, as times: a whole number of -1 (it never did) becomes infinite.

    >>> never_is_infinite(np.array([12, -1])).tolist(), never_is_infinite(np.array([0.5, -1.0])).tolist()
    ([12.0, inf], [0.5, -1.0])
    """
    return np.where(steps < 0, np.inf, steps) if np.issubdtype(steps.dtype, np.integer) else steps


def quantiles_with_infinity(values: np.ndarray, q: Any, counted: np.ndarray | None = None) -> np.ndarray:
    """Quantiles over the first axis, interpolated as by ``numpy.quantile``, for values that may be infinite.

    NumPy gives NaN next to an infinity. Here a quantile between a finite and an infinite value is infinite, and one that
    falls on a value is that value. ``counted`` says which values count; a NaN among them makes the result NaN.

    >>> quantiles_with_infinity(np.array([1.0, 2.0, 3.0, np.inf, np.inf]), [0.25, 0.5, 0.6]).tolist()
    [2.0, 3.0, inf]
    """
    x = np.asarray(values, dtype=float)
    counted = np.ones(x.shape, dtype=bool) if counted is None else counted
    ordered = np.sort(np.where(counted, x, np.nan), axis=0)  # NaN last
    at = np.multiply.outer(np.atleast_1d(q), np.maximum(counted.sum(axis=0) - 1, 0))
    low = np.floor(at).astype(int)
    a, b = (np.take_along_axis(ordered, i, axis=0) for i in (low, np.ceil(at).astype(int)))
    share = at - low
    with np.errstate(invalid="ignore"):
        gap = np.where(a == b, 0.0, b - a)
        between = np.where((share < 0.5) | np.isinf(b), a + gap * share, b - gap * (1 - share))  # as NumPy rounds
    return np.where((np.isnan(x) & counted).any(axis=0), np.nan, between)


# ------------------------------------------------------------------------------------------- notes and warnings


def divergence_note(steps: Any) -> str:
    """A sentence about the runs that diverged, given the steps at which they did; empty if none did.

    >>> divergence_note(np.array([[3.0, np.inf], [np.inf, np.inf]]))
    '1 of 4 runs (25 %) diverged: gs.summary(result) counts them as infinite, result.median("seed") leaves them out.'
    """
    x = np.asarray(steps)
    lost, total = int(has_diverged(x).sum()), int((~np.isnan(x)).sum())
    if lost == 0:
        return ""
    share = max(1, math.floor(100 * lost / total))  # never 0, and 100 only if all did
    words = 'gs.summary(result) counts them as infinite, result.median("seed") leaves them out'
    return f"{lost} of {total} runs ({share} %) diverged: {words}."


def with_note(result: xr.Dataset) -> xr.Dataset:
    """The result with the sentence about diverged runs as its first attribute, if there are any."""
    note = divergence_note(result["diverged"])
    return result.drop_attrs(deep=False).assign_attrs({"diverged": note, **result.attrs}) if note else result


def warn_of_divergence(result: xr.Dataset, *, stacklevel: int) -> xr.Dataset:
    """The result itself, after a :class:`DivergenceWarning` if a run of it diverged."""
    if note := divergence_note(result["diverged"]):
        warnings.warn(note, DivergenceWarning, stacklevel=stacklevel + 1)
    return result
