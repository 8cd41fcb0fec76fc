"""Axes of a sweep: which setting is varied, over which values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from gyrostat import errors
from gyrostat.errors import GyrostatError

Scale = Literal["linear", "log", "list"]
KEYS = ("linear", "log", "list", "points", "whole", "label")


@dataclass(frozen=True)
class Axis:
    """A setting (by its path), the name of its dimension, and its values in increasing order or as listed."""

    name: str
    path: str
    values: tuple[Any, ...]
    scale: Scale
    label: str

    @property
    def ordered(self) -> bool:
        """Whether the values are numbers, so that there is something between two of them."""
        return len(self.values) > 1 and _are_numbers(self.values)


def axis(name: str, path: str, given: Any) -> Axis:
    """An axis from ``[1, 2, 3]``, ``{linear = [0, 1], points = 5}``, ``{log = [.01, 1], points = 9}`` or ``{list = [...]}``.

    ``whole = true`` rounds to whole numbers, ``label`` says in words what it is.

    >>> axis("spread", "law.spread", {"linear": [0.0, 1.0], "points": 3}).values
    (0.0, 0.5, 1.0)
    """
    table = given if isinstance(given, Mapping) else {"list": given}
    for key in table:
        errors.choice(f"key of axis {name}", key, KEYS)
    kinds = [key for key in ("linear", "log", "list") if key in table]
    if len(kinds) != 1:
        raise GyrostatError(f"axis {name} must say exactly one of linear, log and list; got {kinds or 'none'}.")
    (kind,) = kinds
    values = _listed(name, table["list"]) if kind == "list" else _ranged(name, kind, table)
    if table.get("whole"):
        values = [int(v) for v in dict.fromkeys(np.round(values).astype(int).tolist())]
    if len(set(map(repr, values))) < len(values):
        raise GyrostatError(f"axis {name} lists a value twice: leave one out.")
    scale: Any = _scale_of(values) if kind == "list" else kind
    return Axis(name, path, tuple(values), scale, str(table.get("label", name.replace("_", " "))))


def _listed(name: str, values: Any) -> list[Any]:
    if isinstance(values, str) or not isinstance(values, Sequence | np.ndarray) or len(values) == 0:
        raise GyrostatError(f"axis {name} must list at least one value; got {errors.shown(values)}.")
    return [v.item() if isinstance(v, np.generic) else v for v in values]


def _are_numbers(values: Sequence[Any]) -> bool:
    return all(isinstance(v, int | float) and not isinstance(v, bool) for v in values)


def _scale_of(values: Sequence[Any]) -> Scale:
    """Listed numbers that span a factor of ten or more (10, 30, 100, 300) are shown on a log axis."""
    if not _are_numbers(values):
        return "list"
    x = np.sort(np.array(values, dtype=float))
    return "log" if len(x) > 2 and x[0] > 0 and x[-1] / x[0] >= 10 else "linear"


def _ranged(name: str, kind: str, table: Mapping[str, Any]) -> list[float]:
    ends = _listed(name, table[kind])
    if len(ends) != 2:
        raise GyrostatError(f"axis {name} must give two ends, as in {kind} = [0.01, 1]; got {len(ends)} numbers.")
    low, high = (float(errors.number(f"axis {name}", end, above=0 if kind == "log" else None)) for end in ends)
    if not low < high:
        raise GyrostatError(f"axis {name} must go upwards; got {low:g} to {high:g}.")
    points = errors.integer(f"points of axis {name}", table.get("points", 11), least=2)
    values = np.geomspace(low, high, points) if kind == "log" else np.linspace(low, high, points)
    # Twelve digits: 0.30000000000000004 is nobody's step size, and a value must be the same when an axis is extended.
    return [float(f"{v:.12g}") for v in values]
