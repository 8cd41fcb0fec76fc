"""The plotly renderer: a declared ``Figure`` becomes plain dictionaries for plotly, with the same looks as its files.

Titles, axis labels and legends are left to the page, where they wrap, can be searched and are escaped. Colours are those of a
white page; the page replaces them by ``palette.ON_DARK_PAGES`` when it is dark.
"""

from __future__ import annotations

import html
from collections.abc import Callable
from functools import singledispatch
from typing import Any

import numpy as np
from contourpy import contour_generator

from gyrostat.figures.axis_scales import MANY, capped, counts_only, diverged_at, edges, floored, shown
from gyrostat.figures.declarations import (
    Band,
    Bars,
    Contour,
    Dots,
    Figure,
    Heat,
    Line,
    Marker,
    Panel,
    Points,
    Runs,
    Series,
)
from gyrostat.figures.mathematics import unicode_text
from gyrostat.figures.palette import DASHES, GAPS, HEAT_COLOURS, INKS, Looks
from gyrostat.figures.thinning import short, visible

SYMBOLS = {
    "o": "circle",
    "s": "square",
    "^": "triangle-up",
    "D": "diamond",
    "v": "triangle-down",
    "P": "cross",
    "X": "x",
}
WIDTH = 2.1
"""Width of a measured line in pixels (1.6 points in the files)."""
RIM = "#FFFFFF"
"""The colour of the page: around what is drawn over a heat map, and in the hatches of bars."""
SILENT = {"hoverinfo": "skip"}
INTERVAL = "%{y:.5~g}<br>from %{customdata[0]:.5~g} to %{customdata[1]:.5~g}"
HATCHES = ("", "/", ".", "x")


def plotly_panels(figure: Figure) -> list[dict[str, Any]]:
    """For every panel: ``data`` and ``layout`` for plotly, and ``entries`` for its legend.

    >>> curve = Line([0, 1, 2], [0, 1, 4], "square")
    >>> figure = Figure(title="Shapes", panels=[Panel(title="A parabola", xlabel="x", ylabel="y", series=[curve])])
    >>> (panel,) = plotly_panels(figure)
    >>> panel["data"][0]["y"], panel["layout"]["yaxis"], panel["entries"][0]["label"]
    ([0, 1, 4], {'type': 'linear'}, 'square')
    """
    write = unicode_text if figure.mathematics else str
    return [_draw_panel(panel, write) for panel in figure.panels]


def _draw_panel(panel: Panel, write: Callable[[str], str]) -> dict[str, Any]:
    drawn = _PlotlyPanel(panel, write)
    for series in panel.series:
        _add(series, drawn)
    return drawn.finished()


