"""Columns of dates as days since 1970, in the formats in which people write them."""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np
import pandas as pd

from gyrostat.errors import GyrostatError, shown
from gyrostat.tables.column_values import MOSTLY, is_text, stands_for_missing

ISO, MONTHS, COMPACT = "ISO8601", "%Y-%m", "%Y%m%d"
SHAPES = (
    r"\d{1,4}[-./]\d{1,2}[-./]\d{1,4}(?:[ T]\d{1,2}:\d{2}.*)?",
    r"\d{1,2}[-. ]{0,2}[A-Za-z]{3,9}[-., ]{0,2}\d{2,4}",
    r"[A-Za-z]{3,9}\.? \d{1,2},? \d{4}",
    r"\d{4}-\d{2}",
)
"""What dates look like: numbers with signs between them and perhaps a time, months by name, a year and a month."""
NAMED = ("%d %b %Y", "%d %B %Y", "%d-%b-%Y", "%d-%b-%y", "%d%b%Y", "%d. %B %Y", "%b %d, %Y", "%B %d, %Y", "%b %d %Y")
NO_DATES = ("0000-00-00", "00.00.0000", "00/00/0000")
"""Dates that programs write into empty cells."""
LOOKED_AT = 50


def as_dates(values: pd.Series, known: str | None = None) -> pd.Series | None:
    """A column of dates as days since 1970; None if it holds something else.

    ``known`` is the format in which the column was written before: where dates fit it, they are read by it.

    >>> as_dates(pd.Series(["2024-01-31", None, "2024-02-01"])).tolist()
    [19753.0, nan, 19754.0]
    >>> as_dates(pd.Series(["1/2/2024"]), "%m/%d/%Y").tolist()
    [19724.0]
    """
    if pd.api.types.is_datetime64_any_dtype(values):
        return _days(values)
    words = _words(values)
    if known is not None and words.notna().any() and _fits(words, known):
        return _days(_parsed(words, known))
    written = date_format(values)
    return None if written is None else _days(_parsed(words, written))


def date_format(values: pd.Series) -> str | None:
    """The format of the dates in a column; None if it holds something else.

    Dates in several formats, and single cells that are no dates, are refused.

    >>> date_format(pd.Series(["31/01/2024", "01/02/2024"])), date_format(pd.Series(["a", "b"]))
    ('%d/%m/%Y', None)
    """
    if not is_text(values) and not _may_be_compact(values):
        return None
    words = _words(values)
    known = words.dropna()
    if not len(known) or not _look_like_dates(known.iloc[:LOOKED_AT]):
        return None
    found = next((written for written in _formats(known) if _fits(known, written)), None)
    if found is None and is_text(values):
        _refuse_almost_dates(words)
    return found


def has_two_readings(values: pd.Series) -> bool:
    """Whether dates can be read with the day first and with the month first.

    >>> has_two_readings(pd.Series(["01/02/2024"])), has_two_readings(pd.Series(["31/01/2024"]))
    (True, False)
    """
    written = date_format(values) or ""
    swapped = re.sub(r"%([dm])(\W)%([dm])", r"%\3\2%\1", written)
    return swapped != written and _fits(_words(values), swapped) and "." not in written


def date_notes(values: pd.Series) -> list[str]:
    """Sentences on dates that can be read in two ways: by the order of day and month, or by the century.

    >>> date_notes(pd.Series(["13/05/45", "14/06/71"]))
    ['Years of two digits were read as 1971 to 2045, such as 13/05/45 as 2045-05-13: write four digits if that is wrong.']
    """
    written = date_format(values)
    if written is None:
        return []
    words, told = _words(values).dropna(), []
    if has_two_readings(values):
        order = "day" if written.startswith("%d") else "month"
        told.append(
            f"They were read with the {order} first, as {words.iloc[0]} does not tell: write them as 2024-01-31 if that is "
            "wrong."
        )
    if "%y" in written:
        dates = _parsed(words, written)
        latest, (first, last) = dates.idxmax(), (dates.min().year, dates.max().year)
        years = f"{first}" if first == last else f"{first} to {last}"
        told.append(
            f"Years of two digits were read as {years}, such as {words[latest]} as {dates[latest].date()}: write four digits "
            "if that is wrong."
        )
    return told


