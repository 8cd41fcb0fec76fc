"""Figures as data for plotly: a declared ``Figure`` becomes plain dictionaries, with the looks that its files have.

Words stay out of the drawing (the page sets them around it, where they wrap, can be searched and are escaped); so
does the theme: colours are those of a white page, and the page exchanges them by ``palette.AFTER_DARK``.
"""

from __future__ import annotations

import html
from collections.abc import Callable
from functools import singledispatch
from typing import Any

import numpy as np

from gyrostat.lab.figures import Band, Bars, Figure, Heat, Line, Marker, Panel, Points, Series
from gyrostat.lab.palette import DASHES, Looks
from gyrostat.lab.scales import edges, floored, shown
from gyrostat.lab.thinning import short, visible

SYMBOLS = {
    "o": "circle", "s": "square", "^": "triangle-up", "D": "diamond", "v": "triangle-down", "P": "cross", "X": "x",
}  # fmt: skip
HATCHES = ("", "/", ".", "x")
WIDTH = 2.1
"""Of a measured line, in pixels (1.6 points in the files)."""
SILENT = {"hoverinfo": "skip"}


def drawing(figure: Figure) -> list[dict[str, Any]]:
    """For every panel: ``data`` and ``layout`` for plotly, and ``entries`` for its legend.

    >>> (panel,) = drawing(Figure("Shapes", [Panel("A parabola", "x", "y", [Line([0, 1, 2], [0, 1, 4], "square")])]))
    >>> panel["data"][0]["y"], panel["layout"]["yaxis"], panel["entries"][0]["label"]
    ([0, 1, 4], {'type': 'linear'}, 'square')
    """
    return [_Drawing(panel).finished() for panel in figure.panels]


class _Drawing:
    """One panel while its series are added."""

    def __init__(self, panel: Panel):
        self.panel, self.looks = panel, Looks()
        self.data: list[dict[str, Any]] = []
        self.shapes: list[dict[str, Any]] = []
        self.entries: dict[str, dict[str, Any]] = {}
        self.bars = [s for s in panel.series if isinstance(s, Bars)]
        self.over_heat = any(isinstance(s, Heat) for s in panel.series)

    def finished(self) -> dict[str, Any]:
        for series in self.panel.series:
            _add(series, self)
        layout: dict[str, Any] = {
            "xaxis": _axis(self.panel.xscale, self.panel.xlim),
            "yaxis": _axis(self.panel.yscale, self.panel.ylim),
        }
        if self.shapes:
            layout["shapes"] = self.shapes
        if self.bars:
            order = list(dict.fromkeys(c for s in self.bars for c in s.categories))
            layout["xaxis"] |= {"type": "category", "categoryorder": "array", "categoryarray": order}
            layout |= {"barmode": "group", "bargap": 0.2, "bargroupgap": 0.08}
        return {"data": self.data, "layout": layout, "entries": list(self.entries.values())}

    def entry(self, label: str, **swatch: Any) -> dict[str, Any]:
        """The legend entry of a label; series with one label share it, as in the files."""
        return self.entries.setdefault(label, {"label": label, "traces": [], "shapes": [], "swatch": swatch})

    def trace(self, entry: dict[str, Any], **trace: Any) -> None:
        entry["traces"].append(len(self.data))
        self.data.append(trace)

    def rule(self, entry: dict[str, Any], shape: dict[str, Any]) -> None:
        entry["shapes"].append(len(self.shapes))
        self.shapes.append(shape)

    def line(self, entry: dict[str, Any], x: np.ndarray, y: np.ndarray, pen: dict[str, Any], **more: Any) -> None:
        """A curve, on a white rim where a heat map is below it."""
        numbers = {"type": "scatter", "x": short(x), "y": short(y)}
        if self.over_heat:
            rim = {"color": "white", "width": pen["width"] + 2.6}
            self.trace(entry, **numbers, mode="lines", line=rim, **SILENT)
        self.trace(entry, **numbers, **({"mode": "lines", "line": pen} | more))

    def measured(self, entry: dict[str, Any], x: np.ndarray, y: np.ndarray, look: dict[str, Any], **more: Any) -> None:
        """A curve with its marker: at every point when they are few, else here and there, as the second cue beside colour."""
        marker = {"symbol": SYMBOLS[look["marker"]], "size": 6, "color": look["color"]}
        pen = {"color": look["color"], "width": WIDTH}
        if x.size <= 15:
            self.line(entry, x, y, pen, mode="lines+markers", marker=marker, **more)
            return
        self.line(entry, x, y, pen, **more)
        some = _spread_out(self.on_axis(x), 0.05 * (len(self.entries) % 4))
        cues = {"type": "scatter", "mode": "markers", "x": short(x[some]), "y": short(y[some])}
        self.trace(entry, **cues, marker=marker | {"size": 7}, **SILENT)

    def on_axis(self, x: np.ndarray) -> np.ndarray:
        return np.log(x) if self.panel.xscale == "log" else x

    def hover(self, label: str, value: str = "%{y:.5~g}") -> str:
        # Entities, because plotly reads tags in labels; and its template reads %{...}.
        name = html.escape(label).replace("%{", "%&#123;")
        return f"<b>{name}</b><br>x %{{x:.5~g}}<br>y {value}<extra></extra>"


