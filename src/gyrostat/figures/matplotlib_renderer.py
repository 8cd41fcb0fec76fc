"""Files: a declared ``Figure`` becomes a matplotlib canvas, laid out in inches by measuring, for a page or for print.

For print (``width``) the canvas is exactly as wide as asked, its letters are those of a journal, and title and note are left to
the caption. Nothing here touches matplotlib's global state.
"""

from __future__ import annotations

import functools
import io
import os
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib import patheffects
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.axis import Axis as Ruler
from matplotlib.backends.backend_agg import FigureCanvasAgg, RendererAgg
from matplotlib.figure import Figure as Canvas
from matplotlib.font_manager import FontProperties
from matplotlib.text import Text
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter

from gyrostat.errors import GyrostatError
from gyrostat.figures.declarations import Figure, Panel
from gyrostat.figures.mathematics import mathtext
from gyrostat.figures.palette import HEAT_COLOURS, PAGE_COLOURS
from gyrostat.figures.panel_canvas import MANY, Axis, Look, PanelCanvas
from gyrostat.figures.pgf import pgf_text

WIDTHS = {"column": 3.3, "text": 6.9}
"""Widths in print, in inches: one column of a page with two, and the whole page."""
PAGE_WIDTHS = {1: 6.6, 2: 9.6, 3: 13.2}
"""Widths of figures with one, two and three panels in a row on a page of our own."""
SUFFIXES = (".png", ".svg", ".pdf", ".pgf")
PANEL_HEIGHT, NARROWEST, GAP = 2.5, 2.1, 0.08
"""Inches: the usual height of a panel, the least width of one in print, and the space between two things."""
STYLE: dict[str, Any] = {
    "axes.axisbelow": True,
    "axes.grid": True,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlesize": 10.5,
    "figure.titlesize": 12.5,
    "figure.titleweight": "bold",
    "font.size": 9.5,
    "grid.alpha": 0.25,
    "legend.borderaxespad": 0,
    "legend.fontsize": 8.5,
    "legend.frameon": False,
    "legend.handlelength": 3,
    "lines.linewidth": 1.6,
    "path.simplify_threshold": 0.2,
    "pdf.fonttype": 42,  # letters that journals accept and readers can search
    "svg.hashsalt": "gyrostat",
}
PRINT = STYLE | {
    "axes.linewidth": 0.6,
    "axes.titlesize": 8,
    "font.size": 7.5,
    "legend.fontsize": 7,
    "lines.linewidth": 1.2,
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
}
WHISKERS: dict[str, Any] = {"elinewidth": 1.1, "capsize": 2.5}
HELD_TOGETHER = re.compile(r" (?=[=<>≤≥≈] )|(?<= [=<>≤≥≈]) ")
"""Spaces around a sign of equality or order: no line is broken there."""
NOT_IN_XML = re.compile("[\\x00-\\x08\\x0b\\x0c\\x0e-\\x1f\\ufffe\\uffff]")


class Drawing(Canvas):
    """A matplotlib figure that a notebook shows, also without pyplot."""

    def _repr_png_(self) -> bytes:
        return _content(self, "png", 100)


def render(figure: Figure, base: Path) -> list[Path]:
    """Draw ``figure`` to ``base.png`` and ``base.svg``; each file appears whole or not at all.

    >>> import tempfile
    >>> from gyrostat.figures.declarations import Line, Panel
    >>> curve = Line([0, 1, 2], [0, 1, 4], "x squared")
    >>> figure = Figure(title="Shapes", panels=[Panel(title="A parabola", xlabel="x", ylabel="y", series=[curve])])
    >>> [path.name for path in render(figure, Path(tempfile.mkdtemp()) / "shapes")]
    ['shapes.png', 'shapes.svg']
    """
    canvas = draw(figure)
    return [write(canvas, base.with_name(base.name + suffix)) for suffix in (".png", ".svg")]


