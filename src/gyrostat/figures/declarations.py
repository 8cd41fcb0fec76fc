"""Figures as data: panels of series, which matplotlib draws to files and plotly draws on pages.

A declaration says what is shown, never how: colours, legends and files are left to the renderers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from gyrostat import errors
from gyrostat.engine.summary import QUARTILES, quantiles_with_infinity
from gyrostat.errors import GyrostatError

if TYPE_CHECKING:
    import xarray as xr

Role = Literal["measured", "theory", "bound", "paper"]
Scale = Literal["linear", "log"]


class Series:
    """Anything that a panel shows, with a label for its legend."""

    label: str

    def __post_init__(self) -> None:
        errors.check_parameters(self)

    @property
    def is_measured(self) -> bool:
        """Whether it shows what was measured, and not theory, a bound, or what a paper prints."""
        return getattr(self, "role", "measured") == "measured"


@dataclass(frozen=True)
class Line(Series):
    """A curve. ``role`` decides its look: measured (solid), theory (dashed), bound (dotted), paper (dash-dotted).

    ``over`` draws it with gaps, through which the curve that it coincides with is seen; :mod:`gyrostat.figures.coincidences`
    sets it.
    """

    x: Any
    y: Any
    label: str
    _: KW_ONLY
    role: Role = "measured"
    colour: int | None = None
    over: bool = False


@dataclass(frozen=True)
class Runs(Series):
    """Single runs: thin translucent curves under one label. ``y`` has a row for each run, and ``x`` too unless all share it."""

    x: Any
    y: Any
    label: str
    _: KW_ONLY
    colour: int | None = None

    def curves(self) -> list[tuple[np.ndarray, np.ndarray]]:
        """x and y of every run.

        >>> [(x.tolist(), y.tolist()) for x, y in Runs([0, 1], [[5, 6], [7, 8]], "runs").curves()]
        [([0.0, 1.0], [5.0, 6.0]), ([0.0, 1.0], [7.0, 8.0])]
        """
        shared = np.ndim(self.x[0]) == 0 if len(self.x) else True
        return [
            (np.asarray(self.x if shared else self.x[i], dtype=float), np.asarray(y, dtype=float))
            for i, y in enumerate(self.y)
        ]


@dataclass(frozen=True)
class Band(Series):
    """A median curve with a band around it (quartiles over seeds unless the label says otherwise).

    Where the median is infinite, because half of the runs diverged, a cross at the top says where the curve leaves the panel.
    ``over`` is that of :class:`Line`.
    """

    x: Any
    low: Any
    middle: Any
    high: Any
    label: str
    _: KW_ONLY
    colour: int | None = None
    over: bool = False


@dataclass(frozen=True)
class Points(Series):
    """Separate measurements, with whiskers if ``low`` and ``high`` are given, and a text at each if there are ``names``."""

    x: Any
    y: Any
    label: str
    _: KW_ONLY
    low: Any = None
    high: Any = None
    names: Sequence[str] = ()
    colour: int | None = None


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


@dataclass(frozen=True)
class Dots(Series):
    """A point per category with horizontal whiskers, the categories from top to bottom; several series are slightly apart.

    Where ``beyond`` is true, the value is a limit that was not enough: an open arrow points to what lies beyond it.
    """

    categories: Sequence[str]
    values: Any
    label: str
    _: KW_ONLY
    low: Any
    high: Any
    beyond: Any = None
    colour: int | None = None


@dataclass(frozen=True)
class Marker(Series):
    """A straight line across the panel at one value of an axis: a threshold, a predicted transition."""

    at: float
    label: str
    _: KW_ONLY
    axis: Literal["x", "y"] = "y"
    role: Role = "theory"
    colour: int | None = None


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


@dataclass(frozen=True, kw_only=True)
class Panel:
    """One set of axes. A limit of None is left open; ``height`` is in units of the usual height."""

    title: str
    xlabel: str
    ylabel: str
    series: Sequence[Series]
    xscale: Scale = "linear"
    yscale: Scale = "linear"
    xlim: tuple[float | None, float | None] | None = None
    ylim: tuple[float | None, float | None] | None = None
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
    runs = values.transpose(over, ...).values
    low, middle, high = quantiles_with_infinity(np.where(np.isnan(runs), np.inf, runs), QUARTILES)
    lost = float(np.isnan(runs).mean(axis=0).max(initial=0.0))
    if lost > 0:
        label = f"{label} ({max(1, int(100 * lost))} % of runs diverged)"
    if x is None:
        (dim,) = (d for d in values.dims if d != over)
        x = values[dim].values
    return Band(np.asarray(x), low, middle, high, label, colour=colour)
