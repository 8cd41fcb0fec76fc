"""The matplotlib renderer: a declared ``Figure`` becomes a PNG and an SVG file, without matplotlib's global state."""

from __future__ import annotations

import io
import math
import os
import re
import textwrap
import zlib
from collections.abc import Callable
from functools import singledispatch
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from contourpy import contour_generator
from matplotlib import patheffects
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure as Canvas
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.ticker import FixedLocator, FuncFormatter, MaxNLocator, NullFormatter

from gyrostat.figures.axis_scales import (
    MANY,
    capped,
    counts_only,
    diverged_at,
    dodged,
    edges,
    floored,
    shown,
    whole_numbers,
)
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
from gyrostat.figures.mathematics import mathtext, typeset, unicode_text
from gyrostat.figures.palette import GAPS, HEAT_COLOURS, PAGE_COLOURS, Looks

COLUMNS = 3
PANEL_HEIGHT, LEGEND_LINE, NOTE_LINE = 3.1, 0.21, 0.19
STYLE: dict[str, Any] = {
    "axes.axisbelow": True,
    "axes.grid": True,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlesize": 10.5,
    "font.size": 9.5,
    "grid.alpha": 0.25,
    "legend.fontsize": 8.5,
    "path.simplify_threshold": 0.2,
    "svg.hashsalt": "gyrostat",
    "text.parse_math": False,  # names are data: a dollar sign is a dollar sign, unless the figure has mathematics
}

OVER_DATA = 2.5
"""Theory is drawn over the measured curves (matplotlib's 2), in whatever order they are declared."""
ARROW: dict[str, Any] = {"linestyle": "none", "markersize": 8, "markerfacecolor": "none", "markeredgewidth": 1.4}
"""How a value beyond a limit looks."""


def render(figure: Figure, base: Path) -> list[Path]:
    """Draw ``figure`` to ``base.png`` and ``base.svg``; each file appears whole or not at all.

    >>> import tempfile
    >>> from gyrostat.figures.declarations import Line, Panel
    >>> curve = Line([0, 1, 2], [0, 1, 4], "x squared")
    >>> figure = Figure(title="Shapes", panels=[Panel(title="A parabola", xlabel="x", ylabel="y", series=[curve])])
    >>> [path.name for path in render(figure, Path(tempfile.mkdtemp()) / "shapes")]
    ['shapes.png', 'shapes.svg']
    """
    with mpl.rc_context(STYLE | {"text.parse_math": figure.mathematics}):  # type: ignore[arg-type]
        return save(draw(figure), base)


def save(canvas: Canvas, base: Path) -> list[Path]:
    """Write a canvas, laid out by :func:`settle`, as ``base.png`` and ``base.svg``."""
    base.parent.mkdir(parents=True, exist_ok=True)
    canvas.dpi, paths = 150, []
    # Not savefig, which draws everything twice to lay it out: the layout is fixed already.
    for kind, content in (("png", _png(canvas)), ("svg", _svg(canvas))):
        path = base.with_name(f"{base.name}.{kind}")
        hidden = path.with_name(f".{path.name}.part")
        hidden.write_bytes(content)
        os.replace(hidden, path)
        paths.append(path)
    return paths


def _png(canvas: Canvas) -> bytes:
    written = io.BytesIO()
    FigureCanvasAgg(canvas).print_png(written)
    return written.getvalue()


def _svg(canvas: Canvas) -> bytes:
    """The canvas as SVG. Control characters of names are replaced: XML cannot hold them, not even in a comment."""
    written = io.StringIO()
    FigureCanvasSVG(canvas).print_svg(written, metadata={"Date": None})
    return NOT_IN_XML.sub("\N{REPLACEMENT CHARACTER}", _with_stable_clips(written.getvalue())).encode()


def _with_stable_clips(svg: str) -> str:
    """Name clipping rectangles after their numbers as written.

    matplotlib names them after all digits, and the last digit of a layout can differ from one drawing to the next.
    """
    names = {name: f"p{zlib.crc32(rectangle.encode()):08x}" for name, rectangle in CLIP.findall(svg)}
    return re.sub("|".join(names) or "(?!)", lambda found: names[found[0]], svg)