def write(canvas: Canvas, path: Path, dpi: int = 150) -> Path:
    """Write a canvas to a file, whole or not at all, in the format that its name says."""
    path.parent.mkdir(parents=True, exist_ok=True)
    hidden = path.with_name(f".{path.name}.part")
    hidden.write_bytes(_content(canvas, path.suffix[1:], dpi))
    os.replace(hidden, path)
    return path


def _content(canvas: Canvas, kind: str, dpi: int) -> bytes:
    content, undated = io.BytesIO(), {"svg": {"Date": None}, "pdf": {"CreationDate": None}}
    with mpl.rc_context(STYLE):  # type: ignore[arg-type]
        if kind == "pgf":
            return pgf_text(canvas).encode()
        canvas.savefig(content, format=kind, dpi=dpi, metadata=undated.get(kind))
    if kind != "svg":
        return content.getvalue()
    # XML cannot hold the control characters of names, not even in a comment.
    return NOT_IN_XML.sub("\N{REPLACEMENT CHARACTER}", content.getvalue().decode()).encode()


def draw(figure: Figure, width: float | str | None = None) -> Drawing:
    """The figure on a matplotlib canvas: rows of panels, each with its legend below, the note last.

    With ``width`` (``"column"``, ``"text"`` or inches) it is made for print: exactly as wide, without title and note.
    """
    inches = print_width(width)
    columns = min(figure.columns, len(figure.panels), max(int(inches / NARROWEST), 1) if inches else 3)
    across = inches or PAGE_WIDTHS[columns]
    write = mathtext if figure.mathematics else _as_it_is
    with mpl.rc_context(PRINT if inches else STYLE):  # type: ignore[arg-type]
        canvas = Drawing(figsize=(across, 10.0))
        panels = [_MatplotlibPanel(canvas.add_subplot(), panel, write, across / columns) for panel in figure.panels]
        title, note = ("", "") if inches else (write(figure.title), write(figure.note))
        head = canvas.suptitle(_balanced(title, 0.85 * across, 12.5), va="top")
        foot = canvas.text(0.5, 0, _balanced(note, 0.9 * across, 9), ha="center", va="bottom", color="#333333", size=9)
        narrowest = _lay_out(canvas, panels, columns, head, foot)
    if narrowest < 0.4 * across / columns and columns > 1:
        return draw(replace(figure, columns=columns - 1), width)
    return canvas


def print_width(width: float | str | None) -> float | None:
    """The width of a figure for print in inches; None for a page.

    >>> print_width("column"), print_width(5), print_width(None)
    (3.3, 5, None)
    """
    inches = WIDTHS.get(width) if isinstance(width, str) else width
    if width is not None and (inches is None or not 1 <= inches <= 50):
        raise GyrostatError(f"width must be {', '.join(map(repr, WIDTHS))} or inches from 1 to 50; got {width!r}.")
    return inches


