"""Tables in text files, read as people have them.

Separator, decimal mark, thousands and encoding are detected; lines above the names are left out. What was detected, and what
else was done, are sentences in ``frame.attrs["notes"]``.
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
from typing import Any, NamedTuple

import pandas as pd

from gyrostat.errors import GyrostatError
from gyrostat.tables.column_values import NOTES, is_code, is_text
from gyrostat.tables.written_numbers import ReadColumn, candidates_for, decimal_mark, with_plain_numbers

SAMPLE_LINES = 400
"""The number of lines from which a text file's format is detected."""
SEPARATORS = {",": "comma", ";": "semicolon", "\t": "tab", "|": "bar"}
BYTE_ORDER_MARKS = {codecs.BOM_UTF8: "utf-8-sig", codecs.BOM_UTF16_LE: "utf-16", codecs.BOM_UTF16_BE: "utf-16"}
FALLBACK = "cp1252"
"""The encoding of text that is not UTF-8: that of most spreadsheets in Europe and America."""
UNNAMED = "Unnamed:"
"""How pandas begins the name of a column without one."""


@dataclass(frozen=True)
class FileFormat:
    """How to read a file; None: detect it. ``empty`` lists what stands for an empty cell, as ``COLUMN=999``.

    ``labels`` are the names of columns in which 1.1 and 1.10 are different.
    """

    separator: str | None = None
    decimal: str | None = None
    thousands: str | None = None
    encoding: str | None = None
    empty: tuple[str, ...] = ()
    labels: tuple[str, ...] = ()

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


class Layout(NamedTuple):
    """Where the table of a text file is: its separator, the lines above the names, the names, and the first rows."""

    separator: str
    skipped: int
    header: list[str]
    rows: list[list[str]]

    @property
    def width(self) -> int:
        """The number of cells that most lines have."""
        return Counter(map(len, self.rows)).most_common(1)[0][0] if self.rows else len(self.header)


def read_text(path: Path, kind: str, usual: str, given: FileFormat) -> pd.DataFrame:
    """The table in a text file; ``usual`` is the separator that its name, which ends in ``kind``, suggests."""
    encoding = given.encoding or _encoding(path)
    lines = _first_lines(path, encoding)
    if not any(line.strip() for line in lines):
        raise GyrostatError(f"{str(path)!r} cannot be read as {kind}: it is empty.")
    layout = _layout(lines, usual, given)
    refuse_repeated_names([name.strip() for name in layout.header if name.strip()])
    _refuse_numbers_as_names(path, layout.header)
    cells = [cell.strip() for row in layout.rows for cell in row]
    decimal = given.decimal or decimal_mark(cells, layout.separator)
    if given.decimal is None and given.thousands == decimal:
        decimal = "," if decimal == "." else "."
    frame = _parsed(path, layout, decimal, encoding, given.labels)
    frame, words_notes = _with_words_for_nothing(frame, path, layout, encoding)
    frame = frame.rename(columns=lambda name: str(name).strip())
    candidates = candidates_for(decimal, fixed_decimal=given.decimal is not None, thousands=given.thousands)
    labels = [name for name in given.labels if name in frame and differ_as_words_only(frame[name])]
    read = {
        name: ReadColumn(frame[name]) if name in labels else with_plain_numbers(frame[name], candidates)
        for name in frame
    }
    frame = frame.assign(**{str(name): column.values for name, column in read.items()})
    used = sorted({c.marks.thousands for c in read.values() if c.marks and c.marks.thousands})
    frame.attrs[NOTES] = [
        *_lines_left_out(layout),
        *_what_was_detected(given, usual, layout.separator, decimal, used, encoding),
        *_what_was_read({str(name): column for name, column in read.items()}, decimal),
        *_what_may_be_thousands(layout, decimal, given),
        *words_notes,
        *(
            f"{name} has labels that differ as words only, such as 1.1 and 1.10: they count as different."
            for name in labels
        ),
    ]
    return _without_row_numbers(_without_empty_columns(frame))


def refuse_repeated_names(names: list[str]) -> None:
    """Refuse a table in which two columns have one name: a second column of the target would be taken for a feature."""
    repeated = [name for name, count in Counter(map(str, names)).items() if count > 1]
    if repeated:
        raise GyrostatError(
            f"{Counter(map(str, names))[repeated[0]]} columns are called {repeated[0]!r}: give every column a name of its own."
        )


