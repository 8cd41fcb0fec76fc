"""Tables in files: CSV, TSV and Parquet, read as people have them and written.

Separator, decimal comma, thousands and encoding of a text file are detected from its first lines; what was detected, and other
remarks on the table, are sentences in ``frame.attrs["notes"]``.
"""

from __future__ import annotations

import codecs
import csv
import gzip
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from gyrostat import errors
from gyrostat.errors import GyrostatError, shown
from gyrostat.tables.examples import PREFIX, example

TEXT_KINDS = {".csv": ",", ".csv.gz": ",", ".tsv": "\t", ".txt": "\t"}
"""Endings of text files, and the separator that each suggests."""
PARQUET = (".parquet", ".pq")
KINDS = (*TEXT_KINDS, *PARQUET)
NOTES = "notes"
SAMPLE_LINES = 400
"""The number of lines from which a text file's format is detected."""
SEPARATORS = {",": "comma", ";": "semicolon", "\t": "tab", "|": "bar"}
BYTE_ORDER_MARKS = {codecs.BOM_UTF8: "utf-8-sig", codecs.BOM_UTF16_LE: "utf-16", codecs.BOM_UTF16_BE: "utf-16"}
FALLBACK = "cp1252"
"""The encoding of text that is not UTF-8: that of most spreadsheets in Europe and America."""
MISSING_WORDS = (
    "?",
    ".",
    "-",
    "--",
    "n.a.",
    "na",
    "n.d.",
    "nd",
    "none",
    "missing",
    "unknown",
    "k.a.",
    "#n/a",
    "#value!",
)
"""Words that stand for a missing number besides those that pandas knows, in lower case."""
MOSTLY = 0.9
"""A column of text of which this share are numbers (or dates) is a column of numbers (or dates) with bad cells."""
MOST_LEVELS = 50
"""The most words in a column that is taken for a category rather than for names or remarks."""


@dataclass(frozen=True)
class FileFormat:
    """How to read a text file; None: detect it."""

    separator: str | None = None
    decimal: str | None = None
    thousands: str | None = None
    encoding: str | None = None

    def __post_init__(self) -> None:
        for option in ("separator", "decimal", "thousands"):
            value = getattr(self, option)
            if value is not None and len(value.replace("\\t", "\t")) != 1:
                raise GyrostatError(f"--{option} must be one character; got {value!r}.")
        if self.encoding is not None:
            try:
                codecs.lookup(self.encoding)
            except LookupError:
                raise GyrostatError(
                    f"--encoding {self.encoding!r} is not known: give one such as utf-8, cp1252 or utf-16."
                ) from None


def file_kind(option: str, path: Path) -> str:
    """The ending that tells the format of a file; ``option`` is the name under which the user gave the path."""
    kind = next((suffix for suffix in KINDS if path.name.lower().endswith(suffix)), None)
    if kind is None:
        raise GyrostatError(
            f"{option} {path.name!r} is not a known kind of table: the name must end in {', '.join(KINDS)}."
        )
    return kind


def read_table(path: Path, given: FileFormat = FileFormat()) -> pd.DataFrame:  # noqa: B008  (immutable)
    """The table in a CSV, TSV or Parquet file, or one of :mod:`gyrostat.tables.examples` (``example:NAME``).

    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "rows.csv"
    >>> _ = path.write_text("dose;site\\n1,5;north\\n2,0;south\\n")
    >>> frame = read_table(path)
    >>> frame.dose.tolist(), frame.attrs["notes"]
    ([1.5, 2.0], ["Read with --separator ';' and --decimal ','."])
    """
    if path.name.startswith(PREFIX):
        return _noted(example(path.name.removeprefix(PREFIX)), [])
    kind = existing_kind(path)
    try:
        frame = read_parquet(path) if kind in PARQUET else _read_text(path, kind, given)
    except GyrostatError:
        raise
    except (ValueError, OSError) as error:  # pandas and pyarrow raise these for files whose content is something else
        raise unreadable(path, kind, error) from None
    if frame.empty:
        raise GyrostatError(f"{str(path)!r} has no rows: give a table with a line of names and at least one row.")
    return frame