class _PlotlyPanel:
    """One panel while its series are added: traces and shapes for plotly, and entries for the legend."""

    def __init__(self, panel: Panel, write: Callable[[str], str]):
        self.panel, self.write, self.looks = panel, write, Looks()
        self.data: list[dict[str, Any]] = []
        self.shapes: list[dict[str, Any]] = []
        self.entries: dict[str, dict[str, Any]] = {}
        self.bars = [s for s in panel.series if isinstance(s, Bars)]
        self.dots = [s for s in panel.series if isinstance(s, Dots)]
        self.lines = list(dict.fromkeys(c for s in self.dots for c in s.categories))
        self.over_heat = any(isinstance(s, Heat) for s in panel.series)

    def finished(self) -> dict[str, Any]:
        """Everything that the page needs to draw the panel."""
        layout: dict[str, Any] = {
            "xaxis": self._axis("x", self.panel.xscale, self.panel.xlim),
            "yaxis": self._axis("y", self.panel.yscale, self.panel.ylim),
        }
        if self.shapes:
            layout["shapes"] = self.shapes
        if self.bars:
            order = list(dict.fromkeys(c for s in self.bars for c in s.categories))
            layout["xaxis"] |= {"type": "category", "categoryorder": "array", "categoryarray": order}
            layout["xaxis"] |= {"tickvals": order, "ticktext": [html.escape(self.write(name)) for name in order]}
            layout |= {"barmode": "group", "bargap": 0.2, "bargroupgap": 0.08}
        if self.lines:
            count = len(self.lines)
            layout["yaxis"] = {"type": "linear", "range": [count - 0.5, -0.5]}
            layout["yaxis"] |= {
                "tickvals": list(range(count)),
                "ticktext": [html.escape(self.write(name)) for name in self.lines],
            }
            layout["height"] = max(300, 60 + count * (10 + 12 * len(self.dots)))
        # As in the files: what was measured, then what it is compared with.
        entries = sorted(self.entries.values(), key=lambda entry: entry["swatch"].get("role", "measured") != "measured")
        return {"data": self.data, "layout": layout, "entries": entries}

    def _axis(self, name: str, scale: str, limits: tuple[float | None, float | None] | None) -> dict[str, Any]:
        axis: dict[str, Any] = {"type": scale}
        if limits is not None:
            ends = np.array(limits, dtype=float)
            ends = np.log10(ends) if scale == "log" else ends
            if np.isnan(ends).any():  # an open end; plotly's own half-open ranges put ticks and curves on two scales
                ends = _closed(ends, _numbers(self.data, name), scale)
            axis["range"] = short(ends)
        if counts_only(self.panel, name):
            axis |= {"tick0": 0, "dtick": 1}
        return axis

    def entry(self, label: str, **swatch: Any) -> dict[str, Any]:
        """The legend entry of a label; series with the same label share it, as in the files."""
        return self.entries.setdefault(label, {"label": label, "traces": [], "shapes": [], "swatch": swatch})

    def trace(self, entry: dict[str, Any], **trace: Any) -> None:
        """Add a trace, which the legend entry can hide."""
        entry["traces"].append(len(self.data))
        self.data.append(trace)

    def rule(self, entry: dict[str, Any], shape: dict[str, Any]) -> None:
        """Add a shape, which the legend entry can hide."""
        entry["shapes"].append(len(self.shapes))
        self.shapes.append(shape)

    def line(self, entry: dict[str, Any], x: np.ndarray, y: np.ndarray, pen: dict[str, Any], **more: Any) -> None:
        """Add a curve, with a white rim if it lies over a heat map."""
        numbers = {"type": "scatter", "x": short(x), "y": short(y)}
        if self.over_heat:
            rim = {"color": RIM, "width": pen["width"] + 2.6}
            self.trace(entry, **numbers, mode="lines", line=rim, **SILENT)
        self.trace(entry, **numbers, **({"mode": "lines", "line": pen} | more))

    def measured(
        self, entry: dict[str, Any], x: np.ndarray, y: np.ndarray, look: dict[str, Any], *, over: bool, **more: Any
    ) -> None:
        """Add a curve with its marker, the second cue besides colour: at every point if there are few, else at some."""
        marker = {"symbol": SYMBOLS[look["marker"]], "size": 6, "color": look["color"]}
        dash = {"dash": ",".join(f"{length * WIDTH:.1f}px" for length in GAPS)} if over else {}
        pen = {"color": look["color"], "width": WIDTH, **dash}
        if x.size <= 15:
            self.line(entry, x, y, pen, mode="lines+markers", marker=marker, **more)
            return
        self.line(entry, x, y, pen, **more)
        some = _spread_out(self.on_axis(x), 0.05 * (len(self.entries) % 4))
        cues = {"type": "scatter", "mode": "markers", "x": short(x[some]), "y": short(y[some])}
        self.trace(entry, **cues, marker=marker | {"size": 7}, **SILENT)

    def on_axis(self, x: np.ndarray) -> np.ndarray:
        """``x`` in the scale of its axis, where distances are those on the screen."""
        return np.log(x) if self.panel.xscale == "log" else x

    def hover(self, label: str, value: str = "%{y:.5~g}") -> str:
        """The template of the text at the pointer: the label and the numbers."""
        # Escaped, because plotly interprets tags in labels and %{...} in templates.
        name = html.escape(self.write(label)).replace("%{", "%&#123;")
        title = f"<b>{name}</b><br>" if name else ""
        return f"{title}x %{{x:.5~g}}<br>y {value}<extra></extra>"


