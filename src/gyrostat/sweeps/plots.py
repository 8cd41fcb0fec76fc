"""Figures of a sweep: heat maps with the boundary of success, slices with intervals, and the theory's predictions over them.

Predictions are computed once for a thinned grid and kept in ``theory.json`` in the folder of the sweep.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from gyrostat.engine.summary import has_diverged
from gyrostat.errors import GyrostatError
from gyrostat.experiments.statistics import crossing
from gyrostat.figures.declarations import Contour, Figure, Heat, Line, Marker, Panel, Points, Series
from gyrostat.figures.panel_canvas import edges
from gyrostat.parallel.checked_files import DamagedStore, read_json, sealed, unsealed
from gyrostat.parallel.whole_files import plain, write_whole
from gyrostat.sweeps.spec import RUN_OUTCOMES, Point, Spec
from gyrostat.sweeps.store import SweepStore, load_sweep, value_text

NUM_SLICES = 4
SHARES = {"success": (-0.05, 1.05)}
"""The limits of axes of shares: panels beside each other are there to be compared."""
PREDICTED_VALUES = 16
"""Values of an axis at which predictions are made, at most; their boundaries are smooth."""

PREDICTIONS_FILE = "theory.json"
RULES: dict[str, tuple[str, Any]] = {
    "surrogate": ("surrogate (ours)", "theory"),
    "lyapunov": ("Lyapunov rule (ours)", "theory"),
    "exponent": ("lambda = 0", "bound"),
    "window": ("informal window (section 4)", "paper"),
}
"""How the rules of the theory are called and drawn; a rule of one's own is drawn as theory, under its name."""

AxisValues = dict[str, Any]


def draw_sweep(folder: Path) -> list[Path]:
    """Draw the figures of a sweep from its store; return the files."""
    from gyrostat.figures.matplotlib_renderer import render

    ds, description = load_sweep(folder), SweepStore(folder).description()
    assert description is not None
    title = description["title"]
    files = render(diagram(ds, title, description["summary"], load_predictions(folder)), folder / "diagram")
    sliced = slices(ds, title)
    return files if sliced is None else [*files, *render(sliced, folder / "slices")]


# What a figure shows of the data


def is_ordered(values: xr.DataArray) -> bool:
    """Whether an axis has several values and all are numbers."""
    return values.size > 1 and values.dtype.kind in "if"


def axes_of(ds: xr.Dataset) -> list[str]:
    """The axes of a sweep, ordered ones first."""
    names = [str(name) for name in ds.done.dims]
    return sorted(names, key=lambda name: not is_ordered(ds[name]))


def quantity(ds: xr.Dataset) -> tuple[str, str]:
    """The name of the variable that figures show, and its label: the share of successes, or a median."""
    if "success" in ds:
        return "success", f"share of runs with {ds.attrs.get('success', 'success')}"
    first = final_values(ds)[0]
    return first, f"median of {first}"


def final_values(ds: xr.Dataset) -> list[str]:
    """The names of the variables that hold the last value of every run."""
    return [
        str(name)
        for name, x in ds.data_vars.items()
        if set(x.dims) == {*ds.done.dims, "seed"} and x.dtype.kind == "f" and name not in RUN_OUTCOMES
    ]


def quantile(ds: xr.Dataset, name: str, q: float) -> xr.DataArray:
    """A quantile over seeds. A run counts as infinite if its mark says that it diverged.

    The lower value is taken, never one between infinities.
    """
    diverged = has_diverged(ds["diverged"]) & ds[name].isnull()
    values = ds[name].where(~diverged, np.inf).transpose(..., "seed")
    return values.quantile(q, "seed", method="lower", skipna=True).drop_vars("quantile")


def measured(ds: xr.Dataset) -> xr.DataArray:
    """The quantity over the axes, NaN in cells that are not done."""
    name, _ = quantity(ds)
    values = ds[name] if name == "success" else quantile(ds, name, 0.5)
    return values.where(ds.done > 0)


def combinations(ds: xr.Dataset, names: list[str]) -> Iterator[AxisValues]:
    """Every combination of values of these axes."""
    for values in itertools.product(*(ds[name].values.tolist() for name in names)):
        yield dict(zip(names, values, strict=True))


def filled(z: np.ndarray) -> np.ndarray:
    """Values on a grid; every NaN is replaced by the nearest value, counted in steps of the grid.

    >>> filled(np.array([[0.0, np.nan], [np.nan, np.nan]])).tolist()
    [[0.0, 0.0], [0.0, 0.0]]
    """
    from scipy.ndimage import distance_transform_edt

    holes = np.isnan(z)
    if holes.all():
        return z
    nearest = distance_transform_edt(holes, return_distances=False, return_indices=True)
    return z[tuple(nearest)]


