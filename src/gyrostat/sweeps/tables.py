"""A sweep as tables: one row per cell (CSV), everything (netCDF), and the boundary beside the predictions."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from rich.table import Table

from gyrostat import errors
from gyrostat.experiments.statistics import crossing
from gyrostat.parallel.whole_files import write_whole
from gyrostat.sweeps import pictures

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

SUFFIXES = (".csv", ".nc")


def cells(ds: xr.Dataset) -> pd.DataFrame:
    """One row for each cell that is done: its setting, seeds, steps, successes with their interval, median and quartiles."""
    import xarray as xr

    axes = list(ds.done.dims)
    flat = ds.stack(cell=axes, create_index=False)
    flat = flat.isel(cell=flat.done.values > 0)
    plain: dict[str, Any] = {name: flat[name] for name in axes}
    plain |= {"seeds": flat.done, "steps": flat.steps, "diverged": (flat.diverged >= 0).sum("seed")}
    plain |= {name: flat[name] for name in ("success", "success_low", "success_high") if name in ds}
    for name in pictures.finals(ds):
        for q, word in ((0.25, "lower_quartile"), (0.5, "median"), (0.75, "upper_quartile")):
            plain[f"{name}_{word}"] = pictures.quantile(flat[name], q)
    return xr.Dataset({name: ("cell", x.values) for name, x in plain.items()}).to_dataframe()


def export(ds: xr.Dataset, path: Path) -> None:
    """Write everything as netCDF (``.nc``) or the table of cells as CSV (``.csv``)."""
    if errors.choice("kind of file", path.suffix, SUFFIXES) == ".csv":
        write_whole(path, cells(ds).to_csv(index=False))
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    # SciPy's writer, which is there: it knows no 64-bit integers, and counts and steps do not need them.
    small = ds.assign(
        {k: v.astype("int32") for k, v in ds.variables.items() if v.dtype == "int64" and k not in ds.coords}
    )
    whole = {k: v.astype("int32") for k, v in ds.coords.items() if v.dtype == "int64"}
    small.assign_coords(whole).to_netcdf(path, engine="scipy")


def boundary(ds: xr.Dataset, predicted: Mapping[str, xr.DataArray]) -> tuple[list[str], list[list[str]]]:
    """Headings and rows: where half of the runs succeed along the second axis, for each value of the others, and where
    each predictor puts it.
    """
    axes = pictures.axes_of(ds)
    ordered = [name for name in axes if pictures.is_ordered(ds[name])]
    if "success" not in ds or not ordered:
        return [], []
    along = ordered[1] if len(ordered) > 1 else ordered[0]
    others = [name for name in axes if name != along]
    rows = []
    for rest in pictures.combinations(ds, others):
        share = pictures.field(ds).sel(rest).dropna(along)
        row = [f"{v:.4g}" if isinstance(v, float) else str(v) for v in rest.values()]
        row.append(_crossing(share[along].values, share.values, 0.5))
        for values in predicted.values():
            where = {name: v for name, v in rest.items() if values[name].dtype.kind not in "if"}
            numeric = {name: v for name, v in rest.items() if name not in where}
            line = values.sel(where).interp(numeric) if numeric else values.sel(where)
            row.append(_crossing(values[along].values, line.values, 0.0))
        rows.append(row)
    return [*others, f"{along} at one half", *predicted], rows


def _crossing(x: np.ndarray, y: np.ndarray, level: float) -> str:
    """Where the values cross, upwards or, for an axis along which successes die out, downwards."""
    if y.size < 2 or np.isnan(y).all():
        return ""
    at = crossing(x, y, level)
    at = at if np.isfinite(at) else crossing(x, -y, -level)
    return f"{at:.3g}" if np.isfinite(at) else ""


def boundary_table(ds: xr.Dataset, predicted: Mapping[str, xr.DataArray], most: int = 24) -> Table | None:
    """The boundary for the terminal, thinned to ``most`` rows; None when there is none to speak of."""
    headings, rows = boundary(ds, predicted)
    if not rows:
        return None
    table = Table(title="The boundary: half of the runs succeed", title_justify="left", pad_edge=False)
    for heading in headings:
        table.add_column(heading, overflow="fold", justify="right")
    for i in sorted(set(np.linspace(0, len(rows) - 1, min(most, len(rows))).round().astype(int).tolist())):
        table.add_row(*rows[i])
    return table
