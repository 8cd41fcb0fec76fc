"""Curves that coincide: the later one is drawn with gaps, and its label says on which curve it lies."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from gyrostat.figures.axis_scales import shown
from gyrostat.figures.declarations import Band, Figure, Line, Panel, Series

CLOSE = 0.006
"""Curves that are nowhere farther apart than this share of the panel's height cannot be told apart."""


def told_apart(figure: Figure) -> Figure:
    """The figure, in which each measured curve that lies on an earlier one says so.

    >>> curves = [Line([0, 1], [0, 1], "a"), Line([0, 1], [0, 1.001], "b"), Line([0, 1], [1, 0], "c")]
    >>> figure = Figure(title="", panels=[Panel(title="", xlabel="", ylabel="", series=curves)])
    >>> [line.label for line in told_apart(figure).panels[0].series]
    ['a', 'b (on a)', 'c']
    """
    return replace(figure, panels=[_panel(panel) for panel in figure.panels])


def _panel(panel: Panel) -> Panel:
    height = _height(panel)
    series: list[Series] = []
    for one in panel.series:
        below = next((s for s in panel.series[: len(series)] if _lies_on(one, s, panel, height)), None)
        if below is not None and isinstance(one, Line | Band):
            one = replace(one, label=f"{one.label} (on {below.label})", over=True)
        series.append(one)
    return replace(panel, series=series)


def _curve(series: Series) -> tuple[np.ndarray, np.ndarray] | None:
    """x and y of a measured curve; None for everything else."""
    if isinstance(series, Band):
        return np.asarray(series.x, dtype=float), np.asarray(series.middle, dtype=float)
    if isinstance(series, Line) and series.role == "measured":
        return np.asarray(series.x, dtype=float), np.asarray(series.y, dtype=float)
    return None


def _on_axis(y: np.ndarray, panel: Panel) -> np.ndarray:
    seen = shown(y, panel.yscale)
    return np.log10(seen) if panel.yscale == "log" else seen


def _height(panel: Panel) -> float:
    """The height of the panel on its axis, as far as its limits and measured curves say it."""
    curves = [curve for curve in map(_curve, panel.series) if curve is not None]
    limits = [np.array([end for end in panel.ylim or () if end is not None], dtype=float)]
    values = np.concatenate([_on_axis(y, panel) for y in [*limits, *(y for _, y in curves)]] or [np.array([])])
    finite = values[np.isfinite(values)]
    return float(np.ptp(finite)) if finite.size else 0.0


def _lies_on(one: Series, other: Series, panel: Panel, height: float) -> bool:
    """Whether a curve cannot be told from another one with a label of its own."""
    a, b = _curve(one), _curve(other)
    if a is None or b is None or one.label == other.label or not np.array_equal(a[0], b[0]):
        return False
    ya, yb = _on_axis(a[1], panel), _on_axis(b[1], panel)
    both = np.isfinite(ya) & np.isfinite(yb)
    return bool(
        both.any() and np.array_equal(np.isfinite(ya), np.isfinite(yb)) and (abs(ya - yb)[both] <= CLOSE * height).all()
    )