MARKUP = re.compile(r"\$\\mathregular\{|\}\$|[_^]\{|\}|\\,?")
"""What :func:`gyrostat.figures.mathematics.mathtext` adds around the letters that are seen."""
INSIDE_FORMULAS = re.compile(
    r" (?=[=<>≤≥≈%]( |$|[.,;)]))|(?<= [=<>≤≥≈]) |(?<=\bE) (?=[‖|])|(?<=,) (?=[^ ,()\[\]]{1,8}[)\]])|(?<=,) (?=\[)"
)
"""Spaces at which a line is not broken: around a sign of equality or order, before a percent sign, after the sign of an
expectation, and before the last number of a short list in brackets."""
CLIP = re.compile(r'<clipPath id="(p[0-9a-f]{10})">\s*(<rect [^>]*>)')
NOT_IN_XML = re.compile("[\\x00-\\x08\\x0b\\x0c\\x0e-\\x1f\\ufffe\\uffff]")


class Drawing(Canvas):
    """A matplotlib figure that a notebook shows, also without pyplot."""

    def _repr_png_(self) -> bytes:
        written = io.BytesIO()
        FigureCanvasAgg(self)
        self.savefig(written, format="png", dpi=100)
        return written.getvalue()


def draw(figure: Figure) -> Canvas:
    """The figure on a matplotlib canvas: rows of panels, each with its legend below, the note last."""
    figure = typeset(figure, mathtext)
    columns = min(COLUMNS, figure.columns, len(figure.panels))
    rows = -(-len(figure.panels) // columns)
    width = {1: 6.6, 2: 9.6, 3: 13.2}[columns]
    letters = int(width / columns * 12)
    note = _balanced(figure.note, int(width * 14)).splitlines()
    in_rows = [figure.panels[r * columns : (r + 1) * columns] for r in range(rows)]
    legends = [_legend_height(panels, letters) for panels in in_rows]
    talls = [PANEL_HEIGHT * max(panel.height for panel in panels) for panels in in_rows]
    heights = [tall + legend for tall, legend in zip(talls, legends, strict=True)] + [NOTE_LINE * len(note) + 0.05]
    canvas = Drawing(figsize=(width, sum(heights) + 0.4), layout=ConstrainedLayoutEngine(w_pad=0.1, h_pad=0.06))
    canvas.suptitle(_balanced(figure.title, int(width * 9)), fontsize=12.5, fontweight="bold")
    grid = canvas.add_gridspec(rows + 1, columns, height_ratios=heights)
    for i, panel in enumerate(figure.panels):
        row, column = divmod(i, columns)
        # A subfigure each, so that the colour bar of one panel does not narrow the others.
        cell = canvas.add_subfigure(grid[row, column])
        above, below = cell.subplots(2, 1, height_ratios=[talls[row], legends[row]])
        _draw_panel(above, panel, letters)
        _draw_legend(below, above, _entries(panel), letters)
    if note:
        foot = canvas.add_subfigure(grid[-1, :])
        foot.text(0.5, 0.5, "\n".join(note), ha="center", va="center", color="#333333", fontsize=9)
    settle(canvas)
    return canvas


def settle(canvas: Canvas) -> None:
    """Lay out once and round the positions: the last digits of the solver differ from run to run, and files should not."""
    canvas.draw_without_rendering()
    canvas.set_layout_engine("none")
    for axes in canvas.axes:
        axes.set_position(np.round(axes.get_position().bounds, 5))


def _entries(panel: Panel) -> list[str]:
    """The labels of the legend: what was measured, then what it is compared with."""
    ordered = sorted(panel.series, key=lambda series: not series.is_measured)
    return list(dict.fromkeys(s.label for s in ordered if not isinstance(s, Heat)))


def _legend_columns(labels: list[str], letters: int) -> int:
    return 2 if len(labels) > 2 and max(map(_length, labels)) <= letters // 2 - 7 else 1


def _legend_height(panels: Any, letters: int) -> float:
    def lines(panel: Panel) -> int:
        labels = _entries(panel)
        if not labels:
            return 0
        count = sum(_folded(label, letters - 4).count("\n") + 1 for label in labels)
        return -(-count // _legend_columns(labels, letters))

    return LEGEND_LINE * max(map(lines, panels)) + 0.12


def _draw_legend(home: Axes, axes: Axes, wanted: list[str], letters: int) -> None:
    home.set_axis_off()
    drawn = dict(zip(*reversed(axes.get_legend_handles_labels()), strict=True))
    handles = {label: drawn[label] for label in map(_legend_label, wanted) if label in drawn}
    if handles:
        columns = _legend_columns(list(handles), letters)
        labels = [_folded(label, letters - 4) for label in handles]
        home.legend(
            handles.values(),
            labels,
            loc="upper center",
            ncols=columns,
            frameon=False,
            borderaxespad=0,
            handlelength=3,
        )


def _folded(text: str, letters: int = 38) -> str:
    """Text wrapped to lines that fit along the side of a panel, never inside mathematics."""
    text = INSIDE_FORMULAS.sub("\N{NO-BREAK SPACE}", text)
    if "$" not in text:
        return "\n".join(textwrap.wrap(text, letters, break_on_hyphens=False))
    lines: list[str] = []
    for word in text.split(" "):
        if lines and _length(lines[-1]) + 1 + _length(word) <= letters:
            lines[-1] += f" {word}"
        else:
            lines.append(word)
    return "\n".join(lines)


def _balanced(text: str, letters: int) -> str:
    """Text wrapped to as few lines as :func:`_folded` needs, all about equally long: no single word is left for the last.

    >>> _balanced("one two three four five", 19).splitlines()
    ['one two three', 'four five']
    """
    lines = _folded(text, letters).count("\n")
    while letters > 1 and _folded(text, letters - 1).count("\n") == lines:
        letters -= 1
    return _folded(text, letters)


def _length(text: str) -> int:
    """The number of letters that are seen."""
    return len(MARKUP.sub("", text))


def _legend_label(label: str) -> str:
    """A label that matplotlib shows: it leaves out those that begin with an underscore."""
    return f" {label}" if label.startswith("_") else label


def _draw_panel(axes: Axes, panel: Panel, letters: int) -> None:
    axes.set_title(_folded(panel.title, 46))
    axes.set_xlabel(_folded(panel.xlabel, 56))
    axes.set_ylabel(_folded(panel.ylabel))
    axes.set_xscale(panel.xscale)
    axes.set_yscale(panel.yscale)
    drawn = _MatplotlibPanel(axes, panel)
    for series in panel.series:
        _add(series, drawn)
    drawn.label_categories()
    _widen_single_values(axes, panel)
    if panel.xlim is not None:
        axes.set_xlim(*panel.xlim)
    if panel.ylim is not None:
        axes.set_ylim(*panel.ylim)
    for axis, scale, limits in (
        (axes.xaxis, panel.xscale, axes.get_xlim()),
        (axes.yaxis, panel.yscale, axes.get_ylim()),
    ):
        if scale == "log":
            _label_decades(axis, *limits)
        elif counts_only(panel, axis.axis_name):
            axis.set_major_locator(MaxNLocator(integer=True))
    if panel.xscale == "linear" and not drawn.categories:
        room = letters - max(map(_length, drawn.lines), default=0)  # names of categories stand to the left
        _space_ticks(axes.xaxis, room, whole=whole_numbers(panel, "x"))


def _space_ticks(axis: Axis, letters: int, *, whole: bool) -> None:
    """Fewer ticks if their labels would touch, which matplotlib's own choice does not rule out; none between whole numbers."""
    low, high = axis.get_view_interval()
    for count in range(9, 2, -1):
        locator = MaxNLocator(count, steps=[1, 2, 2.5, 5, 10], integer=whole)
        ticks = [tick for tick in locator.tick_values(low, high) if low <= tick <= high]
        longest = max((len(f"{tick:g}") for tick in ticks), default=0)  # all labels get as many decimals
        if len(ticks) * (longest + 2.5) <= 0.85 * letters:
            break
    axis.set_major_locator(locator)


def _widen_single_values(axes: Axes, panel: Panel) -> None:
    """A log axis on which all data share one value reaches from its half to its double: it has no width by itself."""
    (left, right), (bottom, top) = axes.dataLim.intervalx, axes.dataLim.intervaly
    if panel.xscale == "log" and left > 0 and math.isclose(left, right):
        axes.set_autoscalex_on(False)
        axes.set_xlim(left / 2, right * 2)
    if panel.yscale == "log" and bottom > 0 and math.isclose(bottom, top):
        axes.set_autoscaley_on(False)
        axes.set_ylim(bottom / 2, top * 2)


def power_of_ten(value: float) -> str:
    """The label of a decade without mathematical markup.

    >>> power_of_ten(1e-12), power_of_ten(200)
    ('10⁻¹²', '200')
    """
    exponent = round(math.log10(value)) if value > 0 else 0
    if not math.isclose(value, 10.0**exponent):
        return f"{value:g}"
    return "10" + str(exponent).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))