# --- encoding and lines ---------------------------------------------------------------------------


def _opener(path: Path) -> Any:
    return gzip.open if path.name.lower().endswith(".gz") else open


def _first_lines(path: Path, encoding: str) -> list[str]:
    try:
        with _opener(path)(path, "rt", encoding=encoding, newline="") as file:
            return list(islice(file, SAMPLE_LINES))
    except UnicodeError:
        raise GyrostatError(
            f"{str(path)!r} is not text in --encoding {encoding}: try another, such as cp1252."
        ) from None


def _encoding(path: Path) -> str:
    """The encoding that a mark at the beginning tells, else UTF-8 where all of the file is, else that of spreadsheets."""
    decoder = codecs.getincrementaldecoder("utf-8")()
    with _opener(path)(path, "rb") as file:
        start = file.read(400)
        for mark, name in BYTE_ORDER_MARKS.items():
            if start.startswith(mark):
                return name
        if start.startswith(b"PK\x03\x04"):
            raise GyrostatError(
                f"{str(path)!r} is not text but a zip archive or a spreadsheet: unpack it, or save the sheet as CSV."
            )
        if name := _encoding_of_two_bytes(start):
            return name
        try:
            decoder.decode(start)
            while block := file.read(1 << 20):
                decoder.decode(block)
            decoder.decode(b"", final=True)
        except UnicodeDecodeError:
            return FALLBACK
    return "utf-8"


