"""Mathematics in texts: one plain notation in declarations, three renderings.

Papers write ``eta``, ``R_t^2``, ``||E||``, ``A_star`` and ``<= .05``, which terminals, logs and CSV files can show as they are.
:func:`unicode_text` makes them η, R_t², ‖E‖, A* and ≤ 0.05, :func:`html_text` has real subscripts and superscripts, and
:func:`mathtext` has them in matplotlib's markup. Nothing else is markup: a dollar sign, a tag, or an underscore in a longer
name stays what it is.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Literal, NamedTuple

from markupsafe import Markup, escape

from gyrostat.figures.declarations import Figure, Panel, Series

Level = Literal["line", "sub", "sup"]


class Run(NamedTuple):
    """A part of a text: on the line, a subscript or a superscript."""

    text: str
    level: Level = "line"


GREEK = {
    "alpha": "α",
    "beta": "β",
    "gamma": "γ",
    "delta": "δ",
    "epsilon": "ε",
    "eta": "η",
    "theta": "θ",
    "kappa": "κ",
    "lambda": "λ",
    "mu": "μ",
    "xi": "ξ",
    "pi": "π",
    "rho": "ρ",
    "sigma": "σ",
    "tau": "τ",
    "chi": "χ",
    "Sigma": "Σ",
    "Delta": "Δ",
}
SIGNS = {
    "<=": "≤",
    ">=": "≥",
    "||": "‖",
    "sqrt": "√",
    "->": "→",
    ">>": "≫",
    "...": "…",
    " x ": " × ",
    "+-": "±",
    "-": "−",
}
INNER = r"[A-Za-z0-9]{1,2}|\*|\([^()]{1,12}\)|\{[^{}]{1,12}\}"
SUB = re.compile(rf"_(star|min|max|{'|'.join(GREEK)}|{INNER})(?![A-Za-z0-9_])")
SUP = re.compile(r"\^(-?1/2|[-+]?\d+(?:\.\d+)?|-?[A-Za-z](?![A-Za-z])|\([^()]{1,14}\)|\{[^{}]{1,14}\})")
LETTER = re.compile(
    rf"(?<![\w.'])(?<![a-z]-)(?<!\d{{4}}/)(?:{'|'.join(GREEK)})(?!\w)|(?<![\w.'])(?:{'|'.join(GREEK)}|[A-Za-z])(?={SUB.pattern})"
)
"""A Greek letter by name, or any letter with a subscript; not as a part of a name such as ``every-alpha``."""
WITH_DIGIT = re.compile(r"(?<![\w.'-])([A-KM-Za-z])(\d)(?!\w|\.\d|-[a-z])")
POWER_OF_TEN = re.compile(r"(?<![\w.])(\d+(?:\.\d+)?)e([-+]?\d+)(?![\w])")
BARE_DECIMAL = re.compile(r"(?<![\w.])\.(?=\d)")
MINUS = r"(?<= )-(?= )|(?<![\w.)\]-])-(?=[\d.(])|(?<=\()-(?=[A-Za-z])"
"""A minus sign: between spaces, or before a number that nothing precedes, or after a bracket; every other one is a hyphen."""
TIMES = r"(?<=\d) x (?=\d)|(?<=eta) x (?=\w)| x (?=iteration|step)|(?<=\b[dn]) x (?=[dnr]\b)"
SIGN = re.compile(rf"\+-|<=|>=|\|\||sqrt(?=\()|->|>>|\.\.\.|{TIMES}|{MINUS}")
ROOT = re.compile(r"sqrt\((\d+(?:\.\d+)?|[A-Za-z])\)")
RAISED = str.maketrans("-−+0123456789Tnt", "⁻⁻⁺⁰¹²³⁴⁵⁶⁷⁸⁹ᵀⁿᵗ")
LOWERED = str.maketrans("0123456789ir", "₀₁₂₃₄₅₆₇₈₉ᵢᵣ")
SMALL: list[tuple[Level, re.Pattern[str], dict[int, int]]] = [
    ("sup", re.compile(f"[{''.join(map(chr, RAISED.values()))}]+"), {small: plain for plain, small in RAISED.items()}),
    (
        "sub",
        re.compile(f"[{''.join(map(chr, LOWERED.values()))}]+"),
        {small: plain for plain, small in LOWERED.items()},
    ),
]
"""Small letters that a text has already."""
SPECIAL = re.compile(r"([{}_^$%#&~\\])")


def runs(text: str) -> list[Run]:
    """The parts of a text in plain notation.

    >>> [tuple(run) for run in runs("eta R_t^2")]
    [('η R', 'line'), ('t', 'sub'), ('2', 'sup')]
    """
    found: list[Run] = []
    at, carries = 0, False  # whether the last part can have a subscript
    while at < len(text):
        parts, end, carries = _next(text, at, carries)
        for part in parts:
            if part.level == "line" and found and found[-1].level == "line":
                found[-1] = Run(found[-1].text + part.text)
            else:
                found.append(part)
        at = end
    return found


def _next(text: str, at: int, carries: bool) -> tuple[list[Run], int, bool]:
    """The parts that begin at a position, where they end, and whether they can have a subscript."""
    if carries and (match := SUB.match(text, at)):
        return [Run("*") if match[1] == "star" else Run(_inner(match[1]), "sub")], match.end(), False
    if at and not text[at - 1].isspace() and (match := SUP.match(text, at)):
        return [Run(_inner(match[1]), "sup")], match.end(), False
    for level, small, letters in SMALL:
        if match := small.match(text, at):  # set like the others, not with the tiny letters of the font
            return [Run(match[0].translate(letters), level)], match.end(), False
    if match := LETTER.match(text, at):
        return [Run(GREEK.get(match[0], match[0]))], match.end(), True
    if match := WITH_DIGIT.match(text, at):
        return [Run(match[1]), Run(match[2], "sub")], match.end(), False
    if match := POWER_OF_TEN.match(text, at):
        mantissa = "10" if match[1] == "1" else f"{match[1]}·10"
        return [Run(mantissa), Run(str(int(match[2])), "sup")], match.end(), False
    if match := BARE_DECIMAL.match(text, at):
        return [Run("0.")], match.end(), False
    if match := ROOT.match(text, at):
        return [Run(f"√{match[1]}")], match.end(), False
    if match := SIGN.match(text, at):
        return [Run(SIGNS[match[0]])], match.end(), match[0] == "||"
    return [Run(text[at])], at + 1, text[at] == ")"


def _inner(text: str) -> str:
    """The text of a subscript or superscript, without the brackets that hold it together."""
    held = text[1:-1] if text[0] in "({" else text
    return "".join(GREEK.get(word, word) for word in re.split(r"(\w+)", held)).replace(" - ", " − ")


def unicode_text(text: str) -> str:
    """The text with Unicode's signs and raised digits.

    >>> unicode_text("||E||^2 falls as m^-1/2 at eta = .05, R_t^2 <= 1e-12")
    '‖E‖² falls as m^(-1/2) at η = 0.05, R_t² ≤ 10⁻¹²'
    """
    return "".join(_unicode(run) for run in runs(text))


def _unicode(run: Run) -> str:
    if run.level == "line":
        return run.text
    table, sign = (RAISED, "^") if run.level == "sup" else (LOWERED, "_")
    if all(ord(letter) in table for letter in run.text):
        return run.text.translate(table)
    return sign + (run.text if run.text.isalpha() or len(run.text) == 1 else f"({run.text})")


def html_text(text: str) -> Markup:
    """The text with tags for subscripts and superscripts; everything else is escaped.

    >>> html_text("R_t^2 < A_star <b>")
    Markup('R<sub>t</sub><sup>2</sup> &lt; A* &lt;b&gt;')
    """
    return Markup("").join(
        escape(part) if level == "line" else Markup("<{0}>{1}</{0}>").format(level, part.replace("-", "−"))
        for part, level in runs(text)
    )


def mathtext(text: str) -> str:
    r"""The text in matplotlib's markup, for artists that parse mathematics; a dollar sign stays a dollar sign.

    >>> print(mathtext("R_t^2 at $5"))
    R$\mathregular{_{t}^{2}}$ at \$5
    """
    parts, scripts = [], ""
    for part, level in [*runs(text), Run("")]:
        if level == "line":
            parts += [rf"$\mathregular{{{scripts}}}$" if scripts else "", part.replace("$", r"\$")]
            scripts = ""
        else:
            inner = SPECIAL.sub(r"\\\1", part).replace(" ", r"\,")
            scripts += f"{'_' if level == 'sub' else '^'}{{{inner}}}"
    return "".join(parts)


def typeset(figure: Figure, write: Callable[[str], str]) -> Figure:
    """The figure with all of its texts written by one of the functions above; as it is, if it has no mathematics.

    >>> panel = Panel(title="R_t^2", xlabel="eta", ylabel="", series=[])
    >>> figure = Figure(title="a_b of site_one", panels=[panel], mathematics=True)
    >>> typeset(figure, unicode_text).panels[0].title, typeset(figure, unicode_text).title
    ('R_t²', 'a_b of site_one')
    """
    if not figure.mathematics:
        return figure
    panels = [_panel(panel, write) for panel in figure.panels]
    return replace(figure, title=write(figure.title), note=write(figure.note), panels=panels)


def _panel(panel: Panel, write: Callable[[str], str]) -> Panel:
    texts: dict[str, Any] = {name: write(getattr(panel, name)) for name in ("title", "xlabel", "ylabel")}
    return replace(panel, **texts, series=[_series(series, write) for series in panel.series])


def _series(series: Series, write: Callable[[str], str]) -> Series:
    texts: dict[str, Any] = {"label": write(series.label)}
    for names in ("categories", "names"):
        if hasattr(series, names):
            texts[names] = [write(name) for name in getattr(series, names)]
    return replace(series, **texts)  # type: ignore[type-var]