INTERVAL = "%{y:.5~g}<br>from %{customdata[0]:.5~g} to %{customdata[1]:.5~g}"


def _axis(scale: str, limits: tuple[float, float] | None) -> dict[str, Any]:
    axis: dict[str, Any] = {"type": scale}
    if limits is not None:
        ends = np.array(limits, dtype=float)  # an open end is None, here NaN, and None again for plotly
        axis["range"] = short(np.log10(ends) if scale == "log" else ends)
    return axis


def _spread_out(x: np.ndarray, start: float) -> list[int]:
    """Five indices, evenly spread in x, that begin at the share ``start`` of the axis."""
    if not np.isfinite(x).any():
        return []
    low, high = np.nanmin(x), np.nanmax(x)
    return [int(np.nanargmin(abs(x - (low + share * (high - low))))) for share in start + 0.2 * np.arange(5)]


def _dash(role: str, width: float) -> str:
    """The dash of a role as plotly wants it: in pixels, where the palette counts in widths of the line."""
    return "solid" if role == "measured" else ",".join(f"{length * width:.1f}px" for length in DASHES[role][1])


def _pen(role: str, look: dict[str, Any]) -> dict[str, Any]:
    width = round(look["linewidth"] * 4 / 3, 1)
    return {"color": look["color"], "width": width, "dash": _dash(role, width)}


@singledispatch
def _add(series: Series, at: _Drawing) -> None:
    raise TypeError(f"no way to draw {type(series).__name__}")


def _adds(kind: type) -> Callable[[Callable[[Any, _Drawing], None]], Any]:
    return _add.register(kind)


@_adds(Line)
def _line(line: Line, at: _Drawing) -> None:
    x, y = shown(line.x, at.panel.xscale), shown(line.y, at.panel.yscale)
    kept = visible(at.on_axis(x), y)
    x, y, about = x[kept], y[kept], {"hovertemplate": at.hover(line.label), "meta": line.label}
    if line.role == "measured":
        look = at.looks.series(line.colour)
        at.measured(at.entry(line.label, line=True, **look), x, y, look, **about)
        return
    look = at.looks.rule(line.role, line.colour)
    at.line(at.entry(line.label, role=line.role, color=look["color"]), x, y, _pen(line.role, look), **about)


@_adds(Band)
def _band(band: Band, at: _Drawing) -> None:
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


