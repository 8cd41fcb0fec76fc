"""``gyrostat impute``: fills the missing cells of a table in a file and writes the table to another file.

Numbers are filled as they are. Categories become indicators, ordered categories their number, dates their day; all of them
are filled together and turned back.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from rich.console import Console
from rich.table import Table

from gyrostat import errors
from gyrostat.errors import GyrostatError
from gyrostat.estimators import LowRankImputer
from gyrostat.estimators.low_rank.table_cells import conformal_width
from gyrostat.estimators.low_rank.table_model import FOLDS
from gyrostat.tables.column_values import (
    MOST_LEVELS,
    NOTES,
    as_numbers,
    is_text,
    known_order,
    refuse_too_large,
    shown_order,
)
from gyrostat.tables.dates import ISO, as_dates, date_format, date_notes
from gyrostat.tables.row_checks import missing_code_notes, parsed_orders, spelling_notes
from gyrostat.tables.table_files import file_kind, read_table, write_table
from gyrostat.tables.text_files import FileFormat
from gyrostat.tables.tree_check import TreeCheck, compared_with_trees

ROWS_PER_LEVEL = 3
"""A column of words is a category if it has at least this many rows for each of its words."""
MOST_SHOWN = 30
"""The most columns in the table of errors."""


ENOUGH_CELLS = 10
"""A column with at least this many cells, of which none is negative (or has decimals), is filled in the same way."""


class CodedColumn(NamedTuple):
    """A column and how it is coded: ``"number"``, ``"truth"``, ``"date"``, ``"ordered"`` or ``"category"``.

    ``whole`` says that all numbers of a column are whole, such as counts, and ``positive`` that none is below zero. Dates are
    written as ``written``, the format of the column.
    """

    name: str
    kind: str
    levels: tuple[str, ...] = ()
    whole: bool = False
    positive: bool = False
    written: str = "%Y-%m-%d"

    @property
    def codes(self) -> list[str]:
        """The names of the columns of numbers that it becomes."""
        return [f"{self.name}={level}" for level in self.levels] if self.kind == "category" else [self.name]

    def coded(self, values: pd.Series) -> pd.DataFrame:
        """The column as numbers, with NaN where it is empty."""
        if self.kind == "date":
            return pd.DataFrame({self.name: as_dates(values)})
        if not self.levels:
            return pd.DataFrame({self.name: values.astype(float)})
        words = values.astype("string").str.strip()
        if (bad := ~words.isin(self.levels) & words.notna()).any():
            row = int(np.flatnonzero(bad)[0])
            raise GyrostatError(
                f"column {self.name!r} has {words.iloc[row]!r} in row {row + 1}, which --ordered does not name: add it."
            )
        if self.kind == "ordered":
            return pd.DataFrame({self.name: words.map({level: i for i, level in enumerate(self.levels)}).astype(float)})
        table = {code: (words == level).astype(float) for code, level in zip(self.codes, self.levels, strict=True)}
        return pd.DataFrame(table).mask(words.isna())

    def decoded(self, filled: np.ndarray, like: pd.Series) -> Any:
        """Numbers (cells, codes) as values of the column."""
        if self.kind == "number":
            return np.round(self.possible(filled[:, 0])) if self.whole else self.possible(filled[:, 0])
        if self.kind == "truth":
            return filled[:, 0] >= 0.5
        if self.kind == "date":
            days = self.dates_of_days(filled[:, 0])
            if not pd.api.types.is_datetime64_any_dtype(like):
                return days.strftime(self.written).to_numpy()
            return days if like.dt.tz is None else days.tz_localize("UTC").tz_convert(like.dt.tz)
        return np.array(self.levels, dtype=object)[self.level_numbers(filled)]

    def dates_of_days(self, days: np.ndarray) -> pd.DatetimeIndex:
        """Days since 1970 as dates: whole days, or minutes if the column has times."""
        steps = 1440 if "%H" in self.written or "%I" in self.written else 1
        return pd.to_datetime(np.round(days * steps) / steps, unit="D").round("min")

    def possible(self, numbers: np.ndarray) -> np.ndarray:
        """Numbers that the column may hold: not below zero where none is."""
        return np.maximum(numbers, 0.0) if self.positive else numbers

    def level_numbers(self, filled: np.ndarray) -> np.ndarray:
        """The number of the level that is nearest, or that has the largest indicator."""
        if self.kind == "category":
            return filled.argmax(axis=1)
        return np.clip(np.round(filled[:, 0]), 0, len(self.levels) - 1).astype(int)


def coded_column(values: pd.Series, order: tuple[str, ...] | None, notes: list[str]) -> CodedColumn | None:
    """How a column is coded; None, with a note, if its words are names rather than categories, or it is nearly empty."""
    name = str(values.name)
    if order is None and isinstance(values.dtype, pd.CategoricalDtype) and values.cat.ordered:
        order = tuple(map(str, values.cat.categories))
    if order is not None:
        return CodedColumn(name, "ordered", order)
    known = values.dropna()
    if pd.api.types.is_bool_dtype(values) or (len(known) and known.map(type).eq(bool).all()):
        return CodedColumn(name, "truth")
    if as_dates(values) is not None:
        if is_text(values) and (readings := date_notes(values)):
            notes.append(" ".join([f"{name} holds dates.", *readings]))
        return CodedColumn(name, "date", written=_written_format(values))
    if not is_text(values) or values.isna().all():
        if len(known) < FOLDS and len(known) < len(values):
            count = "1 number" if len(known) == 1 else f"{len(known)} numbers"
            notes.append(f"{name} holds {count}, too few to fill its empty cells from, and stays as it is.")
            return None
        return _column_of_numbers(values)
    levels = sorted(known.astype(str).str.strip().unique())
    if scale := known_order(levels):
        notes.append(f"{name} has an order: {shown_order(scale)}.")
        return CodedColumn(name, "ordered", scale)
    if len(levels) <= MOST_LEVELS and ROWS_PER_LEVEL * len(levels) <= len(known):
        return CodedColumn(name, "category", tuple(levels))
    empty = int(values.isna().sum())
    notes.append(
        f"{name} holds {len(levels)} different words, too many for a category, and stays as it is"
        + (f": its {empty} empty cells are not filled." if empty else ".")
    )
    return None


def _written_format(values: pd.Series) -> str:
    """The format in which dates of a column are written."""
    found = date_format(values)
    if found is None or found == ISO:
        clock = values.dropna().astype(str).str.contains(r":\d\d").any()
        return "%Y-%m-%d %H:%M" if clock else "%Y-%m-%d"
    return found


def _column_of_numbers(values: pd.Series) -> CodedColumn:
    numbers = values.dropna().to_numpy(dtype=float)
    enough = len(numbers) >= ENOUGH_CELLS
    whole = enough and bool(np.all(numbers == np.round(numbers)))
    return CodedColumn(str(values.name), "number", whole=whole, positive=enough and bool(np.all(numbers >= 0)))


@dataclass(frozen=True)
class FilledTable:
    """A filled table, the model that filled it, and how columns were coded for it.

    ``table`` holds the columns as numbers, with NaN where cells were empty, and ``notes`` sentences on the columns.
    """

    frame: pd.DataFrame
    imputer: LowRankImputer
    table: pd.DataFrame
    columns: tuple[CodedColumn, ...]
    notes: tuple[str, ...] = ()
    empty: Mapping[str, np.ndarray] = field(default_factory=dict)

    @property
    def count(self) -> int:
        """The number of cells that were filled."""
        return sum(map(len, self.empty.values()))

    def places(self, one: CodedColumn) -> np.ndarray:
        """The numbers of the columns of ``table`` that a column became."""
        return np.array([self.table.columns.get_loc(code) for code in one.codes])

    def predicted(self, one: CodedColumn, rows: np.ndarray) -> np.ndarray:
        """The model's numbers (rows, codes) in a column."""
        places = self.places(one)
        i, j = np.repeat(rows, len(places)), np.tile(places, len(rows))
        return self.imputer.predict(i, j).reshape(len(rows), -1)

    def unseen(self, one: CodedColumn) -> tuple[np.ndarray, np.ndarray]:
        """Predictions (cells, codes) of observed cells of a category by models that have not seen them, and the truth."""
        rows, columns, values = self.imputer.unseen_predictions()
        pivot = {place: pd.Series(values[columns == place], rows[columns == place]) for place in self.places(one)}
        predicted = pd.DataFrame(pivot).dropna()
        truth = self.table[one.codes].to_numpy()[predicted.index.to_numpy()].argmax(axis=1)
        return predicted.to_numpy(), truth

    def quality(self) -> pd.DataFrame:
        """For each column its kind, filled cells, and errors at cells that the model has not seen.

        Errors are root mean squares in the units of the column, or shares of wrong levels; ``simple_error`` is that of filling
        with the mean, or with the most common level.
        """
        lines = []
        for one in self.columns:
            if one.kind == "category":
                predicted, truth = self.unseen(one)
                wrong = float(np.mean(predicted.argmax(axis=1) != truth)) if len(truth) else np.nan
                simple = 1 - np.bincount(truth).max() / len(truth) if len(truth) else np.nan
            else:
                (place,) = self.places(one)
                wrong, simple = self.imputer.column_errors_[place], self.imputer.column_mean_errors_[place]
                wrong = self._error_as_filled(one, place) if one.whole else wrong
            lines.append((one.name, one.kind, len(self.empty[one.name]), float(wrong), float(simple)))
        return pd.DataFrame(lines, columns=["column", "kind", "filled", "error", "simple_error"])

    def _error_as_filled(self, one: CodedColumn, place: int) -> float:
        """The error in a column of whole numbers, which moves the values of the model."""
        rows, columns, values = self.imputer.unseen_predictions()
        mine = columns == place
        if not mine.any():
            return float("nan")
        truth = self.table[one.name].to_numpy()[rows[mine]]
        return float(np.sqrt(np.mean((one.decoded(values[mine][:, None], self.frame[one.name]) - truth) ** 2)))

    def cells(self, coverage: float) -> pd.DataFrame:
        """One line for each filled cell: row (from 1, without the line of names), column, value, and an interval.

        The interval of an ordered category is one of levels; that of a category is the set of levels in ``levels``.
        """
        parts = [self._cells(one, coverage) for one in self.columns if len(self.empty[one.name])]
        names = ["row", "column", "value", "low", "high", "levels"]
        found = pd.concat(parts) if parts else pd.DataFrame(columns=names)
        found = found.sort_values(["row", "column"], kind="stable", ignore_index=True)
        return found if found["levels"].notna().any() else found.drop(columns="levels")

    def _cells(self, one: CodedColumn, coverage: float) -> pd.DataFrame:
        rows = self.empty[one.name]
        listed = {"row": rows + 1, "column": one.name, "value": self.frame[one.name].to_numpy()[rows]}
        if one.kind == "category":
            sets = self._level_sets(one, self.predicted(one, rows), coverage)
            return pd.DataFrame({**listed, "low": None, "high": None, "levels": sets})
        low, high = self.imputer.predict_interval(rows, np.repeat(self.places(one), len(rows)), coverage)
        low, high = one.possible(low), one.possible(high)
        if one.kind == "ordered":
            levels = np.array(one.levels, dtype=object)
            last = len(levels) - 1
            low, high = (levels[np.clip(x, 0, last).astype(int)] for x in (np.ceil(low - 0.5), np.floor(high + 0.5)))
        elif one.kind == "date":
            low, high = (one.dates_of_days(x).strftime(one.written) for x in (low, high))
        return pd.DataFrame({**listed, "low": low, "high": high, "levels": None})

    def _level_sets(self, one: CodedColumn, predicted: np.ndarray, coverage: float) -> list[str]:
        """The levels whose indicator is above the value that the true one exceeds with this probability, as ``a|b``."""
        unseen, truth = self.unseen(one)
        least = -conformal_width(1 - unseen[np.arange(len(truth)), truth], coverage) + 1 if len(truth) else -np.inf
        chosen = (predicted >= least) | (predicted == predicted.max(axis=1, keepdims=True))
        return ["|".join(np.array(one.levels)[mask]) for mask in chosen]


