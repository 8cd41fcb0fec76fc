"""Figures as data for plotly: a declared ``Figure`` becomes plain dictionaries, with the looks that its files have.

Words stay out of the drawing (the page sets them around it, where they wrap, can be searched and are escaped); so
does the theme: colours are those of a white page, and the page exchanges them by ``palette.AFTER_DARK``.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import singledispatch
from typing import Any

import numpy as np
from contourpy import contour_generator

from gyrostat.figures.axis_scales import edges, floored, shown
from gyrostat.figures.declarations import Band, Bars, Contour, Dots, Figure, Heat, Line, Marker, Panel, Points, Series
from gyrostat.figures.palette import INKS
from gyrostat.figures.plotly_canvas import INTERVAL, RIM, SILENT, SYMBOLS, Canvas, pen
from gyrostat.figures.thinning import short, visible

HATCHES = ("", "/", ".", "x")


def drawing(figure: Figure) -> list[dict[str, Any]]:
    """For every panel: ``data`` and ``layout`` for plotly, and ``entries`` for its legend.

    >>> curve = Line([0, 1, 2], [0, 1, 4], "square")
    >>> figure = Figure(title="Shapes", panels=[Panel(title="A parabola", xlabel="x", ylabel="y", series=[curve])])
    >>> (panel,) = drawing(figure)
    >>> panel["data"][0]["y"], panel["layout"]["yaxis"], panel["entries"][0]["label"]
    ([0, 1, 4], {'type': 'linear'}, 'square')
    """
    return [_drawn(panel) for panel in figure.panels]


def _drawn(panel: Panel) -> dict[str, Any]:
    canvas = Canvas(panel)
    for series in panel.series:
        _add(series, canvas)
    return canvas.finished()


@singledispatch
def _add(series: Series, at: Canvas) -> None:
    raise TypeError(f"no way to draw {type(series).__name__}")


def _adds(kind: type) -> Callable[[Callable[[Any, Canvas], None]], Any]:
    return _add.register(kind)


@_adds(Line)
def _line(line: Line, at: Canvas) -> None:
    x, y = shown(line.x, at.panel.xscale), shown(line.y, at.panel.yscale)
    kept = visible(at.on_axis(x), y)
    x, y, about = x[kept], y[kept], {"hovertemplate": at.hover(line.label), "meta": line.label}
    if line.role == "measured":
        look = at.looks.series(line.colour)
        at.measured(at.entry(line.label, line=True, **look), x, y, look, **about)
        return
    look = at.looks.rule(line.role, line.colour)
    at.line(at.entry(line.label, role=line.role, color=look["color"]), x, y, pen(line.role, look), **about)


@_adds(Band)
def _band(band: Band, at: Canvas) -> None:
    x, middle = shown(band.x, at.panel.xscale), shown(band.middle, at.panel.yscale)
    low, high = floored(band.low, middle, at.panel.yscale), shown(band.high, at.panel.yscale)
    kept = visible(at.on_axis(x), middle, low, high)
    x, middle, low, high = x[kept], middle[kept], low[kept], high[kept]
    look = at.looks.series(band.colour)
    entry = at.entry(band.label, line=True, band=True, **look)
    there = np.isfinite(low) & np.isfinite(high) & np.isfinite(x)
    around = np.concatenate([x[there], x[there][::-1]]), np.concatenate([low[there], high[there][::-1]])
    edge = {"type": "scatter", "x": short(around[0]), "y": short(around[1]), "mode": "lines", "line": {"width": 0}}
    at.trace(entry, **edge, fill="toself", fillcolor=look["color"] + "33", **SILENT)
    between = np.stack([np.asarray(band.low, dtype=float)[kept], np.asarray(band.high, dtype=float)[kept]], axis=-1)
    about = {"hovertemplate": at.hover(band.label, INTERVAL), "customdata": short(between), "meta": band.label}
    at.measured(entry, x, middle, look, **about)


def _whiskers(y: np.ndarray, low: Any, high: Any, at: Canvas, along: str = "y") -> dict[str, Any]:
    """Error bars along an axis, and the interval for whoever hovers or takes the numbers."""
    if low is None or high is None:
        return {}
    scale = at.panel.xscale if along == "x" else at.panel.yscale
    down = np.clip(y - floored(low, y, scale), 0, None)
    up = np.clip(shown(high, scale) - y, 0, None)
    bars = {
        "type": "data",
        "symmetric": False,
        "array": short(up),
        "arrayminus": short(down),
        "thickness": 1.4,
        "width": 4,
    }
    interval = np.stack([np.asarray(low, dtype=float), np.asarray(high, dtype=float)], axis=-1)
    return {f"error_{along}": bars, "customdata": short(interval)}


@_adds(Points)
def _points(points: Points, at: Canvas) -> None:
    x, y = shown(points.x, at.panel.xscale), shown(points.y, at.panel.yscale)
    look, whiskers = at.looks.series(points.colour), _whiskers(y, points.low, points.high, at)
    marker = {"symbol": SYMBOLS[look["marker"]], "size": 8, "color": look["color"]}
    if at.over_heat:
        marker["line"] = {"color": RIM, "width": 1.2}
    at.trace(
        at.entry(points.label, **look),
        type="scatter",
        mode="markers",
        x=short(x),
        y=short(y),
        marker=marker,
        meta=points.label,
        hovertemplate=at.hover(points.label, INTERVAL if whiskers else "%{y:.5~g}"),
        **whiskers,
    )


@_adds(Bars)
def _bars(bars: Bars, at: Canvas) -> None:
    y = shown(bars.values, at.panel.yscale)
    look, whiskers = at.looks.series(bars.colour), _whiskers(y, bars.low, bars.high, at)
    hatch = HATCHES[next(i for i, other in enumerate(at.bars) if other is bars) % len(HATCHES)]
    if whiskers:
        whiskers["error_y"]["color"] = INKS[0]
    pattern = {"shape": hatch, "fillmode": "overlay", "fgcolor": RIM, "size": 7, "solidity": 0.25}
    marker = {"color": look["color"], "pattern": pattern}
    hover = at.hover(bars.label, INTERVAL if whiskers else "%{y:.5~g}").replace("x %{x:.5~g}", "%{x}")
    at.trace(
        at.entry(bars.label, hatch=hatch, color=look["color"]),
        type="bar",
        x=list(bars.categories),
        y=short(y),
        marker=marker,
        meta=bars.label,
        hovertemplate=hover,
        **whiskers,
    )


@_adds(Dots)
def _dots(dots: Dots, at: Canvas) -> None:
    place = next(i for i, other in enumerate(at.dots) if other is dots)
    lines = np.array([at.lines.index(c) for c in dots.categories]) + 0.8 * ((place + 0.5) / len(at.dots) - 0.5)
    x, look = shown(dots.values, at.panel.xscale), at.looks.series(dots.colour)
    about = at.hover(dots.label, "").replace("x %{x:.5~g}<br>y ", "%{text}<br>" + INTERVAL.replace("%{y", "%{x"))
    at.trace(
        at.entry(dots.label, **look),
        type="scatter",
        mode="markers",
        x=short(x),
        y=short(lines),
        text=list(dots.categories),
        marker={"symbol": SYMBOLS[look["marker"]], "size": 8, "color": look["color"]},
        meta=dots.label,
        hovertemplate=about,
        **_whiskers(x, dots.low, dots.high, at, "x"),
    )


@_adds(Marker)
def _marker(marker: Marker, at: Canvas) -> None:
    look = at.looks.rule(marker.role)
    entry = at.entry(marker.label, role=marker.role, color=look["color"])
    entry.setdefault("at", []).append([marker.axis, short(marker.at)])
    other = "y" if marker.axis == "x" else "x"
    place = {f"{marker.axis}0": marker.at, f"{marker.axis}1": marker.at, f"{other}0": 0, f"{other}1": 1}
    shape = {"type": "line", "xref": "x", "yref": "y", f"{other}ref": f"{other} domain", **place}
    line = pen(marker.role, look)
    if at.over_heat:
        at.rule(entry, shape | {"line": {"color": RIM, "width": line["width"] + 2.6}})
    at.rule(entry, shape | {"line": line})


@_adds(Heat)
def _heat(heat: Heat, at: Canvas) -> None:
    x, y = (np.asarray(c, dtype=float) for c in (heat.x, heat.y))
    borders = {"x": short(edges(x, at.panel.xscale)), "y": short(edges(y, at.panel.yscale))}
    # The centres travel apart: with borders for places, plotly would name the middle of a cell of a log axis wrongly.
    centres = {"label": heat.label, "x": short(x), "y": short(y)}
    limits = {"zmin": heat.low, "zmax": heat.high} if None not in (heat.low, heat.high) else {}
    hover = "x %{customdata[0]:.5~g}<br>y %{customdata[1]:.5~g}<br><b>%{z:.5~g}</b><extra></extra>"
    at.trace(
        at.entry(heat.label, heat=True),
        type="heatmap",
        **borders,
        z=short(np.asarray(heat.z, dtype=float), 4),
        colorscale="Viridis",
        hovertemplate=hover,
        hoverongaps=False,
        meta=centres,
        **limits,
    )


@_adds(Contour)
def _contour(contour: Contour, at: Canvas) -> None:
    grid = shown(contour.x, at.panel.xscale), shown(contour.y, at.panel.yscale), np.asarray(contour.z, dtype=float)
    pieces = [
        np.vstack([np.asarray(piece), [[np.nan, np.nan]]]) for piece in contour_generator(*grid).lines(contour.level)
    ]
    x, y = np.concatenate(pieces or [np.empty((0, 2))]).T
    measured = contour.role == "measured"
    line = pen(contour.role, {"color": "white", "linewidth": 2.2} if measured else at.looks.rule(contour.role))
    entry = at.entry(contour.label, role=contour.role, color=INKS[0] if measured else line["color"])
    numbers = {"type": "scatter", "mode": "lines", "x": short(x), "y": short(y)}
    # Named colours: what is white over a heat map stays white after dark.
    rim = {"color": "black" if measured else "white", "width": line["width"] + 2.6}
    at.trace(entry, **numbers, line=rim, **SILENT)
    at.trace(entry, **numbers, line=line, meta=contour.label, hovertemplate=at.hover(contour.label))
