"""`plot`: what a person wants to see of a result first, as bands over seeds with the theory where it applies."""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from gyrostat import errors
from gyrostat.engine.results import described
from gyrostat.errors import GyrostatError
from gyrostat.figures.compose import dots
from gyrostat.figures.declarations import Band, Dots, Figure, Line, Marker, Panel, Scale, Series, band
from gyrostat.measurements import FreshGaussian

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.figure import Figure as MatplotlibFigure

WORDS = {
    "signal": "invariant signal",
    "spurious": "spurious signal",
    "error": "error ||E||_F",
    "distance": "||A - A_star||_F",
}
TOGETHER = (
    ("Shares of the signals", "share that is learnt", ("signal", "spurious")),
    ("Errors", "Frobenius norm", ("error", "distance")),
)
"""Variables that share a panel, with its title and its label. Every other variable has a panel of its own."""
Kind = Literal["share", "size", "other"]
"""What a panel shows: shares have the same limits in all panels, sizes a log axis."""
MOST_SETTINGS, MOST_COMPONENTS = 6, 4
"""Settings of a grid, and components of a vector, that are drawn, at most."""


@errors.explains_keywords
def plot(
    result: xr.Dataset,
    *,
    path: str | Path | None = None,
    theory: bool = True,
    width: float | str | None = None,
    against: str | None = None,
) -> MatplotlibFigure:
    """Draw a result: signal and spurious signal, error and distance, with quartile bands over seeds.

    A diverged run counts as infinite, and the legend says how many there are. Other recorded numbers get a panel each, and
    vectors a band for each of their first components. A grid has a panel for each variable and a band for each setting; with
    several axes, a panel for each variable and axis, in which the other axes stay at their middle values.

    Parameters
    ----------
    result:
        What :func:`gyrostat.run`, :func:`gyrostat.run_grid` or :func:`gyrostat.engine.offshoots` returned.
    path:
        A file to write as well: ``.png``, ``.svg``, ``.pdf`` or ``.pgf`` (for LaTeX, which is not needed to write it).
    theory:
        Whether to draw what the theory of Xu 2024 says, where it applies to a single setting: the growth R_t^2 of the
        invariant signal (eq. 25), the verdict of the Lyapunov rule on the spurious one, and the error that is left.
    width:
        For print, ``"column"``, ``"text"`` or inches: exactly as wide, with small letters, and without title and note.
    against:
        An axis of a grid: the values at the end against it, instead of those along the steps.

    Returns
    -------
    A matplotlib Figure. A notebook shows it, and its ``savefig`` writes files in other formats.

    >>> import gyrostat as gs
    >>> problem = gs.Problem(gs.RandomEnvironments(8, law=gs.TwoPoint(spread=6.0)), gs.Identity())
    >>> result = gs.run(gs.HeteroSGD(0.05), problem, num_steps=200, seeds=8)
    >>> [axes.get_title() for axes in gs.plot(result).axes if axes.get_title()]
    ['Shares of the signals', 'Errors']
    """
    from gyrostat.figures.matplotlib_renderer import SUFFIXES, draw, print_width, write

    if path is not None and Path(str(path)).suffix not in SUFFIXES:
        raise GyrostatError(f"path must end in {', '.join(SUFFIXES)}; got {str(path)!r}.")
    inches = print_width(width)
    drawn = draw(result_figure(result, theory=theory, against=against), inches)
    if path is not None:
        try:
            write(drawn, Path(path), dpi=300 if inches else 150)
        except OSError as error:
            raise GyrostatError(f"path {str(path)!r} cannot be written ({error.strerror}): choose another.") from error
    return drawn