@singledispatch
def _add(series: Series, at: _PlotlyPanel) -> None:
    raise TypeError(f"cannot draw a {type(series).__name__}: register it with _adds.")


def _adds(kind: type) -> Callable[[Callable[[Any, _PlotlyPanel], None]], Any]:
    return _add.register(kind)


@_adds(Line)
def _line(line: Line, at: _PlotlyPanel) -> None:
    x, y = shown(line.x, at.panel.xscale), shown(line.y, at.panel.yscale)
    kept = visible(at.on_axis(x), y)
    x, y, about = x[kept], y[kept], {"hovertemplate": at.hover(line.label), "meta": line.label}
    if line.role == "measured":
        look = at.looks.series(line.colour)
        at.measured(at.entry(line.label, line=True, **look), x, y, look, over=line.over, **about)
        return
    look = at.looks.rule(line.role, line.label, line.colour)
    entry = at.entry(line.label, role=line.role, color=look["color"])
    at.line(entry, x, y, pen(line.role, look), zorder=1, **about)  # over the measured curves, whatever the order


@_adds(Band)
def _band(band: Band, at: _PlotlyPanel) -> None:
    x, middle = shown(band.x, at.panel.xscale), shown(band.middle, at.panel.yscale)
    low = floored(band.low, middle, at.panel.yscale)
    high = capped(band.high, at.panel.yscale, at.panel.ylim, middle, low)
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
    at.measured(entry, x, middle, look, over=band.over, **about)
    lost = diverged_at(band.x, band.middle)
    if lost is not None:
        # At the upper limit, not at the last finite value, which may lie far beyond it.
        limit = at.panel.ylim[1] if at.panel.ylim is not None else None
        top = np.array([limit]) if limit is not None else capped([np.inf], at.panel.yscale, None, band.middle, band.low)
        cross = {"symbol": "x-thin", "size": 11, "line": {"color": look["color"], "width": 2.4}}
        about = {"hovertemplate": at.hover(band.label, "diverged")}
        at.trace(entry, type="scatter", mode="markers", x=[lost], y=short(top), marker=cross, cliponaxis=False, **about)


@_adds(Runs)
def _runs(runs: Runs, at: _PlotlyPanel) -> None:
    parts: list[np.ndarray] = []
    for x, y in runs.curves():
        x, y = shown(x, at.panel.xscale), shown(y, at.panel.yscale)
        kept = visible(at.on_axis(x), y)
        parts.append(np.stack([x[kept], y[kept]]))
        parts.append(np.full((2, 1), np.nan))  # a gap between two runs
    x, y = np.concatenate(parts or [np.empty((2, 0))], axis=1)
    look = at.looks.series(runs.colour)
    entry = at.entry(runs.label, line=True, color=look["color"])
    about = {"hovertemplate": at.hover(runs.label), "meta": runs.label, "opacity": 0.6}
    at.line(entry, x, y, {"color": look["color"], "width": 1.2}, **about)


def _whiskers(y: np.ndarray, low: Any, high: Any, at: _PlotlyPanel, along: str = "y") -> dict[str, Any]:
    """Error bars along an axis, and the interval for the text at the pointer and for the CSV file."""
    if low is None or high is None:
        return {}
    scale = at.panel.xscale if along == "x" else at.panel.yscale
    down = np.clip(y - floored(low, y, scale), 0, None)
    limits = at.panel.xlim if along == "x" else at.panel.ylim
    up = np.clip(capped(high, scale, limits, y) - y, 0, None)
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


def _inward(x: np.ndarray) -> list[str]:
    """Where the names of points stand, so that the edge of the panel does not cut them off.

    >>> _inward(np.array([0.0, 1.0, 4.0]))
    ['middle right', 'middle right', 'middle left']
    """
    middle = (np.nanmin(x) + np.nanmax(x)) / 2
    return ["middle left" if at > middle else "middle right" for at in x]