def _encoding_of_two_bytes(start: bytes) -> str:
    """UTF-16 without a mark, of which every second byte is zero in most languages of Europe."""
    for name, first in (("utf-16-le", 1), ("utf-16-be", 0)):
        if len(start) > 1 and start[first::2].count(0) > 0.8 * (len(start) // 2):
            return name
    return ""


# --- where the table is ---------------------------------------------------------------------------


def _layout(lines: list[str], usual: str, given: FileFormat) -> Layout:
    declared = re.fullmatch(r'"?sep=(.)"?', lines[0].strip("\ufeff\r\n"), re.IGNORECASE)  # a spreadsheet's first line
    skipped = 1 if declared else 0
    text = [line for line in lines[skipped:] if line.strip()]
    separator = (given.separator or "").replace("\\t", "\t") or (declared[1] if declared else "")
    separator = separator or _separator([line for line in text if not line.startswith("#")] or text, usual)
    table = _rows(lines[skipped:], separator)
    layout = Layout(separator, 0, [], [row for _, row in table])
    for i, (line, row) in enumerate(table):
        if not _is_title(row, layout.width):
            rows = [cells for _, cells in table[i + 1 :]]
            return Layout(separator, skipped + line, row, rows)
    return Layout(separator, skipped, table[0][1], [row for _, row in table[1:]])


def _rows(lines: list[str], separator: str) -> list[tuple[int, list[str]]]:
    """The cells of each line with something in it, and the number of lines above it."""
    blank = separator == " "
    reader = csv.reader(
        [line.strip(" ") for line in lines] if blank else lines, delimiter=separator, skipinitialspace=blank
    )
    rows, above = [], 0
    for row in reader:
        if any(cell.strip() for cell in row):
            rows.append((above, row))
        above = reader.line_num
    return rows


def _is_title(row: list[str], width: int) -> bool:
    """Whether a line is a title or a remark above a table of ``width`` columns."""
    filled = sum(bool(cell.strip()) for cell in row)
    if row[0].startswith("#") and len(row) < width:
        return True
    return width >= (2 if len(row) < width else 3) and filled <= max(1, width // 3)


def _separator(lines: list[str], usual: str) -> str:
    """The separator that divides most lines into the same number of cells, the larger the better; blanks if none does."""

    def score(separator: str) -> tuple[float, bool]:
        counts = Counter(len(row) for _, row in _rows(lines, separator))
        width, agreeing = counts.most_common(1)[0]
        return (
            agreeing / len(lines) * (width if agreeing > 0.8 * len(lines) else 1) if width > 1 else 0.0
        ), separator == usual

    best = max(SEPARATORS, key=score)
    return " " if score(best)[0] == 0 and score(" ")[0] > 1 else best


def _refuse_numbers_as_names(path: Path, header: list[str]) -> None:
    numbers = [bool(re.fullmatch(r"[+-]?\d*[.,]?\d+", name.strip())) for name in header]
    fractions = any(re.fullmatch(r"[+-]?\d*[.,]\d+", name.strip()) for name in header)
    if fractions and 2 * sum(numbers) >= len(header):
        raise GyrostatError(
            f"the first line of {str(path)!r} holds numbers such as {header[numbers.index(True)].strip()!r}, not names: add a "
            "line with the names of the columns."
        )


# --- cells ----------------------------------------------------------------------------------------


def _cells(path: Path, layout: Layout, encoding: str, **options: Any) -> pd.DataFrame:
    """The cells of a file, by pandas; ``options`` are those of ``read_csv``."""
    return pd.read_csv(
        path,
        sep=r"\s+" if layout.separator == " " else layout.separator,
        encoding=encoding,
        skipinitialspace=True,
        skiprows=layout.skipped,
        header=0,
        names=_names(layout),
        **options,
    )


def _parsed(path: Path, layout: Layout, decimal: str, encoding: str, labels: Sequence[str]) -> pd.DataFrame:
    words = [
        name
        for j, name in enumerate(_names(layout) or layout.header)
        if name.strip() in labels
        or is_code(pd.Series([row[j].strip() for row in layout.rows if j < len(row) and row[j].strip()], dtype=object))
    ]
    as_words = dict.fromkeys((name for word in words for name in (word, word.lstrip())), str)
    try:
        frame = _cells(path, layout, encoding, decimal=decimal, dtype=as_words)
    except pd.errors.ParserError as error:
        if found := re.search(r"Expected (\d+) fields in line (\d+), saw (\d+)", str(error)):
            expected, line, seen = found.groups()
            raise GyrostatError(
                f"line {line} of {str(path)!r} has {seen} cells, and those above it have {expected}: correct the line, put "
                f"quotes around cells that contain {layout.separator!r}, or give --separator."
            ) from None
        raise
    for name in frame:
        if str(name).strip() in labels and not is_code(frame[name]) and not differ_as_words_only(frame[name]):
            frame[name] = _numbers_where_all_are(frame[name])
    return frame


def _numbers_where_all_are(words: pd.Series) -> pd.Series:
    """Numbers, as pandas would read them, or the words if some are none."""
    numbers = pd.to_numeric(words, errors="coerce")
    return words if (numbers.isna() & words.notna()).any() or words.isna().all() else numbers


def differ_as_words_only(values: pd.Series) -> bool:
    """Whether different words are the same number.

    >>> differ_as_words_only(pd.Series(["1.1", "1.2", "1.10"])), differ_as_words_only(pd.Series(["1.1", "1.2"]))
    (True, False)
    """
    if not is_text(values):
        return False
    words = values.dropna().astype(str).str.strip().drop_duplicates()
    numbers = pd.to_numeric(words, errors="coerce")
    return bool(numbers.notna().all() and numbers.nunique() < len(words))


def _with_words_for_nothing(
    frame: pd.DataFrame, path: Path, layout: Layout, encoding: str
) -> tuple[pd.DataFrame, list[str]]:
    """The table with "None" as a word in columns of words, where it is a level, and sentences on this and on "NA" there.

    pandas takes both for empty cells. In a column of numbers they are.
    """
    places = [j for j, name in enumerate(frame) if is_text(frame[name]) and frame[name].isna().any()]
    if not places:
        return frame, []
    written = _cells(path, layout, encoding, usecols=places, dtype=str, na_filter=False)
    told = []
    for name, raw in zip([frame.columns[j] for j in places], (written[c].str.strip() for c in written), strict=True):
        known = frame[name].dropna().astype(str)
        if known.str.contains(r"\d").mean() > 0.5:  # numbers with marks, units or bad cells, dates, codes
            continue
        for word in sorted(set(raw[frame[name].isna()]) - {""}):
            cells = raw.eq(word) & frame[name].isna()
            count = f"{int(cells.sum())} cells of {str(name).strip()} hold {word!r}"
            if word == "None":
                frame[name] = frame[name].mask(cells, word)
                told.append(f"{count}, which counts as a word: --empty {str(name).strip()}={word} makes them empty.")
            else:
                told.append(f"{count} and count as empty: write another word if they are not.")
    return frame, told


def _names(layout: Layout) -> list[str] | None:
    """The names of columns if lines have one cell more than there are names: nothing after the last, or names of rows."""
    extra = layout.width - len(layout.header)
    if extra <= 0:
        return None
    full = [row for row in layout.rows if len(row) == layout.width]
    if extra == 1 and not any(row[-1].strip() for row in full):
        return [*layout.header, f"{UNNAMED} {len(layout.header)}"]
    if extra == 1 and _name_rows([row[0].strip() for row in full]):
        return [f"{UNNAMED} 0", *layout.header]
    raise GyrostatError(
        f"the line of names has {len(layout.header)} cells, and most lines below it have {layout.width}: put quotes around "
        f"cells that contain {layout.separator!r}, such as numbers with decimal commas, or give --separator."
    )


def _name_rows(cells: list[str]) -> bool:
    """Whether cells are different words, or number the rows."""
    if all(re.fullmatch(r"\d+", cell) for cell in cells):
        return [int(cell) - int(cells[0]) for cell in cells] == list(range(len(cells)))
    return len(set(cells)) == len(cells) and not any(re.match(r"[+-]?[\d.,]+$", cell) for cell in cells)


def _without_empty_columns(frame: pd.DataFrame) -> pd.DataFrame:
    """The table without columns that have neither a name nor a cell, as separators at the end of lines make them."""
    empty = [name for name in frame if str(name).startswith(UNNAMED) and frame[name].isna().all()]
    return frame.drop(columns=empty) if len(empty) < frame.shape[1] else frame


def _without_row_numbers(frame: pd.DataFrame) -> pd.DataFrame:
    """The table without a first column that has no name and another number or word in each row, as pandas and R write it."""
    first = str(frame.columns[0])
    values = frame[first]
    if not first.startswith(UNNAMED) or frame.shape[1] == 1 or values.dtype.kind == "f" or not values.is_unique:
        return frame
    notes = [*frame.attrs[NOTES], "The first column has no name and only numbers or names the rows: it was left out."]
    kept = frame.drop(columns=first)
    kept.attrs[NOTES] = notes
    return kept


# --- what is told ---------------------------------------------------------------------------------


def _lines_left_out(layout: Layout) -> list[str]:
    if not layout.skipped:
        return []
    return [f"The names of the columns are in line {layout.skipped + 1}; what is above it was left out."]


def _what_was_detected(
    given: FileFormat, usual: str, separator: str, decimal: str, thousands: list[str], encoding: str
) -> list[str]:
    found = [
        ("separator", given.separator, separator, usual),
        ("decimal", given.decimal, decimal, "."),
        *(("thousands", given.thousands, sign, None) for sign in thousands if sign != decimal),
        ("encoding", given.encoding, encoding.removesuffix("-sig"), "utf-8"),
    ]
    told = [f"--{name} {value!r}" for name, asked, value, normal in found if asked is None and value != normal]
    return [f"Read with {' and '.join(told)}."] if told else []


def _what_was_read(columns: dict[str, ReadColumn], decimal: str) -> list[str]:
    other = [name for name, column in columns.items() if column.marks and column.marks.decimal != decimal]
    units = [(name, column.unit, column.without) for name, column in columns.items() if column.unit]
    return [
        *(f"{name} has the decimal mark {columns[name].marks.decimal!r}, unlike the rest." for name in other),  # type: ignore[union-attr]
        *(
            f"{name} was read without the {unit!r} in its cells."
            + (f" {n} of them have none and count as if they had: correct those in another unit." if n else "")
            for name, unit, n in units
        ),
    ]


def _what_may_be_thousands(layout: Layout, decimal: str, given: FileFormat) -> list[str]:
    """Columns in which every point is followed by three digits: 1.234 may be 1234.

    In a file without semicolons, only columns that also hold numbers without a point: 521 beside 1.502.
    """
    if decimal != "." or given.decimal or given.thousands:
        return []
    told = []
    for j, name in enumerate(layout.header):
        every = [row[j].strip() for row in layout.rows if j < len(row) and row[j].strip()]
        cells = [cell for cell in every if "." in cell]
        mixed = any(re.fullmatch(r"[+-]?[1-9]\d{0,2}", cell) for cell in every)
        if not mixed and layout.separator != ";":
            continue
        if cells and all(re.fullmatch(r"[+-]?[1-9]\d{0,2}\.\d{3}", cell) for cell in cells):
            told.append(
                f"{name.strip()}: {cells[0]} was read as a number with decimals; if it is {cells[0].replace('.', '')}, use "
                "--thousands '.'."
            )
    return told
