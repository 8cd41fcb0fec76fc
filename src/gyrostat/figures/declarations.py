"""Figures as data: panels of series, which matplotlib draws to files and plotly draws on pages.

A declaration says what is shown. A series says how, with its method ``draw``, in the six shapes of
:class:`gyrostat.figures.panel_canvas.PanelCanvas`. A series of your own is a subclass with that method, and then it is drawn in
files and on pages, with its legend.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np

from gyrostat import errors
from gyrostat.engine.summary import QUARTILES, quantiles_with_infinity
from gyrostat.errors import GyrostatError
from gyrostat.figures.palette import COLOURS
from gyrostat.figures.panel_canvas import Axis, Limits, Look, PanelCanvas

if TYPE_CHECKING:
    import xarray as xr

Role = Literal["measured", "theory", "bound", "paper"]
Scale = Literal["linear", "log"]


class Series:
    """Anything that a panel shows, with a label for its legend."""

    label: str
    categories: Sequence[str]
    category_axis: ClassVar[str] = ""
    """The axis along which it stands in lines of categories, if it does."""
    counted: ClassVar[str] = ""
    """The axes along which it may stand at whole numbers only, so that ticks between them would mean nothing."""
    fills_panel: ClassVar[bool] = False
    """Whether it colours the whole panel, so that what lies over it needs a rim."""

    def __post_init__(self) -> None:
        errors.check_parameters(self)

    def draw(self, on: PanelCanvas) -> None:
        """Draw it with the shapes of the canvas."""
        raise NotImplementedError(f"{type(self).__name__} must say how it is drawn: give it a method draw(self, on).")


@dataclass(frozen=True)
class Line(Series):
    """A curve. ``role`` decides its look: measured (solid), theory (dashed), bound (dotted), paper (dash-dotted)."""

    x: Any
    y: Any
    label: str
    _: KW_ONLY
    role: Role = "measured"
    colour: int | None = None
    counted = "x"

    def draw(self, on: PanelCanvas) -> None:
        on.curve(self.x, self.y, on.look(self))


@dataclass(frozen=True)
class Runs(Series):
    """Single runs: thin translucent curves under one label. ``y`` has a row for each run, and ``x`` too unless all share it."""

    x: Any
    y: Any
    label: str
    _: KW_ONLY
    colour: int | None = None

    def draw(self, on: PanelCanvas) -> None:
        rows = self.x if np.ndim(self.x[:1]) > 1 else [self.x] * len(self.y)
        x, y = (
            np.concatenate([[], *(np.append(run, np.nan) for run in runs)]) for runs in (rows, self.y)
        )  # a gap ends each
        on.curve(x, y, replace(on.look(self), width=1.0, opacity=0.7))


@dataclass(frozen=True)
class Band(Series):
    """A median curve with a band around it (quartiles over seeds unless the label says otherwise).

    Where the median is infinite, because half of the runs diverged, a cross at the top says where the curve leaves the panel.
    """

    x: Any
    low: Any
    middle: Any
    high: Any
    label: str
    _: KW_ONLY
    colour: int | None = None
    counted = "x"

    def draw(self, on: PanelCanvas) -> None:
        look = on.look(self)
        on.area(self.x, self.low, self.high, look)
        on.curve(self.x, self.middle, look, self.low, self.high)
        lost = np.flatnonzero(np.isposinf(np.asarray(self.middle, dtype=float)))[:1]
        if lost.size:  # at the upper end of the axis, not at the last finite value, which may lie far beyond it
            _, top = on.ends(self.low, np.full(np.shape(self.low), np.inf), self.middle)
            on.spots(np.asarray(self.x)[lost], top[lost], replace(look, marker="x", width=2.0))


@dataclass(frozen=True)
class Points(Series):
    """Separate measurements, with whiskers if ``low`` and ``high`` are given."""

    x: Any
    y: Any
    label: str
    _: KW_ONLY
    low: Any = None
    high: Any = None
    colour: int | None = None
    counted = "x"

    def draw(self, on: PanelCanvas) -> None:
        on.spots(on.dodged(self), self.y, on.look(self), self.low, self.high)


@dataclass(frozen=True)
class Bars(Series):
    """A bar per category, with whiskers if ``low`` and ``high`` are given; several series stand side by side."""

    categories: Sequence[str]
    values: Any
    label: str
    _: KW_ONLY
    low: Any = None
    high: Any = None
    colour: int | None = None
    category_axis = "x"
    counted = "y"

    @property
    def y(self) -> Any:
        """The heights."""
        return self.values

    def draw(self, on: PanelCanvas) -> None:
        x, width = on.slots(self)
        on.boxes(x, self.values, on.look(self), 0.92 * width, self.low, self.high)


@dataclass(frozen=True)
class Dots(Series):
    """A point per category, the categories from top to bottom, with horizontal whiskers if ``low`` and ``high`` are given.

    Several series are slightly apart. Where ``beyond`` is 1 (or true) or -1, the value is a limit that was not enough: an open
    arrow points to the right or to the left, to what lies beyond it.
    """

    categories: Sequence[str]
    values: Any
    label: str
    _: KW_ONLY
    low: Any = None
    high: Any = None
    beyond: Any = 0
    colour: int | None = None
    category_axis = "y"

    def draw(self, on: PanelCanvas) -> None:
        (y, _), look, x = on.slots(self), on.look(self), np.asarray(self.values, dtype=float)
        ends = [None if end is None else np.asarray(end, dtype=float) for end in (self.low, self.high)]
        beyond = np.broadcast_to(np.where(np.isnan(x), np.nan, self.beyond), x.shape)
        for some, marker in ((beyond == 0, look.marker), (beyond > 0, ">"), (beyond < 0, "<")):
            if some.any():
                low, high = (end if end is None else end[some] for end in ends)
                on.spots(x[some], y[some], replace(look, marker=marker), low, high, "x")


@dataclass(frozen=True)
class Marker(Series):
    """A straight line across the panel at one value of an axis: a threshold, a predicted transition."""

    at: float
    label: str
    _: KW_ONLY
    axis: Axis = "y"
    role: Role = "theory"
    colour: int | None = None

    def draw(self, on: PanelCanvas) -> None:
        on.rule(self.axis, self.at, on.look(self))


@dataclass(frozen=True)
class Span(Series):
    """A strip across the panel between two values of an axis: a tolerance, an interval."""

    low: float
    high: float
    label: str
    _: KW_ONLY
    axis: Axis = "x"
    colour: int = 5

    def draw(self, on: PanelCanvas) -> None:
        on.rule(self.axis, self.low, Look(self.label, COLOURS[self.colour], role="bound"), self.high)


@dataclass(frozen=True)
class Heat(Series):
    """Values on a grid (rows follow y, columns follow x), with a colour bar."""

    x: Any
    y: Any
    z: Any
    label: str
    _: KW_ONLY
    low: float | None = None
    high: float | None = None
    fills_panel = True
    counted = "xy"

    def draw(self, on: PanelCanvas) -> None:
        on.cells(self.x, self.y, self.z, Look(self.label), self.low, self.high)


@dataclass(frozen=True)
class Contour(Series):
    """Where values on a grid (rows follow y, columns follow x) cross ``level``."""

    x: Any
    y: Any
    z: Any
    label: str
    _: KW_ONLY
    level: float = 0.0
    role: Role = "measured"
    counted = "xy"

    def draw(self, on: PanelCanvas) -> None:
        from contourpy import contour_generator

        grid = on.shown(self.x, "x"), on.shown(self.y, "y"), np.asarray(self.z, dtype=float)
        lines: Any = contour_generator(*grid).lines(self.level)
        pieces = [np.vstack([line, [[np.nan, np.nan]]]) for line in lines]  # a gap ends each
        x, y = np.concatenate(pieces or [np.empty((0, 2))]).T
        # Named colours, which a page does not replace: a contour over a heat map stays white on a dark page.
        white = Look(self.label, "white", width=2.2, rim="black")
        on.curve(x, y, white if self.role == "measured" else replace(on.look(self), rim="white"))


@dataclass(frozen=True, kw_only=True)
class Panel:
    """One set of axes. A limit of None is left open; ``height`` is in units of the usual height."""

    title: str
    xlabel: str
    ylabel: str
    series: Sequence[Series]
    xscale: Scale = "linear"
    yscale: Scale = "linear"
    xlim: Limits = None
    ylim: Limits = None
    height: float = 1.0

    def __post_init__(self) -> None:
        errors.check_parameters(self)
        if self.yscale == "log" and any(isinstance(series, Bars) for series in self.series):
            raise GyrostatError(
                f"the panel {self.title!r} has bars on a log axis, where no bar begins at zero: use Dots."
            )


@dataclass(frozen=True, kw_only=True)
class Printed:
    """A number or a visible feature that a paper prints, beside ours: a row of the table "paper / ours" of a figure.

    ``quantity`` says what it is, ``paper`` is what the paper prints, as a text, and ``ours`` is computed from the data: a
    number, or a text where a number says too little.

    >>> Printed(quantity="transition in M", paper="around 5", ours=3.84).ours
    3.84
    """

    quantity: str
    paper: str
    ours: float | str

    def __post_init__(self) -> None:
        errors.check_parameters(self)


@dataclass(frozen=True, kw_only=True)
class Figure:
    """Panels side by side under one title, with a sentence below that says what to see.

    ``columns`` is the number of panels in a row, at most three. ``printed`` compares what a paper prints with ours.
    With ``mathematics``, texts are in the plain notation of :mod:`gyrostat.figures.mathematics` and are shown as mathematics;
    without it they are shown as they are, as names of columns and other data must be.
    """

    title: str
    panels: Sequence[Panel]
    note: str = ""
    columns: int = 3
    printed: Sequence[Printed] = ()
    mathematics: bool = False

    def __post_init__(self) -> None:
        errors.check_parameters(self)


def band(values: xr.DataArray, label: str, *, x: Any = None, over: str = "seed", colour: int | None = None) -> Band:
    """The median and quartiles of ``values`` over seeds, along its one other dimension.

    A diverged run (NaN) counts as infinite: the band reaches the top of the panel where more than a quarter of the runs
    diverged, the median curve ends where half of them did, and the label says how many did in the end.

    >>> import xarray as xr
    >>> shown = band(xr.DataArray([[1.0, 2.0], [1.0, np.nan]], dims=("seed", "step"), coords={"step": [0, 9]}), "loss")
    >>> shown.label, shown.middle.tolist()
    ('loss (50 % of runs diverged)', [1.0, inf])
    """
    lost = float(values.isnull().mean(over).max()) if values.size else 0.0
    if lost > 0:
        label = f"{label} ({max(1, int(100 * lost))} % of runs diverged)"
    low, middle, high = over_runs(values, over, QUARTILES)
    return Band(
        other_coordinates(values, over) if x is None else np.asarray(x), low, middle, high, label, colour=colour
    )


def over_runs(values: xr.DataArray, over: str, quantiles: Sequence[float]) -> np.ndarray:
    """Quantiles over the dimension of the runs, of which a diverged one (NaN) counts as infinite."""
    runs = values.transpose(over, ...).values
    return quantiles_with_infinity(np.where(np.isnan(runs), np.inf, runs), quantiles)


def other_coordinates(values: xr.DataArray, over: str) -> np.ndarray:
    """The coordinates of the one dimension that is left beside the runs."""
    dims = [dim for dim in values.dims if dim != over]
    if len(dims) != 1:
        raise GyrostatError(
            f"values must have one dimension besides {over!r}; got {', '.join(map(str, dims)) or 'none'}."
        )
    return values[dims[0]].values
