"""What a series draws on both canvases: one class is enough for a new kind, and looks are alike in files and on pages."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace

import numpy as np
import plotly.graph_objects as go
import pytest
import xarray as xr
from figure_panels import PANELS, X, bare
from matplotlib.colors import to_hex

from checks import refuses
from gyrostat.figures import compose
from gyrostat.figures.declarations import Band, Bars, Dots, Figure, Line, Points, Runs, Series
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


@pytest.mark.parametrize("panel", PANELS, ids=lambda panel: panel.title)
def test_plotly_accepts_every_kind_of_series_and_the_legend_knows_every_part(panel):
    (drawn,) = plotly_panels(Figure(title="All", panels=[panel]))
    go.Figure(drawn["data"], drawn["layout"])  # refuses unknown names and bad values
    for kind, parts in (("traces", drawn["data"]), ("shapes", drawn["layout"].get("shapes", []))):
        assert sorted(i for entry in drawn["entries"] for i in entry[kind]) == list(range(len(parts)))


def test_looks_are_alike_on_both_canvases_and_differ_without_colour():
    roles = [Line(X, X, role, role=role) for role in ("measured", "theory", "bound", "paper")]
    axes, page = both(*roles, *(Line(X, X, f"theory {i}", role="theory") for i in range(4)))
    pens = [trace["line"] for trace in page["data"] if "meta" in trace]
    colours = [pen["color"] for pen in pens]
    assert [to_hex(line.get_color()).upper() for line in axes.lines] == colours
    assert colours[:4] == [COLOURS[0], *INKS[:3]]
    grey = Counter(
        (pen.get("dash"), lightness(colour) > 0.1) for pen, colour in zip(pens[4:], colours[4:], strict=True)
    )
    assert max(grey.values()) == 1 and len({pen.get("dash") for pen in pens[:4]}) == 4
    axes, _ = both(Line(X, X, "rule", role="theory", colour=2))  # the prediction for a curve has its marker, open
    assert axes.lines[0].get_marker() == MARKERS[2] and to_hex(axes.lines[0].get_markerfacecolor()) == "#ffffff"


def lightness(colour: str) -> float:
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    return float(
        np.dot([p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts], [0.2126, 0.7152, 0.0722])
    )


def test_theory_lies_over_the_data_with_one_look_for_one_label_and_comes_last_in_the_legend():
    theory = [Line([0, 1], [i, i + 1], "rule", role="theory") for i in (0, 1)]
    axes, page = both(theory[0], Line([0, 1], [0, 1], "a"), theory[1])
    assert [line.get_zorder() for line in axes.lines] == [2.5, 2, 2.5] and axes.lines[0].get_color() == INKS[0]
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["a", "rule"]
    assert [(entry["label"], entry["traces"]) for entry in page["entries"]] == [("a", [1]), ("rule", [0, 2])]
    assert [trace.get("zorder", 0) for trace in page["data"]] == [1, 0, 1]


def test_a_curve_below_another_one_is_seen_by_its_markers():
    axes, page = both(*(Line(X, X, str(i)) for i in range(4)))
    places = [set(line.get_markevery()) for line in axes.lines]
    assert all(len(at) == 5 for at in places) and len(set.union(*places)) == 20
    assert [trace["x"] for trace in page["data"][1::2]] == [X[sorted(at)].tolist() for at in places]


def test_what_a_log_axis_cannot_show_is_a_gap_or_a_floor_and_the_numbers_stay():
    axes, page = both(Band([0, 1, 2], [1, -1, 1], [1, 0, 2], [1, 1, 3], "band"), xscale="log", yscale="log")
    around, middle = page["data"]
    assert around["y"] == [0.1, 1, 3, 1] and middle["y"] == [1, None, 2] and middle["x"] == [None, 1, 2]
    assert middle["customdata"] == [[1, 1], [-1, 1], [1, 3]]
    np.testing.assert_array_equal(axes.lines[0].get_ydata(), [1, np.nan, 2])
    _, page = both(Points([1], [2], "points", low=[-1], high=[3]), yscale="log")
    assert page["data"][0]["error_y"]["arrayminus"] == [1.8] and page["data"][0]["customdata"] == [[-1, 3]]


@pytest.mark.parametrize("yscale", ["linear", "log"])
@pytest.mark.parametrize("ylim", [None, (0.5, 20.0)])
def test_an_infinite_end_and_the_cross_of_diverged_runs_are_at_the_top(yscale, ylim):
    exploding = Band([0, 1, 2], [1.0, 1.0, 1.0], [1.0, 9.0, np.inf], [2.0, np.inf, np.inf], "runs")
    axes, page = both(exploding, yscale=yscale, ylim=ylim)
    top = axes.collections[0].get_paths()[0].vertices[:, 1].max()
    assert np.isfinite(top) and (top == 20.0 if ylim else top > 1.0)
    around, *_, cross = page["data"]
    assert max(around["y"]) == pytest.approx(top) and cross["marker"]["symbol"] == "x-thin"
    assert cross["x"] == [2] and cross["y"][0] == (20.0 if ylim else pytest.approx(90 if yscale == "log" else 11.25))
    assert np.isfinite(axes.get_ylim()).all() and "x" in [line.get_marker() for line in axes.lines]


def test_single_runs_names_and_limits_that_were_not_enough():
    axes, page = both(Runs([0, 1], [[0, 1], [1, 0]], "runs"), Points([1, 2], [1, 2], "points", names=["one", "two"]))
    assert page["data"][0]["y"] == [0, 1, None, 1, 0, None] and axes.lines[0].get_alpha() == 0.7
    assert [text.get_text() for text in axes.texts] == ["one", "two"]
    assert page["data"][-1]["textposition"] == ["middle right", "middle left"]
    dots = Dots(["k = 1", "k = 2"], [10.0, 100.0], "GD", low=[10, 100], high=[10, 100], beyond=[False, True])
    axes, page = both(dots, xscale="log")
    assert ">" in [line.get_marker() for line in axes.lines]
    assert [trace["marker"]["symbol"] for trace in page["data"]] == ["circle", "triangle-right-open"]
    refuses(lambda: bare(Bars(["a"], [1.0], "bars"), yscale="log"), "bars on a log axis", "use Dots")


def test_points_that_would_hide_each_other_stand_side_by_side_and_many_are_small():
    axes, _ = both(*(Points([1, 2], [5, y], name) for name, y in (("a", 6), ("b", 7))))
    a, b = (box[0].get_xdata() for box in axes.containers)
    assert (a < b).all()
    axes, _ = both(Points([1, 2], [5, 6], "a"), Points([1, 2], [7, 8], "b"))
    assert [box[0].get_xdata().tolist() for box in axes.containers] == [[1, 2], [1, 2]]
    axes, page = both(Points(range(301), range(301), "many"))
    assert axes.containers[0][0].get_markersize() < 3 and page["data"][0]["marker"]["size"] < 5


def test_categories_stand_in_lines_and_only_those_that_share_one_make_room():
    names = ["one", "two", "three"]
    pair = [
        Dots(names, [1, 2, 3], "a", low=[0, 1, 2], high=[2, 3, 4]),
        Dots(names[1:], [1, 2], "b", low=[0, 1], high=[2, 3]),
    ]
    axes, page = both(*pair, Dots(["mean"], [2], "mean", low=[1], high=[3]))
    assert [label.get_text() for label in axes.get_yticklabels()] == [*names, "mean"] and axes.get_ylim() == (3.5, -0.5)
    first, second, mean = (box[0].get_ydata() for box in axes.containers)
    assert (second > first[1:]).all() and (second.round() == [1, 2]).all() and mean == [3]
    assert axes.containers[0][2][0].get_segments()[0][:, 0].tolist() == [0, 2]
    assert page["layout"]["yaxis"]["range"] == [3.5, -0.5] and page["data"][2]["text"] == ["mean"]
    axes, page = both(Bars(names, [1, 2, 3], "a"), Bars(names[:2], [2, 1], "b"))
    assert page["data"][1]["text"] == names[:2] and [bars[0].get_hatch() for bars in axes.containers] == ["", "//"]


def test_figures_over_labelled_arrays():
    values = xr.DataArray([[1.0, 2.0], [3.0, np.nan], [2.0, 4.0]], dims=("seed", "width"), coords={"width": [4.0, 8.0]})
    points = compose.spread(values, "rate", within=(0.25, 0.75))
    assert points.x.tolist() == [4, 8] and points.y.tolist() == [2, 4] and points.high.tolist() == [2.5, np.inf]
    dots = compose.dots(values.isel(seed=0, drop=True), "ratio")
    assert dots.categories == ["4", "8"] and dots.low.tolist() == dots.high.tolist() == [1, 2]
    curves = compose.lines(values, "width", "w = {}", colour=2)
    assert [(line.label, line.colour, line.y.tolist()[0]) for line in curves] == [("w = 4", 2, 1), ("w = 8", 3, 2)]
    figure = compose.figure(
        compose.panel("Rate", "width", "rate", points, curves, yscale="log"), title="T", printed={"slope": ("1", 0.9)}
    )
    assert [type(one) for one in figure.panels[0].series] == [Points, Line, Line] and figure.panels[0].yscale == "log"
    assert (figure.printed[0].quantity, figure.printed[0].ours) == ("slope", 0.9)
    refuses(lambda: compose.panel("T", "x", "y", xscal="log"), "xscal", "xscale")
    refuses(lambda: compose.dots(values, "ratio"), "one dimension", "seed, width")
