"""Numbers as people write them: decimal commas, thousands, units and currencies in the cells, negative numbers in brackets.

A file has a decimal mark, but single columns of it may have another one, so each column of text is looked at on its own.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import pandas as pd

from gyrostat.tables.column_values import MOSTLY, is_code, is_text, stands_for_missing

THOUSANDS = (" ", "'", "\u2019", "\u00a0", "\u202f")
"""Characters between thousands, besides the decimal mark that is not used."""
CURRENCIES = r"[$€£¥₹]|(?:USD|EUR|GBP|CHF|SEK|NOK|DKK|Fr\.?|kr\.?|Rs\.?)"
UNITS = r"%|‰|°\s?[CF]?|(?:[kcmµ]?[gml]|km|[mµn]?s|kwh|h|hrs?|min|ft|in|lbs?|oz|mph|km/h|hp|cc|px|[kmg]b)"
"""Units that may follow a number without a blank; after a blank, any word may be one."""
SAMPLE = 1000
"""The different cells of a column by which its marks are found."""


class Marks(NamedTuple):
    """The decimal mark of a column and the character between its thousands, if any."""

    decimal: str
    thousands: str | None = None

    @property
    def pattern(self) -> str:
        """A number in these marks. Thousands are in groups of three digits, and the first group has no leading zero."""
        d, t = re.escape(self.decimal), re.escape(self.thousands or "")
        whole = rf"(?:[1-9]\d{{0,2}}(?:{t}\d{{3}})+|\d+)" if t else r"\d+"
        return rf"[+-]?(?:{whole}(?:{d}\d*)?|{d}\d+)(?:[eE][+-]?\d+)?"

    def plain(self, words: pd.Series) -> pd.Series:
        """Numbers in these marks, in the usual ones."""
        without = words.str.replace(self.thousands, "", regex=False) if self.thousands else words
        return without.str.replace(self.decimal, ".", regex=False)


def decimal_mark(cells: Iterable[str], separator: str) -> str:
    """The decimal mark that most cells have; where every comma might separate thousands, what goes with the separator.

    >>> decimal_mark(["1,5", "2"], ";"), decimal_mark(["1.5", "1,234"], ","), decimal_mark(["1.234.567"], ";")
    (',', '.', ',')
    """
    cells = list(cells)
    comma, point = (re.compile(Marks(*pair).pattern) for pair in ((",", "."), (".", ",")))
    only = [(bool(comma.fullmatch(cell)), bool(point.fullmatch(cell))) for cell in cells]
    votes = sum(by_comma - by_point for by_comma, by_point in only)
    if votes == 0 and separator == ";":  # programs that write semicolons do it because the comma is the decimal mark
        return "," if any("," in cell and by_point for cell, (_, by_point) in zip(cells, only, strict=True)) else "."
    return "," if votes > 0 else "."


def marks_of(words: pd.Series, candidates: Sequence[Marks]) -> Marks | None:
    """The first of the marks in which most of the words are numbers; None if they are not in any."""
    cells = words.value_counts(sort=False).iloc[:SAMPLE]  # a few words among many cells of few numbers are bad cells
    seen = cells.index.to_series()
    counts = [int(cells[seen.str.fullmatch(marks.pattern).to_numpy(bool)].sum()) for marks in candidates]
    most = max(counts, default=0)
    return candidates[counts.index(most)] if most and most >= MOSTLY * cells.sum() else None


def candidates_for(decimal: str, *, fixed_decimal: bool, thousands: str | None) -> list[Marks]:
    """The marks that a column may have, those of the file first; what the user gave is fixed."""
    marks = []
    for sign in (decimal,) if fixed_decimal else (decimal, "." if decimal == "," else ","):
        other = "." if sign == "," else ","
        between = (thousands,) if thousands else (other, *THOUSANDS)
        marks += [Marks(sign), *(Marks(sign, character) for character in between if character != sign)]
    return marks


class ReadColumn(NamedTuple):
    """A column with its numbers in the usual form; its marks (None if it was left as it is) and its unit.

    ``without`` is the number of cells that are numbers without this unit.
    """

    values: pd.Series
    marks: Marks | None = None
    unit: str = ""
    without: int = 0


def with_plain_numbers(values: pd.Series, candidates: Sequence[Marks]) -> ReadColumn:
    """A column of text with its numbers in the usual form; as numbers if all of its cells are.

    >>> with_plain_numbers(pd.Series(["1.234,5", "7"]), [Marks(",", ".")]).values.tolist()
    [1234.5, 7.0]
    >>> with_plain_numbers(pd.Series(["12 kg", "7 kg"]), [Marks(".")])[0].tolist()
    [12, 7]
    """
    if not is_text(values):
        return ReadColumn(values)
    words = values.astype("string").str.strip().str.replace("\u2212", "-", regex=False)
    known = words[~stands_for_missing(words)]
    if not known.str.contains(r"\d").any() or is_code(known):
        return ReadColumn(values)
    known = known.str.replace(r"^\(([^-()]*\d[^-()]*)\)$", r"-\1", regex=True)
    marks, unit, before = marks_of(known, candidates), "", known
    if marks is None:
        known, unit = without_unit(known)
        marks = marks_of(known, candidates) if unit else None
    if marks is None:
        return ReadColumn(values)
    numbers = known[known.str.fullmatch(marks.pattern).astype(bool)]
    read = values.astype(object).copy()
    read[numbers.index] = marks.plain(numbers).astype(object)
    whole = len(numbers) == words.notna().sum()
    bare = int((known.eq(before) & known.index.isin(numbers.index)).sum()) if unit else 0
    return ReadColumn(pd.to_numeric(read) if whole else read, marks, unit, bare)


def without_unit(words: pd.Series) -> tuple[pd.Series, str]:
    """Words without the unit or currency that most of them have, and the unit; empty if there is none.

    >>> [part if isinstance(part, str) else part.tolist() for part in without_unit(pd.Series(["-€5", "€ 1.5", "€7"]))]
    [['-5', '1.5', '7'], '€']
    >>> without_unit(pd.Series(["school 1", "school 2"]))[1], without_unit(pd.Series(["1st", "2nd"]))[1]
    ('', '')
    """
    number = r"(?P<number>[\d.,'\u2019\u00a0\u202f ]*\d)"
    before = rf"(?P<sign>[+-]?)\s*(?P<before>{CURRENCIES})?\s*(?P<inner>[+-]?)"
    pattern = rf"^{before}\s*{number}(?P<after>\s*(?:{UNITS}|{CURRENCIES})|\s+[^\W\d_][\w/²³.]*)?$"
    found = words.str.extract(pattern, flags=re.IGNORECASE)
    units = (found["before"].fillna("") + found["after"].fillna("").str.strip()).where(found["number"].notna(), "")
    unit = str(units.mode().iloc[0]) if len(units) else ""
    chosen = units == unit
    if not unit or chosen.sum() < MOSTLY * len(words):
        return words, ""
    plain = found["sign"].fillna("") + found["inner"].fillna("") + found["number"].str.strip()
    return words.mask(chosen, plain), unit