def fill_table(
    frame: pd.DataFrame,
    *,
    left_out: Sequence[str] = (),
    orders: Mapping[str, tuple[str, ...]] | None = None,
    environments: str | None = None,
    imputer: LowRankImputer | None = None,
) -> FilledTable:
    """Fill the empty cells of a table of numbers, categories, ordered categories, truths and dates.

    ``left_out`` are columns to leave as they are, ``orders`` the levels of ordered categories from the lowest,
    ``environments`` the column with the environment of each row, and ``imputer`` a ``LowRankImputer`` with options.

    >>> x = np.arange(40.0)
    >>> frame = pd.DataFrame({"x": x, "y": 1000 - 20 * x, "late": np.where(x < 20, "no", "yes")})
    >>> frame.loc[[3, 30], "late"] = None
    >>> frame.loc[7, "y"] = np.nan
    >>> filled = fill_table(frame, imputer=LowRankImputer(random_state=0))
    >>> filled.frame.late[[3, 30]].tolist(), filled.count
    (['no', 'yes'], 3)
    """
    notes: list[str] = []
    kept = [*left_out, *([environments] if environments else [])]
    for name in kept:
        errors.choice("column", name, map(str, frame.columns))
    columns = [
        one
        for name in frame.columns
        if name not in kept
        and (one := coded_column(_cleaned(frame[name], orders or {}), (orders or {}).get(name), notes)) is not None
    ]
    if not columns:
        why = " ".join(["no column is left to fill: give --ignore fewer names, or give a table with numbers.", *notes])
        raise GyrostatError(why)
    cleaned = {one.name: _cleaned(frame[one.name], orders or {}) for one in columns}
    table = pd.concat([one.coded(cleaned[one.name]) for one in columns], axis=1)
    numbers = frame.assign(**cleaned)
    notes += missing_code_notes(numbers, [one.name for one in columns if one.kind == "number"])
    notes += spelling_notes(numbers, [one.name for one in columns if one.kind == "category"])
    notes += _rows_of_one_cell(frame)
    for name in table:
        refuse_too_large(str(name), table[name].to_numpy())
    model = imputer if imputer is not None else LowRankImputer()
    if any(one.kind == "category" for one in columns):
        # The indicators of a category add up to one: an exact fit would be made of that, and leave rows without them free.
        exact = False if model.exact == "auto" else model.exact
        model.set_params(column_groups=[one.name for one in columns for _ in one.codes], exact=exact)
    labels = None if environments is None else frame[environments]
    model.fit(table, environments=labels)
    empty = {name: np.flatnonzero(values.isna().to_numpy()) for name, values in cleaned.items()}
    found = FilledTable(frame.copy(), model, table, tuple(columns), tuple(notes), empty)
    if model.exact_:  # the cells are known, whatever the others are like
        columns = [one._replace(whole=False, positive=False) for one in columns]
        found = replace(found, columns=tuple(columns))
    for one in columns:
        rows = empty[one.name]
        completed = cleaned[one.name].astype(object) if one.levels or one.kind == "truth" else cleaned[one.name].copy()
        if len(rows):
            completed.iloc[rows] = one.decoded(found.predicted(one, rows), cleaned[one.name])
        # an empty cell made decimals of whole numbers: 3 is written as 3 again, not as 3.0
        exact = one.whole and completed.abs().max() < 2**53
        found.frame[one.name] = completed.astype("int64") if exact else completed
    return found


