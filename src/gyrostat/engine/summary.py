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
        What :func:`gyrostat.run`, :func:`gyrostat.run_grid`, :func:`gyrostat.offshoots` or :func:`gyrostat.sweep` returned,
        or a part of it (``result.isel(step=-1)``).
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
    steps = result["diverged"]
    counted, has_any = steps.notnull().transpose(over, ...), has_diverged(steps)
    data: dict[str, xr.DataArray] = {}
    for name, values in result.data_vars.items():
        if name == "diverged" or "quantile" in values.dims or (over in values.dims and values.dtype.kind != "f"):
            continue
        if over not in values.dims:
            data[str(name)] = values
            continue
        gone = (steps <= values["step"]) & has_any if "step" in values.coords else has_any & np.isnan(values)
        infinite = values.where(~gone.astype(bool), np.inf) if name != "reached" else values
        infinite = infinite.transpose(over, ...)
        mask = np.broadcast_to(_aligned(counted, infinite), infinite.shape)
        taken = quantiles_with_infinity(infinite.values, q, mask)
        rest = infinite.isel({over: 0}, drop=True)
        data[str(name)] = xr.DataArray(taken, dims=("quantile", *rest.dims), coords=rest.coords, attrs=values.attrs)
    runs = counted.sum(over)
    share = (has_any.sum(over) / runs.where(runs > 0)).assign_attrs(
        long_name="share of the runs that diverged", units="1", one_means="all runs diverged"
    )
    runs = runs.assign_attrs(long_name="number of runs", units="runs", one_means="one run")
    levels = (
        "quantile",
        q,
        {"long_name": f"quantile over {over}", "units": "1", "one_means": "the largest of the runs"},
    )
    found = xr.Dataset({**data, "diverged_share": share, "runs": runs}, attrs=result.attrs).assign_coords(
        quantile=levels
    )
    return found.assign_attrs(statistic=f"quantiles over {over}; a diverged run counts as infinite")


def _aligned(mask: Any, values: Any) -> np.ndarray:
    """A mask over some dimensions of ``values``, with an axis of length 1 for each of the others."""
    missing = [dim for dim in values.dims if dim not in mask.dims]
    return mask.expand_dims(missing).transpose(*values.dims).values


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
    unknown = (np.isnan(x) & counted).any(axis=0)
    ordered = np.sort(np.where(counted, x, np.nan), axis=0)  # NaN last
    count = counted.sum(axis=0)
    found = []
    for level in np.atleast_1d(q):
        at = np.maximum(count - 1, 0) * level
        low = np.floor(at).astype(int)
        a, b = (np.take_along_axis(ordered, i[None], axis=0)[0] for i in (low, np.ceil(at).astype(int)))
        share = at - low
        with np.errstate(invalid="ignore"):
            between = np.where(share < 0.5, a + (b - a) * share, b - (b - a) * (1 - share))  # as NumPy rounds
        between = np.where(np.isinf(b), b, between)
        found.append(np.where(unknown | (count == 0), np.nan, np.where((a == b) | (share == 0), a, between)))
    return np.stack(found)


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
    return (
        result.assign_attrs() if not note else result.drop_attrs(deep=False).assign_attrs(diverged=note, **result.attrs)
    )


def warn_of_divergence(result: xr.Dataset, *, stacklevel: int) -> xr.Dataset:
    """The result itself, after a :class:`DivergenceWarning` if a run of it diverged."""
    if note := divergence_note(result["diverged"]):
        warnings.warn(note, DivergenceWarning, stacklevel=stacklevel + 1)
    return result