# Figures


def diagram(ds: xr.Dataset, title: str, summary: str, predictions: Mapping[str, xr.DataArray]) -> Figure:
    """A heat map over the first two axes for every combination of the others, or curves if only one axis is ordered."""
    axes = axes_of(ds)
    flat = len(axes) > 1 and is_ordered(ds[axes[1]])
    panels = [
        _heat_panel(ds, axes[0], axes[1], rest, predictions) if flat else _curve_panel(ds, axes[0], rest, predictions)
        for rest in combinations(ds, axes[2 if flat else 1 :])
    ]
    return Figure(title=title, panels=panels, note=_note(ds, summary, flat), columns=_columns(panels), mathematics=True)


def slices(ds: xr.Dataset, title: str) -> Figure | None:
    """The quantity along the second axis at some values of the first, with intervals; None without a second ordered axis."""
    axes = axes_of(ds)
    if len(axes) < 2 or not is_ordered(ds[axes[1]]):
        return None
    panels = [_slice_panel(ds, axes[0], axes[1], rest) for rest in combinations(ds, axes[2:])]
    note = "Shares of runs with 95 % (Wilson) intervals."
    return Figure(title=f"{title}: slices", panels=panels, note=note, columns=_columns(panels), mathematics=True)


def _columns(panels: Sequence[Panel]) -> int:
    return 2 if len(panels) in (2, 4) else 3


def _note(ds: xr.Dataset, summary: str, flat: bool) -> str:
    seeds = f"{ds.sizes['seed']} runs in every cell."
    missing = int((ds.done == 0).sum())
    if not missing:
        return f"{summary} {seeds}".strip()
    rest = "take the colour of the nearest one" if flat else "are left out"
    return (
        f"{summary} {seeds} {ds.done.size - missing} of {ds.done.size} cells were computed; the others {rest}.".strip()
    )


def _label(axis: xr.DataArray) -> str:
    return str(axis.attrs.get("label", axis.name))


def _scale(axis: xr.DataArray) -> Any:
    return "log" if axis.attrs.get("scale") == "log" else "linear"


def _limits(axis: xr.DataArray) -> tuple[float, float]:
    """The outer borders of the cells: those at the edge are shown whole, as the others are."""
    borders = edges(np.sort(axis.values.astype(float)), _scale(axis))
    return float(borders[0]), float(borders[-1])


def _panel_title(ds: xr.Dataset, rest: AxisValues, otherwise: str) -> str:
    """The values of the other axes, or another title if there are no other axes."""
    texts = [
        f"{_label(ds[name])} = {v:g}" if isinstance(v, float) else f"{_label(ds[name])}: {v}"
        for name, v in rest.items()
    ]
    return ", ".join(texts) or otherwise


def _heat_panel(ds: xr.Dataset, x: str, y: str, rest: AxisValues, predictions: Mapping[str, xr.DataArray]) -> Panel:
    name, label = quantity(ds)
    z = filled(measured(ds).sel(rest).transpose(y, x).values)
    limits: dict[str, float] = {"low": 0, "high": 1} if name == "success" else {}
    series: list[Series] = [Heat(ds[x].values, ds[y].values, z, label, **limits)]
    if name == "success":
        series.append(Contour(ds[x].values, ds[y].values, z, "measured: half of the runs", level=0.5))
    for predictor, values in predictions.items():
        margin = values.sel(rest).transpose(y, x)
        if margin.notnull().any():
            label, role = RULES.get(predictor, (predictor, "theory"))
            series.append(Contour(margin[x].values, margin[y].values, margin.values, label, level=0.0, role=role))
    return Panel(
        title=_panel_title(ds, rest, "Measured and predicted"),
        xlabel=_label(ds[x]),
        ylabel=_label(ds[y]),
        series=series,
        xscale=_scale(ds[x]),
        yscale=_scale(ds[y]),
        xlim=_limits(ds[x]),
        ylim=_limits(ds[y]),
    )


def _points(ds: xr.Dataset, along: str, label: str, colour: int | None = None) -> Points:
    name, _ = quantity(ds)
    done = ds.where(ds.done > 0)
    if name == "success":
        low, middle, high = done.success_low, done.success, done.success_high
    else:
        low, middle, high = (quantile(ds, name, q).where(ds.done > 0) for q in (0.25, 0.5, 0.75))
    return Points(ds[along].values, middle.values, label, low=low.values, high=high.values, colour=colour)