def existing_kind(path: Path) -> str:
    """The kind of a table that exists."""
    kind = file_kind("DATA", path)
    if not path.is_file():
        raise GyrostatError(f"there is no file {str(path)!r}: check its name and folder.")
    return kind


def unreadable(path: Path, kind: str, error: Exception) -> GyrostatError:
    """The error for a file whose content is something else."""
    reason = str(error).splitlines()[0].rstrip(".") if str(error) else type(error).__name__
    return GyrostatError(f"{str(path)!r} cannot be read as {kind}: {reason}.")


def read_parquet(path: Path) -> pd.DataFrame:
    """A whole Parquet file."""
    from pyarrow import parquet

    refuse_repeated_names(parquet.read_schema(path).names)
    return _noted(pd.read_parquet(path).rename(columns=str), [])


def refuse_repeated_names(names: list[str]) -> None:
    """Refuse a table in which two columns have one name: a second column of the target would be taken for a feature."""
    repeated = [name for name, count in Counter(map(str, names)).items() if count > 1]
    if repeated:
        raise GyrostatError(
            f"{Counter(map(str, names))[repeated[0]]} columns are called {repeated[0]!r}: give every column a name of its own."
        )


def _noted(frame: pd.DataFrame, notes: list[str]) -> pd.DataFrame:
    frame.attrs[NOTES] = notes
    return frame


# --- text -----------------------------------------------------------------------------------------


def _read_text(path: Path, kind: str, given: FileFormat) -> pd.DataFrame:
    encoding = given.encoding or _encoding(path)
    lines = _first_lines(path, encoding)
    if not lines:
        raise GyrostatError(f"{str(path)!r} cannot be read as {kind}: it is empty.")
    separator = (given.separator or "").replace("\\t", "\t") or _separator(lines, TEXT_KINDS[kind])
    rows = list(csv.reader(lines, delimiter=separator))
    header, cells = rows[0], [cell.strip() for row in rows[1:] for cell in row]
    refuse_repeated_names([name for name in header if name])
    decimal, thousands = _number_format(cells, separator, given)
    frame = pd.read_csv(
        path, sep=separator, decimal=decimal, thousands=thousands, encoding=encoding, skipinitialspace=True
    )
    frame = frame.rename(columns=lambda name: str(name).strip())
    if decimal != "." or thousands:
        frame = frame.apply(_with_decimal_points, decimal=decimal, thousands=thousands or "")
    notes = _what_was_detected(given, TEXT_KINDS[kind], separator, decimal, thousands, encoding)
    return _without_row_numbers(_noted(frame, notes))


def _first_lines(path: Path, encoding: str) -> list[str]:
    """The first lines with something in them."""
    opener: Any = gzip.open if path.name.lower().endswith(".gz") else open
    try:
        with opener(path, "rt", encoding=encoding, newline="") as file:
            return [line for line in islice(file, SAMPLE_LINES) if line.strip()]
    except UnicodeError:
        raise GyrostatError(
            f"{str(path)!r} is not text in --encoding {encoding}: try another, such as cp1252."
        ) from None


def _encoding(path: Path) -> str:
    """The encoding that a mark at the beginning tells, else UTF-8 where all of the file is, else that of spreadsheets."""
    opener: Any = gzip.open if path.name.lower().endswith(".gz") else open
    decoder = codecs.getincrementaldecoder("utf-8")()
    with opener(path, "rb") as file:
        start = file.read(4)
        for mark, name in BYTE_ORDER_MARKS.items():
            if start.startswith(mark):
                return name
        try:
            decoder.decode(start)
            while block := file.read(1 << 20):
                decoder.decode(block)
            decoder.decode(b"", final=True)
        except UnicodeDecodeError:
            return FALLBACK
    return "utf-8"


