"""Fitted models as files: plain JSON with numbers and names, which no reader has to trust.

    {"format": "gyrostat-model", "format_version": 1, "kind": "linear", "target": "y", "environment": "site",
     "columns": [{"name": "dose", "levels": null}, {"name": "sex", "levels": ["f", "m"]}],
     "features": ["dose", "sex=m"], "centre": [0.0, 0.0], "scale": [1.0, 1.0],
     "intercept": 0.3, "coefficients": [1.0, -0.5], "matrix": null, "about": {...}}

With ``z = (features - centre) / scale`` the prediction is ``intercept + coefficients . z`` if the kind is linear, and
``intercept + z^T matrix z`` if it is quadratic. ``about`` says how the model was made and is not needed to use it.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from gyrostat import errors
from gyrostat.errors import GyrostatError
from gyrostat.parallel.whole_files import write_whole
from gyrostat.tables.reading import Column, matrix

FORMAT, FORMAT_VERSION = "gyrostat-model", 1
KINDS = ("linear", "quadratic")


@dataclass(frozen=True)
class SavedModel:
    """A fitted model with the columns that it reads.

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
        z[whole] = (matrix(frame[whole], self.columns) - self.centre) / self.scale
        if self.kind == "linear":
            return z @ np.asarray(self.coefficients, float) + self.intercept
        return np.sum((z @ np.asarray(self.matrix, float)) * z, axis=1) + self.intercept

    def write(self, path: Path) -> None:
        """Save as JSON."""
        record = {"format": FORMAT, "format_version": FORMAT_VERSION, **asdict(self), "features": self.features}
        write_whole(path, json.dumps(record, indent=1, default=_plain, allow_nan=False) + "\n")

    @classmethod
    def read(cls, path: Path) -> SavedModel:
        """Load what :meth:`write` wrote; anything else is refused."""
        try:
            record = json.loads(path.read_text(encoding="utf-8"))
        except OSError as error:
            raise GyrostatError(f"the model {str(path)!r} cannot be read: {error.strerror}.") from None
        except ValueError:
            raise GyrostatError(f"{str(path)!r} is no JSON: give a model that gyrostat fit wrote.") from None
        if not isinstance(record, dict) or record.get("format") != FORMAT:
            raise GyrostatError(f"{str(path)!r} is no gyrostat model: give one that gyrostat fit wrote.")
        if record.get("format_version") != FORMAT_VERSION:
            raise GyrostatError(
                f"{str(path)!r} has format_version {errors.shown(record.get('format_version'))}, and this gyrostat reads "
                f"{FORMAT_VERSION}: fit again, or use the version that wrote it."
            )
        try:
            return _checked(record)
        except (KeyError, TypeError, ValueError) as error:
            raise GyrostatError(f"the model {str(path)!r} is damaged ({error}): fit again.") from None


def _checked(record: dict[str, Any]) -> SavedModel:
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


def _plain(x: Any) -> Any:
    """NumPy's numbers and arrays as Python's."""
    if isinstance(x, np.ndarray | np.generic):
        return x.tolist()
    raise TypeError(f"{type(x).__name__} cannot be saved")
