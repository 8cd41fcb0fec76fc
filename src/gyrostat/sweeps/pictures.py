"""Pictures of a sweep from its store: heat maps with the boundary and the predictors over it, slices with intervals."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import xarray as xr

from gyrostat.experiments.statistics import crossing
from gyrostat.figures.declarations import Contour, Figure, Heat, Line, Marker, Panel, Points, Series

SLICES = 4
ROLES: dict[str, Any] = {"lambda = 0": "bound", "informal window (section 4)": "paper"}
"""Looks of predictors; the others are drawn as theory."""

Setting = dict[str, Any]


def is_ordered(values: xr.DataArray) -> bool:
    """Whether an axis has something between its values."""
    return values.size > 1 and values.dtype.kind in "if"


def axes_of(ds: xr.Dataset) -> list[str]:
    """The axes of a sweep, those with an order first."""
    names = [str(name) for name in ds.done.dims]
    return sorted(names, key=lambda name: not is_ordered(ds[name]))


def shown(ds: xr.Dataset) -> tuple[str, str]:
    """What a picture shows of a sweep: the share of successes, or the median of the first value that was kept."""
    if "success" in ds:
        return "success", f"share of runs with {ds.attrs.get('success', 'success')}"
    first = finals(ds)[0]
    return first, f"median of {first}"


def finals(ds: xr.Dataset) -> list[str]:
    """The values that were kept of the last step of every run."""
    return [
        str(name) for name, x in ds.data_vars.items() if set(x.dims) == {*ds.done.dims, "seed"} and x.dtype.kind == "f"
    ]


def quantile(values: xr.DataArray, q: float) -> xr.DataArray:
    """A quantile over seeds, a run that diverged counting as infinite (so one of the values, never between infinities)."""
    return values.fillna(np.inf).quantile(q, "seed", method="lower").drop_vars("quantile")


def field(ds: xr.Dataset) -> xr.DataArray:
    """The shown number over the axes, NaN where a cell is not done."""
    name, _ = shown(ds)
    values = ds[name] if name == "success" else quantile(ds[name], 0.5)
    return values.where(ds.done > 0)


def diagram(ds: xr.Dataset, title: str, summary: str, predicted: Mapping[str, xr.DataArray]) -> Figure:
    """A heat map for every combination of the axes after the first two, or a curve when there is one ordered axis."""
    axes = axes_of(ds)
    flat = len(axes) > 1 and is_ordered(ds[axes[1]])
    panels = [
        _heat_panel(ds, axes[0], axes[1], rest, predicted) if flat else _curve_panel(ds, axes[0], rest, predicted)
        for rest in combinations(ds, axes[2 if flat else 1 :])
    ]
    columns = 2 if len(panels) in (2, 4) else 3
    return Figure(title=title, panels=panels, note=_note(ds, summary, flat), columns=columns)


def slices(ds: xr.Dataset, title: str) -> Figure | None:
    """The shown number along the second axis, at some values of the first, with intervals; None for a single axis."""
    axes = axes_of(ds)
    if len(axes) < 2 or not is_ordered(ds[axes[1]]):
        return None
    panels = [_slice_panel(ds, axes[0], axes[1], rest) for rest in combinations(ds, axes[2:])]
    columns = 2 if len(panels) in (2, 4) else 3
    return Figure(
        title=f"{title}: slices", panels=panels, note="Shares of runs with 95 % (Wilson) intervals.", columns=columns
    )


def combinations(ds: xr.Dataset, names: list[str]) -> Iterator[Setting]:
    """Every combination of values of these axes."""
    for values in itertools.product(*(ds[name].values.tolist() for name in names)):
        yield dict(zip(names, values, strict=True))


def _note(ds: xr.Dataset, summary: str, flat: bool) -> str:
    seeds = f"{ds.sizes['seed']} runs in every cell."
    missing = int((ds.done == 0).sum())
    if not missing:
        return f"{summary} {seeds}".strip()
    rest = "take the colour of the nearest one" if flat else "are left out"
    return (
        f"{summary} {seeds} {ds.done.size - missing} of {ds.done.size} cells were computed; the others {rest}.".strip()
    )


def label(axis: xr.DataArray) -> str:
    """An axis in words."""
    return str(axis.attrs.get("label", axis.name))


def scale(axis: xr.DataArray) -> Any:
    """The scale of an axis in a picture."""
    return "log" if axis.attrs.get("scale") == "log" else "linear"


def title_of(ds: xr.Dataset, rest: Setting, otherwise: str) -> str:
    """The values of the other axes as a title."""
    told = [
        f"{label(ds[name])} = {v:g}" if isinstance(v, float) else f"{label(ds[name])}: {v}" for name, v in rest.items()
    ]
    return ", ".join(told) or otherwise


def _heat_panel(ds: xr.Dataset, x: str, y: str, rest: Setting, predicted: Mapping[str, xr.DataArray]) -> Panel:
    name, words = shown(ds)
    z = filled(field(ds).sel(rest).transpose(y, x).values)
    limits: dict[str, float] = {"low": 0, "high": 1} if name == "success" else {}
    series: list[Series] = [Heat(ds[x].values, ds[y].values, z, words, **limits)]
    if name == "success":
        series.append(Contour(ds[x].values, ds[y].values, z, "measured: half of the runs", level=0.5))
    for told, values in predicted.items():
        there = values.sel(rest).transpose(y, x)
        if there.notnull().any():
            series.append(
                Contour(there[x].values, there[y].values, there.values, told, level=0.0, role=ROLES.get(told, "theory"))
            )
    return Panel(
        title=title_of(ds, rest, "Measured and predicted"),
        xlabel=label(ds[x]),
        ylabel=label(ds[y]),
        series=series,
        xscale=scale(ds[x]),
        yscale=scale(ds[y]),
        xlim=_limits(ds[x]),
        ylim=_limits(ds[y]),
    )


def _limits(axis: xr.DataArray) -> tuple[float, float]:
    return float(axis.min()), float(axis.max())


def filled(z: np.ndarray) -> np.ndarray:
    """Values on a grid with every hole (NaN) taken from the nearest cell that has one, by steps of the grid.

    >>> filled(np.array([[0.0, np.nan], [np.nan, np.nan]])).tolist()
    [[0.0, 0.0], [0.0, 0.0]]
    """
    from scipy.ndimage import distance_transform_edt

    holes = np.isnan(z)
    if holes.all():
        return z
    nearest = distance_transform_edt(holes, return_distances=False, return_indices=True)
    return z[tuple(nearest)]


def _points(ds: xr.Dataset, along: str, text: str, colour: int | None = None) -> Points:
    name, _ = shown(ds)
    there = ds.where(ds.done > 0)
    if name == "success":
        low, middle, high = there.success_low, there.success, there.success_high
    else:
        low, middle, high = (quantile(ds[name], q).where(ds.done > 0) for q in (0.25, 0.5, 0.75))
    return Points(ds[along].values, middle.values, text, low=low.values, high=high.values, colour=colour)


def _curve_panel(ds: xr.Dataset, x: str, rest: Setting, predicted: Mapping[str, xr.DataArray]) -> Panel:
    one = ds.sel(rest)
    _, words = shown(ds)
    if not is_ordered(ds[x]):
        points = replace(_points(one, x, words), x=np.arange(one[x].size))
        return Panel(title=words, xlabel=label(ds[x]), ylabel=words, series=[points])
    series: list[Series] = [_points(one, x, words, 0)]
    for told, values in predicted.items():
        at = crossing(values[x].values, values.sel(rest).values, 0.0)
        if np.isfinite(at):
            series.append(Marker(at, told, axis="x"))
    return Panel(title=title_of(ds, rest, words), xlabel=label(ds[x]), ylabel=words, series=series, xscale=scale(ds[x]))


def _slice_panel(ds: xr.Dataset, x: str, y: str, rest: Setting) -> Panel:
    _, words = shown(ds)
    one = ds.sel(rest)
    computed = [v for v in one[x].values if (one.done.sel({x: v}) > 0).sum() > 1] or list(one[x].values)
    chosen = [computed[i] for i in sorted(set(np.linspace(0, len(computed) - 1, SLICES).round().astype(int)))]
    series: list[Series] = []
    for i, value in enumerate(chosen):
        points = _points(one.sel({x: value}), y, f"{label(ds[x])} = {value:.3g}", i)
        there = ~np.isnan(np.asarray(points.y, dtype=float))
        series += [points, Line(np.asarray(points.x)[there], np.asarray(points.y)[there], points.label, colour=i)]
    return Panel(title=title_of(ds, rest, words), xlabel=label(ds[y]), ylabel=words, series=series, xscale=scale(ds[y]))
