"""Panels with every kind of series, for tests."""

from __future__ import annotations

import numpy as np

from gyrostat.figures.declarations import Band, Bars, Contour, Dots, Heat, Line, Marker, Panel, Points, Span

X = np.arange(1.0, 31.0)
NAMES = ["HeteroSGD with a long name", "PooledSGD with a long name", "least squares"]
LONG = [f"{name} that needs three lines in a column, or four" for name in "abcdefgh"]
GRID = {"x": [1, 2, 4], "y": [1, 10], "z": [[1, 2, 2], [3, 4, 5]]}


def bare(*series, title="", **options):
    return Panel(title=title, xlabel="", ylabel="", series=series, **options)


def panel(title, xlabel, ylabel, *series, **options):
    return Panel(title=title, xlabel=xlabel, ylabel=ylabel, series=series, **options)


ROWS = panel("Rows", "share", "", Dots(LONG, np.arange(8.0), "measured", beyond=[-1, *[0] * 6, 1]))
PANELS = [
    panel(
        "Curves with a title that does not fit into one line of a column",
        "step",
        "value",
        Band(X, X - 2, X, X + 2, "band"),
        Line(X, X**2, "line"),
        Line(X, X, "theory with a label that is too long for one line of a legend in a column", role="theory"),
        Line(X, 2 * X, "bound", role="bound"),
        Line(X, 3 * X, "paper", role="paper"),
        Marker(3, "level"),
        Marker(9, "time", axis="x"),
        yscale="log",
    ),
    panel(
        "Points",
        "spread",
        "share",
        Points([1, 2, 4], [1, 0.5, 0], "points", low=[0.5, 0.1, -1], high=[2, 1, 1]),
        xscale="log",
        yscale="log",
    ),
    panel(
        "Bars",
        "method",
        "share",
        Bars(NAMES, np.array([1, 2, 3]), "a", low=[0, 1, 2], high=[2, 3, 4]),
        Bars(NAMES[:2], [2, 1], "b"),
    ),
    panel(
        "Heat",
        "x",
        "y",
        Heat([1, 2, 4], [1, 10], [[1, np.nan, 2], [3, 4, 5]], "share of runs without a spurious signal"),
        Marker(2, "m", axis="x"),
        Contour(**GRID, label="measured edge", level=2.5),
        Contour(**GRID, label="predicted edge", level=3.5, role="theory"),
        Contour(**GRID, label="nowhere", level=9.0, role="bound"),
        xscale="log",
    ),
    panel(
        "Dots",
        "ratio to a reference that is described at length below the axis",
        "",
        Span(0.5, 2, "tolerance"),
        Dots(NAMES, [0.1, 1, 10], "a", low=[0.05, 0.5, 5], high=[0.2, 2, 20]),
        Dots(NAMES[1:], [1, 2], "b", low=[0.5, 1], high=[2, 4]),
        Marker(1, "one", axis="x"),
        xscale="log",
        height=1.5,
    ),
]
