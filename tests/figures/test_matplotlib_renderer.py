"""Files: nothing overlaps or is cut, on a page and in a column; ticks have room; files are the same each time."""

from __future__ import annotations

import numpy as np
import pytest
from figure_panels import PANELS, ROWS, bare

import figure_checks
from checks import refuses
from gyrostat.figures import matplotlib_renderer
from gyrostat.figures.declarations import Bars, Figure, Points
from gyrostat.figures.mathematics import unicode_text
from gyrostat.figures.matplotlib_renderer import _folded, draw, render, write

CURVES, _, BARS, HEAT, _ = PANELS


@pytest.mark.parametrize(("width", "inches"), [(None, None), ("column", 3.3), ("text", 6.9), (5.0, 5.0)])
@pytest.mark.parametrize("panels", [[CURVES], [BARS, HEAT], [*PANELS, ROWS]], ids=len)
def test_nothing_overlaps_or_is_cut_and_print_has_the_width_that_was_asked_for(panels, width, inches):
    note = "What to see. " * 14
    canvas = figure_checks.drawn(Figure(title="A title that is rather long, to see", panels=panels, note=note), width)
    assert min(axes.xaxis.label.get_fontsize() for axes in canvas.axes) >= 7
    assert canvas.get_figwidth() == (inches or canvas.get_figwidth())


@pytest.mark.parametrize(("width", "count", "rows", "columns"), [(None, 5, 2, 3), ("column", 3, 3, 1)])
def test_axes_stand_in_line_in_rows_of_as_many_as_have_room(width, count, rows, columns):
    places = [axes.get_position() for axes in draw(Figure(title="t", panels=[CURVES] * count), width).axes]
    assert len({round(place.y0, 6) for place in places}) == rows
    assert len({round(place.x0, 6) for place in places}) == columns


def test_ticks_stand_where_the_data_do():
    counts = bare(Points([3, 5, 20], [1, 1, 1], "k")), bare(Bars(["a", "b"], [3, 3], "rank"))
    axes = draw(Figure(title="t", panels=[*counts, bare(Bars(["a", "b"], [1, 0], "share"))])).axes
    assert all(tick == round(tick) for tick in [*axes[0].get_xticks(), *axes[1].get_yticks()])
    assert any(tick != round(tick) for tick in axes[2].get_yticks())


@pytest.mark.parametrize(("at", "labels"), [(1e7, ["5·10⁶", "10⁷", "2·10⁷"]), (0.0049, ["0.005", "0.01"])])
def test_a_log_axis_with_a_single_value_has_two_labels_that_are_alike(at, labels, monkeypatch):
    monkeypatch.setattr(matplotlib_renderer, "mathtext", unicode_text)
    (axes,) = draw(Figure(title="t", panels=[bare(Points([at], [at], "a"), xscale="log", yscale="log")])).axes
    low, high = axes.get_xlim()
    assert low < at < high
    assert [axes.xaxis.get_major_formatter()(x, 0) for x in axes.get_xticks() if low <= x <= high] == labels


@pytest.mark.filterwarnings("ignore:Glyph 1")
def test_files_are_the_same_each_time_and_hold_no_control_characters(tmp_path):
    figure = Figure(title="t\x01", panels=[HEAT, CURVES], note="n")
    first, second = ([path.read_bytes() for path in render(figure, tmp_path / name / "x")] for name in "ab")
    assert first == second and b"<dc:date>" not in first[1] and b"\x01" not in first[1]
    assert sorted(path.name for path in (tmp_path / "a").iterdir()) == ["x.png", "x.svg"]


def test_pdf_and_pgf_are_written_without_latex(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", "")
    panel = bare(*HEAT.series, title="R_t^2 <= 5 % & cost_of", xscale="log")
    canvas = draw(Figure(title="t", panels=[panel], mathematics=True), "column")
    pdf = write(canvas, tmp_path / "x.pdf").read_bytes()
    assert pdf.startswith(b"%PDF") and b"/Type3" not in pdf
    pgf = write(canvas, tmp_path / "x.pgf").read_text()
    assert pgf.count(r"\begin{pgfpicture}") == pgf.count(r"\end{pgfpicture}") == 1 and "includegraphics" not in pgf
    for words in (r"$\mathit{R}_{\mathrm{t}}^{\mathrm{2}}$", r"\ensuremath{\leq}", r"\& cost\_of"):
        assert words in pgf
    assert pgf.isascii() and pgf.count("{") - pgf.count(r"\{") == pgf.count("}") - pgf.count(r"\}")


@pytest.mark.parametrize("width", ["collumn", 0, -3.3, 99])
def test_a_width_that_is_none_is_refused(width):
    refuses(lambda: draw(Figure(title="t", panels=[CURVES]), width), "width", "'column'", repr(width))


def test_lines_of_text():
    for inches in np.linspace(1, 2, 9):
        folded = _folded("some words that go before it η = 0.05 and others", inches, 9)
        assert "η\N{NO-BREAK SPACE}=\N{NO-BREAK SPACE}0.05" in folded
    assert max(map(len, _folded("n" * 90, 1.0, 9).splitlines())) < 20
