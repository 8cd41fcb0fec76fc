"""Pages: a declared ``Figure`` becomes plain dictionaries for plotly, with the shapes and looks of its files.

Titles, axis labels and legends are left to the page, where they wrap, can be searched and are escaped. Colours are those of a
white page; the page replaces them by ``palette.ON_DARK_PAGES`` when it is dark. Mathematics is Unicode here, and HTML with real
subscripts on the page: MathJax would add a megabyte to every page for what a legend does not need.
"""

from __future__ import annotations

import html
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from gyrostat.figures.declarations import Figure, Panel
from gyrostat.figures.mathematics import unicode_text
from gyrostat.figures.palette import HEAT_COLOURS, INKS
from gyrostat.figures.panel_canvas import MANY, Axis, Look, PanelCanvas

SYMBOLS = {
    "o": "circle",
    "s": "square",
    "^": "triangle-up",
    "D": "diamond",
    "v": "triangle-down",
    "P": "cross",
    "X": "x",
    "x": "x-thin",
    ">": "triangle-right-open",
    "<": "triangle-left-open",
}
RIM = "#FFFFFF"
"""The colour of the page: around what is drawn over a heat map, and in the hatches of bars."""
MOST_COUNTS = 12
"""An axis of whole numbers that spans more than this has ticks far enough apart to be whole anyway."""
COLUMNS = 1000
"""Columns of pixels that a panel has at most. Four points in each column draw the same picture as all points."""
SILENT = {"hoverinfo": "skip"}

Json = dict[str, Any]


def plotly_panels(figure: Figure) -> list[Json]:
    """For every panel: ``data`` and ``layout`` for plotly, and ``entries`` for its legend.

    >>> from gyrostat.figures.declarations import Line
    >>> curve = Line([0, 1, 2], [0, 1, 4], "square")
    >>> figure = Figure(title="Shapes", panels=[Panel(title="A parabola", xlabel="x", ylabel="y", series=[curve])])
    >>> (panel,) = plotly_panels(figure)
    >>> panel["data"][0]["y"], panel["layout"]["yaxis"], panel["entries"][0]["label"]
    ([0, 1, 4], {'type': 'linear'}, 'square')
    """
    return [
        short(_PlotlyPanel(panel, unicode_text if figure.mathematics else str).finished()) for panel in figure.panels
    ]