def _words(values: pd.Series) -> pd.Series:
    if is_text(values):
        words = values.astype("string").str.strip()
    else:
        numbers = values.astype(float)
        words = numbers.map("{:.0f}".format).astype("string").mask(numbers.isna())
    return words.mask(stands_for_missing(words) | words.isin(NO_DATES))


def _may_be_compact(values: pd.Series) -> bool:
    """Whether whole numbers may be dates such as 20240131."""
    if not pd.api.types.is_numeric_dtype(values) or pd.api.types.is_bool_dtype(values):
        return False
    known = values.dropna().to_numpy(dtype=float)
    return bool(len(known) > 2 and np.all((known > 1.8e7) & (known < 2.2e7) & (known == np.round(known))))


def _look_like_dates(words: pd.Series) -> bool:
    shaped = sum((words.str.fullmatch(shape).astype(int) for shape in (*SHAPES, r"\d{8}")), start=0 * words.str.len())
    return bool((shaped > 0).mean() >= MOSTLY) and not _are_seasons(words)


def _are_seasons(words: pd.Series) -> bool:
    """Whether words are years with the next one, such as 2023-24, or ranges of numbers."""
    ends = words.str.extract(r"^\d\d(\d\d)-(\d\d)$")
    if ends[0].isna().any():
        return False
    first, second = ends[0].astype(int), ends[1].astype(int)
    return bool(((first + 1) % 100 == second).all())


def _formats(words: pd.Series) -> Iterator[str]:
    """The formats to try, by what the first cell looks like."""
    first = str(words.iloc[0])
    if re.fullmatch(r"\d{8}", first):
        yield COMPACT
    elif re.search("[A-Za-z]{3}", first):
        yield from NAMED
    elif re.fullmatch(SHAPES[3], first):
        yield MONTHS
    else:
        yield ISO
        yield from _formats_of_numbers(first)


def _formats_of_numbers(first: str) -> Iterator[str]:
    sign = re.findall(r"[-./]", first)[0]
    year = "%Y" if len(re.split(r"[-./ T]", first)[2]) == 4 else "%y"
    clock = re.search(r"([ T])\d{1,2}:\d{2}(:\d{2})?(\.\d+)?(\s?[AaPp][Mm])?", first)
    time = ""
    if clock:
        hours = "%I" if clock[4] else "%H"
        time = f"{clock[1]}{hours}:%M{':%S' if clock[2] else ''}{'.%f' if clock[3] else ''}{' %p' if clock[4] else ''}"
    for order in ("%d{0}%m{0}", "%m{0}%d{0}"):
        yield order.format(sign) + year + time


def _parsed(words: pd.Series, written: str) -> pd.Series:
    return pd.to_datetime(words, errors="coerce", utc=True, format=written)


def _fits(words: pd.Series, written: str) -> bool:
    return bool(_parsed(words, written).notna().sum() == words.notna().sum())


def _refuse_almost_dates(words: pd.Series) -> None:
    """Refuse dates in several formats, and a cell that is no date among dates."""
    count = int(words.notna().sum())
    by_format = [_parsed(words, written).notna() for written in _formats(words.dropna())]
    fitting = max(by_format, key=lambda mask: int(mask.sum()))
    mixed = pd.to_datetime(words, errors="coerce", utc=True, format="mixed", dayfirst=True).notna()
    if mixed.sum() < MOSTLY * count:
        return
    row = int(np.flatnonzero((words.notna() & ~fitting).to_numpy())[0])
    first = int(np.flatnonzero(fitting.to_numpy())[0]) if fitting.any() else 0
    raise GyrostatError(
        f"column {str(words.name)!r} holds dates, but {shown(words.iloc[row])} in row {row + 1} is not one, or is written in "
        f"another way than {shown(words.iloc[first])} in row {first + 1}: write all of them as 2024-01-31, or leave the "
        "column out."
    )


def _days(dates: pd.Series) -> pd.Series:
    moments = pd.to_datetime(dates, utc=True)
    return (moments - pd.Timestamp(0, tz="UTC")) / pd.Timedelta(days=1)
