"""Mathematics in texts: the notation of the papers becomes mathematics, and nothing that is data does."""

from __future__ import annotations

import pytest
from matplotlib.mathtext import MathTextParser

from gyrostat.figures.declarations import Figure, Line, Panel
from gyrostat.figures.mathematics import html_text, mathtext, unicode_text
from gyrostat.figures.matplotlib_renderer import draw, render
from gyrostat.figures.plotly_renderer import plotly_panels
from gyrostat.reproduce.claims import declared_claims

NAMES = ["cost_of_x in $", "$price_in$ and $rest$", "<b>eta_schedule</b>", "site_alpha.csv", "a\\b", "every-alpha"]


@pytest.mark.parametrize(
    ("plain", "shown", "page"),
    [
        ("eta lambda_H", "η λ_H", "<i>η</i> <i>λ</i><sub>H</sub>"),
        ("||E||_F^2 <= 1e-12", "‖E‖_F² ≤ 10⁻¹²", "‖<i>E</i>‖<sub>F</sub><sup>2</sup> ≤ 10<sup>−12</sup>"),
        ("x^(1 - gamma), sᵢ²", "x^(1 − γ), sᵢ²", "<i>x</i><sup>1 − γ</sup>, <i>s</i><sub>i</sub><sup>2</sup>"),
        ("A_star, s2 / s1", "A*, s₂ / s₁", "<i>A</i>*, <i>s</i><sub>2</sub> / <i>s</i><sub>1</sub>"),
        ("(1 + eta)^t, U U^T", "(1 + η)ᵗ, U Uᵀ", "(1 + <i>η</i>)<sup>t</sup>, <i>U</i> <i>U</i><sup>T</sup>"),
        ("1 - M, slope -.5 in (-1, 0)", "1 − M, slope −0.5 in (−1, 0)", "1 − <i>M</i>, slope −0.5 in (−1, 0)"),
        ("half-time, 2-3, --out DIR, re-run", "half-time, 2-3, --out DIR, re-run", "half-time, 2-3, --out DIR, re-run"),
        ("+-1/sqrt(3), sqrt(d/m), pi", "±1/√3, √(d/m), π", "±1/√3, √(<i>d</i>/<i>m</i>), <i>π</i>"),
        ("eta alpha^2 x iteration", "η α² × iteration", "<i>η</i> <i>α</i><sup>2</sup> × iteration"),
        ("(b) a run of 5 s at (M = 6)", "(b) a run of 5 s at (M = 6)", "(b) a run of 5 s at (<i>M</i> = 6)"),
    ],
)
def test_three_renderings(plain, shown, page):
    assert unicode_text(plain) == shown and html_text(plain) == page


@pytest.mark.parametrize("name", NAMES)
def test_names_stay_data(name, tmp_path):
    assert unicode_text(name) == name
    figure = Figure(title=name, panels=[Panel(title="T", xlabel="x", ylabel="y", series=[Line([0, 1], [0, 1], name)])])
    (text,) = draw(figure).axes[0].get_legend().get_texts()
    assert text.get_text().replace(r"\$", "$") == name and text._preprocess_math(text.get_text())[1] is False
    assert plotly_panels(figure)[0]["entries"][0]["label"] == name
    assert all(path.stat().st_size > 1000 for path in render(figure, tmp_path / "figure"))


def test_the_texts_of_all_claims_are_typeset():
    parser, left = MathTextParser("path"), []
    for record in declared_claims():
        for text in (record["statement"], record["criterion"], record["reason"]):
            shown = unicode_text(text).replace("every-alpha", "")
            left += [word for word in ("alpha", "lambda", "_star", "<=", "||", "sqrt(") if word in shown]
            if r"$\math" in (marked := mathtext(text)) and len(marked) < 120:
                parser.parse(marked)
    assert left == [] and mathtext("$5 or $6") == r"\$5 or \$6"