class _PlotlyPanel(PanelCanvas):
    """A panel as traces and shapes for plotly, and the entries of its legend, which can hide them."""

    def __init__(self, panel: Panel, write: Callable[[str], str]):
        self.data: list[Json] = []
        self.shapes: list[Json] = []
        self.entries: dict[str, Json] = {}
        super().__init__(panel, write)

    def finished(self) -> Json:
        """Everything that the page needs to draw the panel."""
        layout: Json = {"xaxis": self._axis("x"), "yaxis": self._axis("y")}
        if self.shapes:
            layout["shapes"] = self.shapes
        if any(trace["type"] == "bar" for trace in self.data):
            layout["barmode"] = "overlay"  # their places are known already
        if lines := len(self.categories("y")):
            rivals = sum(series.category_axis == "y" for series in self.panel.series)
            layout["height"] = max(300, 60 + lines * (10 + 12 * rivals))
        # As in the files: what was measured, then what it is compared with.
        entries = sorted(self.entries.values(), key=lambda entry: entry["swatch"]["role"] != "measured")
        return {"data": self.data, "layout": layout, "entries": entries}

    def _axis(self, axis: Axis) -> Json:
        spec: Json = {"type": self.scale[axis]}
        if (limits := self.limits(axis)) is not None:
            spec["range"] = self.on_axis(limits, axis)
        if names := [html.escape(self.write(name)) for name in self.categories(axis)]:
            spec |= {"showgrid": False, "tickvals": list(range(len(names))), "ticktext": names}
        elif self.whole_numbers(axis) and np.ptp(self.extent[axis]) <= MOST_COUNTS:
            spec |= {"tick0": 0, "dtick": 1}
        return spec

    # ------------------------------------------------------------------------------------------ the six shapes

    def curve(self, x: Any, y: Any, look: Look, low: Any = None, high: Any = None) -> None:
        a, b, pen, entry = self.shown(x, "x"), self.shown(y, "y"), _pen(look), self._entry(look, line=True)
        kept = visible(self.on_axis(a, "x"), b)
        over: Json = {} if look.role == "measured" else {"zorder": 1}  # theory lies over the measured curves
        if look.rim:
            rim = {"color": look.rim, "width": pen["width"] + 2.6}
            self._trace(entry, a[kept], b[kept], mode="lines", line=rim, **SILENT)
        said = self._said(look, low, high, kept)
        self._trace(entry, a[kept], b[kept], mode="lines", line=pen, opacity=look.opacity, **said, **over)
        if look.marker:
            marks = self.marked(a, b)
            self._trace(entry, a[marks], b[marks], mode="markers", marker=self._marker(look, 7), **SILENT, **over)

    def area(self, x: Any, low: Any, high: Any, look: Look) -> None:
        a, (low, high) = self.shown(x, "x"), self.ends(low, high, low)
        kept = visible(self.on_axis(a, "x"), low, high)
        kept = kept[np.isfinite(a + low + high)[kept]]
        around = np.append(a[kept], a[kept[::-1]]), np.append(low[kept], high[kept[::-1]])
        inside: Json = {"fill": "toself", "fillcolor": look.colour + "33", "line": {"width": 0}}
        self._trace(self._entry(look, band=True), *around, mode="lines", **inside, **SILENT)

    def spots(self, x: Any, y: Any, look: Look, low: Any = None, high: Any = None, along: Axis = "y") -> None:
        a, b = self.shown(x, "x"), self.shown(y, "y")
        marker = self._marker(look, 8) if a.size <= MANY else self._marker(look, 3) | {"opacity": 0.5}
        more = self._said(look, low, high, along=along, lines=b if along == "x" else None)
        more |= self._error_bars(low, high, a if along == "x" else b, along)
        if look.marker == "x":
            more |= {"cliponaxis": False, "hovertemplate": more["hovertemplate"].replace("%{y:.5~g}", "diverged")}
            del more["meta"]
        self._trace(self._entry(look), a, b, mode="markers", marker=marker, **more)

    def boxes(self, x: Any, y: Any, look: Look, width: float, low: Any, high: Any) -> None:
        heights = self.shown(y, "y")
        pattern = {"shape": look.hatch, "fillmode": "overlay", "fgcolor": RIM, "size": 7, "solidity": 0.25}
        more = self._said(look, low, high, lines=x) | self._error_bars(low, high, heights, "y", color=INKS[0])
        more |= {"marker": {"color": look.colour, "pattern": pattern}, "textposition": "none", "width": width}
        self._trace(self._entry(look, hatch=look.hatch), x, heights, type="bar", **more)

    def rule(self, axis: Axis, at: float, look: Look, to: float | None = None) -> None:
        other, pen = "y" if axis == "x" else "x", _pen(look)
        place: Json = {"xref": "x", "yref": "y", f"{other}ref": f"{other} domain", f"{other}0": 0, f"{other}1": 1}
        place |= {f"{axis}0": at, f"{axis}1": at if to is None else to}
        shapes: list[Json] = [{"type": "line", "line": pen}]
        if to is not None:
            shapes = [{"type": "rect", "fillcolor": look.colour + "33", "line": {"width": 0}, "layer": "below"}]
        elif look.rim:
            shapes.insert(0, {"type": "line", "line": {"color": look.rim, "width": pen["width"] + 2.6}})
        entry = self._entry(look, line=to is None, band=to is not None)
        entry.setdefault("at", []).extend([axis, value] for value in (at, to) if value is not None)
        entry["shapes"] += range(len(self.shapes), len(self.shapes) + len(shapes))
        self.shapes += [place | shape for shape in shapes]

    def cells(self, x: Any, y: Any, z: Any, look: Look, low: float | None, high: float | None) -> None:
        # The centres are passed separately: from the borders, plotly would name the middle of a cell of a log axis wrongly.
        hover = "x %{customdata[0]:.5~g}<br>y %{customdata[1]:.5~g}<br><b>%{z:.5~g}</b><extra></extra>"
        more: Json = {"hovertemplate": hover, "hoverongaps": False}
        more["meta"] = {"label": look.label, "x": np.asarray(x), "y": np.asarray(y)}
        more |= {} if low is None or high is None else {"zmin": low, "zmax": high}
        borders, colours = (self.borders(x, "x"), self.borders(y, "y")), HEAT_COLOURS.capitalize()
        self._trace(self._entry(look, heat=True), *borders, type="heatmap", z=short(z, 4), colorscale=colours, **more)

    # -------------------------------------------------------------------------------------------------- pieces

    def _entry(self, look: Look, **kind: Any) -> Json:
        """The legend entry that all shapes with this label share, with what its small drawing shows."""
        seen = {"color": INKS[0] if look.colour == "white" else look.colour, "role": look.role, "dash": look.dash}
        if look.marker:
            seen["marker"] = look.marker
        entry = self.entries.setdefault(look.label, {"label": look.label, "traces": [], "shapes": [], "swatch": {}})
        entry["swatch"] = seen | kind | entry["swatch"]  # the first shape of a label decides
        return entry

    def _trace(self, entry: Json, x: Any, y: Any, *, type: str = "scatter", **more: Any) -> None:
        entry["traces"].append(len(self.data))
        self.data.append({"type": type, "x": x, "y": y, **more})

    def _marker(self, look: Look, size: int) -> Json:
        """A marker; that of theory is open."""
        inside = look.colour if look.role == "measured" else RIM
        rim = {"color": look.rim or look.colour, "width": 2.4 if look.marker == "x" else 1.2}
        return {"symbol": SYMBOLS[look.marker], "color": inside, "line": rim, "size": size}

    def _said(
        self, look: Look, low: Any, high: Any, kept: Any = slice(None), *, along: Axis = "y", lines: Any = None
    ) -> Json:
        """What is said at the pointer, and written to the CSV file: label, place or category, value, interval."""
        # Escaped, because plotly interprets tags in labels and %{...} in templates.
        name = html.escape(self.write(look.label)).replace("%{", "%&#123;")
        parts, said = [f"<b>{name}</b>"] if name else [], Json(meta=look.label)
        if lines is None:
            parts += ["x %{x:.5~g}", "y %{y:.5~g}"]
        else:
            names = self.categories("x" if along == "y" else "y")
            said |= {"text": [names[round(line)] for line in lines]}
            parts += ["%{text}", f"%{{{along}:.5~g}}"]
        if low is not None and high is not None:
            said["customdata"] = np.array([low, high], dtype=float).T[kept]
            parts.append("from %{customdata[0]:.5~g} to %{customdata[1]:.5~g}")
        return said | {"hovertemplate": "<br>".join(parts) + "<extra></extra>"}

    def _error_bars(self, low: Any, high: Any, values: np.ndarray, along: Axis, **look: Any) -> Json:
        lengths = self.whiskers(low, high, values, along)
        if lengths is None:
            return {}
        sides = {"arrayminus": lengths[0], "array": lengths[1]}
        return {f"error_{along}": {"type": "data", "symmetric": False, **sides, "thickness": 1.4, "width": 4, **look}}


