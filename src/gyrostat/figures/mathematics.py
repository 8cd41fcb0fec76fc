"""Mathematics in texts: one plain notation in declarations, three renderings.

Papers write ``eta``, ``R_t^2``, ``||E||``, ``A_star`` and ``<= .05``, which terminals, logs and CSV files can show as they are.
:func:`unicode_text` makes them η, R_t², ‖E‖, A* and ≤ 0.05, :func:`html_text` has real subscripts and superscripts, and
:func:`mathtext` has them in matplotlib's markup. Nothing else is markup: a dollar sign, a tag, or an underscore in a longer
name stays what it is.
"""

from __future__ import annotations

import re
from typing import Literal, NamedTuple

from markupsafe import Markup, escape

Level = Literal["line", "sub", "sup"]


class Run(NamedTuple):
    """A part of a text: on the line, a subscript or a superscript; a variable is set in italics."""

    text: str
    level: Level = "line"
    variable: bool = False


GREEK = {"alpha": "α", "beta": "β", "gamma": "γ", "delta": "δ", "epsilon": "ε", "eta": "η", "theta": "θ", "kappa": "κ"}
GREEK |= {"lambda": "λ", "mu": "μ", "xi": "ξ", "pi": "π", "rho": "ρ", "sigma": "σ", "tau": "τ", "chi": "χ"}
GREEK |= {"Sigma": "Σ", "Delta": "Δ"}
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
NAMES = "|".join(GREEK)
BELOW = rf"_(?:star|min|max|{NAMES}|[A-Za-z0-9]{{1,2}}|\*|\([^()]{{1,12}}\)|\{{[^{{}}]{{1,12}}\}})(?![A-Za-z0-9_])"
ABOVE = r"-?1/2|[-+]?\d+(?:\.\d+)?|-?[A-Za-z](?![A-Za-z])|\([^()]{1,14}\)|\{[^{}]{1,14}\}"
MINUS = r"(?<= )-(?= )|(?<![\w.)\]-])-(?=[\d.(])|(?<=\()-(?=[A-Za-z])"
"""A minus sign: between spaces, or before a number that nothing precedes, or after a bracket; every other one is a hyphen."""
TIMES = r"(?<=\d) x (?=\d)|(?<=eta) x (?=\w)| x (?=iteration|step)|(?<=\b[dn]) x (?=[dnr]\b)"
RAISED = str.maketrans("-−+0123456789Tnt", "⁻⁻⁺⁰¹²³⁴⁵⁶⁷⁸⁹ᵀⁿᵗ")
LOWERED = str.maketrans("0123456789ir", "₀₁₂₃₄₅₆₇₈₉ᵢᵣ")
SMALL = {small: plain for table in (RAISED, LOWERED) for plain, small in table.items()}
PARTS = {
    "sub": BELOW,
    "sup": rf"(?<=\S)\^(?:{ABOVE})",
    "small_sup": f"[{''.join(map(chr, RAISED.values()))}]+",  # set like the others, not with the tiny letters of the font
    "small_sub": f"[{''.join(map(chr, LOWERED.values()))}]+",
    # A Greek letter by name, or any letter with a subscript; not as a part of a name such as ``every-alpha``.
    "letter": rf"(?<![\w.'])(?:(?<![a-z]-)(?<!\d{{4}}/)(?:{NAMES})(?!\w)|(?:{NAMES}|[A-Za-z])(?={BELOW}))",
    # A letter alone is a variable, but not an article, the letter of a panel in brackets, nor the seconds of a number.
    "alone": r"(?<![\w.,'-])(?!(?<=[(<])[a-z][)>])(?!(?<=\d )s)[B-HJ-Zb-z](?![A-Za-z0-9_'-]|\.\w)",
    "indexed": r"(?<![\w.'-])(?P<stem>[A-KM-Za-z])(?P<index>\d)(?!\w|\.\d|-[a-z])",
    "power": r"(?<![\w.])(?P<mantissa>\d+(?:\.\d+)?)e(?P<exponent>[-+]?\d+)(?![\w])",
    "decimal": r"(?<![\w.])\.(?=\d)",
    "root": r"sqrt\((?P<radicand>\d+(?:\.\d+)?|[A-Za-z])\)",
    "sign": rf"\+-|<=|>=|\|\||sqrt(?=\()|->|>>|\.\.\.|{TIMES}|{MINUS}",
}
TOKEN = re.compile("|".join(f"(?P<{kind}>{pattern})" for kind, pattern in PARTS.items()))
SPECIAL = re.compile(r"([{}_^$%#&~\\])")