def _curve_panel(ds: xr.Dataset, x: str, rest: AxisValues, predictions: Mapping[str, xr.DataArray]) -> Panel:
    selected = ds.sel(rest)
    name, label = quantity(ds)
    if not is_ordered(ds[x]):
        points = replace(_points(selected, x, label), x=np.arange(selected[x].size))
        return Panel(title=label, xlabel=_label(ds[x]), ylabel=label, series=[points], ylim=SHARES.get(name))
    series: list[Series] = [_points(selected, x, label, 0)]
    for predictor, values in predictions.items():
        at = crossing(values[x].values, values.sel(rest).values, 0.0)
        if np.isfinite(at):
            rule, _ = RULES.get(predictor, (predictor, "theory"))
            series.append(Marker(at, rule, axis="x"))
    title = _panel_title(ds, rest, label)
    return Panel(
        title=title, xlabel=_label(ds[x]), ylabel=label, series=series, xscale=_scale(ds[x]), ylim=SHARES.get(name)
    )


def _slice_panel(ds: xr.Dataset, x: str, y: str, rest: AxisValues) -> Panel:
    name, label = quantity(ds)
    selected = ds.sel(rest)
    computed = [v for v in selected[x].values if (selected.done.sel({x: v}) > 0).sum() > 1] or list(selected[x].values)
    series: list[Series] = []
    for colour, value in enumerate(computed[i] for i in thinned(len(computed), NUM_SLICES)):
        points = _points(selected.sel({x: value}), y, f"{_label(ds[x])} = {value:.3g}", colour)
        known = ~np.isnan(np.asarray(points.y, dtype=float))
        line = Line(np.asarray(points.x)[known], np.asarray(points.y)[known], points.label, colour=colour)
        series += [points, line]
    title = _panel_title(ds, rest, label)
    return Panel(
        title=title, xlabel=_label(ds[y]), ylabel=label, series=series, xscale=_scale(ds[y]), ylim=SHARES.get(name)
    )


def thinned(length: int, most: int) -> list[int]:
    """At most ``most`` indices below ``length``, evenly spread, with both ends.

    >>> thinned(9, 3), thinned(2, 3)
    ([0, 4, 8], [0, 1])
    """
    return sorted(set(np.linspace(0, length - 1, min(most, length)).round().astype(int).tolist()))


# Predictions of the theory


def predict(spec: Spec, folder: Path) -> None:
    """Evaluate every predictor that applies to the cells of a sweep on a thinned grid, and write the results."""
    indices = [_predicted_indices(a.values) if a.ordered else list(range(len(a.values))) for a in spec.axes]
    axes = {
        a.name: [a.values[i] if a.ordered else value_text(a.values[i]) for i in chosen]
        for a, chosen in zip(spec.axes, indices, strict=True)
    }
    shape = tuple(len(chosen) for chosen in indices)
    margins: dict[str, np.ndarray] = {}
    for index, point in zip(np.ndindex(shape), itertools.product(*indices), strict=True):
        for name, margin in _predicted_margins(spec, point).items():
            margins.setdefault(name, np.full(shape, np.nan))[index] = margin
    content = sealed({"axes": plain(axes), "predictors": plain(margins)})
    write_whole(folder / PREDICTIONS_FILE, json.dumps(content) + "\n")


def load_predictions(folder: Path) -> dict[str, xr.DataArray]:
    """The results of :func:`predict` by the name of the predictor: positive where it predicts success."""
    path = folder / PREDICTIONS_FILE
    if not path.exists():
        return {}
    try:
        content = unsealed(read_json(path), path)
    except DamagedStore as error:
        raise DamagedStore(error.fault, "delete it, and run the same sweep again to predict anew") from None
    return {
        name: xr.DataArray(np.array(values, dtype=float), coords=content["axes"], dims=list(content["axes"]))
        for name, values in content["predictors"].items()
    }


def _predicted_margins(spec: Spec, point: Point) -> dict[str, float]:
    from gyrostat.theory import Setting
    from gyrostat.theory.prediction import prediction_of

    limits = [limit for name, test, limit in spec.record.success if (name, test) == ("spurious", "below")]
    if not limits:
        return {}
    try:
        (algorithm, problem), steps = spec.cell(point)
        setting = Setting.of(algorithm, problem, steps)
    except GyrostatError:  # a cell that cannot be built, or that the theory does not cover; the sweep reports the first
        return {}
    return prediction_of(replace(setting, threshold=limits[0])).margins


def _predicted_indices(values: Sequence[Any]) -> list[int]:
    order = np.argsort(np.array(values)).tolist()
    return [order[i] for i in thinned(len(order), PREDICTED_VALUES)]
