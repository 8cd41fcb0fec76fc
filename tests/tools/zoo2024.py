"""A made-up paper for tests of pages: every kind of series, every verdict, and words that try to be tags."""

from __future__ import annotations

import numpy as np
import xarray as xr

from gyrostat.experiments.declarations import Claim, Experiment, within
from gyrostat.figures.declarations import Band, Bars, Contour, Dots, Figure, Heat, Line, Marker, Panel, Points

X = np.arange(1.0, 41.0)
NASTY = "<img src=x onerror=alert(1)> & </script><b>bold</b> %{x}"


def compute(*, seed, progress, seeds):
    progress(1, 1)
    return xr.Dataset({"walk": (("seed", "step"), np.random.default_rng(seed).normal(size=(seeds, 40)).cumsum(axis=1))})


def curves(ds):
    wave = np.sin(np.linspace(0, 4000, 20_000))
    lines = Panel(
        "Lines η λ",
        "step",
        "value",
        [
            Band(X, X - 2, X, X + 2, "band"),
            Line(X, X**2, "line"),
            Line(X, X / 2, "theory", "theory"),
            Line(X, 2 * X, "bound", "bound"),
            Line(X, 3 * X, "paper", "paper"),
            Marker(30, "level"),
            Marker(9, "time", "x"),
        ],
        "log",
        "log",
    )
    thick = Panel(NASTY, NASTY, NASTY, [Line(np.arange(wave.size), wave, NASTY), Line(X[:9], X[:9] / 9, "few")])
    return Figure("Curves", [lines, thick], note=NASTY)


def shapes(ds):
    points = Panel(
        "Points",
        "spread",
        "share",
        [Points([1, 2, 4], [1, 0.5, 0.1], "points", [0.5, 0.1, -1], [2, 1, 1])],
        "log",
        "log",
        ylim=(None, 3.0),
    )
    names = ["one method", "another method"]
    bars = Panel("Bars", "", "share", [Bars(names, [1, 2], "a", [0, 1], [2, 3]), Bars(names, [2, 1], "b", colour=1)])
    grid = np.arange(12.0).reshape(3, 4)
    grid[0, 0] = np.nan
    heat = Panel(
        "Heat",
        "ridge",
        "step size",
        [
            Heat([1, 2, 4, 8], [1, 2, 3], grid, "share of runs"),
            Marker(3, "fold", "x"),
            Line([1, 8], [1, 3], "path"),
            Line([1, 8], [3, 1], ""),
            Contour([1, 2, 4, 8], [1, 2, 3], grid, "edge", 5.5),
        ],
        "log",
    )
    dots = Panel(
        "Dots", "ratio", "", [Dots(names, [0.5, 2.0], "ours", [0.2, 1.0], [1.0, 4.0]), Marker(1, "even", "x")], "log"
    )
    return Figure("Shapes", [points, bars, heat, dots])


def claim(slug, number, **more):
    return Claim(slug, f"The {slug} number is one.", "number = 1", lambda ds: within(1, 1, number=number), **more)


SIZES = {size: {"seeds": 3} for size in ("smoke", "standard", "full")}
HOLDS, KNOWN = claim("held", 1.0), claim("printed", 2.0, expected="fails", reason="It is a two & not a one.")
NAUGHTY = Claim("nasty", NASTY, NASTY, lambda ds: within(0, 1, number=0.5))
EXPERIMENTS = (
    Experiment("curves", "Curves", "Zoo, Figure 1", "Lines.", SIZES, compute, curves, (HOLDS, KNOWN, NAUGHTY)),
    Experiment(
        "shapes", "Shapes", "Zoo, Figure 2", "Rest.", SIZES, compute, shapes, (claim("odd", 3.0), claim("even", 1.0))
    ),
    Experiment("later", "Later", "Zoo, Figure 3", "Not run.", SIZES, compute, shapes, (HOLDS,)),
)
