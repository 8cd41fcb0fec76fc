"""The shipped curves of a state as SVG that the server writes into the page: they are seen before any script has loaded.

The browser stretches every panel to its room, so places are shares of the panel: 0 to 1000 from left to right and from top to
bottom in paths, percent for ticks. plotly's drawing replaces this one at the same place.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from gyrostat.errors import GyrostatError
from gyrostat.lab import shipped_curves
from gyrostat.lab.controls import Setting
from gyrostat.lab.declarations import Lab, PlotView
from gyrostat.lab.export import read_values

SIZE = 1000
"""The width and the height of a panel in its paths."""
SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
DASHES = ("", "9 9", "3 3", "9 4 3 4")
"""Of series, in the order of the page's plot_style.js."""

Places = list[tuple[float, float]]


class Tick(NamedTuple):
    """A labelled place on an axis, in percent of the panel."""

    percent: float
    text: str


@dataclass(frozen=True, kw_only=True)
class DrawnCurve:
    """A median with the area between its quartiles, as paths; ``series`` is the number of its colour and its dashes."""

    label: str
    series: int
    median: str
    quartiles: str

    @property
    def dashes(self) -> str:
        """The dashes and gaps of the median, in pixels."""
        return DASHES[self.series % len(DASHES)]


@dataclass(frozen=True, kw_only=True)
class DrawnPanel:
    """One panel: its curves, the predicted curves and the ticks."""

    title: str
    curves: list[DrawnCurve]
    predicted: list[str]
    across: list[Tick]
    up: list[Tick]


@dataclass(frozen=True, kw_only=True)
class FirstDrawing:
    """All panels, the label of what they show, the names in the legend, and the version that computed the curves."""

    label: str
    log: bool
    together: bool
    panels: list[DrawnPanel]
    predicted: list[str]
    version: str


@dataclass(frozen=True, kw_only=True)
class Axis:
    """An axis from ``low`` to ``high``, which are logarithms if it is a logarithmic one."""

    low: float
    high: float
    log: bool

    def share(self, value: float | None) -> float | None:
        """Where a value is, from 0 to 1; None for one that the axis cannot show.

        >>> Axis(low=0.0, high=2.0, log=True).share(10.0)
        0.5
        """
        if value is None or (self.log and value <= 0):
            return None
        return ((math.log10(value) if self.log else value) - self.low) / (self.high - self.low)

    def ticks(self, count: int) -> list[Tick]:
        """About ``count`` round numbers, or powers of ten, with their places.

        >>> [tick.text for tick in Axis(low=0.0, high=200.0, log=False).ticks(4)]
        ['0', '50', '100', '150', '200']
        """
        step = max(_round_step((self.high - self.low) / count), 1.0 if self.log else 0.0)
        numbers = np.arange(math.ceil(self.low / step), math.floor(self.high / step + 1e-9) + 1) * step
        texts = [_power_of_ten(x) if self.log else f"{x:g}" for x in numbers]
        places = [100 * (x - self.low) / (self.high - self.low) for x in numbers]
        return [Tick(round(place, 2), text) for place, text in zip(places, texts, strict=True)]


def _power_of_ten(exponent: float) -> str:
    return f"10{f'{exponent:.0f}'.translate(SUPERSCRIPTS)}" if exponent else "1"


def _round_step(least: float) -> float:
    """The smallest of 1, 2, 5, 10, 20, ... times a power of ten that is not below ``least``."""
    power = 10.0 ** math.floor(math.log10(least))
    return next(power * k for k in (1, 2, 5, 10) if power * k >= least * (1 - 1e-9))


def first_drawing(query: str) -> FirstDrawing | None:
    """The drawing for the address of a page; None where it shows other things than curves, or curves that are not shipped.

    >>> first_drawing("lab=factors").label, first_drawing("lab=factors&rank=3"), first_drawing("spread=much")
    ('‖A − A*‖² / 2', None, None)
    """
    try:
        lab, setting, tab = read_values(query)
    except GyrostatError:
        return None  # the page says what is wrong when it asks for the curves
    shipped = shipped_curves.find(lab, setting) if tab == "curves" else None
    return None if shipped is None else _drawing(lab, setting, shipped)


def _drawing(lab: Lab, setting: Setting, shipped: Mapping[str, Any]) -> FirstDrawing:
    view, found = lab.view(setting), {side["side"]: side for side in shipped["sides"]}
    steps = next(iter(found.values()))["steps"]
    predicted = lab.predicted(setting, view.name, np.array(steps))
    across, up = _axis([steps], view.log_time), _axis(_heights(found.values(), view.log), view.log, room=0.06)
    titles = {side.name: side.title for side in lab.sides(setting)}
    groups = [list(titles)] if view.together else [[name] for name in titles]
    panels = [
        DrawnPanel(
            title="" if view.together else titles[group[0]],
            curves=list(
                itertools.chain(*(_curves(found[n], titles[n], view, k, across, up) for k, n in enumerate(group)))
            ),
            predicted=[_line(_places(p.x, p.y, across, up)) for p in predicted if p.side in group],
            across=across.ticks(4),
            up=up.ticks(6),
        )
        for group in groups
    ]
    return FirstDrawing(
        label=view.label,
        log=view.log,
        together=view.together,
        panels=panels,
        predicted=list(dict.fromkeys(curve.label for curve in predicted)),
        version=shipped["version"],
    )


def _curves(
    side: Mapping[str, Any], title: str, view: PlotView, number: int, across: Axis, up: Axis
) -> list[DrawnCurve]:
    """The curves of one side; in a panel that all sides share, the colour tells the sides apart."""
    drawn = []
    for i, curve in enumerate(view.curves):
        found = side["curves"][curve.key]
        low, middle, high = (_places(side["steps"], found[name], across, up) for name in ("low", "middle", "high"))
        label, series = (title, number) if view.together else (curve.label, i)
        drawn.append(DrawnCurve(label=label, series=series, median=_line(middle), quartiles=_line([*high, *low[::-1]])))
    return drawn


def _heights(sides: Iterable[Mapping[str, Any]], log: bool) -> list[Sequence[float | None]]:
    """The values that the upward axis covers: all of them on a log axis, otherwise zero and the upper quartiles."""
    curves = [curve for side in sides for curve in side["curves"].values()]
    return [c[n] for c in curves for n in ("low", "middle", "high")] if log else [[0.0], *(c["high"] for c in curves)]


def _axis(values: Iterable[Sequence[float | None]], log: bool, room: float = 0.0) -> Axis:
    """An axis on which all values have a place, with some room above the largest."""
    numbers = [x for x in itertools.chain(*values) if x is not None and (x > 0 or not log)]
    low, high = min(numbers), max(numbers)
    if log:
        low, high = math.log10(low), math.log10(high)
    return Axis(low=low, high=high + room * (high - low) if high > low else low + 1, log=log)


def _places(x: Sequence[float], y: Sequence[float | None], across: Axis, up: Axis) -> Places:
    found = [(across.share(a), up.share(b)) for a, b in zip(x, y, strict=True)]
    return [(a, 1 - b) for a, b in found if a is not None and b is not None]


def _line(places: Places) -> str:
    return "M" + "L".join(f"{SIZE * x:.0f} {SIZE * y:.0f}" for x, y in places) if places else ""