def _separator(lines: list[str], usual: str) -> str:
    """The separator that divides most lines into the same number of cells, the larger the better."""

    def score(separator: str) -> tuple[float, bool]:
        counts = Counter(len(row) for row in csv.reader(lines, delimiter=separator))
        width, agreeing = counts.most_common(1)[0]
        return (
            agreeing / len(lines) * (width if agreeing > 0.8 * len(lines) else 1) if width > 1 else 0.0
        ), separator == usual

    return max(SEPARATORS, key=score)


GROUPED = r"[+-]?\d{1,3}(?:%s\d{3})+"


def _number_format(cells: list[str], separator: str, given: FileFormat) -> tuple[str, str | None]:
    """The decimal sign and the sign between thousands that the cells use."""

    def matching(pattern: str) -> int:
        return sum(bool(re.fullmatch(pattern, cell)) for cell in cells)

    decimal = given.decimal
    if decimal is None:
        points, commas = (matching(rf"[+-]?\d*{sign}\d+(?:[eE][+-]?\d+)?") for sign in (r"\.", ","))
        only_grouped = matching(GROUPED % ",")
        mixed = matching((GROUPED % r"\.") + r",\d+") - matching((GROUPED % ",") + r"\.\d+")
        decimal = "," if mixed > 0 or (mixed == 0 and commas - only_grouped > points) else "."
    thousands = given.thousands
    if thousands is None:
        other = "." if decimal == "," else ","
        # 1.234 by itself is a number with decimals, unless decimals are known to have another sign
        found = [
            sign
            for sign in (other, " ", "'", "\u00a0", "\u202f")
            if matching((GROUPED % re.escape(sign)) + rf"(?:{re.escape(decimal)}\d+)?")
        ]
        thousands = found[0] if found and found[0] != decimal else None
    return decimal, thousands


def _with_decimal_points(values: pd.Series, decimal: str, thousands: str) -> pd.Series:
    """A column that pandas left as text because of a bad cell, with its numbers in the usual form."""
    if not is_text(values):
        return values
    words = values.astype("string").str.strip()
    signs = re.escape(thousands) if thousands else ""
    numbers = (
        words.str.fullmatch(rf"[+-]?[\d{signs}]*{re.escape(decimal)}?\d+(?:[eE][+-]?\d+)?").fillna(False).astype(bool)
    )
    if numbers.sum() < MOSTLY * words.notna().sum():
        return values
    plain = words.str.replace(thousands, "", regex=False) if thousands else words
    return values.mask(numbers, plain.str.replace(decimal, ".", regex=False).astype(object))


def _what_was_detected(
    given: FileFormat, usual: str, separator: str, decimal: str, thousands: str | None, encoding: str
) -> list[str]:
    found = [
        ("separator", given.separator, separator, usual),
        ("decimal", given.decimal, decimal, "."),
        ("thousands", given.thousands, thousands, None),
        ("encoding", given.encoding, encoding.removesuffix("-sig"), "utf-8"),
    ]
    told = [f"--{name} {value!r}" for name, asked, value, normal in found if asked is None and value != normal]
    return [f"Read with {' and '.join(told)}."] if told else []


def _without_row_numbers(frame: pd.DataFrame) -> pd.DataFrame:
    """The table without a first column that has no name and only numbers the rows, as pandas and R write it."""
    first = str(frame.columns[0])
    if not first.startswith("Unnamed:") or frame.shape[1] == 1 or frame[first].dtype.kind not in "iu":
        return frame
    numbers = frame[first].to_numpy()
    if len(numbers) and np.array_equal(numbers - numbers[0], np.arange(len(numbers))) and numbers[0] in (0, 1):
        notes = [*frame.attrs[NOTES], "The first column has no name and only numbers the rows: it was left out."]
        return _noted(frame.drop(columns=first), notes)
    return frame


# --- columns --------------------------------------------------------------------------------------


