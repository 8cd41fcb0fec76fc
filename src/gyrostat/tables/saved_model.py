"""Fitted models as files in plain JSON (numbers and names, nothing is executed), and table columns as their inputs.

    {"format": "gyrostat-model", "format_version": 1, "kind": "linear", "target": "y", "environment": "site",
     "columns": [{"name": "dose", "levels": null}, {"name": "sex", "levels": ["f", "m"]}],
     "features": ["dose", "sex=m"], "centre": [0.0, 0.0], "scale": [1.0, 1.0],
     "intercept": 0.3, "coefficients": [1.0, -0.5], "matrix": null, "about": {...}}

With ``z = (features - centre) / scale`` the prediction is ``intercept + coefficients . z`` if the kind is linear, and
``intercept + z^T matrix z`` if it is quadratic. ``about`` records how the model was fitted and is not needed to use it.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from gyrostat import errors
from gyrostat.errors import GyrostatError
from gyrostat.parallel.whole_files import write_whole

FORMAT, FORMAT_VERSION = "gyrostat-model", 1
KINDS = ("linear", "quadratic")
MOST_LEVELS = 50
"""The most words in a column that is taken for a category rather than for names or remarks."""


def column(frame: pd.DataFrame, option: str, name: str) -> pd.Series:
    """The column of this name; the error for an unknown name suggests the closest ones."""
    return frame[errors.choice(option, name, frame.columns)]


@dataclass(frozen=True)
class Column:
    """A column of a table as input of a model.

    It is one number or, with ``levels``, a category, which becomes a 0/1 feature for each level except the first.
    """

    name: str
    levels: tuple[str, ...] | None = None

    @property
    def features(self) -> list[str]:
        """The names of the features that the column becomes."""
        return [self.name] if self.levels is None else [f"{self.name}={level}" for level in self.levels[1:]]

    def numbers(self, frame: pd.DataFrame) -> np.ndarray:
        """The features of the column, (rows, features)."""
        values = column(frame, "column", self.name)
        if self.levels is None:
            as_numbers = pd.to_numeric(values, errors="coerce")
            if (bad := as_numbers.isna() & values.notna()).any():
                raise GyrostatError(
                    f"column {self.name!r} must hold numbers; row {_first_row(bad)} has {values[bad].iloc[0]!r}."
                )
            return as_numbers.to_numpy(np.float64)[:, None]
        words = values.astype(str)
        if (bad := ~words.isin(self.levels)).any():
            raise GyrostatError(
                f"column {self.name!r} has {words[bad].iloc[0]!r} in row {_first_row(bad)}, which no row had when the model "
                f"was fitted; known are {', '.join(self.levels[:8])}: leave such rows out, or fit again with them."
            )
        return (words.to_numpy()[:, None] == np.array(self.levels[1:], dtype=object)).astype(np.float64)


def model_columns(frame: pd.DataFrame, names: Sequence[str]) -> list[Column]:
    """The named columns as inputs of a model: numbers and booleans as numbers, words as categories."""
    return [_model_column(column(frame, "feature", name)) for name in names]


def _model_column(values: pd.Series) -> Column:
    name = str(values.name)
    if pd.api.types.is_numeric_dtype(values) or pd.api.types.is_bool_dtype(values):
        return Column(name)
    levels = sorted(values.dropna().astype(str).unique())
    if len(levels) > MOST_LEVELS:
        raise GyrostatError(
            f"column {name!r} holds {len(levels)} different words, too many for a category: leave it out with --drop {name}."
        )
    return Column(name, tuple(levels))


def feature_matrix(frame: pd.DataFrame, columns: Sequence[Column]) -> np.ndarray:
    """All features of ``columns``, (rows, features)."""
    X = np.hstack([c.numbers(frame) for c in columns])
    if not np.isfinite(X).all():
        j = int(np.flatnonzero(~np.isfinite(X).all(axis=0))[0])
        name = [c.name for c in columns for _ in c.features][j]
        raise GyrostatError(f"column {name!r} holds infinite values: leave those rows out.")
    return X


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
    about: dict[str, Any] = field(default_factory=dict)

    @property
    def features(self) -> list[str]:
        """The names of the features, in the order of the coefficients."""
        return [name for c in self.columns for name in c.features]

    def predict(self, frame: pd.DataFrame) -> np.ndarray:
        """Predictions for the rows of a table; NaN where one of its columns has no value."""
        z = np.full((len(frame), len(self.features)), np.nan)
        whole = frame[[c.name for c in self.columns if c.name in frame]].notna().all(axis=1).to_numpy()
        z[whole] = (feature_matrix(frame[whole], self.columns) - self.centre) / self.scale
        if self.kind == "linear":
            return z @ np.asarray(self.coefficients, float) + self.intercept
        return np.sum((z @ np.asarray(self.matrix, float)) * z, axis=1) + self.intercept

    def write(self, path: Path) -> None:
        """Save the model as JSON."""
        record = {"format": FORMAT, "format_version": FORMAT_VERSION, **asdict(self), "features": self.features}
        write_whole(path, json.dumps(record, indent=1, default=_json_value, allow_nan=False) + "\n")

    @classmethod
    def read(cls, path: Path) -> SavedModel:
        """Load a file that :meth:`write` has written; any other file is refused."""
        try:
            record = json.loads(path.read_text(encoding="utf-8"))
        except OSError as error:
            raise GyrostatError(f"the model {str(path)!r} cannot be read: {error.strerror}.") from None
        except ValueError:
            raise GyrostatError(f"{str(path)!r} is not a JSON file: give a model that gyrostat fit wrote.") from None
        if not isinstance(record, dict) or record.get("format") != FORMAT:
            raise GyrostatError(f"{str(path)!r} is not a gyrostat model: give one that gyrostat fit wrote.")
        if record.get("format_version") != FORMAT_VERSION:
            raise GyrostatError(
                f"{str(path)!r} has format_version {errors.shown(record.get('format_version'))}, and this gyrostat reads "
                f"{FORMAT_VERSION}: fit again, or use the version that wrote it."
            )
        try:
            return _model_from(record)
        except (KeyError, TypeError, ValueError) as error:
            raise GyrostatError(f"the model {str(path)!r} is damaged ({error}): fit again.") from None


def _model_from(record: dict[str, Any]) -> SavedModel:
    columns = tuple(
        Column(str(c["name"]), None if c["levels"] is None else tuple(map(str, c["levels"]))) for c in record["columns"]
    )
    kind = errors.choice("kind", record["kind"], KINDS)
    count = sum(len(c.features) for c in columns)
    shapes: dict[str, tuple[int, ...]] = {"centre": (count,), "scale": (count,)}
    shapes |= {"coefficients": (count,)} if kind == "linear" else {"matrix": (count, count)}
    numbers = {name: errors.array(name, record[name], ndim=len(shape)) for name, shape in shapes.items()}
    for name, shape in shapes.items():
        if numbers[name].shape != shape:
            raise GyrostatError(f"{name} has shape {numbers[name].shape} and should have {shape}")
    return SavedModel(
        kind,
        str(record["target"]),
        str(record["environment"]),
        columns,
        intercept=float(record["intercept"]),
        about=dict(record.get("about", {})),
        **numbers,
    )


def _json_value(x: Any) -> Any:
    """NumPy numbers and arrays as numbers and lists."""
    if isinstance(x, np.ndarray | np.generic):
        return x.tolist()
    raise TypeError(f"{type(x).__name__} cannot be saved")