def short_number(value: float, *, power: bool = False) -> str:
    """The label of a tick with at most three digits; below a thousandth, and from a million on, with a power of ten.

    >>> short_number(0.05), short_number(2e-4), short_number(20000), short_number(5e6)
    ('0.05', '2·10⁻⁴', '20000', '5·10⁶')
    >>> short_number(0.002, power=True), short_number(0.01, power=True)
    ('2·10⁻³', '10⁻²')
    """
    digits = float(f"{value:.3g}")
    if not power and (_is_plain(digits) or digits == 0):
        return f"{digits:g}"
    mantissa, _, exponent = f"{digits:.2e}".partition("e")
    return unicode_text(f"{float(mantissa):g}e{int(exponent)}")


def _is_plain(value: float) -> bool:
    return 1e-3 <= abs(value) < 1e6


SPARSE, DENSE = (1.0, 2.0, 5.0), (1.0, 1.5, 2.0, 3.0, 5.0, 7.0)
"""Labelled multiples of powers of ten on a short log axis, and on a very short one: neighbours are about as far apart."""


def short_axis_ticks(low: float, high: float) -> list[float]:
    """At least two numbers to label on a log axis of less than two decades; round numbers if it is shorter than a factor 1.5.

    Not matplotlib's ``LogLocator``, which labels 8, 9, 10 or 0.03, 0.04, ..., 0.08 where it finds fewer than two numbers.

    >>> short_axis_ticks(9.0, 45.0), short_axis_ticks(0.029, 0.085), short_axis_ticks(7.8, 10.2)
    ([10.0, 20.0], [0.03, 0.05, 0.07], [8.0, 9.0, 10.0])
    """
    exponents = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    for multiples in (SPARSE, DENSE):
        ticks = [float(f"{multiple}e{exponent}") for exponent in exponents for multiple in multiples]
        inside = [tick for tick in ticks if low <= tick <= high]
        if len(inside) > 1:
            return inside
    return [
        float(f"{tick:.12g}")
        for tick in MaxNLocator(4, steps=[1, 2, 5, 10]).tick_values(low, high)
        if low <= tick <= high
    ]