class _MatplotlibPanel(PanelCanvas):
    """A panel drawn on matplotlib's axes, ``width`` inches wide with its labels, and its legend."""

    def __init__(self, axes: Axes, panel: Panel, write: Callable[[str], str], width: float):
        self.axes, self.width, self.height = axes, width, min(PANEL_HEIGHT, 0.55 * width) * panel.height
        self.handles: dict[str, tuple[bool, Artist]] = {}
        size = mpl.rcParams["font.size"]
        axes.set_title(_balanced(write(panel.title), 0.9 * width, mpl.rcParams["axes.titlesize"]))
        axes.set_xlabel(_balanced(write(panel.xlabel), 0.9 * width, size))
        axes.set_ylabel(_balanced(write(panel.ylabel), 1.1 * self.height, size))
        axes.set(xscale=panel.xscale, yscale=panel.yscale)
        super().__init__(panel, write)
        self._ticks(axes.xaxis, "x")
        self._ticks(axes.yaxis, "y")
        self.legend = self._legend()

    def _ticks(self, ruler: Ruler, axis: Axis) -> None:
        """Limits and ticks: categories, whole numbers where the data are, and several labels on a short log axis."""
        if limits := self.limits(axis):
            self.axes.set(**{f"{axis}lim": limits})
        if names := [self.write(name) for name in self.categories(axis)]:
            size = mpl.rcParams["font.size"]
            long = axis == "x" and sum(_length(f"{name}xx", size) for name in names) > 0.7 * self.width
            slanted: dict[str, Any] = {"rotation": 25, "ha": "right", "rotation_mode": "anchor"} if long else {}
            if axis == "y":
                names = [_folded(name, 0.4 * self.width, size) for name in names]
                lines = max(name.count("\n") + 1 for name in names)
                self.height = max(self.height, 1.3 * lines * len(names) * size / 72)
                for border in range(1, len(names)):
                    self.axes.axhline(border - 0.5, color="#DDDDDD", linewidth=0.8)
            ruler.set_ticks(range(len(names)), names, **slanted)
            ruler.grid(False)
        elif self.scale[axis] == "linear":
            ruler.set_major_locator(MaxNLocator(9, steps=[1, 2, 2.5, 5, 10], integer=self.whole_numbers(axis)))
        elif (ends := ruler.get_view_interval())[1] < 100 * ends[0]:
            plain = ends[0] >= 1e-3 and ends[1] < 1e6  # all labels of an axis alike, not 5·10⁻⁴ beside 0.001
            ruler.set_major_locator(LogLocator(subs=(1, 2, 5)))
            ruler.set_major_formatter(FuncFormatter(lambda x, _: f"{x:g}" if plain else mathtext(f"{x:.0e}")))
            ruler.set_minor_formatter(NullFormatter())

    def space_ticks(self, pen: RendererAgg) -> None:
        """As many ticks as have room for their labels, when the size of the axes is known."""
        for ruler, side, blank in ((self.axes.xaxis, "width", 1.4), (self.axes.yaxis, "height", 2)):
            if isinstance(locator := ruler.get_major_locator(), MaxNLocator):
                locator.set_params(nbins=9)  # with the most decimals
                longest = max(getattr(label.get_window_extent(pen), side) for label in ruler.get_ticklabels())
                locator.set_params(nbins=int(np.clip(getattr(self.axes.bbox, side) / longest / blank, 2, 9)))

    def _legend(self) -> Any:
        """What was measured, then what it is compared with, in two columns if they are short."""
        named = sorted(self.handles.items(), key=lambda entry: entry[1][0])
        size = mpl.rcParams["legend.fontsize"]
        room = self.width - size * (mpl.rcParams["legend.handlelength"] + 1.5) / 72 - 2 * GAP
        words = [_folded(self.write(label), room, size) for label, _ in named]
        longest = max((_length(line, size) for word in words for line in word.splitlines()), default=0.0)
        columns = 2 if len(words) > 2 and longest < room - self.width / 2 else 1
        shown = [f" {word}" if word.startswith("_") else word for word in words]  # matplotlib hides those
        artists = [artist for _, (_, artist) in named]
        legend = self.axes.legend(artists, shown, loc="upper center", ncols=columns, columnspacing=1.2)
        legend.set_in_layout(False)
        return legend

    def _named(self, look: Look, artist: Any) -> None:
        artist.set_label(look.label)
        if look.label:
            self.handles.setdefault(look.label, (look.role != "measured", artist))

    # ------------------------------------------------------------------------------------------ the six shapes

    def curve(self, x: Any, y: Any, look: Look, low: Any = None, high: Any = None) -> None:
        a, b, pen = self.shown(x, "x"), self.shown(y, "y"), _pen(look)
        pen["zorder"] = 2 if look.role == "measured" else 2.5  # theory is drawn over the measured curves
        if look.marker:
            pen |= {
                "marker": look.marker,
                "markersize": 2.5 * pen["linewidth"],
                "markevery": self.marked(a, b).tolist(),
            }
            pen |= {} if look.role == "measured" else {"markerfacecolor": "white", "markeredgewidth": 0.8}
        (line,) = self.axes.plot(a, b, alpha=look.opacity, **pen)
        self._named(look, line)

    def area(self, x: Any, low: Any, high: Any, look: Look) -> None:
        low, high = self.ends(low, high, low)
        self.axes.fill_between(self.shown(x, "x"), low, high, color=look.colour, alpha=0.2, linewidth=0)

    def spots(self, x: Any, y: Any, look: Look, low: Any = None, high: Any = None, along: Axis = "y") -> None:
        a, b, pen = self.shown(x, "x"), self.shown(y, "y"), _pen(look) | WHISKERS
        pen |= {f"{along}err": self.whiskers(low, high, a if along == "x" else b, along), "linestyle": "none"}
        pen |= {"marker": look.marker, "markersize": 3.2 * mpl.rcParams["lines.linewidth"]}
        if look.marker in "<>x":  # an open arrow, a cross
            pen |= {"markerfacecolor": "none", "markeredgewidth": 1.4, "markersize": 1.5 * pen["markersize"]}
        if a.size > MANY:
            pen |= {"markersize": 2, "alpha": 0.5}
        self._named(look, self.axes.errorbar(a, b, clip_on=look.marker != "x", **pen))

    def boxes(self, x: Any, y: Any, look: Look, width: float, low: Any, high: Any) -> None:
        heights = self.shown(y, "y")
        error: dict[str, Any] = {
            "yerr": self.whiskers(low, high, heights, "y"),
            "error_kw": WHISKERS | {"ecolor": "#333333"},
        }
        style: dict[str, Any] = {"color": look.colour, "edgecolor": "white", "linewidth": 0, "hatch": 2 * look.hatch}
        self._named(look, self.axes.bar(x, heights, width, **style, **error))

    def rule(self, axis: Axis, at: float, look: Look, to: float | None = None) -> None:
        line, strip = (self.axes.axvline, self.axes.axvspan) if axis == "x" else (self.axes.axhline, self.axes.axhspan)
        drawn = line(at, **_pen(look)) if to is None else strip(at, to, color=look.colour, alpha=0.2, linewidth=0)
        self._named(look, drawn)

    def cells(self, x: Any, y: Any, z: Any, look: Look, low: float | None, high: float | None) -> None:
        borders, values = (self.borders(x, "x"), self.borders(y, "y")), np.ma.masked_invalid(np.asarray(z, dtype=float))
        # Rasterised: a vector file with thousands of small squares is slow to open.
        mesh = self.axes.pcolormesh(*borders, values, vmin=low, vmax=high, cmap=HEAT_COLOURS, rasterized=True)
        self.axes.set_facecolor(PAGE_COLOURS["gap"][0])
        self.axes.grid(False)
        bar = self.axes.figure.colorbar(mesh, cax=self.axes.inset_axes((1.03, 0, 0.04, 1)))
        bar.set_label(_balanced(self.write(look.label), self.height, mpl.rcParams["font.size"]))


