"""The plotly renderer: accepted by plotly's own checks, with the looks of the files, and the same picture with fewer points."""

from __future__ import annotations

import json

import numpy as np
import plotly.graph_objects as go
import pytest
from test_matplotlib_renderer import PANELS, X

from gyrostat.figures.declarations import Band, Figure, Heat, Line, Marker, Panel, Points
from gyrostat.figures.palette import COLOURS, INKS, ON_DARK_PAGES, PAGE_COLOURS
from gyrostat.figures.plotly_renderer import plotly_panels
from gyrostat.figures.thinning import COLUMNS, short, visible


def one(*series, **panel):
    (drawn,) = plotly_panels(Figure(title="", panels=[Panel(title="", xlabel="", ylabel="", series=series, **panel)]))
    return drawn


def test_plotly_accepts_every_kind_of_series():
    for panel in plotly_panels(Figure(title="All", panels=PANELS)):
        go.Figure(panel["data"], panel["layout"])  # refuses unknown names and bad values
        json.dumps(panel, allow_nan=False)
        numbers = sorted(i for entry in panel["entries"] for i in entry["traces"])
        assert numbers == list(range(len(panel["data"])))
    with pytest.raises(ValueError):
        go.Figure([{"type": "scatter", "colour": "red"}])


def test_looks_are_those_of_the_files():
    drawn = one(*(Line(X, X, role, role=role) for role in ("measured", "theory", "bound", "paper")))
    lines = [trace["line"] for trace in drawn["data"] if trace["mode"] == "lines"]
    assert [line["color"] for line in lines] == [COLOURS[0], *INKS[:3]]
    lengths = [[float(n.removesuffix("px")) / line["width"] for n in line["dash"].split(",")] for line in lines[1:]]
    assert lengths == [pytest.approx(d, abs=0.03) for d in ([5, 2], [1, 1.5], [6, 2, 1, 2])]


def test_what_a_log_axis_cannot_show_is_a_gap_or_a_floor_and_the_numbers_stay():
    drawn = one(Band([1, 2], [-1, 1], [0, 2], [1, 3], "band"), yscale="log")
    around, middle, *_ = drawn["data"]
    assert around["y"] == [0.1, 1, 3, 1] and middle["y"] == [None, 2]
    assert middle["customdata"] == [[-1, 1], [1, 3]]
    points = one(Points([1], [2], "points", low=[-1], high=[3]), yscale="log")["data"][0]
    assert points["error_y"]["arrayminus"] == [1.8] and points["customdata"] == [[-1, 3]]


def test_limits_markers_and_cells():
    drawn = one(
        Heat([1, 10], [1], [[1, np.nan]], "h"), Marker(3, "m", axis="x"), xscale="log", xlim=(1, 100), ylim=(None, 2)
    )
    assert drawn["layout"]["xaxis"]["range"] == [0, 2] and drawn["layout"]["yaxis"]["range"] == [0.45, 2]
    heat = drawn["data"][0]
    assert heat["x"] == pytest.approx([10**-0.5, 10**0.5, 10**1.5], rel=1e-5) and heat["z"] == [[1, None]]
    assert heat["meta"]["x"] == [1, 10]
    rim, line = drawn["layout"]["shapes"]
    assert rim["x0"] == line["x1"] == 3 and line["yref"] == "y domain" and rim["line"]["width"] > line["line"]["width"]


@pytest.mark.parametrize("log", [False, True])
def test_thin_curves_touch_the_same_pixels(log):
    rng = np.random.default_rng(0)
    x, y = np.linspace(1, 50, 30_000), rng.normal(size=30_000).cumsum()
    y[7000:7050] = np.nan
    on_axis = np.log(x) if log else x
    kept = visible(on_axis, y)
    assert kept.size <= 4 * COLUMNS + 1 and np.isnan(y[kept]).any()
    column = np.minimum((on_axis - on_axis[0]) / np.ptp(on_axis) * COLUMNS, COLUMNS - 1).astype(int)
    for c in np.unique(column):
        here, left = y[column == c], y[kept][column[kept] == c]
        if np.isfinite(here).any():
            assert np.nanmin(here) == np.nanmin(left) and np.nanmax(here) == np.nanmax(left)
    assert visible(on_axis[:500], y[:500]).size == 500 and visible(on_axis[::-1], y).size == y.size


def test_short_numbers():
    assert short(np.pi) == 3.14159 and short(1e22) == 1e22 and short([[1.0, np.inf]]) == [[1, None]]


def luminance(colour):
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return float(np.dot(linear, [0.2126, 0.7152, 0.0722]))


def test_colours_after_dark_can_be_seen():
    assert list(ON_DARK_PAGES) == [*COLOURS, *INKS]
    assert all(
        (luminance(c) + 0.05) / (luminance(PAGE_COLOURS["paper"][1]) + 0.05) >= 4.5 for c in ON_DARK_PAGES.values()
    )
    assert len(set(ON_DARK_PAGES.values())) == len(ON_DARK_PAGES)


def test_the_cross_of_diverged_runs_stands_at_the_upper_limit():
    """The last finite median can lie far beyond the limit of the axis; a cross there would not be seen."""
    exploding = Band([0, 1, 2], [1.0, 1.0, 1.0], [1.0, 1e200, np.inf], [2.0, np.inf, np.inf], "runs")
    crosses = [
        t
        for t in one(exploding, yscale="log", ylim=(None, 1e3))["data"]
        if t.get("marker", {}).get("symbol") == "x-thin"
    ]
    assert [(cross["x"], cross["y"]) for cross in crosses] == [([2.0], [1e3])]