def _label_decades(axis: Axis, low: float, high: float) -> None:
    """Label a short log axis at 1, 2 and 5 times a power of ten, or more densely if fewer than two of these are on it."""
    axis.set_minor_formatter(NullFormatter())
    axis.set_major_formatter(FuncFormatter(lambda value, _: power_of_ten(value)))
    if high >= 100 * low:
        return
    ticks = short_axis_ticks(low, high)
    axis.set_major_locator(FixedLocator(ticks))
    power = not all(map(_is_plain, ticks))  # all labels of an axis alike, not 5·10⁻⁴ beside 0.001
    axis.set_major_formatter(FuncFormatter(lambda value, _: short_number(value, power=power)))


class _MatplotlibPanel:
    """A panel while its series are added: its axes, its looks, and what one series must know of the others."""

    def __init__(self, axes: Axes, panel: Panel):
        self.axes, self.panel, self.looks = axes, panel, Looks()
        self.bars = [s for s in panel.series if isinstance(s, Bars)]
        self.categories = list(dict.fromkeys(c for s in self.bars for c in s.categories))
        self.dots = [s for s in panel.series if isinstance(s, Dots)]
        self.lines = list(dict.fromkeys(c for s in self.dots for c in s.categories))
        heat = any(isinstance(s, Heat) for s in panel.series)
        halo = [patheffects.withStroke(linewidth=3.5, foreground="white")]
        self.over: dict[str, Any] = {"path_effects": halo} if heat else {}

    def x(self, values: Any) -> np.ndarray:
        return shown(values, self.panel.xscale)

    def y(self, values: Any) -> np.ndarray:
        return shown(values, self.panel.yscale)

    def whiskers(self, y: np.ndarray, low: Any, high: Any, *, along: str = "y") -> np.ndarray | None:
        """Distances below and above along an axis, as matplotlib expects them."""
        if low is None or high is None:
            return None
        scale = self.panel.xscale if along == "x" else self.panel.yscale
        limits = self.panel.xlim if along == "x" else self.panel.ylim
        low, high = floored(low, y, scale), capped(high, scale, limits, y)
        return np.nan_to_num(np.clip([y - low, high - y], 0, None))

    def measured(self, x: np.ndarray, y: np.ndarray, label: str, look: dict[str, Any], *, over: bool) -> None:
        """A curve with its marker; with gaps, if it lies over another one."""
        every = 1 if x.size <= 15 else (0.05 * (len(self.axes.lines) % 4), 0.2)
        dashes: dict[str, Any] = {"linestyle": (0, GAPS)} if over else {}
        self.axes.plot(
            x,
            y,
            label=_legend_label(label),
            linewidth=1.6,
            markersize=4,
            markevery=every,
            **look,
            **dashes,
            **self.over,
        )

    def label_categories(self) -> None:
        if self.categories:
            long = max(map(_length, self.categories)) * len(self.categories) > 44
            turn: dict[str, Any] = {"rotation": 25, "ha": "right", "rotation_mode": "anchor"} if long else {}
            self.axes.set_xticks(range(len(self.categories)), self.categories, **turn)
            self.axes.grid(False, axis="x")
        if self.lines:
            self.axes.set_yticks(range(len(self.lines)), self.lines)
            self.axes.set_ylim(len(self.lines) - 0.5, -0.5)
            self.axes.grid(False, axis="y")
            for edge in range(1, len(self.lines)):
                self.axes.axhline(edge - 0.5, color="#DDDDDD", linewidth=0.8)


