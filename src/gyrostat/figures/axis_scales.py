"""Values, lower ends of intervals and cell borders as a linear or log axis can show them, for both renderers."""

from __future__ import annotations

from typing import Any

import numpy as np

from gyrostat.figures.declarations import Bars, Contour, Heat, Panel, Points

MOST_COUNTS = 12
"""An axis of whole numbers that spans more than this has ticks far enough apart to be whole anyway."""
MANY = 300
"""More points than this are drawn small and translucent, so that one sees where they lie densely."""
DODGE = 0.012
"""How far intervals at the same place are moved apart, in widths of the panel."""


def shown(values: Any, scale: str) -> np.ndarray:
    """Values as an axis can show them: on a log axis, a value that is not positive becomes NaN.

    >>> shown([0.0, 2.0], "log").tolist()
    [nan, 2.0]
    """
    x = np.array(values, dtype=float)
    if scale == "log":
        x[~(x > 0)] = np.nan
    return x


def floored(low: Any, values: np.ndarray, scale: str) -> np.ndarray:
    """Lower ends of intervals; on a log axis, one that is not positive becomes a tenth of the smallest value shown.

    >>> floored([0.0, 0.5], np.array([1.0, 2.0]), "log").tolist()
    [0.05, 0.5]
    """
    x = np.array(low, dtype=float)
    if scale == "log" and (x <= 0).any():
        positive = np.concatenate([x[x > 0], values[values > 0]])
        x[x <= 0] = positive.min() / 10 if positive.size else np.nan
    return x


def capped(high: Any, scale: str, limits: tuple[float | None, float | None] | None, *others: Any) -> np.ndarray:
    """Upper ends of intervals; an infinite one becomes the upper limit of the axis, or a level above all that is shown.

    >>> capped([2.0, np.inf], "linear", None, [4.0]).tolist(), capped([2.0, np.inf], "log", (None, 5.0)).tolist()
    ([2.0, 5.0], [2.0, 5.0])
    """
    x = shown(high, scale)
    if not np.isposinf(x).any():
        return x
    numbers = np.concatenate([x, *(np.asarray(other, dtype=float).ravel() for other in others)])
    largest = numbers[np.isfinite(numbers)].max(initial=0.0) or 1.0
    top = limits[1] if limits is not None and limits[1] is not None else largest * (10.0 if scale == "log" else 1.25)
    return np.where(np.isposinf(x), max(top, largest), x)


def diverged_at(x: Any, middle: Any) -> float | None:
    """Where a median leaves for infinity because runs diverged; None if it does not.

    >>> diverged_at([0, 1, 2], [1.0, 2.0, np.inf]), diverged_at([0, 1], [1.0, 2.0])
    (2.0, None)
    """
    lost = np.flatnonzero(np.isposinf(np.asarray(middle, dtype=float)))
    return float(np.asarray(x, dtype=float)[lost[0]]) if lost.size else None


def counts_only(panel: Panel, axis: str) -> bool:
    """Whether a linear axis shows few whole numbers only, such as ranks or depths, so that ticks between them mean nothing."""
    scale = panel.xscale if axis == "x" else panel.yscale
    bars = [np.asarray(s.values, dtype=float) for s in panel.series if isinstance(s, Bars)]
    if bars and axis == "y":
        heights = np.concatenate(bars)
        # Bars of 0 and 1 are shares, of which there are more between them.
        return bool((heights == heights.round()).all() and 1 < heights.max(initial=0) <= MOST_COUNTS)
    numbers = _positions(panel, axis)
    if scale == "log" or not numbers.size:
        return False
    return bool((numbers == numbers.round()).all() and np.ptp(numbers) <= MOST_COUNTS)


def _positions(panel: Panel, axis: str) -> np.ndarray:
    """The numbers at which the panel shows something along an axis; along y, those of grids only."""
    grids = [s for s in panel.series if isinstance(s, Heat | Contour)]
    shown_here = [getattr(s, axis) for s in grids or (panel.series if axis == "x" else ()) if hasattr(s, axis)]
    if not shown_here or any(np.ndim(x) == 0 or np.ndim(x[0]) for x in shown_here if len(x)):
        return np.array([])
    return np.concatenate([np.asarray(x, dtype=float) for x in shown_here])


def whole_numbers(panel: Panel, axis: str) -> bool:
    """Whether all that the panel shows along an axis stands at whole numbers, however many."""
    numbers = _positions(panel, axis)
    return bool(numbers.size and (numbers == numbers.round()).all())


def dodged(points: Points, panel: Panel) -> np.ndarray:
    """x of points, moved a little aside if others of the panel stand at the same places and have intervals, or hide them.

    >>> series = [Points([1, 2], [0, 1], name, low=[0, 0], high=[1, 1]) for name in "ab"]
    >>> dodged(series[0], Panel(title="", xlabel="", ylabel="", series=series)).tolist()
    [0.994, 1.994]
    """
    x = np.array(points.x, dtype=float)
    rivals = [s for s in panel.series if isinstance(s, Points) and np.array_equal(s.x, points.x)]
    if len(rivals) < 2 or not np.ptp(x) or not (_with_intervals(rivals) or _hidden(rivals)):
        return x
    aside = DODGE * (next(i for i, s in enumerate(rivals) if s is points) - (len(rivals) - 1) / 2)
    if panel.xscale == "log":
        return x * (x.max() / x.min()) ** aside if (x > 0).all() else x
    return x + aside * np.ptp(x)


def _with_intervals(rivals: list[Points]) -> bool:
    return all(points.low is not None for points in rivals)


def _hidden(rivals: list[Points]) -> bool:
    """Whether some markers of one series stand exactly on those of another."""
    rows = np.array([points.y for points in rivals], dtype=float)
    return bool(any((rows[i] == rows[j]).any() for j in range(len(rows)) for i in range(j)))


def edges(centres: np.ndarray, scale: str) -> np.ndarray:
    """Borders of the cells around ``centres``, halfway in the scale of the axis.

    >>> edges(np.array([1.0, 2.0, 4.0]), "linear").tolist()
    [0.5, 1.5, 3.0, 5.0]
    """
    c = np.log(centres) if scale == "log" else np.asarray(centres, dtype=float)
    if c.size == 1:
        e = np.array([c[0] - 0.5, c[0] + 0.5])
    else:
        middle = (c[1:] + c[:-1]) / 2
        e = np.concatenate([[2 * c[0] - middle[0]], middle, [2 * c[-1] - middle[-1]]])
    return np.exp(e) if scale == "log" else e