def result_figure(result: xr.Dataset, *, theory: bool = True, against: str | None = None) -> Figure:
    """The figure of :func:`plot`, as a declaration that both renderers can draw."""
    axes, along = _dimensions(result)
    if against is not None and against not in axes:
        raise GyrostatError(
            f"against must be an axis of the grid ({', '.join(axes) or 'this result has none'}); got {against!r}."
        )
    variables = {str(name): x for name, x in result.data_vars.items() if {*axes, "seed", along} <= set(x.dims)}
    if not variables:
        raise GyrostatError("result holds no numbers along its steps: record at least one, such as record=['signal'].")
    unknown = [name for name, x in variables.items() if bool(np.isnan(x.isel({along: 0})).all())]
    if len(unknown) == len(variables):
        raise GyrostatError(
            f"result holds nothing to draw: {', '.join(unknown)} are NaN, because the truth is unknown or all runs had "
            "diverged before the first recorded step; record a function of a snapshot that gives a number, or earlier steps."
        )
    note = [f"Medians and quartiles over {result.sizes['seed']} seeds."] if result.sizes["seed"] > 1 else []
    if "diverged" in result.attrs:
        note.append(result.attrs["diverged"].partition(":")[0] + "; they count as infinite.")
    if unknown:
        note.append(f"Not drawn, because the truth is unknown: {', '.join(unknown)}.")
    parts = {name: _components(x, {*axes, "seed", along}) for name, x in variables.items() if name not in unknown}
    for name, components in parts.items():
        size = variables[name].size // components[0].size
        note += [f"{name}: the first {len(components)} of {size} components."] if size > len(components) else []
    if axes:
        sizes = {axis: result.sizes[axis] for axis in axes if axis != against}
        choices, total = _choices(sizes), math.prod(sizes.values())
        shown = len({tuple(point.values()) for points in choices.values() for point in points})
        if shown < total:
            middle = {axis: size // 2 for axis, size in sizes.items()}
            around = f", around {_setting(result, middle)}" if len(choices) > 1 else ""
            note.append(f"{shown} of {total} settings are shown{around}.")
        arrays = [x for components in parts.values() for x in components]
        views = [_grid_view(result, x, *choice, along, against) for x in arrays for choice in choices.items()]
    else:
        promised, sentence = _theory(result) if theory else ({}, "")
        note += [sentence] if sentence else []
        choices, views = {}, _run_views(parts, promised)
    columns = len(choices) if 1 < len(choices) < 4 else 2 if len(views) < 5 else 3
    return Figure(title=_title(result), panels=_scaled(views), note=" ".join(note), columns=columns, mathematics=True)


def _dimensions(result: Any) -> tuple[list[str], str]:
    """The axes of the grid, and the dimension along which numbers were recorded."""
    import xarray as xr

    if not isinstance(result, xr.Dataset) or "diverged" not in result or "seed" not in result.dims:
        what = (
            "a Dataset without runs" if isinstance(result, xr.Dataset) else f"an object of type {type(result).__name__}"
        )
        raise GyrostatError(f"result must be what gs.run, gs.run_grid or gs.engine.offshoots returned; got {what}.")
    if "done" in result:
        raise GyrostatError("result is a sweep, which has a picture of its own: use gyrostat plot DIR with its folder.")
    along = "step" if "step" in result.dims else "record"
    if along not in result.dims:
        raise GyrostatError("result holds one step only: pass the whole result, not result.isel(step=...).")
    return [str(dim) for dim in result["diverged"].dims if dim != "seed"], along


def _components(values: xr.DataArray, dims: set[str]) -> list[xr.DataArray]:
    """A number as it is; the first components of a vector, each with its place in its name."""
    inner = {dim: range(size) for dim, size in values.sizes.items() if dim not in dims}
    if not inner:
        return [values]
    places = itertools.islice(itertools.product(*inner.values()), MOST_COMPONENTS)
    return [
        values.isel(dict(zip(inner, place, strict=True))).rename(f"{values.name}[{', '.join(map(str, place))}]")
        for place in places
    ]


def _title(result: xr.Dataset) -> str:
    settings = json.loads(result.attrs.get("settings", "{}"))
    parts = settings.get("algorithm", {}), settings.get("problem", {}).get("measurements", {})
    return " on ".join(part["kind"] for part in parts if part.get("kind")) or "Result"


def _run_views(parts: dict[str, list[xr.DataArray]], promised: dict[str, Series]) -> list[tuple[Kind, Panel]]:
    """A panel for the shares, one for the sizes, and one for every other variable."""
    views = []
    others = [(_about(parts[name][0], name), name, (name,)) for name in parts if name not in WORDS]
    for title, ylabel, names in (*TOGETHER, *others):
        arrays = [(str(x.name), x) for name in names for x in parts.get(name, ())]
        series: list[Series] = [
            band(x, WORDS.get(name, name), colour=[*WORDS].index(name) if name in WORDS else i)
            for i, (name, x) in enumerate(arrays)
        ]
        if series:
            series += [promised[name] for name, _ in arrays if name in promised]
            views.append((_kind(arrays[0][1]), Panel(title=title, xlabel="step", ylabel=ylabel, series=series)))
    return views


def _choices(sizes: Mapping[str, int]) -> dict[str, list[dict[str, int]]]:
    """The settings of a grid that panels show, by the axis that varies in each; one panel, "", shows all if they are few.

    Evenly chosen settings of the whole grid would change all axes together, and nobody could say which one made the difference:
    one axis varies at a time, and the others stay at their middle values.
    """
    if math.prod(sizes.values()) <= MOST_SETTINGS:
        return {"": [dict(zip(sizes, index, strict=True)) for index in np.ndindex(*sizes.values())]}
    middle = {axis: size // 2 for axis, size in sizes.items()}
    return {
        axis: [
            middle | {axis: i} for i in sorted({*np.linspace(0, size - 1, MOST_SETTINGS).round().astype(int).tolist()})
        ]
        for axis, size in sizes.items()
        if size > 1
    }


def _setting(result: xr.Dataset, point: dict[str, int]) -> str:
    values = ((axis, result[axis].values[i]) for axis, i in point.items())
    return ", ".join(
        f"{axis} = {x:g}" if isinstance(x, int | float | np.number) else f"{axis} = {x}" for axis, x in values
    )


def _grid_view(
    result: xr.Dataset, values: xr.DataArray, varies: str, points: list[dict[str, int]], along: str, against: str | None
) -> tuple[Kind, Panel]:
    """Bands of one variable for some settings of a grid, along the steps or at the end against one axis."""
    name, series, several = str(values.name), list[Series](), bool(varies) and len(points[0]) > 1
    about = _about(values, name)
    for i, point in enumerate(points):
        one = values.isel(point)
        label = _setting(result, {varies: point[varies]} if several else point) or about
        if against is None:
            series.append(band(one, label, x=one["step"].values, colour=i))
        elif result[against].dtype.kind in "iuf":
            series.append(band(one.isel({along: -1}).sortby(against), label, colour=i))
        else:
            series.append(dots(one.isel({along: -1}), label, over="seed", colour=i))
    title = f"{about}{' at the end' if against else ''}{f', {varies} varies' if several else ''}"
    if isinstance(series[0], Dots):
        return "other", Panel(title=title, xlabel=name, ylabel=against or "", series=series)
    scale = _scale(result[against].values) if against else "linear"
    return _kind(values), Panel(title=title, xlabel=against or "step", ylabel=name, series=series, xscale=scale)


def _about(values: xr.DataArray, name: str) -> str:
    return str(WORDS.get(name, values.attrs.get("long_name", name)))


def _kind(values: xr.DataArray) -> Kind:
    if values.name in ("error", "distance"):
        return "size"
    about = str(values.attrs.get("long_name", "")).lower()
    return "share" if values.name in ("signal", "spurious") or about.startswith(("share", "probability")) else "other"


def _scale(values: Any) -> Scale:
    """A log axis for positive numbers of very different sizes."""
    numbers = np.asarray(values, dtype=float)
    numbers = numbers[np.isfinite(numbers)]
    return "log" if numbers.size and 0 < 50 * numbers.min() < numbers.max() else "linear"


def _scaled(views: Sequence[tuple[Kind, Panel]]) -> list[Panel]:
    """The panels with scales and limits that cut off what explodes.

    Shares have the same limits everywhere, because they are there to be compared: from a little below zero to three, at the
    most. Everything else ends at ten times the largest median.
    """
    panels = []
    highs = np.concatenate([[1.0], *(one.high for kind, panel in views if kind == "share" for one in _bands(panel))])
    shares = -0.05, float(np.clip(1.1 * highs[np.isfinite(highs)].max(), 1.15, 3.0))
    for kind, panel in views:
        if kind == "share":
            panels.append(replace(panel, ylim=shares))
        elif bands := _bands(panel):
            low, middle, high = (
                np.concatenate([getattr(one, end) for one in bands]) for end in ("low", "middle", "high")
            )
            top = 10 * float(middle[np.isfinite(middle)].max(initial=0.0))
            scale = "log" if kind == "size" else _scale(np.concatenate([low, high]))
            panels.append(replace(panel, yscale=scale, ylim=(None, top) if 0 < top < high.max() else None))
        else:
            panels.append(panel)
    return panels


def _bands(panel: Panel) -> list[Band]:
    return [one for one in panel.series if isinstance(one, Band)]


def _theory(result: xr.Dataset) -> tuple[dict[str, Series], str]:
    """What Xu 2024 says of a run that it covers: a series for some variables, and a sentence."""
    settings = json.loads(result.attrs.get("settings", "{}"))
    algorithm, problem = (described(settings.get(part)) for part in ("algorithm", "problem"))
    if algorithm is None or problem is None or "step" not in result.dims:
        return {}, ""
    from gyrostat.theory import RULES, Setting, ours, xu2024
    from gyrostat.theory.covered_runs import obstacle

    if obstacle(algorithm, problem, to="growth") is not None:
        return {}, ""
    steps = result["step"].values
    eta, scale, last = float(algorithm.schedule.step_size), float(algorithm.start.scale), int(steps[-1])
    growth = xu2024.calibration(eta, scale, last)[steps] ** 2
    promised: dict[str, Series] = {"signal": Line(steps, growth, "R_t^2 of eq. (25)", role="theory")}
    if obstacle(algorithm, problem, to="elimination") is not None:
        return promised, ""
    setting = Setting.of(algorithm, problem, last)
    gone = RULES["lyapunov"](setting) > 0
    if gone and eta < 1 and algorithm.batches.amplify is None and isinstance(problem.measurements, FreshGaussian):
        sizes: dict[str, Any] = {
            "dimension": setting.dimension,
            "rank": setting.rank,
            "num_samples": setting.num_samples,
        }
        left = ours.error_law(setting.law, **sizes, step_size=eta, runs=300)
        promised["distance"] = Marker(left, "predicted ||A - A_star||_F at the end")
    fate = "eliminated" if gone else "learnt"
    return promised, f"The Lyapunov rule predicts that a typical run ends with the spurious part {fate}."
