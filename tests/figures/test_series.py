"""What a series draws on both canvases: one class is enough for a new kind, and looks are alike in files and on pages."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pytest
import xarray as xr
from figure_panels import PANELS, X, bare
from matplotlib.colors import to_hex

import figure_checks
from checks import refuses
from gyrostat.figures import compose
from gyrostat.figures.declarations import Band, Bars, Dots, Figure, Line, Points, Runs, Series, band
from gyrostat.figures.matplotlib_renderer import draw
from gyrostat.figures.palette import COLOURS, INKS, MARKERS
from gyrostat.figures.plotly_renderer import plotly_panels


def both(*series, **panel):
    """The axes and the dictionaries of one panel."""
    figure = Figure(title="T", panels=[bare(*series, **panel)])
    return draw(figure).axes[0], plotly_panels(figure)[0]


@dataclass(frozen=True)
class Staircase(Series):
    """A kind of series that the package does not know."""

    x: object
    y: object
    label: str

    def draw(self, on):
        look = on.look(self)
        on.curve(np.repeat(self.x, 2)[1:], np.repeat(self.y, 2)[:-1], replace(look, marker=""))
        on.spots(self.x, self.y, look)


def test_a_series_of_your_own_is_one_class_that_both_canvases_draw():
    axes, page = both(Staircase([1, 2, 4], [1, 3, 5], "stairs"))
    assert axes.lines[0].get_xdata().tolist() == [1, 2, 2, 4, 4] == page["data"][0]["x"]
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["stairs"]
    assert page["entries"][0]["traces"] == [0, 1]
    with pytest.raises(NotImplementedError, match="draw"):
        both(type("Undrawn", (Series,), {"label": "x"})())


def test_pages_take_every_kind_of_series():
    figure_checks.pages(Figure(title="All", panels=PANELS))


def lightness(colour: str) -> float:
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return float(np.dot(linear, [0.2126, 0.7152, 0.0722]))


def test_looks_are_alike_on_both_canvases_and_differ_without_colour():
    roles = [Line(X, X, role, role=role) for role in ("measured", "theory", "bound", "paper")]
    axes, page = both(*roles, *(Line(X, X, f"theory {i}", role="theory") for i in range(4)))
    pens = [trace["line"] for trace in page["data"] if "meta" in trace]
    colours = [pen["color"] for pen in pens]
    assert [to_hex(line.get_color()).upper() for line in axes.lines] == colours
    assert colours[:4] == [COLOURS[0], *INKS[:3]]
    assert len({(pen.get("dash"), lightness(pen["color"]) > 0.1) for pen in pens[4:]}) == 4
    assert len({pen.get("dash") for pen in pens[:4]}) == 4
    axes, _ = both(Line(X, X, "rule", role="theory", colour=2))  # the prediction for a curve has its marker, open
    assert axes.lines[0].get_marker() == MARKERS[2] and to_hex(axes.lines[0].get_markerfacecolor()) == "#ffffff"


def test_theory_lies_over_the_data_with_one_look_for_one_label_and_comes_last_in_the_legend():
    first, second = (Line([0, 1], [i, i + 1], "rule", role="theory") for i in (0, 1))
    axes, page = both(first, Line([0, 1], [0, 1], "a"), second)
    assert [line.get_zorder() for line in axes.lines] == [2.5, 2, 2.5]
    assert axes.lines[0].get_color() == axes.lines[2].get_color() == INKS[0]
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["a", "rule"]
    assert [entry["label"] for entry in page["entries"]] == ["a", "rule"]
    assert [page["data"][i]["zorder"] for i in page["entries"][1]["traces"]] == [1, 1]


def test_a_curve_below_another_one_is_seen_by_its_markers():
    axes, page = both(*(Line(X, X, str(i)) for i in range(4)))
    places = [set(line.get_markevery()) for line in axes.lines]
    assert all(len(at) == 5 for at in places) and len(set.union(*places)) == 20
    assert [trace["x"] for trace in page["data"][1::2]] == [X[sorted(at)].tolist() for at in places]


def test_what_a_log_axis_cannot_show_is_a_gap_or_a_floor_and_the_numbers_stay():
    axes, page = both(Band([0, 1, 2], [1, -1, 1], [1, 0, 2], [1, 1, 3], "band"), xscale="log", yscale="log")
    around, middle, _ = page["data"]
    assert around["y"] == [0.1, 1, 3, 1] and middle["y"] == [1, None, 2] and middle["x"] == [None, 1, 2]
    assert middle["customdata"] == [[1, 1], [-1, 1], [1, 3]]
    np.testing.assert_array_equal(axes.lines[0].get_ydata(), [1, np.nan, 2])
    _, page = both(Points([1], [2], "points", low=[-1], high=[3]), yscale="log")
    assert page["data"][0]["error_y"]["arrayminus"] == [1.8] and page["data"][0]["customdata"] == [[-1, 3]]


@pytest.mark.parametrize(
    ("yscale", "ylim", "level"), [("linear", None, 11.25), ("log", None, 90), ("log", (0.5, 20.0), 20)]
)
def test_an_infinite_end_and_the_cross_of_diverged_runs_are_at_the_top(yscale, ylim, level):
    exploding = Band([0, 1, 2], [1.0, 1.0, 1.0], [1.0, 9.0, np.inf], [2.0, np.inf, np.inf], "runs")
    axes, page = both(exploding, yscale=yscale, ylim=ylim)
    around, *_, cross = page["data"]
    assert axes.collections[0].get_paths()[0].vertices[:, 1].max() == pytest.approx(max(around["y"]))
    assert (cross["marker"]["symbol"], cross["x"], cross["y"]) == ("x-thin", [2], [pytest.approx(level)])
    assert np.isfinite(axes.get_ylim()).all() and "x" in [line.get_marker() for line in axes.lines]


def test_single_runs_are_one_curve_with_gaps():
    axes, page = both(Runs([0, 1], [[0, 1], [1, 0]], "runs"), Runs([[0, 1], [5]], [[2, 3], [4]], "of two lengths"))
    assert page["data"][0]["y"] == [0, 1, None, 1, 0, None] and axes.lines[0].get_alpha() == 0.7
    assert page["data"][2]["x"] == [0, 1, None, 5, None]


def test_limits_that_were_not_enough_are_arrows():
    rows, ends = ["k = 1", "k = 2", "k = 3"], [10.0, 100.0, 0.1]
    axes, page = both(Dots(rows, ends, "GD", low=ends, high=ends, beyond=[0, 1, -1]), xscale="log")
    assert {">", "<"} <= {line.get_marker() for line in axes.lines}
    arrows = [(trace["marker"]["symbol"], trace["x"]) for trace in page["data"]]
    assert arrows == [("circle", [10]), ("triangle-right-open", [100]), ("triangle-left-open", [0.1])]
    assert page["data"][1]["meta"] == "GD" and len(page["entries"]) == 1
    refuses(lambda: bare(Bars(["a"], [1.0], "bars"), yscale="log"), "bars on a log axis", "use Dots")


@pytest.mark.parametrize(("a", "b", "aside"), [([5, 6], [5, 7], True), ([5, 6], [7, 8], False)])
def test_points_that_would_hide_each_other_stand_side_by_side(a, b, aside):
    _, page = both(Points([1, 2], a, "a"), Points([1, 2], b, "b"))
    first, second = (np.array(trace["x"]) for trace in page["data"])
    assert (first < second).all() == aside


def test_many_points_are_small():
    axes, page = both(Points(range(301), range(301), "many"))
    assert axes.containers[0][0].get_markersize() < 3 and page["data"][0]["marker"]["size"] < 5


def test_categories_stand_in_lines_and_only_those_that_share_one_make_room():
    names = ["one", "two", "three"]
    a, b = (
        Dots(names, [1, 2, 3], "a", low=[0, 1, 2], high=[2, 3, 4]),
        Dots(names[1:], [1, 2], "b", low=[0, 1], high=[2, 3]),
    )
    axes, page = both(a, b, Dots(["mean"], [2], "mean", low=[1], high=[3]))
    assert [label.get_text() for label in axes.get_yticklabels()] == [*names, "mean"]
    assert list(axes.get_ylim()) == [3.5, -0.5] == page["layout"]["yaxis"]["range"]
    first, second, mean = (box[0].get_ydata() for box in axes.containers)
    assert (second > first[1:]).all() and (second.round() == [1, 2]).all() and mean == [3]
    assert axes.containers[0][2][0].get_segments()[0][:, 0].tolist() == [0, 2] and page["data"][2]["text"] == ["mean"]
    axes, page = both(Bars(names, [1, 2, 3], "a"), Bars(names[:2], [2, 1], "b"))
    assert page["data"][1]["text"] == names[:2] and [bars[0].get_hatch() for bars in axes.containers] == ["", "//"]


def test_a_series_takes_no_room_in_lines_where_it_shows_nothing():
    _, page = both(Dots(["a", "b"], [1, np.nan], "holds"), Dots(["a", "b"], [np.nan, 2], "fails"))
    assert [trace["y"] for trace in page["data"]] == [[0], [1]]


def test_figures_over_labelled_arrays():
    values = xr.DataArray([[1.0, 2.0], [3.0, np.nan], [2.0, 4.0]], dims=("seed", "width"), coords={"width": [4.0, 8.0]})
    points = compose.spread(values, "rate", within=(0.25, 0.75))
    assert points.x.tolist() == [4, 8] and points.y.tolist() == [2, 4] and points.high.tolist() == [2.5, np.inf]
    dots = compose.dots(values, "ratio", over="seed")
    assert dots.categories == ["4", "8"] and [*dots.low, *dots.high] == [1, 2, 3, np.inf]
    curves = compose.lines(values, "width", "w = {}", colour=2)
    assert [(line.label, line.colour, line.y[0]) for line in curves] == [("w = 4", 2, 1), ("w = 8", 3, 2)]
    panel = compose.panel("Rate", "width", "rate", points, curves, yscale="log")
    assert panel.series == [points, *curves] and panel.yscale == "log"
    assert compose.figure(panel, printed={"slope": ("1", 0.9)}).printed[0].quantity == "slope"
    refuses(lambda: band(values.expand_dims("rule"), "loss"), "one dimension besides 'seed'", "rule, width")
