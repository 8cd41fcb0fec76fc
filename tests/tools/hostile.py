"""Hostile values and names, and which annotations a value certainly contradicts."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np

import gyrostat as gs
from gyrostat import errors

VALUES: dict[str, Any] = {
    "None": None,
    "True": True,
    "zero": 0,
    "minus one": -1,
    "minus a half": -0.5,
    "two and a half": 2.5,
    "NaN": float("nan"),
    "infinity": float("inf"),
    "minus infinity": float("-inf"),
    "1e300": 1e300,
    "10**30": 10**30,
    "10**400": 10**400,
    "an imaginary number": 1j,
    "no": "no",
    "empty text": "",
    "half a character": "\ud800",
    "bytes": b"x",
    "an empty list": [],
    "numbers": [1.0, 2.0],
    "words": ["a", "b"],
    "a dictionary": {"a": 1},
    "a matrix": np.ones((2, 2)),
    "a matrix of NaN": np.full((2, 2), np.nan),
    "a date": np.datetime64("2020-01-01"),
    "a class": gs.Diagonal,
    "a function": len,
    "an object": object(),
}
NOT_NUMBERS = ("None", "True", "an imaginary number", "no", "empty text", "half a character", "bytes", "an empty list")
NOT_NUMBERS += ("numbers", "words", "a dictionary", "a matrix", "a matrix of NaN", "a date", "a class", "a function")
NOT_NUMBERS += ("an object", "10**400")
BAD: dict[str, tuple[str, ...]] = {
    "bool": tuple(name for name in VALUES if name != "True"),
    "int": (*NOT_NUMBERS, "two and a half", "minus a half", "NaN", "infinity", "minus infinity"),
    "float": NOT_NUMBERS,
    "str": tuple(name for name, value in VALUES.items() if not isinstance(value, str) or name == "half a character"),
}
"""For plain annotations: the values that contradict them."""

NAMES = [
    "[/red]",
    "[bold]x",
    "[link=http://x]y",
    "$\\frac{$",
    "$x$",
    "\\$",
    "<b>x</b>",
    "<script>alert(1)</script>",
    "%{y}",
    ":smile:",
    "_x",
    "a b",
    "é\u0301",
    "日本",
    "\x1b[31mred",
    "\u202eright",
    "x" * 90,
    "{{ 7 * 7 }}",
    "{0}",
    "%s",
    "&lt;",
    "it's",
    'a "quote"',
    "a=b",
    "-x",
    "nan",
    "1e5",
    "..",
    "~",
    "#c",
]
"""Names that some renderer, terminal, template or parser takes for more than a name."""


def is_certainly_bad(parameter: inspect.Parameter, value_name: str) -> bool:
    """Whether a value contradicts the annotation of a parameter, or the bounds of its name."""
    annotation = parameter.annotation
    written = str(getattr(annotation, "__forward_arg__", getattr(annotation, "__name__", annotation)))
    kinds = [part for part in written.split(" | ") if part != "None"]
    value = VALUES[value_name]
    if value is None and ("None" in written or parameter.default is None):
        return False
    if not all(kind in BAD for kind in kinds):
        return False
    least, most = errors.BOUNDS.get(parameter.name, (-np.inf, np.inf))
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    is_outside = is_number and kinds == ["int"] and not least <= value <= most
    return is_outside or all(value_name in BAD[kind] for kind in kinds)
