"""Measured numbers and settings as a reader expects them: words for names, few digits, plain durations and times."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

NUMBER = re.compile(r"-?\d+(\.\d+)?(e-?\d+)?")
SYMBOLS = {"k", "m", "n", "r", "d", "L", "M", "T", "eta", "alpha", "beta", "kappa", "lambda", "epsilon", "delta"}
"""Letters of the papers: a number that follows one of them is its value."""
COUNTED = {"rank", "layer", "environment"}
"""Words of which a number that follows is a part: rank 2."""
EQUATION = re.compile(r"^([A-Z])(\d\d[a-z]?)$")
"""The number of an equation of an appendix, such as ``B43`` for (B.43)."""
UNIT = re.compile(r"(.+) \[([^\[\]]+)\]")
"""A name that ends with the unit of its number in square brackets."""
SHARE = re.compile(r"\bshare\b(?!.* over )")
"""A number that is shown in percent, unless its name gives another unit."""
JOINED = {
    "half time": "half-time",
    "half way": "half-way point",
    "halfway": "half-way point",
    "least": "smallest",
    "most": "largest",
    "gd": "GD",
    "sgd": "SGD",
    "iid": "independent",
    "nk": "n k",
    "share of runs": "share of the runs",
    "log10": "log10 of the",
}
"""Words of names of measured numbers, and what they are called on the page."""


def human_name(name: str, names: Mapping[str, str] | None = None) -> str:
    """What a measured number is called: as ``names`` says, or else its own name as words.

    >>> human_name("left_rank_2"), human_name("B43")
    ('left rank 2', '(B.43)')
    >>> human_name("half_time_over_theory"), human_name("k_3_alpha_0.05"), human_name("rate_0.5")
    ('half-time over theory', 'k = 3, alpha = 0.05', 'rate at 0.5')
    >>> human_name("halfway", {"halfway": "half of the runs succeed at M"})
    'half of the runs succeed at M'
    """
    if names and name in names:
        return names[name]
    words, values, pending = [], [], [EQUATION.sub(r"(\1.\2)", word) for word in name.split("_")]
    while pending:
        word = pending.pop(0)
        followed = bool(pending) and NUMBER.fullmatch(pending[0]) is not None
        if word in SYMBOLS and followed:
            values.append(f"{word} = {pending.pop(0)}")
        elif followed:
            words.append(f"{word} {pending.pop(0)}" if word in COUNTED else f"{word} at {pending.pop(0)}")
        else:
            words.append(word)
    text = " ".join(words)
    for short, long in JOINED.items():
        text = re.sub(rf"\b{short}\b", long, text)
    text = re.sub(r"quantile at (\d+)", r"\1 % quantile", text)
    return ", ".join([text, *values] if text else values)


def human_number(value: Any) -> str:
    """A measured number with three digits; counts are whole, and very large or small numbers have a power of ten.

    >>> [human_number(x) for x in (1.0004, 77.0, 0.0006333, 7831840.1, None, 0.0, 3)]
    ['1.00', '77', '6.3e-4', '7.8e6', 'not a number', '0', '3']
    """
    if value is None:
        return "not a number"
    if not isinstance(value, float):
        return str(value)
    if value == 0 or (value.is_integer() and 1 < abs(value) < 1e5):
        return f"{value:.0f}"
    if not 1e-3 <= abs(value) < 1e5:
        mantissa, _, exponent = f"{value:.1e}".partition("e")
        return f"{mantissa.removesuffix('.0')}e{int(exponent)}"
    digits = f"{value:#.3g}"
    return digits if "e" not in digits else f"{value:.0f}"


def name_and_unit(name: str, names: Mapping[str, str] | None = None) -> tuple[str, str]:
    """What a measured number is called, and its unit: the one in square brackets, or percent for a share.

    >>> name_and_unit("wait", {"wait": "median wait [steps]"}), name_and_unit("share_of_runs"), name_and_unit("slope")
    (('median wait', 'steps'), ('share of the runs', '%'), ('slope', ''))
    """
    text = human_name(name, names)
    if match := UNIT.fullmatch(text):
        return match[1], match[2]
    return text, "%" if SHARE.search(text) else ""


def with_unit(value: Any, unit: str) -> str:
    """A measured number with its unit.

    >>> with_unit(0.96875, "%"), with_unit(850.0, "steps"), with_unit(1.0004, ""), with_unit(None, "steps")
    ('96.9 %', '850 steps', '1.00', 'not a number')
    """
    if value is None or not unit:
        return human_number(value)
    return f"{human_number(100.0 * value if unit == '%' else value)} {unit}"


def setting_text(value: Any) -> str:
    """A setting as a reader writes it.

    >>> setting_text({"rank": [1, 2.0], "spread": 8.0})
    'rank 1, 2; spread 8'
    """
    if isinstance(value, Mapping):
        return "; ".join(f"{key} {setting_text(inner)}" for key, inner in value.items())
    if isinstance(value, list | tuple):
        return ", ".join(map(setting_text, value))
    return f"{value:g}" if isinstance(value, float) else str(value)


def duration(seconds: float) -> str:
    """
    >>> duration(59.94), duration(3725)
    ('59.9 s', '62 min 5 s')
    """
    return f"{seconds:.1f} s" if seconds < 60 else f"{int(seconds) // 60} min {int(seconds) % 60} s"


def time_span(times: Sequence[str]) -> str:
    """
    >>> time_span(["2026-01-02T03:04:05+00:00", "2026-01-02T04:00:00+00:00"])
    '2026-01-02 03:04:05 to 04:00:00 UTC'
    """
    ends = [time.replace("T", " ").replace("+00:00", "") for time in times]
    if not ends:
        return "never"
    first, last = ends[0], ends[-1].removeprefix(f"{ends[0].split()[0]} ")
    return f"{first} UTC" if first == ends[-1] else f"{first} to {last} UTC"