@singledispatch
def _add(series: Series, at: _MatplotlibPanel) -> None:
    raise TypeError(f"cannot draw a {type(series).__name__}: register it with _draws.")


def _draws(kind: type) -> Callable[[Callable[[Any, _MatplotlibPanel], None]], Any]:
    return _add.register(kind)


@_draws(Line)
def _line(line: Line, at: _MatplotlibPanel) -> None:
    x, y = at.x(line.x), at.y(line.y)
    if line.role == "measured":
        at.measured(x, y, line.label, at.looks.series(line.colour), over=line.over)
    else:
        look = at.looks.rule(line.role, line.label, line.colour)
        at.axes.plot(x, y, label=_legend_label(line.label), zorder=OVER_DATA, **look, **at.over)


@_draws(Band)
def _band(band: Band, at: _MatplotlibPanel) -> None:
    x, middle = at.x(band.x), at.y(band.middle)
    look = at.looks.series(band.colour)
    at.axes.fill_between(
        x,
        floored(band.low, middle, at.panel.yscale),
        capped(band.high, at.panel.yscale, at.panel.ylim, band.middle, band.low),
        color=look["color"],
        alpha=0.2,
        linewidth=0,
    )
    at.measured(x, middle, band.label, look, over=band.over)
    lost = diverged_at(band.x, band.middle)
    if lost is not None:
        top: dict[str, Any] = {
            "transform": at.axes.get_xaxis_transform(),
            "marker": "x",
            "markersize": 8,
            "markeredgewidth": 2,
        }
        at.axes.plot([lost], [0.96], color=look["color"], **top)


@_draws(Runs)
def _runs(runs: Runs, at: _MatplotlibPanel) -> None:
    colour, label = at.looks.series(runs.colour)["color"], _legend_label(runs.label)
    for x, y in runs.curves():
        at.axes.plot(at.x(x), at.y(y), label=label, color=colour, linewidth=1.0, alpha=0.7)


