"""Between what is shown and how: a series draws itself with six shapes, and each renderer is a canvas that has them.

A new kind of series is one class with one method, ``draw``, and looks the same in files and on pages; a new renderer is one
class with six. What both must decide alike stands here: places on linear and log axes, colours, dashes and markers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from gyrostat.figures.palette import COLOURS, DASHES, HATCHES, INKS, MARKERS, STRETCH

if TYPE_CHECKING:
    from gyrostat.figures.declarations import Panel, Series

Axis = Literal["x", "y"]
Limits = tuple[float | None, float | None] | None
FEW, SOME, MANY = 15, 5, 300
"""A curve of few points has a marker at each, a longer one has some. Many points are drawn small and translucent."""
DODGE = 0.012
"""How far intervals at the same place are moved apart, in widths of the panel."""


@dataclass(frozen=True)
class Look:
    """The label of a shape in the legend, its colour and marker, its width in points, and its dashes and gaps in widths.

    A ``rim`` sets it off from the cells below, a ``hatch`` is for bars. What is not measured has open markers.
    """

    label: str
    colour: str = INKS[0]
    marker: str = ""
    role: str = "measured"
    width: float = 1.6
    dash: Sequence[float] = ()
    rim: str = ""
    hatch: str = ""
    opacity: float = 1.0


class PanelCanvas:
    """A panel on which its series draw themselves, in their order. Coordinates are those of the data."""

    def __init__(self, panel: Panel, write: Callable[[str], str]):
        self.panel, self.write = panel, write
        self.scale = {"x": panel.xscale, "y": panel.yscale}
        self.rim = "#FFFFFF" if any(series.fills_panel for series in panel.series) else ""
        self._coloured, self._marked = 0, 0
        self._inks: dict[str, int] = {}
        self.extent = {"x": (np.nan, np.nan), "y": (np.nan, np.nan)}
        for series in panel.series:
            series.draw(self)

    # ------------------------------------------------------------------------------------------ the six shapes

    def curve(self, x: Any, y: Any, look: Look, low: Any = None, high: Any = None) -> None:
        """A line through points, interrupted where a number is missing; a page says ``low`` and ``high`` at the pointer."""
        raise NotImplementedError

    def area(self, x: Any, low: Any, high: Any, look: Look) -> None:
        """What lies between two curves."""
        raise NotImplementedError

    def spots(self, x: Any, y: Any, look: Look, low: Any = None, high: Any = None, along: Axis = "y") -> None:
        """Markers, with whiskers along an axis."""
        raise NotImplementedError

    def boxes(self, x: Any, y: Any, look: Look, width: float, low: Any, high: Any) -> None:
        """Bars from zero up, with whiskers."""
        raise NotImplementedError

    def rule(self, axis: Axis, at: float, look: Look, to: float | None = None) -> None:
        """A straight line across the panel at one value of an axis, or a strip up to a second value."""
        raise NotImplementedError

    def cells(self, x: Any, y: Any, z: Any, look: Look, low: float | None, high: float | None) -> None:
        """A coloured cell for every value on a grid (rows follow y), with a scale of colours."""
        raise NotImplementedError

    # --------------------------------------------------------------------------------------------------- looks

    def look(self, series: Series) -> Look:
        """The next colour and marker for what was measured; an ink and dashes for a line of another role.

        Lines that are not measured look alike if they have the same label, as their legend says. Their dashes differ as their
        inks do, and in the colour of a measured curve they have its marker, so that grey is enough to tell them apart.
        """
        colour: int | None = getattr(series, "colour", None)
        role: str = getattr(series, "role", "measured")
        if role == "measured":
            i, hatch = self._coloured if colour is None else colour, HATCHES[self._coloured % len(HATCHES)]
            self._coloured += 1
            return Look(series.label, COLOURS[i % len(COLOURS)], MARKERS[i % len(MARKERS)], rim=self.rim, hatch=hatch)
        if colour is not None:
            i = colour % len(COLOURS)
            return Look(series.label, COLOURS[i], MARKERS[i], role, 1.4, DASHES[role], self.rim)
        i = self._inks.setdefault(series.label, len(self._inks)) % len(INKS)
        dash = [length * (STRETCH[i] if k % 2 else 1) for k, length in enumerate(DASHES[role])]
        return Look(series.label, INKS[i], "", role, 1.4, dash, self.rim)

    def marked(self, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Where a curve has its markers, the second cue besides colour: evenly along x, each curve a little further on.

        So a curve below another one is seen by its markers.
        """
        visible = np.flatnonzero(np.isfinite(x) & np.isfinite(y))
        if x.size <= FEW or not visible.size:
            return visible
        along = self.on_axis(x[visible], "x")
        start, self._marked = self._marked % SOME / SOME**2, self._marked + 1
        places = along[0] + (along[-1] - along[0]) * (start + np.arange(SOME) / SOME)
        return np.unique([visible[abs(along - place).argmin()] for place in places])

    # -------------------------------------------------------------------------------------------------- places

    def shown(self, values: Any, axis: Axis) -> np.ndarray:
        """Values as an axis can show them, else NaN: no axis has a place for infinity, a log axis none for zero and below."""
        x = np.array(values, dtype=float)
        x = np.where(np.isfinite(x) & ((x > 0) | (self.scale[axis] == "linear")), x, np.nan)
        low, high = self.extent[axis]
        self.extent[axis] = np.fmin.reduce(x, axis=None, initial=low), np.fmax.reduce(x, axis=None, initial=high)
        return x

    def borders(self, centres: Any, axis: Axis) -> np.ndarray:
        """Borders of the cells around centres."""
        return self.shown(edges(centres, self.scale[axis]), axis)

    def on_axis(self, values: Any, axis: Axis) -> np.ndarray:
        """Values in the scale of their axis, where distances are those that are seen."""
        return np.log10(values) if self.scale[axis] == "log" else np.asarray(values, dtype=float)

    def off_axis(self, values: np.ndarray, axis: Axis) -> np.ndarray:
        """The values that stand at places in the scale of an axis."""
        return 10.0**values if self.scale[axis] == "log" else values

    def limits(self, axis: Axis) -> tuple[float, float] | None:
        """The ends of an axis with categories or declared limits, or a log axis with one value, which has no width by itself.

        An end that is left open is a little beyond what is shown.
        """
        if lines := len(self.categories(axis)):
            return (-0.5, lines - 0.5) if axis == "x" else (lines - 0.5, -0.5)
        low, high = self.on_axis(np.nan_to_num(self.extent[axis], nan=1.0), axis)
        declared, single = self.declared(axis), high - low < 1e-3
        if declared is None and not (single and self.scale[axis] == "log"):
            return None
        margin = 0.35 if single else 0.05 * (high - low)  # room for two of the ticks 1, 2, 5
        ends = self.off_axis(np.array([low - margin, high + margin]), axis)
        first, last = (
            end if limit is None else limit for end, limit in zip(ends, declared or (None, None), strict=True)
        )
        return first, last

    def declared(self, axis: Axis) -> Limits:
        """The declared limits of an axis."""
        return self.panel.xlim if axis == "x" else self.panel.ylim

    def ends(self, low: Any, high: Any, values: Any, axis: Axis = "y") -> tuple[np.ndarray, np.ndarray]:
        """Intervals around values as the axis can show them.

        An infinite end becomes the limit of the axis, or a level above all that is shown. On a log axis, an end that is not
        positive becomes a tenth of the smallest value shown.
        """
        low, high = np.array(low, dtype=float), np.array(high, dtype=float)
        numbers = self.shown(np.concatenate([low, values, high]), axis)
        numbers = numbers[np.isfinite(numbers)]
        log, (_, top) = self.scale[axis] == "log", self.declared(axis) or (None, None)
        if top is None:
            top = (numbers.max(initial=0.0) or 1.0) * (10.0 if log else 1.25)
        if log:
            low = np.where(low > 0, low, numbers.min() / 10 if numbers.size else np.nan)
        return low, np.where(np.isposinf(high), top, high)

    def whiskers(self, low: Any, high: Any, values: np.ndarray, axis: Axis) -> np.ndarray | None:
        """The lengths of whiskers below and above values; None without any."""
        if low is None or high is None:
            return None
        low, high = self.ends(low, high, values, axis)
        return np.nan_to_num(np.clip([values - low, high - values], 0, None))

    def categories(self, axis: Axis) -> list[str]:
        """The categories of an axis, in the order in which they are declared."""
        return list(dict.fromkeys(name for s in self.panel.series if s.category_axis == axis for name in s.categories))

    def slots(self, series: Any) -> tuple[np.ndarray, float]:
        """Where a series stands in the lines of its categories, and how wide its place is: several stand side by side.

        One that shows nothing in the lines of another takes no room there.
        """
        like = [s for s in self.panel.series if s.category_axis == series.category_axis]
        rivals = [s for s in like if _shown_names(s) & _shown_names(series) or s is series]
        order, width = self.categories(series.category_axis), 0.8 / len(rivals)
        return np.array([order.index(name) for name in series.categories]) + width * _turn(series, rivals), width

    def dodged(self, series: Any) -> np.ndarray:
        """x of points, moved a little aside if others stand at the same places and have intervals, or hide them."""
        like: list[Any] = [s for s in self.panel.series if type(s) is type(series)]
        rivals = [s for s in like if np.array_equal(s.x, series.x)]
        hidden = any(np.equal(a.y, b.y).any() for i, a in enumerate(rivals) for b in rivals[:i])
        if len(rivals) < 2 or not (hidden or all(s.low is not None for s in rivals)):
            return np.array(series.x, dtype=float)
        places = self.on_axis(self.shown(series.x, "x"), "x")
        aside = DODGE * _turn(series, rivals) * (np.nanmax(places) - np.nanmin(places))
        return self.off_axis(places + aside, "x")

    def whole_numbers(self, axis: Axis) -> bool:
        """Whether all that stands along a linear axis stands at whole numbers, so that ticks between them mean nothing.

        Zeros and ones alone may be shares, of which there are more between them.
        """
        counted = [np.ravel(getattr(series, axis)) for series in self.panel.series if axis in series.counted]
        numbers = np.concatenate(counted or [np.array([0.5])]).astype(float)
        whole = bool((numbers == numbers.round()).all())
        return whole and numbers.max(initial=0) > 1 and self.scale[axis] == "linear"


def _shown_names(series: Any) -> set[str]:
    numbers = np.asarray(series.values, dtype=float)
    return {name for name, x in zip(series.categories, numbers, strict=True) if not np.isnan(x)}


def _turn(series: Series, rivals: Sequence[Series]) -> float:
    """How many places a series stands to the right of the middle of all rivals."""
    return next(i for i, other in enumerate(rivals) if other is series) - (len(rivals) - 1) / 2


def edges(centres: Any, scale: str) -> np.ndarray:
    """Borders of the cells around ``centres``, halfway in the scale of the axis.

    >>> edges([1.0, 2.0, 4.0], "linear").tolist()
    [0.5, 1.5, 3.0, 5.0]
    """
    c = np.log(centres) if scale == "log" else np.asarray(centres, dtype=float)
    around = np.pad(c, 1, "reflect", reflect_type="odd") if c.size > 1 else c + np.arange(-1, 2)
    e = (around[1:] + around[:-1]) / 2
    return np.exp(e) if scale == "log" else e
