"""Pictures as pgf commands for LaTeX, written where there is no LaTeX.

matplotlib's own writer asks LaTeX how wide each text is. Here matplotlib measures with its own letters, which suffices to place
texts, and LaTeX sets them when it makes the document: with ``\\usepackage{pgf}`` and ``\\input{x.pgf}``.
"""

from __future__ import annotations

import io
import re
from typing import Any

from matplotlib.backends.backend_agg import RendererAgg
from matplotlib.backends.backend_pgf import RendererPgf
from matplotlib.figure import Figure

from gyrostat.figures.mathematics import GREEK

SIGNS = {"≤": "leq", "≥": "geq", "≈": "approx", "‖": "Vert", "√": "surd", "→": "to", "≫": "gg", "…": "ldots"}
SIGNS |= {"×": "times", "±": "pm", "·": "cdot", "−": "mathord{-}"} | {letter: name for name, letter in GREEK.items()}
COMMANDS = str.maketrans(
    {letter: rf"\ensuremath{{\{name}}}" for letter, name in SIGNS.items()} | {"\N{NO-BREAK SPACE}": "~"}
)
"""Letters that not every font of LaTeX has."""
FORMULA_OR_SPECIAL = re.compile(r"(?<!\\)\$.*?(?<!\\)\$|[#&_{}]")


class _MeasuresWithoutLatex(RendererPgf):
    def get_text_width_height_descent(self, s: str, prop: Any, ismath: Any) -> tuple[float, float, float]:
        return RendererAgg(1, 1, self.dpi).get_text_width_height_descent(s, prop, ismath)

    def draw_text(self, gc: Any, x: float, y: float, s: str, *rest: Any, **options: Any) -> None:
        escaped = FORMULA_OR_SPECIAL.sub(lambda match: match[0] if match[0][0] == "$" else f"\\{match[0]}", s)
        super().draw_text(gc, x, y, escaped.translate(COMMANDS), *rest, **options)


def pgf_text(figure: Figure) -> str:
    """The figure as a ``pgfpicture``."""
    picture, dpi = io.StringIO(), figure.dpi
    figure.dpi = 72
    try:
        figure.draw(_MeasuresWithoutLatex(figure, picture))
    finally:
        figure.dpi = dpi
    width, height = figure.get_size_inches()
    return (
        "\\begingroup\\makeatletter\\begin{pgfpicture}\n"
        f"\\pgfpathrectangle{{\\pgfpointorigin}}{{\\pgfqpoint{{{width:.4f}in}}{{{height:.4f}in}}}}\n"
        f"\\pgfusepath{{use as bounding box, clip}}\n{picture.getvalue()}"
        "\\end{pgfpicture}\\makeatother\\endgroup\n"
    )