@_adds(Points)
def _points(points: Points, at: _PlotlyPanel) -> None:
    x, y = shown(points.x, at.panel.xscale), shown(points.y, at.panel.yscale)
    look, whiskers = at.looks.series(points.colour), _whiskers(y, points.low, points.high, at)
    marker = {"symbol": SYMBOLS[look["marker"]], "size": 8, "color": look["color"]}
    if x.size > MANY:
        marker |= {"size": 3, "opacity": 0.5}
    if at.over_heat:
        marker["line"] = {"color": RIM, "width": 1.2}
    names = [html.escape(at.write(name)) for name in points.names]
    at.trace(
        at.entry(points.label, **look),
        type="scatter",
        mode="markers+text" if names else "markers",
        **({"texttemplate": names, "textposition": _inward(x), "textfont": {"size": 11}} if names else {}),
        x=short(x),
        y=short(y),
        marker=marker,
        meta=points.label,
        hovertemplate=at.hover(points.label, INTERVAL if whiskers else "%{y:.5~g}"),
        **whiskers,
    )


@_adds(Bars)
def _bars(bars: Bars, at: _PlotlyPanel) -> None:
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
def _dots(dots: Dots, at: _PlotlyPanel) -> None:
    position = next(i for i, other in enumerate(at.dots) if other is dots)
    lines = np.array([at.lines.index(c) for c in dots.categories]) + 0.8 * ((position + 0.5) / len(at.dots) - 0.5)
    x, look = shown(dots.values, at.panel.xscale), at.looks.series(dots.colour)
    about = at.hover(dots.label, "").replace("x %{x:.5~g}<br>y ", "%{text}<br>" + INTERVAL.replace("%{y", "%{x"))
    at.trace(
        at.entry(dots.label, **look),
        type="scatter",
        mode="markers",
        x=short(x),
        y=short(lines),
        text=list(dots.categories),
        marker=_arrows(dots, look) | {"size": 8, "color": look["color"]},
        meta=dots.label,
        hovertemplate=about,
        **_whiskers(x, dots.low, dots.high, at, "x"),
    )


def _arrows(dots: Dots, look: dict[str, Any]) -> dict[str, Any]:
    """The symbols of dots: an open arrow for each that is a limit which was not enough."""
    if dots.beyond is None or not np.any(dots.beyond):
        return {"symbol": SYMBOLS[look["marker"]]}
    symbols = ["triangle-right-open" if beyond else SYMBOLS[look["marker"]] for beyond in dots.beyond]
    return {"symbol": symbols, "line": {"width": 1.6}}


@_adds(Marker)
def _marker(marker: Marker, at: _PlotlyPanel) -> None:
    look = at.looks.rule(marker.role, marker.label, marker.colour)
    entry = at.entry(marker.label, role=marker.role, color=look["color"])
    entry.setdefault("at", []).append([marker.axis, short(marker.at)])
    other = "y" if marker.axis == "x" else "x"
    ends = {f"{marker.axis}0": marker.at, f"{marker.axis}1": marker.at, f"{other}0": 0, f"{other}1": 1}
    shape = {"type": "line", "xref": "x", "yref": "y", f"{other}ref": f"{other} domain", **ends}
    line = pen(marker.role, look)
    if at.over_heat:
        at.rule(entry, shape | {"line": {"color": RIM, "width": line["width"] + 2.6}})
    at.rule(entry, shape | {"line": line})


@_adds(Heat)
def _heat(heat: Heat, at: _PlotlyPanel) -> None:
    x, y = (np.asarray(c, dtype=float) for c in (heat.x, heat.y))
    borders = {"x": short(edges(x, at.panel.xscale)), "y": short(edges(y, at.panel.yscale))}
    # The centres are passed separately: from the borders, plotly would name the middle of a cell of a log axis wrongly.
    centres = {"label": heat.label, "x": short(x), "y": short(y)}
    limits = {"zmin": heat.low, "zmax": heat.high} if None not in (heat.low, heat.high) else {}
    hover = "x %{customdata[0]:.5~g}<br>y %{customdata[1]:.5~g}<br><b>%{z:.5~g}</b><extra></extra>"
    at.trace(
        at.entry(heat.label, heat=True),
        type="heatmap",
        **borders,
        z=short(np.asarray(heat.z, dtype=float), 4),
        colorscale=HEAT_COLOURS.capitalize(),
        hovertemplate=hover,
        hoverongaps=False,
        meta=centres,
        **limits,
    )