def runs(text: str) -> list[Run]:
    """The parts of a text in plain notation.

    >>> [run.text for run in runs("eta R_t^2")], [run.level for run in runs("R_t^2")]
    (['η', ' ', 'R', 't', '2'], ['line', 'sub', 'sup'])
    """
    parts, end = list[Run](), 0
    for match in TOKEN.finditer(text):
        between = text[end : match.start()]
        carries = parts and (parts[-1].variable or parts[-1].text == "‖") if not between else between[-1] == ")"
        plain = match.lastgroup == "sub" and not carries  # only a letter, a norm or a bracket has a subscript
        parts += [Run(between), *([Run(match[0])] if plain else _parts(match))]
        end = match.end()
    return [run for run in [*parts, Run(text[end:])] if run.text]


def _parts(match: re.Match[str]) -> list[Run]:
    part, word = match.groupdict(), match[0]
    match match.lastgroup:
        case "sub":
            return [Run("*") if word == "_star" else Run(_inner(word[1:]), "sub")]
        case "sup":
            return [Run(_inner(word[1:]), "sup")]
        case "small_sup":
            return [Run(word.translate(SMALL), "sup")]
        case "small_sub":
            return [Run(word.translate(SMALL), "sub")]
        case "indexed":
            return [Run(part["stem"], variable=True), Run(part["index"], "sub")]
        case "power":
            mantissa = "10" if part["mantissa"] == "1" else f"{part['mantissa']}·10"
            return [Run(mantissa), Run(str(int(part["exponent"])), "sup")]
        case "decimal":
            return [Run("0.")]
        case "root":
            return [Run(f"√{part['radicand']}")]
        case "sign":
            return [Run(SIGNS[word])]
    return [Run(GREEK.get(word, word), variable=True)]


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
    """The text with tags for subscripts, superscripts and variables; everything else is escaped.

    >>> html_text("R_t^2 < A_star <b>")
    Markup('<i>R</i><sub>t</sub><sup>2</sup> &lt; <i>A</i>* &lt;b&gt;')
    """
    tags = {"line": "i", "sub": "sub", "sup": "sup"}
    return Markup("").join(
        escape(run.text)
        if run.level == "line" and not run.variable
        else Markup("<{0}>{1}</{0}>").format(tags[run.level], run.text.replace("-", "−"))
        for run in runs(text)
    )


def mathtext(text: str) -> str:
    r"""The text in matplotlib's markup; a dollar sign stays a dollar sign.

    >>> print(mathtext("R_t^2 at $5"))
    $\mathit{R}_{\mathrm{t}}^{\mathrm{2}}$ at \$5
    """
    marked = ""
    for part, level, variable in runs(text):
        if level == "line" and not variable:
            marked += part.replace("$", r"\$")
            continue
        inner = SPECIAL.sub(r"\\\1", part).replace(" ", r"\,")
        formula = f"\\mathit{{{inner}}}" if variable else f"{'_' if level == 'sub' else '^'}{{\\mathrm{{{inner}}}}}"
        # A script belongs to the formula before it.
        marked = f"{marked[:-1]}{formula}$" if not variable and marked.endswith("}$") else f"{marked}${formula}$"
    return marked
