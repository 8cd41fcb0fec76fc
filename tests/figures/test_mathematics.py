"""Mathematics in texts: the notation of the papers becomes mathematics, and nothing that is data does."""

from __future__ import annotations

import numpy as np
import pytest
from matplotlib.mathtext import MathTextParser

from checks import refuses
from gyrostat.figures.coincidences import told_apart
from gyrostat.figures.declarations import Band, Bars, Dots, Figure, Line, Panel, Points, Runs
from gyrostat.figures.mathematics import html_text, mathtext, typeset, unicode_text
from gyrostat.figures.matplotlib_renderer import draw, render
from gyrostat.figures.plotly_renderer import plotly_panels
from gyrostat.reproduce.claims import declared_claims

NAMES = ["cost_of_x in $", "$price_in$ and $rest$", "<b>eta_schedule</b>", "site_alpha.csv", "a\\b", "every-alpha"]


def panel(*series, **options):
    return Panel(title="T", xlabel="x", ylabel="y", series=series, **options)


@pytest.mark.parametrize(
    ("plain", "shown", "page"),
    [
        ("eta lambda_H", "η λ_H", "η λ<sub>H</sub>"),
        ("||E||_F^2 <= 1e-12", "‖E‖_F² ≤ 10⁻¹²", "‖E‖<sub>F</sub><sup>2</sup> ≤ 10<sup>−12</sup>"),
        ("x^(1 - gamma), sᵢ², Tᵀ", "x^(1 − γ), sᵢ², Tᵀ", "x<sup>1 − γ</sup>, s<sub>i</sub><sup>2</sup>, T<sup>T</sup>"),
        ("A_star, M*, s2 / s1", "A*, M*, s₂ / s₁", "A*, M*, s<sub>2</sub> / s<sub>1</sub>"),
        ("(1 + eta)^t, U U^T", "(1 + η)ᵗ, U Uᵀ", "(1 + η)<sup>t</sup>, U U<sup>T</sup>"),
        ("1 - M, slope -.5 in (-1, 0)", "1 − M, slope −0.5 in (−1, 0)", "1 − M, slope −0.5 in (−1, 0)"),
        ("half-time, 2-3, --out DIR, re-run", "half-time, 2-3, --out DIR, re-run", "half-time, 2-3, --out DIR, re-run"),
        ("+-1/sqrt(3), sqrt(d/m), pi", "±1/√3, √(d/m), π", "±1/√3, √(d/m), π"),
        ("eta alpha^2 x iteration", "η α² × iteration", "η α<sup>2</sup> × iteration"),
        ("d^1/2 in [.42, .6]", "d^(1/2) in [0.42, 0.6]", "d<sup>1/2</sup> in [0.42, 0.6]"),
    ],
)
def test_three_renderings(plain, shown, page):
    assert unicode_text(plain) == shown and html_text(plain) == page


@pytest.mark.parametrize("name", NAMES)
def test_names_stay_data(name):
    assert unicode_text(name) == name


def test_a_figure_without_mathematics_shows_every_name_as_it_is():
    figure = Figure(title=NAMES[1], panels=[panel(Line([0, 1], [0, 1], "eta_1 $x$"))])
    assert typeset(figure, mathtext) is figure
    axes = draw(figure).axes[0]
    assert axes.lines[0].get_label() == "eta_1 $x$"
    assert plotly_panels(figure)[0]["entries"][0]["label"] == "eta_1 $x$"


def test_dollars_are_never_markup(tmp_path):
    figure = Figure(title="R_t^2 costs $5 or $6", panels=[panel(Line([1, 2], [1, 2], NAMES[1]))], mathematics=True)
    (png, svg) = render(figure, tmp_path / "figure")
    assert png.stat().st_size > 1000 and svg.stat().st_size > 1000
    assert mathtext("$5 or $6") == r"\$5 or \$6"


def test_the_texts_of_all_claims_are_typeset():
    parser, left = MathTextParser("path"), []
    for record in declared_claims():
        for text in (record["statement"], record["criterion"], record["reason"]):
            shown = unicode_text(text)
            left += [
                word
                for word in ("alpha", "lambda", "_star", "<=", "||", "sqrt(")
                if word in shown.replace("every-alpha", "")
            ]
            marked = mathtext(text)
            if r"$\math" in marked and len(marked) < 120:
                parser.parse(marked)
    assert left == []


def test_curves_that_coincide_say_so_in_both_renderings():
    x = np.arange(5.0)
    curves = [Line(x, 10.0**-x, "a"), Band(x, x, 1.01 * 10.0**-x, x, "b"), Line(x, 2 * 10.0**-x, "c")]
    series = told_apart(Figure(title="T", panels=[panel(*curves, yscale="log")])).panels[0].series
    assert [s.label for s in series] == ["a", "b (on a)", "c"] and [s.over for s in series] == [False, True, False]
    figure = Figure(title="T", panels=[panel(*series, yscale="log")])
    assert [line.is_dashed() for line in draw(figure).axes[0].lines] == [False, True, False]
    assert ["dash" in trace["line"] for trace in plotly_panels(figure)[0]["data"] if "meta" in trace] == [
        False,
        True,
        False,
    ]


def test_single_runs_limits_and_divergence_are_drawn_as_such():
    lost = Band([0, 1, 2], [1.0, 1, 1], [1.0, 2, np.inf], [1.0, np.inf, np.inf], "lost")
    dots = Dots(["k = 1", "k = 2"], [10.0, 100.0], "GD", low=[10, 100], high=[10, 100], beyond=[False, True])
    named = Points([1, 2], [1, 2], "points", names=["one", "two"])
    figure = Figure(
        title="T", panels=[panel(Runs([0, 1], [[0, 1], [1, 0]], "runs"), lost, named), panel(dots, xscale="log")]
    )
    left, right = (axes for axes in draw(figure).axes if axes.get_title())
    assert [line.get_alpha() for line in left.lines[:2]] == [0.7, 0.7] and "x" in [
        line.get_marker() for line in left.lines
    ]
    assert [text.get_text() for text in left.texts] == ["one", "two"]
    assert ">" in [line.get_marker() for line in right.lines]
    drawn, beyond = plotly_panels(figure)
    assert drawn["data"][0]["y"] == [0, 1, None, 1, 0, None] and "x-thin" in str(drawn["data"])
    assert beyond["data"][0]["marker"]["symbol"] == ["circle", "triangle-right-open"]
    refuses(lambda: panel(Bars(["a"], [1.0], "bars"), yscale="log"), "bars on a log axis", "use Dots")