def _whiskers(y: np.ndarray, low: Any, high: Any, at: _Drawing) -> dict[str, Any]:
    """Error bars, and the interval for whoever hovers or takes the numbers."""
    if low is None or high is None:
        return {}
    down = np.clip(y - floored(low, y, at.panel.yscale), 0, None)
    up = np.clip(shown(high, at.panel.yscale) - y, 0, None)
    bars = {"type": "data", "symmetric": False, "array": short(up), "arrayminus": short(down), "thickness": 1.4, "width": 4}
    interval = np.stack([np.asarray(low, dtype=float), np.asarray(high, dtype=float)], axis=-1)
    return {"error_y": bars, "customdata": short(interval)}


@_adds(Points)
def _points(points: Points, at: _Drawing) -> None:
    x, y = shown(points.x, at.panel.xscale), shown(points.y, at.panel.yscale)
    look, whiskers = at.looks.series(points.colour), _whiskers(y, points.low, points.high, at)
    marker = {"symbol": SYMBOLS[look["marker"]], "size": 8, "color": look["color"]}
    if at.over_heat:
        marker["line"] = {"color": "white", "width": 1.2}
    at.trace(
        at.entry(points.label, **look), type="scatter", mode="markers", x=short(x), y=short(y), marker=marker,
        meta=points.label, hovertemplate=at.hover(points.label, INTERVAL if whiskers else "%{y:.5~g}"), **whiskers,
    )  # fmt: skip


@_adds(Bars)
def _bars(bars: Bars, at: _Drawing) -> None:
    y = shown(bars.values, at.panel.yscale)
    look, whiskers = at.looks.series(bars.colour), _whiskers(y, bars.low, bars.high, at)
    hatch = HATCHES[next(i for i, other in enumerate(at.bars) if other is bars) % len(HATCHES)]
    marker = {"color": look["color"], "pattern": {"shape": hatch, "fgcolor": "white", "size": 7, "solidity": 0.25}}
    hover = at.hover(bars.label, INTERVAL if whiskers else "%{y:.5~g}").replace("x %{x:.5~g}", "%{x}")
    at.trace(
        at.entry(bars.label, hatch=hatch, color=look["color"]), type="bar", x=list(bars.categories), y=short(y),
        marker=marker, meta=bars.label, hovertemplate=hover, **whiskers,
    )  # fmt: skip


@_adds(Marker)
def _marker(marker: Marker, at: _Drawing) -> None:
    look = at.looks.rule(marker.role)
    entry = at.entry(marker.label, role=marker.role, color=look["color"])
    entry.setdefault("at", []).append([marker.axis, short(marker.at)])
    other = "y" if marker.axis == "x" else "x"
    place = {f"{marker.axis}0": marker.at, f"{marker.axis}1": marker.at, f"{other}0": 0, f"{other}1": 1}
    shape = {"type": "line", "xref": "x", "yref": "y", f"{other}ref": f"{other} domain", **place}
    pen = _pen(marker.role, look)
    if at.over_heat:
        at.rule(entry, shape | {"line": {"color": "white", "width": pen["width"] + 2.6}})
    at.rule(entry, shape | {"line": pen})


@_adds(Heat)
def _heat(heat: Heat, at: _Drawing) -> None:
    x, y = (np.asarray(c, dtype=float) for c in (heat.x, heat.y))
    borders = {"x": short(edges(x, at.panel.xscale)), "y": short(edges(y, at.panel.yscale))}
    # The centres travel apart: with borders for places, plotly would name the middle of a cell of a log axis wrongly.
    centres = {"label": heat.label, "x": short(x), "y": short(y)}
    limits = {"zmin": heat.low, "zmax": heat.high} if None not in (heat.low, heat.high) else {}
    hover = f"x %{{customdata[0]:.5~g}}<br>y %{{customdata[1]:.5~g}}<br><b>%{{z:.5~g}}</b><extra></extra>"
    at.trace(
        at.entry(heat.label, heat=True), type="heatmap", **borders, z=short(np.asarray(heat.z, dtype=float), 4),
        colorscale="Viridis", hovertemplate=hover, hoverongaps=False, meta=centres, **limits,
    )  # fmt: skip
