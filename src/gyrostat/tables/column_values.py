"""What the cells of a column hold: words, numbers with a few bad cells, codes, ordered categories."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
import pandas as pd

from gyrostat import errors
from gyrostat.errors import GyrostatError, shown

NOTES = "notes"
"""The entry of ``frame.attrs`` with sentences about the table."""
MISSING_WORDS = (
    *("?", ".", "..", "...", "-", "--", "\u2013", "\u2014", "n.a.", "na", "n.d.", "nd", "none", "missing", "unknown", "k.a."),
    *("#n/a", "#value!", "#div/0!", "#ref!", "#name?", "#num!", "#null!"),
)  # fmt: skip
"""Words that stand for a missing number besides those that pandas knows, in lower case; the last ones are a spreadsheet's."""
MOSTLY = 0.9
"""A column of text of which this share are numbers (or dates) is a column of numbers (or dates) with bad cells."""
MOST_LEVELS = 50
"""The most words in a column that is taken for a category rather than for names or remarks."""


def is_text(values: pd.Series) -> bool:
    """Whether a column holds words (not numbers, truth values or dates)."""
    return not (
        pd.api.types.is_numeric_dtype(values)
        or pd.api.types.is_bool_dtype(values)
        or pd.api.types.is_datetime64_any_dtype(values)
    )


def stripped(values: pd.Series) -> pd.Series:
    """A column of words without blanks around them; another column as it is."""
    if not is_text(values) or isinstance(values.dtype, pd.CategoricalDtype):
        return values
    return values.map(lambda cell: cell.strip() if isinstance(cell, str) else cell)


def stands_for_missing(words: pd.Series) -> pd.Series:
    """Which cells are empty or hold a word for a missing number."""
    return words.isna() | words.str.lower().isin(MISSING_WORDS)


MOST_DIGITS = 15
"""A whole number of more digits does not survive as a decimal number."""


def is_code(words: pd.Series) -> bool:
    """Whether words are codes of digits, such as postal codes: all as long, three or more, and some begin with a zero.

    So are numbers of more digits than a computer's numbers have.

    >>> is_code(pd.Series(["01002", "94110"])), is_code(pd.Series(["007", "120"])), is_code(pd.Series(["07", "12"]))
    (True, True, False)
    """
    known = words.dropna().astype(str)
    if len(known) and known.str.fullmatch(rf"\d{{{MOST_DIGITS + 1},}}").all():
        return True
    return bool(
        len(known)
        and known.str.startswith("0").any()
        and known.str.fullmatch(r"\d{3,}").all()
        and known.str.len().nunique() == 1
    )


def as_numbers(values: pd.Series, drop: str) -> pd.Series:
    """A column of numbers with a few words in it as numbers; another column, or one of codes, as it is.

    Words that stand for missing values become empty. Any other word is refused, with its row; ``drop`` is the option that
    leaves a column out.

    >>> as_numbers(pd.Series(["1"] * 20 + ["n.a."], name="dose"), "--drop").isna().sum()
    np.int64(1)
    >>> as_numbers(pd.Series(["1"] * 20 + ["l5"], name="dose"), "--drop")
    Traceback (most recent call last):
    gyrostat.errors.GyrostatError: column 'dose' has 'l5' in row 21, and 20 of its 21 cells are numbers: correct the cell, ...
    """
    if not is_text(values):
        return values
    words = values.astype("string").str.strip()
    missing = stands_for_missing(words)
    if is_code(words.mask(missing)):
        return values
    numbers = pd.to_numeric(words.mask(missing), errors="coerce")
    bad = numbers.isna() & ~missing
    _refuse_limits(words[bad], numbers, str(values.name), drop)
    if not bad.any():
        return numbers.astype(float) if (~missing).any() else values
    if numbers.notna().sum() < MOSTLY * (~missing).sum():
        return values
    row = int(np.flatnonzero(bad.to_numpy())[0])
    raise GyrostatError(
        f"column {str(values.name)!r} has {shown(values.iloc[row])} in row {row + 1}, and {int(numbers.notna().sum())} of its "
        f"{int((~missing).sum())} cells are numbers: correct the cell, empty it, or leave the column out with {drop}."
    )


MOST_STEPS = 10
"""A column with more different numbers than this, and with <2, holds measured values and not steps of a scale."""