@_adds(Contour)
def _contour(contour: Contour, at: _PlotlyPanel) -> None:
    grid = shown(contour.x, at.panel.xscale), shown(contour.y, at.panel.yscale), np.asarray(contour.z, dtype=float)
    pieces = [
        np.vstack([np.asarray(piece), [[np.nan, np.nan]]]) for piece in contour_generator(*grid).lines(contour.level)
    ]
    x, y = np.concatenate(pieces or [np.empty((0, 2))]).T
    measured = contour.role == "measured"
    line = pen(
        contour.role, {"color": "white", "linewidth": 2.2} if measured else at.looks.rule(contour.role, contour.label)
    )
    entry = at.entry(contour.label, role=contour.role, color=INKS[0] if measured else line["color"])
    numbers = {"type": "scatter", "mode": "lines", "x": short(x), "y": short(y)}
    # Named colours, which the page does not replace: a contour over a heat map stays white on a dark page.
    rim = {"color": "black" if measured else "white", "width": line["width"] + 2.6}
    at.trace(entry, **numbers, line=rim, **SILENT)
    at.trace(entry, **numbers, line=line, meta=contour.label, hovertemplate=at.hover(contour.label))


def _numbers(data: list[dict[str, Any]], axis: str) -> np.ndarray:
    """All coordinates of the traces along an axis, with the ends of their whiskers."""
    parts: list[np.ndarray] = []
    for trace in data:
        values = np.array(trace[axis], dtype=float)
        parts.append(values)
        if axis == "y" and "error_y" in trace:
            parts.append(values + np.array(trace["error_y"]["array"], dtype=float))
            parts.append(values - np.array(trace["error_y"]["arrayminus"], dtype=float))
    return np.concatenate(parts) if parts else np.array([])


def _closed(ends: np.ndarray, numbers: np.ndarray, scale: str) -> np.ndarray:
    """Limits with an open end (NaN) replaced by one a little beyond the data, as in the files.

    >>> _closed(np.array([np.nan, 2.0]), np.array([1.0, 10.0]), "log").round(3).tolist()
    [-0.05, 2.0]
    """
    on_axis = np.log10(numbers[numbers > 0]) if scale == "log" else numbers
    low, high = (np.nanmin(on_axis), np.nanmax(on_axis)) if np.isfinite(on_axis).any() else (0.0, 1.0)
    margin = 0.05 * ((high - low) or 1.0)
    return np.where(np.isnan(ends), [low - margin, high + margin], ends)


def _spread_out(x: np.ndarray, start: float) -> list[int]:
    """Five indices, evenly spaced in x, from the fraction ``start`` of the axis on."""
    if not np.isfinite(x).any():
        return []
    low, high = np.nanmin(x), np.nanmax(x)
    return [int(np.nanargmin(abs(x - (low + share * (high - low))))) for share in start + 0.2 * np.arange(5)]


def _dash(role: str, width: float) -> str:
    """The dash of a role in pixels, as plotly expects it; the palette has it in multiples of the line width."""
    return "solid" if role == "measured" else ",".join(f"{length * width:.1f}px" for length in DASHES[role][1])


def pen(role: str, look: dict[str, Any]) -> dict[str, Any]:
    """The line of a role in the palette's look, in pixels.

    >>> pen("theory", {"color": "#111111", "linewidth": 1.5})
    {'color': '#111111', 'width': 2.0, 'dash': '10.0px,4.0px'}
    """
    width = round(look["linewidth"] * 4 / 3, 1)
    return {"color": look["color"], "width": width, "dash": _dash(role, width)}