def is_text(values: pd.Series) -> bool:
    """Whether a column holds words (not numbers, truth values or dates)."""
    return not (
        pd.api.types.is_numeric_dtype(values)
        or pd.api.types.is_bool_dtype(values)
        or pd.api.types.is_datetime64_any_dtype(values)
    )


def as_numbers(values: pd.Series, drop: str) -> pd.Series:
    """A column of numbers with a few words in it as numbers; another column as it is.

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
    missing = words.isna() | words.str.lower().isin(MISSING_WORDS)
    numbers = pd.to_numeric(words.mask(missing), errors="coerce")
    bad = numbers.isna() & ~missing
    if not bad.any():
        return numbers.astype(float) if (~missing).any() else values
    if numbers.notna().sum() < MOSTLY * (~missing).sum():
        return values
    row = int(np.flatnonzero(bad.to_numpy())[0])
    raise GyrostatError(
        f"column {str(values.name)!r} has {shown(values.iloc[row])} in row {row + 1}, and {int(numbers.notna().sum())} of its "
        f"{int((~missing).sum())} cells are numbers: correct the cell, empty it, or leave the column out with {drop}."
    )


def as_dates(values: pd.Series) -> pd.Series | None:
    """A column of dates as days since 1970; None if it holds something else.

    >>> as_dates(pd.Series(["2024-01-31", None, "2024-02-01"])).tolist()
    [19753.0, nan, 19754.0]
    """
    if pd.api.types.is_datetime64_any_dtype(values):
        return _days(values)
    if not is_text(values) or not values.notna().any():
        return None
    words = values.dropna().astype(str).str.strip()
    if not words.iloc[:50].str.fullmatch(r"\d{1,4}[-./]\d{1,2}[-./]\d{1,4}(?:[ T]\d{1,2}:\d{2}.*)?").all():
        return None
    for style in ({"format": "ISO8601"}, {"dayfirst": True}, {"dayfirst": False}):
        dates = pd.to_datetime(
            values.astype("string").str.strip(), errors="coerce", utc=True, **_one_format(words, style)
        )
        if dates.notna().sum() == len(words):
            return _days(dates)
    return None


def _one_format(words: pd.Series, style: dict[str, Any]) -> dict[str, Any]:
    """The format of a date as in the first cell, with the day or the month first."""
    if "format" in style:
        return style
    sign = re.findall(r"[-./]", words.iloc[0])[0]
    order = "%d{0}%m{0}" if style["dayfirst"] else "%m{0}%d{0}"
    year = "%Y" if len(re.split(r"[-./ T]", words.iloc[0])[2]) == 4 else "%y"
    return {"format": order.format(sign) + year}


def _days(dates: pd.Series) -> pd.Series:
    moments = pd.to_datetime(dates, utc=True)
    return (moments - pd.Timestamp(0, tz="UTC")) / pd.Timedelta(days=1)


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
        re.fullmatch(r"[<≤]?\s*(\d+(?:\.\d+)?)\s*(?:[-–]\s*\d+(?:\.\d+)?|\+)?", level.strip()) for level in levels
    ]
    if all(starts) and any(not level.strip().isdigit() for level in levels):
        first = {level: float(found.group(1)) for level, found in zip(levels, starts, strict=True) if found}
        return tuple(sorted(levels, key=lambda level: (not level.strip().startswith(("<", "≤")), first[level])))
    return None


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


def write_table(frame: pd.DataFrame, path: Path, option: str = "--out") -> None:
    """Write a table in the format that the name of the file tells; ``option`` is as in :func:`file_kind`."""
    kind = file_kind(option, path)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if kind in PARQUET:
            frame.to_parquet(path, index=False)
        else:
            frame.to_csv(path, index=False, sep=TEXT_KINDS[kind])
    except OSError as error:
        raise cannot_be_written(option, path, error) from None


def cannot_be_written(option: str, path: Path, error: OSError) -> GyrostatError:
    """The error for a path that cannot be written to."""
    return GyrostatError(f"{option} {str(path)!r} cannot be written ({error.strerror}): choose another path.")