def _pen(look: Look) -> dict[str, Any]:
    width = look.width * mpl.rcParams["lines.linewidth"] / STYLE["lines.linewidth"]
    rim = [patheffects.withStroke(linewidth=width + 2, foreground=look.rim)] if look.rim else []
    dash = (0, tuple(look.dash)) if look.dash else "-"
    return {"color": look.colour, "linewidth": width, "linestyle": dash, "path_effects": rim}


def _lay_out(canvas: Canvas, panels: Sequence[_MatplotlibPanel], columns: int, head: Text, foot: Text) -> float:
    """Give each panel its height, and the width that labels leave in its column; the canvas becomes as high as it must be.

    Returns the width of the narrowest axes. Not matplotlib's constrained layout, which shares out a height that nobody knows
    in advance, and whose last digits differ from run to run. All numbers are inches.
    """
    pen, across, dpi = FigureCanvasAgg(canvas).get_renderer(), canvas.get_figwidth(), canvas.dpi

    def height(artist: Any) -> float:
        return artist.get_window_extent(pen).height / dpi

    column, rows = across / columns, [panels[i : i + columns] for i in range(0, len(panels), columns)]
    heights = np.array([max(panel.height for panel in row) for row in rows])
    legends = np.array([max(height(panel.legend) if panel.handles else 0.0 for panel in row) for row in rows])
    placed = [(panel, divmod(i, columns)) for i, panel in enumerate(panels)]
    labels = np.full((len(rows), columns, 4), (0.6, 0.2, 0.0, 0.0))  # to the left, to the right, above, below
    for _ in range(3):  # ticks, and so the width of their labels, depend on the size of the panel
        left, right = labels[..., :2].max(axis=0).T
        rooms = np.maximum(column - left - right - 2 * GAP, 0.3 * column)
        for panel, (row, c) in placed:
            panel.axes.set_position((0, 0, rooms[c] / across, heights[row] / canvas.get_figheight()))
            panel.space_ticks(pen)
            inner: Any = panel.axes.get_window_extent(pen)
            outer: Any = panel.axes.get_tightbbox(pen, for_layout_only=True)
            sides = inner.x0 - outer.x0, outer.x1 - inner.x1, outer.y1 - inner.y1, inner.y0 - outer.y0
            labels[row, c] = np.array(sides) / dpi
    above, below = labels[..., 2:].max(axis=1).T
    top, bottom = (height(text) + 2 * GAP if text.get_text() else GAP for text in (head, foot))
    ends = top + np.cumsum(above + heights + below + legends + 3 * GAP)  # of rows, from the top
    total = ends[-1] + bottom
    canvas.set_size_inches(across, total)
    head.set_position((0.5, 1 - GAP / total))
    foot.set_position((0.5, GAP / total))
    for panel, (row, c) in placed:
        below_axes, corner = total - ends[row] + legends[row] + 2 * GAP, c * column + left[c] + GAP
        bounds = corner / across, (below_axes + below[row]) / total, rooms[c] / across, heights[row] / total
        panel.axes.set_position(bounds)
        for label in (panel.axes.title, panel.axes.xaxis.label):  # over the axes, as far as the column allows
            half = min(label.get_window_extent(pen).width / dpi, column) / 2
            middle = np.clip(corner + rooms[c] / 2, c * column + half, (c + 1) * column - half)
            label.set_x((middle - corner) / rooms[c])
        anchor = (c + 0.5) / columns, (below_axes - GAP) / total
        panel.legend.set_bbox_to_anchor(anchor, transform=canvas.transFigure)
    return float(rooms.min())


