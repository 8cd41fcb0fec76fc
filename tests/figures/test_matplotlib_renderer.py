"""Files: nothing overlaps or is cut, on a page and in a column; ticks have room; files are the same each time."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from figure_panels import PANELS, bare
from matplotlib.backends.backend_agg import FigureCanvasAgg

from checks import refuses
from gyrostat.figures import matplotlib_renderer
from gyrostat.figures.declarations import Bars, Figure, Points
from gyrostat.figures.mathematics import unicode_text
from gyrostat.figures.matplotlib_renderer import _folded, draw, render, write

CURVES, _, BARS, HEAT, _ = PANELS


def drawn(canvas):
    pen = FigureCanvasAgg(canvas).get_renderer()
    canvas.draw(pen)
    return pen


def words(canvas):
    """Rectangles in pixels of everything with words: panels with their labels, legends, title and note."""
    pen = drawn(canvas)
    parts = [axes.get_legend() for axes in canvas.axes] + canvas.texts
    return [
        *(axes.get_tightbbox(pen, bbox_extra_artists=[axes.title, axes.xaxis.label]) for axes in canvas.axes),
        *(part.get_window_extent(pen) for part in parts),
    ]


def overlap(a, b):
    return min(a.x1, b.x1) - max(a.x0, b.x0) > 2 and min(a.y1, b.y1) - max(a.y0, b.y0) > 2


@pytest.mark.parametrize("width", [None, "column", "text", 5.0])
@pytest.mark.parametrize("panels", [[CURVES], [BARS, HEAT], PANELS], ids=len)
def test_nothing_overlaps_or_is_cut(panels, width):
    note = "What to see. " * 14
    canvas = draw(Figure(title="A title that is rather long, to see where it goes", panels=panels, note=note), width)
    boxes = [box for box in words(canvas) if box.width]
    assert not any(overlap(a, b) for a, b in itertools.combinations(boxes, 2))
    across, down = canvas.canvas.get_width_height()
    assert all(b.x0 >= -1 and b.y0 >= -1 and b.x1 <= across + 1 and b.y1 <= down + 1 for b in boxes)
    pen = FigureCanvasAgg(canvas).get_renderer()
    for axes in canvas.axes:
        for labels in (axes.get_xticklabels(), axes.get_yticklabels()):
            if all(label.get_rotation() == 0 for label in labels):
                seen = [box for label in labels if (box := label.get_window_extent(pen)).width]
                assert not any(overlap(a, b) for a, b in itertools.pairwise(seen))
    sizes = [
        text.get_fontsize() for axes in canvas.axes for text in [axes.title, axes.xaxis.label, *axes.get_xticklabels()]
    ]
    assert min(sizes) >= 7 and canvas.get_figwidth() == {None: canvas.get_figwidth(), "column": 3.3, "text": 6.9}.get(
        width, width
    )


def test_the_axes_of_a_row_stand_in_line_and_rows_have_at_most_three():
    canvas = draw(Figure(title="t", panels=[CURVES] * 5))
    assert len({round(axes.get_position().y0, 6) for axes in canvas.axes}) == 2
    assert canvas.get_figwidth() > canvas.get_figheight()
    narrow = draw(Figure(title="t", panels=[CURVES] * 3), "column")
    assert (
        len({axes.get_position().x0 for axes in narrow.axes}) == 1
        and len({axes.get_position().y0 for axes in narrow.axes}) == 3
    )


def test_ticks_stand_where_the_data_do():
    whole = bare(Points([3, 5, 20], [1, 1, 1], "k"))
    ranks = bare(Bars(["a", "b"], [3, 3], "rank"))
    shares = bare(Bars(["a", "b"], [1, 0], "share"))
    axes = draw(Figure(title="t", panels=[whole, ranks, shares])).axes
    assert all(tick == round(tick) for tick in [*axes[0].get_xticks(), *axes[1].get_yticks()])
    assert any(tick != round(tick) for tick in axes[2].get_yticks())


@pytest.mark.parametrize(("at", "labels"), [(1e7, ["5·10⁶", "10⁷", "2·10⁷"]), (0.004, ["0.002", "0.005"])])
def test_short_log_axes_have_labels_that_are_alike_beside_a_single_value(at, labels, monkeypatch):
    monkeypatch.setattr(matplotlib_renderer, "mathtext", unicode_text)
    (axes,) = draw(Figure(title="t", panels=[bare(Points([at], [at], "a"), xscale="log", yscale="log")])).axes
    assert axes.get_xlim() == pytest.approx((at / 2, at * 2))
    shown = [tick for tick in axes.get_xticks() if at / 2 <= tick <= at * 2.0001]
    assert [axes.xaxis.get_major_formatter()(tick, 0) for tick in shown] == labels


def test_files_are_the_same_each_time_and_hold_no_control_characters(tmp_path):
    figure = Figure(title="t\x01", panels=[HEAT, CURVES], note="n")
    first = [path.read_bytes() for path in render(figure, tmp_path / "a" / "one")]
    second = [path.read_bytes() for path in render(figure, tmp_path / "b" / "two")]
    assert first == second and b"<dc:date>" not in first[1] and b"\x01" not in first[1]
    assert sorted(path.name for path in (tmp_path / "a").iterdir()) == ["one.png", "one.svg"]


def test_pdf_and_pgf_are_written_without_latex(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", "")
    texts = Figure(
        title="t", panels=[bare(*HEAT.series, title="R_t^2 <= 5 % & cost_of", xscale="log")], mathematics=True
    )
    pdf, pgf = (write(draw(texts, "column"), tmp_path / f"x.{kind}") for kind in ("pdf", "pgf"))
    assert pdf.read_bytes().startswith(b"%PDF") and b"/Type3" not in pdf.read_bytes()
    picture = pgf.read_text()
    assert (
        picture.count(r"\begin{pgfpicture}") == picture.count(r"\end{pgfpicture}") == 1
        and "includegraphics" not in picture
    )
    assert (
        r"$\mathit{R}_{\mathrm{t}}^{\mathrm{2}}$" in picture
        and r"\ensuremath{\leq}" in picture
        and r"\& cost\_of" in picture
    )
    assert picture.isascii() and picture.count("{") - picture.count(r"\{") == picture.count("}") - picture.count(r"\}")


def test_widths_and_lines_of_text():
    for width in ("collumn", 0, -3.3, 99):
        refuses(lambda width=width: draw(Figure(title="t", panels=[CURVES]), width), "width", "'column'", repr(width))
    for inches in np.linspace(1, 2, 9):
        assert "η\N{NO-BREAK SPACE}=\N{NO-BREAK SPACE}0.05" in _folded(
            "some words that go before it η = 0.05 and others", inches, 9
        )
    assert max(map(len, _folded("n" * 90, 1.0, 9).splitlines())) < 20
