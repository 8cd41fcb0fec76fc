"""Fitted models as files in plain JSON (numbers and names, nothing is executed), and table columns as their inputs.

    {"format": "gyrostat-model", "format_version": 1, "kind": "linear", "target": "y", "environment": "site",
     "columns": [{"name": "dose", "levels": null, "kind": "number", "format": null},
                 {"name": "sex", "levels": ["f", "m"], "kind": "category", "format": null}],
     "features": ["dose", "sex=m"], "centre": [0.0, 0.0], "scale": [1.0, 1.0],
     "intercept": 0.3, "coefficients": [1.0, -0.5], "matrix": null, "family": "gaussian", "standard_errors": [0.1, null],
     "best_purpose": "everywhere", "least_squares": {"intercept": 0.3, "coefficients": [1.2, -0.4]},
     "same_kind": {"intercept": 0.3, "coefficients": [1.1, -0.4]}, "worst_case": {"intercept": 0.3, "coefficients": [1, 0]},
     "about": {...}}

With ``z = (features - centre) / scale`` the prediction is ``intercept + coefficients . z`` if the kind is linear, and
``intercept + z^T matrix z`` if it is quadratic. With the family binomial or poisson this is the log-odds or the logarithm of
the prediction. ``least_squares``, ``same_kind`` and ``worst_case`` hold the intercept and the coefficients for these purposes
(null in a quadratic model), the others are for the purpose "everywhere". ``best_purpose``, "everywhere" or "least-squares", is
what predictions use if no purpose is asked for. ``standard_errors`` of coefficients are null where a coefficient was set to
zero, and make no interval, because features were chosen first. ``about`` records how the model was fitted and is not needed to
use it.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from gyrostat import errors
from gyrostat.errors import GyrostatError
from gyrostat.estimators.invariant.families import FAMILIES, LinkFamily
from gyrostat.estimators.invariant.purposes import EVERYWHERE, LEAST_SQUARES, PURPOSES
from gyrostat.estimators.linear_predictor import finite_predictions
from gyrostat.parallel.whole_files import write_whole
from gyrostat.tables.column_values import (
    MOST_LEVELS,
    as_numbers,
    is_code,
    is_text,
    known_order,
    refuse_too_large,
    stripped,
)
from gyrostat.tables.dates import as_dates, date_format

FORMAT, FORMAT_VERSION = "gyrostat-model", 1
KINDS = ("linear", "quadratic")
COLUMN_KINDS = ("number", "category", "ordered", "date")


def column(frame: pd.DataFrame, option: str, name: str) -> pd.Series:
    """The column of this name; the error for an unknown name suggests the closest ones."""
    return frame[errors.choice(option, name, frame.columns)]


@dataclass(frozen=True)
class Column:
    """A column of a table as input of a model.

    Its ``kind`` is ``"number"``; ``"category"``, which becomes a 0/1 feature for each of ``levels`` except the first;
    ``"ordered"``, the number of the level, counted from zero; or ``"date"``, in days since 1970. With levels it is a category
    unless something else is given. ``format`` is that in which dates were written: 1/2/2024 is read again as it was.
    """

    name: str
    levels: tuple[str, ...] | None = None
    kind: str = "number"
    format: str | None = None

    def __post_init__(self) -> None:
        if self.levels is not None and self.kind == "number":
            object.__setattr__(self, "kind", "category")

    @property
    def features(self) -> list[str]:
        """The names of the features that the column becomes."""
        if self.kind != "category" or self.levels is None:
            return [self.name]
        return [f"{self.name}={level}" for level in self.levels[1:]]

    def numbers(self, frame: pd.DataFrame) -> np.ndarray:
        """The features of the column, (rows, features)."""
        values = column(frame, "column", self.name)
        if self.kind == "date":
            return self._checked(values, as_dates(values, self.format), "dates")
        if self.levels is None:
            return self._checked(values, pd.to_numeric(values, errors="coerce"), "numbers")
        words = stripped(values).astype(str)
        if (bad := ~words.isin(self.levels)).any():
            raise GyrostatError(
                f"column {self.name!r} has {words[bad].iloc[0]!r} in row {_first_row(bad)}, which no row had when the model "
                f"was fitted; known are {', '.join(self.levels[:8])}: leave such rows out, or fit again with them."
            )
        if self.kind == "ordered":
            return words.map({level: i for i, level in enumerate(self.levels)}).to_numpy(np.float64)[:, None]
        return (words.to_numpy()[:, None] == np.array(self.levels[1:], dtype=object)).astype(np.float64)

    def _checked(self, values: pd.Series, numbers: pd.Series | None, wanted: str) -> np.ndarray:
        bad = values.notna() & (True if numbers is None else numbers.isna())
        if numbers is None or bad.any():
            got = f"; row {_first_row(bad)} has {values[bad].iloc[0]!r}" if bad.any() else ""
            raise GyrostatError(f"column {self.name!r} must hold {wanted}{got}.")
        return numbers.to_numpy(np.float64)[:, None]


def model_columns(
    frame: pd.DataFrame, names: Sequence[str], orders: Mapping[str, tuple[str, ...]] | None = None
) -> list[Column]:
    """The named columns as inputs of a model: numbers and truths as numbers, dates as days, words as categories.

    ``orders`` holds the levels of columns whose words have an order, from the lowest.
    """
    return [_model_column(column(frame, "feature", name), (orders or {}).get(name)) for name in names]


def _model_column(values: pd.Series, order: tuple[str, ...] | None) -> Column:
    name = str(values.name)
    if order is None and isinstance(values.dtype, pd.CategoricalDtype) and values.cat.ordered:
        order = tuple(map(str, values.cat.categories))
    if order is not None:
        return Column(name, order, "ordered")
    if as_dates(values) is not None:
        return Column(name, None, "date", date_format(values))
    if not is_text(values):
        return Column(name)
    levels = sorted(stripped(values.dropna()).astype(str).unique())
    if known := known_order(levels):
        return Column(name, known, "ordered")
    if len(levels) > MOST_LEVELS:
        raise _too_many_words(values, levels)
    return Column(name, tuple(levels))


def _too_many_words(values: pd.Series, levels: list[str]) -> GyrostatError:
    name, what = str(values.name), "codes" if is_code(values) else "different words"
    repeats = len(values) / len(levels)
    cluster = f", or use --cluster {name} if rows with the same word depend on each other" if repeats >= 1.5 else ""
    return GyrostatError(
        f"column {name!r} holds {len(levels)} {what} such as {levels[0]!r}, too many for a category: leave it out with --drop "
        f"{name}{cluster}."
    )


def feature_matrix(frame: pd.DataFrame, columns: Sequence[Column], rows: np.ndarray | None = None) -> np.ndarray:
    """All features of ``columns``, (rows, features); messages name ``rows``, the numbers of the rows in their file."""
    parts = [c.numbers(frame) for c in columns]
    for c, part in zip(columns, parts, strict=True):
        for values in part.T:
            refuse_too_large(c.name, values, rows)
    return np.hstack(parts)


def _first_row(chosen: pd.Series) -> int:
    return int(np.flatnonzero(chosen.to_numpy())[0]) + 1


@dataclass(frozen=True)
class SavedModel:
    """A fitted model and the columns that it reads.

    >>> model = SavedModel("linear", "y", "site", (Column("dose"),), [0.0], [1.0], 0.5, coefficients=[2.0])
    >>> model.predict(pd.DataFrame({"dose": [1.0, 3.0]})).tolist()
    [2.5, 6.5]
    """

    kind: str
    target: str
    environment: str
    columns: tuple[Column, ...]
    centre: Any
    scale: Any
    intercept: float
    coefficients: Any = None
    matrix: Any = None
    family: str = "gaussian"
    standard_errors: Any = None
    best_purpose: str = EVERYWHERE
    least_squares: dict[str, Any] | None = None
    same_kind: dict[str, Any] | None = None
    worst_case: dict[str, Any] | None = None
    about: dict[str, Any] = field(default_factory=dict)

    @property
    def features(self) -> list[str]:
        """The names of the features, in the order of the coefficients."""
        return [name for c in self.columns for name in c.features]

    def predict(self, frame: pd.DataFrame, purpose: str = "best") -> np.ndarray:
        """Predictions for the rows of a table; NaN where one of its columns has no value.

        ``purpose`` is "best" (``best_purpose``), "everywhere" (what holds in every environment), "least-squares" (all rows
        together), "same-kind" (new environments of the same kind) or "worst-case" (environments that may be unlike those of
        the fit); models of earlier versions and quadratic ones have only what holds everywhere, and least squares only those
        with a squared loss. Values too large for a number are refused.
        """
        by_purpose = {
            EVERYWHERE: {"intercept": self.intercept, "coefficients": self.coefficients},
            LEAST_SQUARES: self.least_squares,
            "same-kind": self.same_kind,
            "worst-case": self.worst_case,
        }
        by_purpose["best"] = by_purpose[self.best_purpose]
        parts = by_purpose[errors.choice("--purpose", purpose, PURPOSES)]
        if parts is None:
            kind = "gaussian" if purpose == LEAST_SQUARES else "linear"
            raise GyrostatError(
                f"--purpose {purpose} is not in this model: fit a {kind} model with this version, or use --purpose everywhere."
            )
        cleaned = [c.name for c in self.columns if c.kind == "number" and c.name in frame]
        frame = frame.assign(**{name: as_numbers(frame[name], "--drop") for name in cleaned if is_text(frame[name])})
        z = np.full((len(frame), len(self.features)), np.nan)
        whole = frame[[c.name for c in self.columns if c.name in frame]].notna().all(axis=1).to_numpy()
        z[whole] = (feature_matrix(frame[whole], self.columns, 1 + np.flatnonzero(whole)) - self.centre) / self.scale
        with np.errstate(over="ignore", invalid="ignore"):
            return finite_predictions(self._predictions(z, parts), whole)

    def _predictions(self, z: np.ndarray, parts: dict[str, Any]) -> np.ndarray:
        if self.kind == "linear":
            eta = z @ np.asarray(parts["coefficients"], float) + parts["intercept"]
            return eta if self.family == "gaussian" else LinkFamily(self.family).mean(eta)
        return np.sum((z @ np.asarray(self.matrix, float)) * z, axis=1) + self.intercept

    def write(self, path: Path) -> None:
        """Save the model as JSON."""
        record = {"format": FORMAT, "format_version": FORMAT_VERSION, **asdict(self), "features": self.features}
        write_whole(path, json.dumps(record, indent=1, default=_json_value, allow_nan=False) + "\n")

    @classmethod
    def read(cls, path: Path) -> SavedModel:
        """Load a file that :meth:`write` has written; any other file is refused."""
        try:
            text = path.read_text(encoding="utf-8")
        except OSError as error:
            raise GyrostatError(f"the model {str(path)!r} cannot be read: {error.strerror}.") from None
        except UnicodeError:
            raise GyrostatError(f"{str(path)!r} is not a JSON file: give a model that gyrostat fit wrote.") from None
        try:
            record = strict_json(text)
        except GyrostatError as error:
            raise GyrostatError(f"the model {str(path)!r} is damaged ({error}): fit again.") from None
        except ValueError:
            raise GyrostatError(f"{str(path)!r} is not a JSON file: give a model that gyrostat fit wrote.") from None
        if not isinstance(record, dict) or record.get("format") != FORMAT:
            raise GyrostatError(f"{str(path)!r} is not a gyrostat model: give one that gyrostat fit wrote.")
        if record.get("format_version") != FORMAT_VERSION or isinstance(record["format_version"], bool):
            raise GyrostatError(
                f"{str(path)!r} has format_version {errors.shown(record.get('format_version'))}, and this gyrostat reads "
                f"{FORMAT_VERSION}: fit again, or use the version that wrote it."
            )
        try:
            return _model_from(record)
        except GyrostatError as error:
            raise GyrostatError(f"the model {str(path)!r} is damaged ({error}): fit again.") from None


# --- what a file may hold -------------------------------------------------------------------------

DEEPEST = 12
"""The most brackets within brackets."""
FIELDS: tuple[str, ...] = (
    *("format", "format_version", "kind", "target", "environment", "columns", "features"),
    *("centre", "scale", "intercept", "coefficients", "matrix", "about"),
)
"""The fields of a file: no others, and none missing. A new field is added here and read in :func:`_model_from`."""
OPTIONAL = ("family", "standard_errors", "best_purpose", "least_squares", "same_kind", "worst_case")
"""Fields that files of earlier versions do not have."""


def strict_json(text: str) -> Any:
    """The content of a JSON text in which every number is finite, no name occurs twice, and brackets are not too deep.

    >>> strict_json('{"scale": [1, 2], "scale": 3}')
    Traceback (most recent call last):
    gyrostat.errors.GyrostatError: 'scale' occurs twice
    """
    depth = deepest = 0
    for bracket in re.sub(r'"(?:[^"\\]|\\.)*"', "", text):
        depth += (bracket in "[{") - (bracket in "]}")
        deepest = max(deepest, depth)
    if deepest > DEEPEST:
        raise GyrostatError(f"brackets are nested {deepest} deep, and {DEEPEST} is the most")

    def finite(number: str) -> float:
        value = float(number)
        if not np.isfinite(value):
            raise GyrostatError(f"{number} is not a finite number")
        return value

    return json.loads(text, parse_constant=finite, parse_float=finite, object_pairs_hook=_unique)


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    names = [name for name, _ in pairs]
    if repeated := [name for name in names if names.count(name) > 1]:
        raise GyrostatError(f"{repeated[0]!r} occurs twice")
    return dict(pairs)


def _model_from(record: dict[str, Any]) -> SavedModel:
    for name in (*FIELDS, *record):
        if name not in record or name not in (*FIELDS, *OPTIONAL):
            raise GyrostatError(f"{name} is {'missing' if name in FIELDS else 'not a field of a model'}")
    kind = errors.choice("kind", _text("kind", record["kind"]), KINDS)
    columns = _columns(record["columns"])
    target, environment = (_text(name, record[name]) for name in ("target", "environment"))
    names = [c.name for c in columns]
    for name in (*names, target, environment):
        if [*names, target, environment].count(name) > 1:
            raise GyrostatError(f"{name!r} occurs twice among columns, target and environment")
    features = [name for c in columns for name in c.features]
    if _texts("features", record["features"]) != features:
        raise GyrostatError("features are not those of columns")
    d, used = len(features), "coefficients" if kind == "linear" else "matrix"
    unused = "matrix" if kind == "linear" else "coefficients"
    if record[unused] is not None:
        raise GyrostatError(f"{unused} must be null in a {kind} model")
    scale = _numbers("scale", record["scale"], (d,))
    if not (scale > 0).all():
        raise GyrostatError(f"scale must be above zero; got {scale.min():g}")
    if not isinstance(record["about"], dict):
        raise GyrostatError(f"about must be an object; got {errors.shown(record['about'])}")
    best = _text("best_purpose", record.get("best_purpose", EVERYWHERE))
    least_squares = _purpose("least_squares", record.get("least_squares"), kind, d)
    errors.choice("best_purpose", best, (EVERYWHERE,) if least_squares is None else (EVERYWHERE, LEAST_SQUARES))
    return SavedModel(
        kind,
        target,
        environment,
        columns,
        centre=_numbers("centre", record["centre"], (d,)),
        scale=scale,
        intercept=float(_numbers("intercept", record["intercept"], ())),
        about=record["about"],
        family=errors.choice("family", _text("family", record.get("family", "gaussian")), FAMILIES),
        standard_errors=_standard_errors(record.get("standard_errors"), d),
        best_purpose=best,
        least_squares=least_squares,
        same_kind=_purpose("same_kind", record.get("same_kind"), kind, d),
        worst_case=_purpose("worst_case", record.get("worst_case"), kind, d),
        **{used: _numbers(used, record[used], (d,) if kind == "linear" else (d, d))},
    )


def _standard_errors(value: Any, d: int) -> list[float | None] | None:
    if value is None:
        return None
    if not isinstance(value, list) or len(value) != d:
        raise GyrostatError(f"standard_errors must be null or a list of {d} numbers; got {errors.shown(value)}")
    return [None if x is None else float(_numbers(f"standard_errors[{i}]", x, ())) for i, x in enumerate(value)]


def _purpose(name: str, value: Any, kind: str, d: int) -> dict[str, Any] | None:
    if value is None:
        return None
    if kind != "linear" or not isinstance(value, dict) or set(value) != {"intercept", "coefficients"}:
        raise GyrostatError(f"{name} must be null, or have intercept and coefficients; got {errors.shown(value)}")
    return {
        "intercept": float(_numbers(f"{name}.intercept", value["intercept"], ())),
        "coefficients": _numbers(f"{name}.coefficients", value["coefficients"], (d,)),
    }


def _columns(listed: Any) -> tuple[Column, ...]:
    if not isinstance(listed, list) or not listed:
        raise GyrostatError(f"columns must be a list of objects; got {errors.shown(listed)}")
    return tuple(_column(f"columns[{i}]", one) for i, one in enumerate(listed))


def _column(where: str, record: Any) -> Column:
    if not isinstance(record, dict) or set(record) - {"name", "levels", "kind", "format"} or "name" not in record:
        raise GyrostatError(f"{where} must have name, levels, kind and format; got {errors.shown(record)}")
    name, levels = _text(f"{where}.name", record["name"]), record.get("levels")
    kind = record.get("kind", "number" if levels is None else "category")
    errors.choice(f"{where}.kind", _text(f"{where}.kind", kind), COLUMN_KINDS)
    if (levels is None) != (kind in ("number", "date")):
        raise GyrostatError(f"{where}.levels do not go with the kind {kind}")
    if levels is not None:
        levels = tuple(_texts(f"{where}.levels", levels))
        if not levels or len(set(levels)) < len(levels):
            raise GyrostatError(f"{where}.levels must be different words; got {errors.shown(list(levels))}")
    written = record.get("format")
    if written is not None and kind != "date":
        raise GyrostatError(f"{where}.format does not go with the kind {kind}")
    return Column(name, levels, kind, None if written is None else _text(f"{where}.format", written))


def _text(name: str, value: Any) -> str:
    if not isinstance(value, str):
        raise GyrostatError(f"{name} must be text; got {errors.shown(value)}")
    return value


def _texts(name: str, value: Any) -> list[str]:
    if not isinstance(value, list):
        raise GyrostatError(f"{name} must be a list of texts; got {errors.shown(value)}")
    return [_text(f"{name}[{i}]", one) for i, one in enumerate(value)]


def _numbers(name: str, value: Any, shape: tuple[int, ...]) -> np.ndarray:
    """Nested lists of finite numbers as an array of this shape."""
    if not shape:
        if isinstance(value, bool) or not isinstance(value, int | float) or abs(value) > sys.float_info.max:
            raise GyrostatError(f"{name} must be a finite number; got {errors.shown(value)}")
        return np.asarray(value, dtype=np.float64)
    if not isinstance(value, list):
        raise GyrostatError(f"{name} must be a list of numbers; got {errors.shown(value)}")
    if len(value) != shape[0]:
        raise GyrostatError(f"{name} has {len(value)} entries and should have {shape[0]}")
    return np.array([_numbers(f"{name}[{i}]", one, shape[1:]) for i, one in enumerate(value)]).reshape(shape)


def _json_value(x: Any) -> Any:
    """NumPy numbers and arrays as numbers and lists."""
    if isinstance(x, np.ndarray | np.generic):
        return x.tolist()
    raise TypeError(f"{type(x).__name__} cannot be saved")
