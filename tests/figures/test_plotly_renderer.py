"""Pages: the same picture with fewer points, limits that plotly understands, and colours that are seen after dark."""

from __future__ import annotations

import numpy as np
import pytest
from figure_panels import bare
from test_series import lightness

from gyrostat.figures.declarations import Figure, Heat, Line, Marker
from gyrostat.figures.palette import COLOURS, INKS, ON_DARK_PAGES, PAGE_COLOURS
from gyrostat.figures.plotly_renderer import COLUMNS, plotly_panels, visible


def test_limits_rules_and_cells():
    series = Heat([1, 10], [1], [[1, np.nan]], "h"), Marker(3, "m", axis="x")
    (drawn,) = plotly_panels(Figure(title="", panels=[bare(*series, xscale="log", xlim=(1, 100), ylim=(None, 2))]))
    assert drawn["layout"]["xaxis"]["range"] == [0, 2] and drawn["layout"]["yaxis"]["range"] == [0.45, 2]
    heat = drawn["data"][0]
    assert heat["x"] == pytest.approx([10**-0.5, 10**0.5, 10**1.5], rel=1e-5) and heat["z"] == [[1, None]]
    assert heat["meta"]["x"] == [1, 10]
    rim, line = drawn["layout"]["shapes"]
    assert rim["x0"] == line["x1"] == 3 and line["yref"] == "y domain" and rim["line"]["width"] > line["line"]["width"]


def test_an_open_end_without_anything_to_show_is_closed():
    (drawn,) = plotly_panels(Figure(title="", panels=[bare(Line([], [], "nothing"), xlim=(0, None), yscale="log")]))
    assert all(np.isfinite(drawn["layout"][f"{axis}axis"]["range"]).all() for axis in "xy")


@pytest.mark.parametrize("log", [False, True])
def test_thin_curves_touch_the_same_pixels(log):
    rng = np.random.default_rng(0)
    x, y = np.linspace(1, 50, 30_000), rng.normal(size=30_000).cumsum()
    y[7000:7050] = np.nan
    on_axis = np.log(x) if log else x
    kept = visible(on_axis, y)
    assert kept.size <= 4 * COLUMNS + 1 and np.isnan(y[kept]).any()
    column = np.minimum((on_axis - on_axis[0]) / np.ptp(on_axis) * COLUMNS, COLUMNS - 1).astype(int)
    for reduce in (np.fmin, np.fmax):
        whole, thin = np.full((2, COLUMNS), np.nan)
        reduce.at(whole, column, y)
        reduce.at(thin, column[kept], y[kept])
        np.testing.assert_array_equal(whole, thin)
    assert visible(on_axis[::-1], y).size == y.size


def test_colours_after_dark_can_be_seen():
    page = lightness(PAGE_COLOURS["paper"][1])
    assert list(ON_DARK_PAGES) == [*COLOURS, *INKS] and len(set(ON_DARK_PAGES.values())) == len(ON_DARK_PAGES)
    assert all((lightness(colour) + 0.05) / (page + 0.05) >= 4.5 for colour in ON_DARK_PAGES.values())
