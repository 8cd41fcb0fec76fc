"""A made-up paper for tests of the report: every kind of series, every verdict, and labels that try to be HTML tags."""

from __future__ import annotations

import numpy as np
import xarray as xr

from gyrostat.experiments import Experiment, Paper, claim
from gyrostat.figures.declarations import Band, Bars, Contour, Dots, Figure, Heat, Line, Marker, Panel, Points, Printed

X = np.arange(1.0, 41.0)
NASTY = "<img src=x onerror=alert(1)> & </script><b>bold</b> %{x}"


def curves(ds):
    wave = np.sin(np.linspace(0, 4000, 20_000))
    lines = Panel(
        title="Lines η λ",
        xlabel="step",
        ylabel="value",
        series=[
            Band(X, X - 2, X, X + 2, "band"),
            Line(X, X**2, "line"),
            Line(X, X / 2, "theory", role="theory"),
            Line(X, 2 * X, "bound", role="bound"),
            Line(X, 3 * X, "paper", role="paper"),
            Marker(30, "level"),
            Marker(9, "time", axis="x"),
        ],
        xscale="log",
        yscale="log",
    )
    thick = Panel(
        title=NASTY,
        xlabel=NASTY,
        ylabel=NASTY,
        series=[Line(np.arange(wave.size), wave, NASTY), Line(X[:9], X[:9] / 9, "few")],
    )
    printed = [Printed(quantity="jump", paper="about 2", ours=2.5)]
    return Figure(title="Curves", panels=[lines, thick], note=NASTY, printed=printed)


def shapes(ds):
    points = Panel(
        title="Points",
        xlabel="spread",
        ylabel="share",
        series=[Points([1, 2, 4], [1, 0.5, 0.1], "points", low=[0.5, 0.1, -1], high=[2, 1, 1])],
        xscale="log",
        yscale="log",
        ylim=(None, 3.0),
    )
    names = ["one method", "another method"]
    bars = Panel(
        title="Bars",
        xlabel="",
        ylabel="share",
        series=[Bars(names, [1, 2], "a", low=[0, 1], high=[2, 3]), Bars(names, [2, 1], "b", colour=1)],
    )
    grid = np.arange(12.0).reshape(3, 4)
    grid[0, 0] = np.nan
    heat = Panel(
        title="Heat",
        xlabel="ridge",
        ylabel="step size",
        series=[
            Heat([1, 2, 4, 8], [1, 2, 3], grid, "share of runs"),
            Marker(3, "fold", axis="x"),
            Line([1, 8], [1, 3], "path"),
            Line([1, 8], [3, 1], ""),
            Contour([1, 2, 4, 8], [1, 2, 3], grid, "edge", level=5.5),
        ],
        xscale="log",
    )
    dots = Panel(
        title="Dots",
        xlabel="ratio",
        ylabel="",
        series=[Dots(names, [0.5, 2.0], "ours", low=[0.2, 1.0], high=[1.0, 4.0]), Marker(1, "even", axis="x")],
        xscale="log",
    )
    return Figure(title="Shapes", panels=[points, bars, heat, dots])


def said(statement):
    """A decorator that gives a method its docstring."""

    def mark(method):
        method.__doc__ = statement
        return method

    return mark


class Animals(Experiment):
    sizes = {"seeds": 3}

    def compute(self, run):
        run.progress(1, 1)
        return xr.Dataset({"walk": (("seed", "step"), run.rng.normal(size=(run.seeds, 40)).cumsum(axis=1))})

    def draw(self, ds):
        return shapes(ds)


class Curves(Animals):
    """Curves

    Lines.
    """

    source = "Zoo, Figure 1"

    def draw(self, ds):
        return curves(ds)

    @claim("number = 1", number=(1, 1))
    def held(self, ds):
        """The held number is one."""
        return 1.0

    @claim("number = 1", number=(1, 1), fails="false as printed")
    def printed(self, ds):
        """The printed number is one.

        It is a two & not a one.
        """
        return 2.0

    @claim("half-time over theory > 2", half_time_over_theory=(2, np.inf), fails="not typical")
    def typical(self, ds):
        """The paper's run is typical.

        Most runs are slower.
        """
        return 1.0004

    @claim(NASTY, number=(0, 1))
    @said(NASTY)
    def nasty(self, ds):
        return 0.5


class Shapes(Animals):
    """Shapes

    Rest.
    """

    source = "Zoo, Figure 2"

    @claim("number = 1", number=(1, 1))
    def odd(self, ds):
        """The odd number is one."""
        return 3.0

    @claim("number = 1", number=(1, 1), ours=True)
    def even(self, ds):
        """The even number is one."""
        return 1.0


class Later(Animals):
    """Later

    Not run.
    """

    source, held = "Zoo, Figure 3", Curves.held


PAPER = Paper(name="zoo2024", title="A zoo of <series>", experiments=[Curves, Shapes, Later])