def _pen(look: Look) -> Json:
    """The line of a look in pixels, of which a point has four thirds."""
    width = round(look.width * 4 / 3, 1)
    dash = {"dash": ",".join(f"{length * width:.1f}px" for length in look.dash)} if look.dash else {}
    return {"color": look.colour, "width": width, **dash}


def visible(x: np.ndarray, *curves: np.ndarray) -> np.ndarray:
    """The indices that suffice to draw: in each column of pixels the first, the last, and the extremes of every curve.

    ``x`` is in the scale of its axis. Curves with few points, and curves on which x decreases somewhere, are kept whole.

    >>> x = np.linspace(0, 1, 100_000)
    >>> wave = np.sin(2000 * x)
    >>> kept = visible(x, wave)
    >>> kept.size <= 4 * COLUMNS, bool(wave[kept].max() == wave.max())
    (True, True)
    """
    if x.size <= 4 * COLUMNS or not (np.diff(x) >= 0).all() or not np.ptp(x):
        return np.arange(x.size)
    column = np.minimum((x - x[0]) / np.ptp(x) * COLUMNS, COLUMNS - 1).astype(int)
    starts = np.flatnonzero(np.diff(column, prepend=-1))
    kept = [starts, np.append(starts[1:], x.size) - 1]
    for y in curves:
        for sign in (1, -1):  # a gap (NaN) sorts last in its column, so the greatest number is found in the negative
            kept.append(np.lexsort((sign * y, column))[starts])
        # One missing point interrupts a line as well as many.
        kept.append(np.flatnonzero(np.diff(np.isnan(y).astype(int), prepend=0) == 1))
    return np.unique(np.concatenate(kept))


def short(value: Any, digits: int = 6) -> Any:
    """A value for JSON: its numbers rounded to ``digits`` significant digits; one that is not finite becomes None.

    >>> short({"y": [1 / 3, 2.0, float("nan"), 1.23456789e-20]})
    {'y': [0.333333, 2, None, 1.23457e-20]}
    """
    if isinstance(value, dict):
        return {key: short(one, digits) for key, one in value.items()}
    if isinstance(value, list | tuple | np.ndarray):
        return [short(one, digits) for one in value]
    if not isinstance(value, float):
        return int(value) if isinstance(value, np.integer) else value
    if not math.isfinite(value):
        return None
    rounded = float(f"{value:.{digits}g}")
    return int(rounded) if rounded.is_integer() and abs(rounded) < 1e15 else rounded