@_draws(Points)
def _points(points: Points, at: _MatplotlibPanel) -> None:
    x, y = at.x(dodged(points, at.panel)), at.y(points.y)
    at.axes.errorbar(
        x,
        y,
        at.whiskers(y, points.low, points.high),
        label=_legend_label(points.label),
        linestyle="none",
        markersize=5 if x.size <= MANY else 2,
        alpha=None if x.size <= MANY else 0.5,
        elinewidth=1.1,
        capsize=2.5,
        **at.looks.series(points.colour),
        **at.over,
    )
    for name, across, up in zip(points.names, x, y, strict=False):
        at.axes.annotate(
            name, (across, up), (6, 0), textcoords="offset points", va="center", fontsize=8, color="#333333"
        )


@_draws(Bars)
def _bars(bars: Bars, at: _MatplotlibPanel) -> None:
    position = next(i for i, other in enumerate(at.bars) if other is bars)
    width = 0.8 / len(at.bars)
    shift = (position - (len(at.bars) - 1) / 2) * width
    x = np.array([at.categories.index(c) for c in bars.categories]) + shift
    y = at.y(bars.values)
    colour = at.looks.series(bars.colour)["color"]
    at.axes.bar(
        x,
        y,
        width * 0.92,
        label=_legend_label(bars.label),
        color=colour,
        yerr=at.whiskers(y, bars.low, bars.high),
        capsize=2.5,
        hatch=("", "//", "..", "xx")[position % 4],
        edgecolor="white",
        linewidth=0,
        error_kw={"elinewidth": 1.1, "ecolor": "#333333"},
    )


@_draws(Dots)
def _dots(dots: Dots, at: _MatplotlibPanel) -> None:
    position = next(i for i, other in enumerate(at.dots) if other is dots)
    y = np.array([at.lines.index(c) for c in dots.categories]) + 0.8 * ((position + 0.5) / len(at.dots) - 0.5)
    x, look = at.x(dots.values), at.looks.series(dots.colour)
    reached = x if dots.beyond is None else np.where(dots.beyond, np.nan, x)
    at.axes.errorbar(
        reached,
        y,
        xerr=at.whiskers(x, dots.low, dots.high, along="x"),
        label=_legend_label(dots.label),
        linestyle="none",
        markersize=4.5,
        elinewidth=1.1,
        **look,
    )
    if dots.beyond is not None:
        at.axes.plot(
            x, y, ">", markevery=list(np.flatnonzero(dots.beyond)), **ARROW | {"markeredgecolor": look["color"]}
        )


@_draws(Marker)
def _marker(marker: Marker, at: _MatplotlibPanel) -> None:
    draw_line = at.axes.axvline if marker.axis == "x" else at.axes.axhline
    look = at.looks.rule(marker.role, marker.label, marker.colour)
    draw_line(marker.at, label=_legend_label(marker.label), **look, **at.over)


@_draws(Heat)
def _heat(heat: Heat, at: _MatplotlibPanel) -> None:
    x, y = (edges(np.asarray(c, dtype=float), s) for c, s in ((heat.x, at.panel.xscale), (heat.y, at.panel.yscale)))
    values = np.ma.masked_invalid(np.asarray(heat.z, dtype=float))
    # Rasterised: a vector file with thousands of small squares is slow to open.
    mesh = at.axes.pcolormesh(x, y, values, vmin=heat.low, vmax=heat.high, cmap=HEAT_COLOURS, rasterized=True)
    at.axes.set_facecolor(PAGE_COLOURS["gap"][0])
    at.axes.grid(False)
    bar = at.axes.figure.colorbar(mesh, ax=at.axes, pad=0.02)
    bar.set_label(_folded(heat.label))


@_draws(Contour)
def _contour(contour: Contour, at: _MatplotlibPanel) -> None:
    x, y = at.x(contour.x), at.y(contour.y)
    white = contour.role == "measured"
    look: dict[str, Any] = {"color": "white", "linewidth": 2.2} if white else at.looks.rule(contour.role, contour.label)
    halo = [patheffects.withStroke(linewidth=look["linewidth"] + 2, foreground="black" if white else "white")]
    label: str | None = _legend_label(contour.label)
    for path in contour_generator(x, y, np.asarray(contour.z, dtype=float)).lines(contour.level):
        at.axes.plot(*np.asarray(path).T, label=label, path_effects=halo, **look)
        label = None  # one legend entry for all pieces
