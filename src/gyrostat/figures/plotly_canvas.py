"""A panel for plotly in the making: what all kinds of series share (pens, markers, hover, legend entries, axes)."""

from __future__ import annotations

import html
from typing import Any

import numpy as np

from gyrostat.figures.declarations import Bars, Dots, Heat, Panel
from gyrostat.figures.palette import DASHES, Looks
from gyrostat.figures.thinning import short

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
"""Of a measured line, in pixels (1.6 points in the files)."""
RIM = "#FFFFFF"
"""The page itself: around what is drawn over a heat map, and in the hatches of bars."""
SILENT = {"hoverinfo": "skip"}
INTERVAL = "%{y:.5~g}<br>from %{customdata[0]:.5~g} to %{customdata[1]:.5~g}"


class Canvas:
    """One panel while its series are added: traces and shapes for plotly, entries for the legend."""

    def __init__(self, panel: Panel):
        self.panel, self.looks = panel, Looks()
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
            layout |= {"barmode": "group", "bargap": 0.2, "bargroupgap": 0.08}
        if self.lines:
            count = len(self.lines)
            layout["yaxis"] = {"type": "linear", "range": [count - 0.5, -0.5]}
            layout["yaxis"] |= {"tickvals": list(range(count)), "ticktext": [html.escape(name) for name in self.lines]}
            layout["height"] = max(300, 60 + count * (10 + 12 * len(self.dots)))
        return {"data": self.data, "layout": layout, "entries": list(self.entries.values())}

    def _axis(self, name: str, scale: str, limits: tuple[float | None, float | None] | None) -> dict[str, Any]:
        axis: dict[str, Any] = {"type": scale}
        if limits is not None:
            ends = np.array(limits, dtype=float)
            ends = np.log10(ends) if scale == "log" else ends
            if np.isnan(ends).any():  # an open end; plotly's own half-open ranges put ticks and curves on two scales
                ends = _closed(ends, _numbers(self.data, name), scale)
            axis["range"] = short(ends)
        return axis

    def entry(self, label: str, **swatch: Any) -> dict[str, Any]:
        """The legend entry of a label; series with one label share it, as in the files."""
        return self.entries.setdefault(label, {"label": label, "traces": [], "shapes": [], "swatch": swatch})

    def trace(self, entry: dict[str, Any], **trace: Any) -> None:
        """A trace that the entry puts away and brings back."""
        entry["traces"].append(len(self.data))
        self.data.append(trace)

    def rule(self, entry: dict[str, Any], shape: dict[str, Any]) -> None:
        """A shape that the entry puts away and brings back."""
        entry["shapes"].append(len(self.shapes))
        self.shapes.append(shape)

    def line(self, entry: dict[str, Any], x: np.ndarray, y: np.ndarray, pen: dict[str, Any], **more: Any) -> None:
        """A curve, on a white rim where a heat map is below it."""
        numbers = {"type": "scatter", "x": short(x), "y": short(y)}
        if self.over_heat:
            rim = {"color": RIM, "width": pen["width"] + 2.6}
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
        """``x`` in the scale of its axis, where distances are those on the screen."""
        return np.log(x) if self.panel.xscale == "log" else x

    @staticmethod
    def hover(label: str, value: str = "%{y:.5~g}") -> str:
        """What a pointer is told: the label and the numbers."""
        # Entities, because plotly reads tags in labels; and its template reads %{...}.
        name = html.escape(label).replace("%{", "%&#123;")
        title = f"<b>{name}</b><br>" if name else ""
        return f"{title}x %{{x:.5~g}}<br>y {value}<extra></extra>"


def _numbers(data: list[dict[str, Any]], axis: str) -> np.ndarray:
    """All places on an axis that the traces take up, with the ends of their whiskers."""
    found: list[Any] = []
    for trace in data:
        places = np.array(trace[axis], dtype=float)
        found.append(places)
        if axis == "y" and "error_y" in trace:
            found += [places + np.array(trace["error_y"]["array"], dtype=float)]
            found += [places - np.array(trace["error_y"]["arrayminus"], dtype=float)]
    return np.concatenate(found) if found else np.array([])


def _closed(ends: np.ndarray, numbers: np.ndarray, scale: str) -> np.ndarray:
    """Limits whose open end (NaN) lies a little beyond the data, as in the files.

    >>> _closed(np.array([np.nan, 2.0]), np.array([1.0, 10.0]), "log").round(3).tolist()
    [-0.05, 2.0]
    """
    on_axis = np.log10(numbers[numbers > 0]) if scale == "log" else numbers
    low, high = (np.nanmin(on_axis), np.nanmax(on_axis)) if np.isfinite(on_axis).any() else (0.0, 1.0)
    margin = 0.05 * ((high - low) or 1.0)
    return np.where(np.isnan(ends), [low - margin, high + margin], ends)


def _spread_out(x: np.ndarray, start: float) -> list[int]:
    """Five indices, evenly spread in x, that begin at the share ``start`` of the axis."""
    if not np.isfinite(x).any():
        return []
    low, high = np.nanmin(x), np.nanmax(x)
    return [int(np.nanargmin(abs(x - (low + share * (high - low))))) for share in start + 0.2 * np.arange(5)]


def _dash(role: str, width: float) -> str:
    """The dash of a role as plotly wants it: in pixels, where the palette counts in widths of the line."""
    return "solid" if role == "measured" else ",".join(f"{length * width:.1f}px" for length in DASHES[role][1])


def pen(role: str, look: dict[str, Any]) -> dict[str, Any]:
    """The line of a role in the palette's look, in pixels.

    >>> pen("theory", {"color": "#111111", "linewidth": 1.5})
    {'color': '#111111', 'width': 2.0, 'dash': '10.0px,4.0px'}
    """
    width = round(look["linewidth"] * 4 / 3, 1)
    return {"color": look["color"], "width": width, "dash": _dash(role, width)}