def _rows_of_one_cell(frame: pd.DataFrame) -> list[str]:
    """A sentence if rows hold a word and nothing else, as remarks under a table do.

    >>> _rows_of_one_cell(pd.DataFrame({"site": ["a", "Source: us"], "x": [1, None], "y": [2, None]}))[0][:62]
    "1 row (row 2) holds 'Source: us' and nothing else: delete rema"
    """
    alone = np.flatnonzero((frame.notna().sum(axis=1) == 1).to_numpy()) if frame.shape[1] > 2 else np.zeros(0, int)
    words = [(row, cell) for row in alone for cell in frame.iloc[row].dropna() if isinstance(cell, str)]
    if not words:
        return []
    row, cell = words[0]
    counted = f"1 row (row {row + 1}) holds" if len(words) == 1 else f"{len(words)} rows (first: row {row + 1}) hold"
    return [
        f"{counted} {cell!r} and nothing else: delete remarks under the table, because their empty cells are filled, too."
    ]


def _cleaned(values: pd.Series, orders: Mapping[str, tuple[str, ...]]) -> pd.Series:
    """A column without words for missing numbers."""
    return values if values.name in orders else as_numbers(values, f"--ignore {values.name}")


def impute(
    source: Path,
    out: Path,
    console: Console,
    *,
    ignore: list[str],
    environments: str | None,
    options: Mapping[str, Any],
    intervals: Path | None = None,
    coverage: float = 0.9,
    compare: bool = False,
    ordered: Sequence[str] = (),
    text_format: FileFormat = FileFormat(),  # noqa: B008  (immutable)
) -> FilledTable:
    """Read the table, fill it, write it, and print a summary. ``options`` are those of ``LowRankImputer``."""
    file_kind("--out", out)  # a wrong ending is refused before anything is computed
    errors.number("--coverage", coverage, above=0, most=1)
    if intervals is not None:
        file_kind("--intervals", intervals)
    frame = read_table(source, text_format if environments is None else replace(text_format, labels=(environments,)))
    orders = parsed_orders(ordered, list(frame.columns))
    model = LowRankImputer(**options)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        filled = fill_table(frame, left_out=ignore, orders=orders, environments=environments, imputer=model)
    write_table(filled.frame, out)
    if intervals is not None:
        write_table(filled.cells(coverage), intervals, "--intervals")
    warned = [f"Note: {_rows_from_one(str(w.message))}" for w in caught if issubclass(w.category, UserWarning)]
    for sentence in (*frame.attrs[NOTES], *filled.notes, *warned):
        console.print(sentence, markup=False, highlight=False, soft_wrap=True)
    console.print(_quality_table(filled.quality()))
    for sentence in _summary(filled, out, intervals, coverage):
        console.print(sentence, markup=False, highlight=False, soft_wrap=True)
    if compare:
        check = compared_with_trees(filled.table, filled.imputer, seed=options.get("random_state", 0))
        console.print(_comparison(check), markup=False, highlight=False, soft_wrap=True)
    return filled


