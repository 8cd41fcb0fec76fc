"""What a sweep keeps of its runs: whole paths, last values, quantiles over seeds, the share of successes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from gyrostat import errors
from gyrostat.errors import GyrostatError

QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)
ENDS = ("diverged", "reached")
"""Numbers about whole runs that the loop gives beside the diagnostics: steps, -1 for never."""

KEYS = ("final", "paths", "quantiles", "points")
TESTS = {"below": np.less, "above": np.greater}


@dataclass(frozen=True)
class Record:
    """Names of diagnostics by what is kept of them, the number of recorded steps, and what counts as a success.

    >>> record({"final": ["signal"]}, {"spurious": {"below": 0.1}}).diagnostics
    ('signal', 'spurious')
    """

    final: tuple[str, ...]
    paths: tuple[str, ...]
    quantiles: tuple[str, ...]
    points: int
    success: tuple[tuple[str, str, float], ...]

    @property
    def diagnostics(self) -> tuple[str, ...]:
        """Everything that must be looked at during a run."""
        tested = tuple(name for name, _, _ in self.success if name not in ENDS)
        return tuple(dict.fromkeys((*self.final, *self.paths, *self.quantiles, *tested)))

    @property
    def along(self) -> bool:
        """Whether anything but the last step is kept."""
        return bool(self.paths or self.quantiles)

    @property
    def says(self) -> str:
        """The success in words.

        >>> record({}, {"spurious": {"below": 0.1}}).says
        'spurious below 0.1'
        """
        return " and ".join(f"{name} {test} {limit:g}" for name, test, limit in self.success)

    def successes(self, last: Mapping[str, np.ndarray]) -> np.ndarray:
        """Which runs succeed, given the last values of all; one that diverged (NaN) does not."""
        return np.logical_and.reduce([TESTS[test](last[name], limit) for name, test, limit in self.success])


def record(kept: Any, success: Any) -> Record:
    """A record from the tables ``[record]`` and ``[success]`` of a spec."""
    if not isinstance(kept, Mapping) or not isinstance(success, Mapping):
        raise GyrostatError("record and success must be tables, as in success.spurious = {below = 0.1}.")
    for key in kept:
        errors.choice("key of record", key, KEYS)
    lists = {key: tuple(_names(key, kept.get(key, ()))) for key in ("final", "paths", "quantiles")}
    tests = tuple(_test(name, given) for name, given in success.items())
    made = Record(**lists, points=errors.integer("record.points", kept.get("points", 21), least=2), success=tests)
    if not made.diagnostics and not tests:
        raise GyrostatError("record keeps nothing: name diagnostics in record.final, record.paths or success.")
    return made


def _names(key: str, given: Any) -> list[str]:
    from gyrostat.diagnostics import DIAGNOSTICS

    if isinstance(given, str) or not all(isinstance(name, str) for name in given):
        raise GyrostatError(f"record.{key} must list names of diagnostics; got {errors.shown(given)}.")
    for name in given:
        errors.choice("diagnostic", name, DIAGNOSTICS)
        if DIAGNOSTICS[name].dims:
            raise GyrostatError(f"{name} is not one number: a sweep keeps numbers only; see gyrostat.run_grid.")
    return list(given)


def _test(name: str, given: Any) -> tuple[str, str, float]:
    if name not in ENDS:
        _names("final", [name])
    if not isinstance(given, Mapping) or len(given) != 1:
        raise GyrostatError(f"success.{name} must say below or above one number; got {errors.shown(given)}.")
    ((test, limit),) = given.items()
    return name, errors.choice(f"test of success.{name}", test, TESTS), float(errors.number(f"success.{name}", limit))
