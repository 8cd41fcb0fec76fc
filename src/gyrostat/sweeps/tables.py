"""Tables of a sweep: one row per cell, and the boundary of success next to its predictions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from gyrostat.engine.summary import has_diverged
from gyrostat.experiments.statistics import crossing
from gyrostat.sweeps.plots import axes_of, combinations, final_values, is_ordered, measured, quantile

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr


def cell_table(ds: xr.Dataset) -> pd.DataFrame:
    """One row for each finished cell: its axes, seeds, steps, successes with their interval, medians and quartiles."""
    import xarray as xr

    axes = list(ds.done.dims)
    flat = ds.stack(cell=axes, create_index=False)
    flat = flat.isel(cell=flat.done.values > 0)
    columns: dict[str, Any] = {name: flat[name] for name in axes}
    columns |= {"seeds": flat.done, "steps": flat.steps, "diverged": has_diverged(flat.diverged).sum("seed")}
    columns |= {name: flat[name] for name in ("success", "success_low", "success_high") if name in ds}
    for name in final_values(ds):
        for q, word in ((0.25, "lower_quartile"), (0.5, "median"), (0.75, "upper_quartile")):
            columns[f"{name}_{word}"] = quantile(flat, name, q)
    return xr.Dataset({name: ("cell", x.values) for name, x in columns.items()}).to_dataframe()


def boundary_table(ds: xr.Dataset, predictions: Mapping[str, xr.DataArray]) -> tuple[list[str], list[list[str]]]:
    """Headings and rows: where half of the runs succeed along the second axis, measured and according to each predictor.

    There is a row for each combination of the other axes, and none without successes or without an ordered axis. Where there
    is no boundary, a word says whether success is everywhere, nowhere or not known.
    """
    axes = axes_of(ds)
    ordered = [name for name in axes if is_ordered(ds[name])]
    if "success" not in ds or not ordered:
        return [], []
    along = ordered[1] if len(ordered) > 1 else ordered[0]
    others = [name for name in axes if name != along]
    rows = []
    for rest in combinations(ds, others):
        share = measured(ds).sel(rest).dropna(along)
        row = [f"{v:.4g}" if isinstance(v, float) else str(v) for v in rest.values()]
        row.append(_crossing_text(share[along].values, share.values, 0.5))
        for margin in predictions.values():
            names = {name: v for name, v in rest.items() if margin[name].dtype.kind not in "if"}
            numbers = {name: v for name, v in rest.items() if name not in names}
            line = margin.sel(names).interp(numbers) if numbers else margin.sel(names)
            row.append(_crossing_text(margin[along].values, line.values, 0.0))
        rows.append(row)
    return [*others, f"{along} at one half", *predictions], rows


def _crossing_text(x: np.ndarray, y: np.ndarray, level: float) -> str:
    """Where the values cross a level: upwards, or else downwards, for an axis along which successes become rare.

    Where they do not cross it, a word says on which side they are.

    >>> x = np.array([1.0, 2.0])
    >>> [_crossing_text(x, np.array(y), 0.5) for y in ([0.0, 1.0], [0.6, 0.9], [0.1, 0.2], [np.nan, np.nan])]
    ['1.5', 'everywhere', 'nowhere', 'not known']
    """
    known = y[~np.isnan(y)]
    if known.size < 1:
        return "not known"
    at = crossing(x, y, level) if y.size > 1 else np.nan
    at = at if np.isfinite(at) or y.size < 2 else crossing(x, -y, -level)
    if np.isfinite(at):
        return f"{at:.3g}"
    return "everywhere" if (known >= level).all() else "nowhere" if (known < level).all() else "not known"