def _as_it_is(text: str) -> str:
    """A text that is data: a dollar sign is a dollar sign."""
    return text.replace("$", r"\$")


@functools.cache
def _pen_for_measuring() -> RendererAgg:
    return RendererAgg(1, 1, 72)


@functools.lru_cache(10_000)
def _length(text: str, size: float) -> float:
    """The length of a line of text in inches."""
    formula = "$" in text.replace(r"\$", "")
    shown = text if formula else text.replace(r"\$", "$")
    return _pen_for_measuring().get_text_width_height_descent(shown, FontProperties(size=size), formula)[0] / 72


def _folded(text: str, inches: float, size: float) -> str:
    """Text in lines of at most so many inches, never broken inside mathematics or around a sign of equality."""
    lines, used, blank = [""], 0.0, _length("n n", size) - _length("nn", size)
    for word in HELD_TOGETHER.sub("\N{NO-BREAK SPACE}", text).split(" "):
        most = len(word) if "$" in word else max(int(len(word) * inches / (_length(word, size) or inches)), 1)
        for part in [word[i : i + most] for i in range(0, len(word), most)]:
            longer = used + blank + _length(part, size)
            if lines[-1] and longer > inches:
                lines.append(part)
                used = longer - used - blank
            else:
                lines[-1], used = f"{lines[-1]} {part}".lstrip(" "), longer
    return "\n".join(lines)


def _balanced(text: str, inches: float, size: float) -> str:
    """Text in as few lines as :func:`_folded` needs, all about equally long: no single word is left for the last.

    >>> _balanced("one two three four five", 1.1, 10).splitlines()
    ['one two three', 'four five']
    """
    folded = best = _folded(text, inches, size)
    while folded.count("\n") == best.count("\n") and "\n" in best:
        best, inches = folded, 0.95 * inches
        folded = _folded(text, inches, size)
    return best
