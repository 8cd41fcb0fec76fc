"""Figures: every kind of series is drawn, nothing overlaps, files are the same each time."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import to_hex

from gyrostat.figures.axis_scales import edges
from gyrostat.figures.declarations import Band, Bars, Contour, Dots, Figure, Heat, Line, Marker, Panel, Points
from gyrostat.figures.matplotlib_renderer import _folded, draw, render
from gyrostat.figures.palette import COLOURS, INKS
from gyrostat.figures.plotly_renderer import plotly_panels

X = np.arange(1.0, 31.0)
CURVES = Panel(
    title="Curves",
    xlabel="step",
    ylabel="value",
    series=[
        Band(X, X - 2, X, X + 2, "band"),
        Line(X, X**2, "line"),
        Line(X, X, "theory", role="theory"),
        Line(X, 2 * X, "bound", role="bound"),
        Line(X, 3 * X, "paper", role="paper"),
        Marker(3, "level"),
        Marker(9, "time", axis="x"),
    ],
    yscale="log",
)
POINTS = Panel(
    title="Points",
    xlabel="spread",
    ylabel="share",
    series=[Points([1, 2, 4], [1, 0.5, 0], "points", low=[0.5, 0.1, -1], high=[2, 1, 1])],
    xscale="log",
    yscale="log",
)
NAMES = ["HeteroSGD with a long name", "PooledSGD with a long name", "least squares"]
BARS = Panel(
    title="Bars",
    xlabel="method",
    ylabel="share",
    series=[Bars(NAMES, np.array([1, 2, 3]), "a", low=[0, 1, 2], high=[2, 3, 4]), Bars(NAMES[:2], [2, 1], "b")],
)
HEAT = Panel(
    title="Heat",
    xlabel="x",
    ylabel="y",
    series=[
        Heat([1, 2, 4], [1, 10], [[1, np.nan, 2], [3, 4, 5]], "share"),
        Marker(2, "m", axis="x"),
        Contour([1, 2, 4], [1, 10], [[1, 2, 2], [3, 4, 5]], "measured edge", level=2.5),
        Contour([1, 2, 4], [1, 10], [[1, 2, 2], [3, 4, 5]], "predicted edge", level=3.5, role="theory"),
        Contour([1, 2, 4], [1, 10], [[1, 2, 2], [3, 4, 5]], "nowhere", level=9.0, role="bound"),
    ],
    xscale="log",
)
DOTS = Panel(
    title="Dots",
    xlabel="ratio",
    ylabel="",
    series=[
        Dots(NAMES, [0.1, 1, 10], "a", low=[0.05, 0.5, 5], high=[0.2, 2, 20]),
        Dots(NAMES[1:], [1, 2], "b", low=[0.5, 1], high=[2, 4]),
        Marker(1, "one", axis="x"),
    ],
    xscale="log",
    height=1.5,
)
PANELS = [CURVES, POINTS, BARS, HEAT, DOTS]


def boxes(canvas):
    """Rectangles in pixels of everything with words: panels with their labels, legends, the note."""
    drawer = FigureCanvasAgg(canvas).get_renderer()
    canvas.draw(drawer)
    cells = [cell for cell in canvas.subfigs if cell.axes]
    panels = [cell.axes[0].get_tightbbox(drawer) for cell in cells]
    legends = [cell.axes[1].get_legend().get_window_extent(drawer) for cell in cells]
    notes = [text.get_window_extent(drawer) for cell in canvas.subfigs for text in cell.texts]
    return [*panels, *legends, *notes, canvas._suptitle.get_window_extent(drawer)]


@pytest.mark.parametrize("panels", [[CURVES], [BARS, HEAT], PANELS])
def test_nothing_overlaps_or_is_cut(panels):
    canvas = draw(
        Figure(title="A title that is rather long, to see where it goes", panels=panels, note="What to see. " * 14)
    )
    found = boxes(canvas)
    for a, b in itertools.combinations(found, 2):
        across = min(a.x1, b.x1) - max(a.x0, b.x0)
        down = min(a.y1, b.y1) - max(a.y0, b.y0)
        assert across < 2 or down < 2, (a, b)
    width, height = canvas.canvas.get_width_height()
    assert all(b.x0 >= -1 and b.y0 >= -1 and b.x1 <= width + 1 and b.y1 <= height + 1 for b in found)


def test_dots_stand_in_lines_from_the_top_with_whiskers_along_them():
    canvas = draw(Figure(title="t", panels=[DOTS]))
    axes = canvas.subfigs[0].axes[0]
    assert [label.get_text() for label in axes.get_yticklabels()] == NAMES and axes.get_ylim() == (2.5, -0.5)
    first, second = (box for box in axes.containers)
    (x, y), (_, below) = first[0].get_data(), second[0].get_data()
    np.testing.assert_allclose(x, [0.1, 1, 10])
    np.testing.assert_allclose(y.round(), [0, 1, 2])
    assert (below > y[1:]).all() and (below.round() == [1, 2]).all()  # in the same line, one below the other
    whisker = first[2][0].get_segments()[0]
    np.testing.assert_allclose(whisker[:, 0], [0.05, 0.2])
    usual = draw(
        Figure(title="t", panels=[Panel(title="Dots", xlabel="ratio", ylabel="", series=DOTS.series, xscale="log")])
    )
    assert canvas.get_figheight() > usual.get_figheight() + 1


def test_roles_and_colours():
    axes = draw(Figure(title="t", panels=[CURVES])).subfigs[0].axes[0]
    lines = {line.get_label(): line for line in axes.lines}
    assert lines["line"].get_linestyle() == "-" and to_hex(lines["line"].get_color()).upper() == COLOURS[1]
    dashes = {lines[role]._unscaled_dash_pattern[1] for role in ("theory", "bound", "paper")}
    assert len(dashes) == 3 and None not in dashes
    assert to_hex(lines["theory"].get_color()) == "#111111"
    assert axes.get_title() == "Curves" and axes.get_xlabel() == "step" and axes.get_ylabel() == "value"


def test_log_axes_leave_out_what_is_not_positive():
    panel = Panel(
        title="t",
        xlabel="x",
        ylabel="y",
        series=[Line([0, 1, 2], [1.0, 0.0, 2.0], "a"), Line([1, 2], [-1, -2], "b")],
        xscale="log",
        yscale="log",
    )
    line = draw(Figure(title="t", panels=[panel])).subfigs[0].axes[0].lines[0]
    assert np.isnan(line.get_xdata()[0]) and np.isnan(line.get_ydata()[1]) and line.get_ydata()[2] == 2


def test_a_single_value_on_log_axes_is_inside_them_with_labels_beside_it():
    points = Points([1e7], [0.0024], "a", low=[0.0024], high=[0.0024])
    panel = Panel(title="t", xlabel="x", ylabel="y", series=[points], xscale="log", yscale="log")
    axes = draw(Figure(title="t", panels=[panel])).subfigs[0].axes[0]
    assert axes.get_xlim() == pytest.approx((5e6, 2e7)) and axes.get_ylim() == pytest.approx((0.0012, 0.0048))
    shown = [tick for tick in axes.get_xticks() if 5e6 <= tick <= 2.0001e7]
    assert len(shown) > 1 and axes.xaxis.get_major_formatter()(5e6, None) == "5·10⁶"


def test_rows_of_at_most_three():
    canvas = draw(Figure(title="t", panels=[CURVES] * 5))
    positions = [cell.axes[0].get_position(original=True) for cell in canvas.subfigs]
    assert len(positions) == 5 and canvas.get_figwidth() > canvas.get_figheight()
    tops = {round(cell.bbox.y0) for cell in canvas.subfigs}
    assert len(tops) == 2


def test_edges_in_the_scale_of_the_axis():
    assert edges(np.array([1.0, 100.0]), "log") == pytest.approx([0.1, 10, 1000])
    assert edges(np.array([3.0]), "linear").tolist() == [2.5, 3.5]


def test_files_are_the_same_each_time(tmp_path):
    figure = Figure(title="t", panels=[HEAT, CURVES], note="n")
    first = [path.read_bytes() for path in render(figure, tmp_path / "a" / "one")]
    second = [path.read_bytes() for path in render(figure, tmp_path / "b" / "two")]
    assert first == second and b"<dc:date>" not in first[1]
    assert sorted(path.name for path in (tmp_path / "a").iterdir()) == ["one.png", "one.svg"]


def theory_between_two_curves():
    """Two curves with the same prediction for both, declared in turn."""
    return Panel(
        title="",
        xlabel="",
        ylabel="",
        series=[
            Line([0, 1], [0, 1], "a"),
            Line([0, 1], [0, 1], "predicted", role="theory"),
            Line([0, 1], [1, 2], "b"),
            Line([0, 1], [1, 2], "predicted", role="theory"),
        ],
    )


def test_theory_lies_over_the_data_with_one_look_for_one_label_and_comes_last_in_the_legend():
    panel = theory_between_two_curves()
    canvas = draw(Figure(title="t", panels=[panel]))
    axes, below = canvas.subfigs[0].axes
    data, theory = (
        [line for line in axes.lines if (line.get_label() == "predicted") is which] for which in (False, True)
    )
    assert max(line.get_zorder() for line in data) < min(line.get_zorder() for line in theory)
    assert {line.get_color() for line in theory} == {INKS[0]}
    assert [text.get_text() for text in below.get_legend().get_texts()] == ["a", "b", "predicted"]
    (page,) = plotly_panels(Figure(title="t", panels=[panel]))
    assert [entry["label"] for entry in page["entries"]] == ["a", "b", "predicted"]
    assert [trace.get("zorder", 0) for trace in page["data"]] == [0, 1, 0, 1]
    assert {page["data"][i]["line"]["color"] for i in page["entries"][2]["traces"]} == {INKS[0]}


def test_labels_of_ticks_do_not_touch_and_stand_at_whole_numbers_where_the_data_do():
    wide = Panel(title="", xlabel="", ylabel="", series=[Line([0, 20000], [0, 1], "a")])
    whole = Panel(title="", xlabel="", ylabel="", series=[Points([3, 5, 20], [1, 1, 1], "k")])
    ranks = Panel(title="", xlabel="", ylabel="", series=[Bars(["a", "b"], [3, 3], "rank")])
    shares = Panel(title="", xlabel="", ylabel="", series=[Bars(["a", "b"], [1, 0], "share")])
    canvas = draw(Figure(title="t", panels=[wide, whole, ranks, shares]))
    drawer = FigureCanvasAgg(canvas).get_renderer()
    canvas.draw(drawer)
    first, second, third, fourth = (cell.axes[0] for cell in canvas.subfigs if cell.axes)
    boxes = [label.get_window_extent(drawer) for label in first.get_xticklabels()]
    assert len(boxes) > 2 and all(a.x1 + 5 < b.x0 for a, b in itertools.pairwise(boxes))
    assert all(tick == round(tick) for tick in [*second.get_xticks(), *third.get_yticks()])
    assert any(tick != round(tick) for tick in fourth.get_yticks())


def test_labels_of_ticks_do_not_touch_beside_long_names():
    names = ["a rather long name of a category", "b"]
    ratios = Dots(names, [0.97, 1.03], "ratio", low=[0.95, 1], high=[1, 1.05])
    narrow = Panel(title="", xlabel="", ylabel="", series=[ratios], xlim=(0.8, 1.2))
    canvas = draw(Figure(title="t", panels=[narrow, narrow]))
    drawer = FigureCanvasAgg(canvas).get_renderer()
    canvas.draw(drawer)
    boxes = [label.get_window_extent(drawer) for label in canvas.subfigs[0].axes[0].get_xticklabels()]
    assert len(boxes) > 1 and all(a.x1 < b.x0 for a, b in itertools.pairwise(boxes))


def test_points_that_would_hide_each_other_stand_side_by_side_and_many_are_small():
    series = [Points([1, 2], [5, y], name) for name, y in (("a", 6), ("b", 7))]
    axes = draw(Figure(title="t", panels=[Panel(title="", xlabel="", ylabel="", series=series)])).subfigs[0].axes[0]
    a, b = (box[0].get_xdata() for box in axes.containers)
    assert (a < b).all()
    apart = [Points([1, 2], [5, 6], "a"), Points([1, 2], [7, 8], "b")]
    axes = draw(Figure(title="t", panels=[Panel(title="", xlabel="", ylabel="", series=apart)])).subfigs[0].axes[0]
    assert [box[0].get_xdata().tolist() for box in axes.containers] == [[1, 2], [1, 2]]
    crowd = Panel(title="", xlabel="", ylabel="", series=[Points(range(301), range(301), "many")])
    assert draw(Figure(title="t", panels=[crowd])).subfigs[0].axes[0].containers[0][0].get_markersize() < 3
    assert plotly_panels(Figure(title="t", panels=[crowd]))[0]["data"][0]["marker"]["size"] < 5


def test_lines_are_not_broken_inside_a_matrix_or_after_an_expectation():
    for formula in ("[[1, *], [ε, 1]]", "N(0, 1/fan-in)", "E ‖Σ‖"):
        for width in range(20, 40):
            assert formula in _folded(f"some words that go before it {formula} and others", width).replace(
                "\N{NO-BREAK SPACE}", " "
            )