def _refuse_limits(words: pd.Series, numbers: pd.Series, name: str, drop: str) -> None:
    """Refuse measured values of which some are only known to be below or above a limit: they are no ordered categories."""
    limits = words[words.str.fullmatch(r"[<>≤≥]\s*\d+(?:[.,]\d+)?").fillna(False).astype(bool)]
    known = int(numbers.notna().sum())
    if limits.empty or numbers.nunique() <= MOST_STEPS or known + len(limits) < MOSTLY * (known + len(words)):
        return
    first = limits.iloc[0]
    raise GyrostatError(
        f"column {name!r} has {first!r} in {int((limits == first).sum())} cells, which is below or above a limit, and numbers "
        f"in {known}: write a number for it (half of the limit, say), make the cells empty with --empty '{name}={first}', or "
        f"leave the column out with {drop}."
    )


KNOWN_ORDERS = (
    "very low,low,medium,high,very high",
    "low,moderate,high",
    "small,medium,large",
    "poor,fair,good,very good,excellent",
    "none,mild,moderate,severe",
    "never,rarely,sometimes,often,always",
    "strongly disagree,disagree,neutral,agree,strongly agree",
)
"""Scales whose words have an order that everybody knows."""


def known_order(levels: Sequence[str]) -> tuple[str, ...] | None:
    """The levels in their order, if all of them are words of a known scale or ranges of numbers; otherwise None.

    >>> known_order(["high", "low", "medium"]), known_order(["10-19", "5-9", "20+"]), known_order(["f", "m"])
    (('low', 'medium', 'high'), ('5-9', '10-19', '20+'), None)
    """
    if len(levels) < 3:
        return None
    for scale in (text.split(",") for text in KNOWN_ORDERS):
        if all(level.strip().lower() in scale for level in levels):
            return tuple(sorted(levels, key=lambda level: scale.index(level.strip().lower())))
    starts = [
        re.fullmatch(r"[<≤>≥]?\s*(\d+(?:\.\d+)?)\s*(?:[-–]\s*\d+(?:\.\d+)?|\+)?", level.strip()) for level in levels
    ]
    if all(starts) and any(not level.strip().isdigit() for level in levels):
        first = {level: float(found.group(1)) for level, found in zip(levels, starts, strict=True) if found}
        return tuple(sorted(levels, key=lambda level: (not level.strip().startswith(("<", "≤")), first[level])))
    return None


def shown_order(levels: Sequence[str]) -> str:
    """Levels in their order, as text; of many, the first and the last.

    >>> shown_order("abcdefghij")
    'a < b < c < ... < h < i < j'
    """
    return " < ".join(levels if len(levels) <= 8 else [*levels[:3], "...", *levels[-3:]])


def refuse_too_large(name: str, numbers: np.ndarray, rows: np.ndarray | None = None) -> None:
    """Refuse a column with infinite numbers, or with numbers so large that their squares would be.

    ``rows`` are the numbers of the rows in their file; 1, 2, ... by default.
    """
    far = np.flatnonzero(np.abs(numbers) > errors.LARGEST)  # NaN is not
    if far.size:
        row = far[0] + 1 if rows is None else rows[far[0]]
        raise GyrostatError(
            f"column {name!r} holds {numbers[far[0]]:g} in row {row}: correct or delete infinite and absurd values, or "
            "give the column in a larger unit."
        )


def emptied(frame: pd.DataFrame, codes: tuple[str, ...]) -> pd.DataFrame:
    """The table with empty cells where columns hold what stands for one, given as ``COLUMN=VALUE``.

    >>> frame = pd.DataFrame({"dose": [1.0, 999.0], "sex": ["f", "x"]})
    >>> emptied(frame, ("dose=999", "sex=x")).isna().sum().tolist()
    [1, 1]
    """
    for text in codes:
        name, sign, value = text.partition("=")
        if not sign:
            raise GyrostatError(f"--empty {text!r} must name a column and a value, such as dose=999.")
        cells = frame[errors.choice("--empty column", name.strip(), frame.columns)]
        number = pd.to_numeric(pd.Series([value.strip()]), errors="coerce").iloc[0]
        same = cells.astype("string").str.strip() == value.strip()
        if not np.isnan(number):
            same |= pd.to_numeric(cells, errors="coerce") == number
        if not same.any():
            raise GyrostatError(f"--empty {text!r} stands in no cell of the column: check the value.")
        notes = frame.attrs.get(NOTES, [])
        frame = frame.assign(**{str(cells.name): cells.mask(same.fillna(False).astype(bool))})
        frame.attrs[NOTES] = [
            *notes,
            f"{int(same.sum())} cells of {cells.name} hold {value.strip()} and count as empty.",
        ]
    return frame