def _rows_from_one(sentence: str) -> str:
    """A sentence of the imputer, which counts rows from 0, with rows counted from 1 as in the list of cells.

    >>> _rows_from_one("first: 3 in row 43, column b; Nothing is observed in rows 0, 7 and 2 more")
    'first: 3 in row 44, column b; Nothing is observed in rows 1, 8 and 2 more'
    """
    listed = re.compile(r"\brows? \d+(?:, \d+)*")
    return listed.sub(lambda found: re.sub(r"\d+", lambda n: str(int(n[0]) + 1), found[0]), sentence)


def _summary(filled: FilledTable, out: Path, intervals: Path | None, coverage: float) -> list[str]:
    model, total = filled.imputer, filled.frame[[one.name for one in filled.columns]].size
    found = "an exact fit" if model.exact_ else f"error {model.relative_error_:.2f} of that of column means"
    scaled = ", columns scaled to one unit" if model.scaled_ else ""
    rank = f"a matrix of rank {model.rank_} ({found}{scaled})"
    sentence = f"{filled.count} of {total} cells filled with {rank}; written to {out}."
    return [sentence + (f" Each with an interval of {coverage:.0%} in {intervals}." if intervals else "")]


def _quality_table(quality: pd.DataFrame) -> Table:
    """The columns with filled cells and their errors, those with most of them first."""
    shown = quality[quality.filled > 0].sort_values("filled", ascending=False, kind="stable")
    left = len(shown) - MOST_SHOWN
    table = Table(title="Error at cells that the model has not seen", title_justify="left", pad_edge=False)
    any_worse = bool((shown[:MOST_SHOWN].error > shown[:MOST_SHOWN].simple_error).any())
    simple = "of the mean" if not (shown.kind == "category").any() else "of the mean or most common"
    for heading in ("column", "filled", "error", simple, *([""] if any_worse else [])):
        table.add_column(heading, justify="left" if heading in ("column", "") else "right", overflow="fold")
    for row in shown[:MOST_SHOWN].itertuples():
        number = "{:.0%} wrong".format if row.kind == "category" else "{:.3g}".format
        better = "the most common is better" if row.kind == "category" else "the mean is better"
        worse = better if row.error > row.simple_error else ""
        name = str(row.column).replace("[", r"\[")
        table.add_row(name, str(row.filled), number(row.error), number(row.simple_error), *([worse] if worse else []))
    table.caption = f"{left} more columns" if left > 0 else None
    return table


def _comparison(check: TreeCheck) -> str:
    numbers = (
        f"Quick check at {check.cells} hidden cells (error in column units): low rank {check.low_rank:.3g}, iterated trees "
        f"{check.trees:.3g}, column means {check.means:.3g}."
    )
    if check.trees_win:
        return numbers + (
            " Trees are better here, as for tables with nonlinear relations: consider scikit-learn's IterativeImputer with "
            "ExtraTreesRegressor."
        )
    return numbers + " Trees are no better here."
