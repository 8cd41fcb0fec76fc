"""What can be set: every control of the page, its range, and how its value is read from text."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from gyrostat import errors
from gyrostat.errors import GyrostatError

Setting = dict[str, Any]
"""The value of every control of a lab, by name."""


@dataclass(frozen=True)
class Control:
    """One control: a ``"number"``, a ``"whole"`` number or a ``"choice"``, whose slider moves on a linear or a log scale.

    ``compiles`` says that a new value needs a new program; ``needs`` names another control and the values of it with which
    this one matters, so that the page hides it otherwise.

    >>> Control("step_size", "step size", "η", "number", 0.05, 0.001, 1.0, scale="log").read("0.1")
    0.1
    """

    name: str
    label: str
    symbol: str
    kind: str
    default: Any
    low: float = 0.0
    high: float = 1.0
    step: float = 0.0
    scale: str = "linear"
    options: tuple[str, ...] = ()
    group: str = ""
    help: str = ""
    compiles: bool = False
    needs: tuple[str, ...] = ()

    def read(self, text: Any) -> Any:
        """The value that ``text`` stands for, or an error that says what is wanted."""
        if self.kind == "choice":
            return errors.choice(self.name, str(text), self.options)
        try:
            value = float(str(text))
        except ValueError:
            value = math.nan
        whole = self.kind == "whole"
        if not (self.low <= value <= self.high) or (whole and not value.is_integer()):
            kind = "a whole number" if whole else "a number"
            shown = errors.shown(str(text))
            raise GyrostatError(f"{self.name} must be {kind} between {self.low:g} and {self.high:g}; got {shown}.")
        return int(value) if whole else value

    @property
    def described(self) -> dict[str, Any]:
        """The control as plain data, for the page."""
        return asdict(self)


def read_setting(controls: Sequence[Control], given: Mapping[str, Any]) -> Setting:
    """The values of all controls: those given, and defaults for the others.

    >>> read_setting([Control("rank", "rank", "r", "whole", 2, 1, 8)], {"rank": "3"})
    {'rank': 3}
    """
    names = [control.name for control in controls]
    for name in given:
        errors.choice("setting", name, names)
    return {control.name: control.read(given.get(control.name, control.default)) for control in controls}


def number(
    name: str, label: str, symbol: str, default: float, low: float, high: float, step: float = 0.0, **more: Any
) -> Control:
    """A real number; without a ``step`` its slider is logarithmic."""
    return Control(name, label, symbol, "number", default, low, high, step, "linear" if step else "log", **more)


def whole(name: str, label: str, symbol: str, default: int, low: int, high: int, step: int = 1, **more: Any) -> Control:
    """A whole number."""
    return Control(name, label, symbol, "whole", default, low, high, step, "linear" if step else "log", **more)


def choice(name: str, label: str, options: Sequence[str], **more: Any) -> Control:
    """One of some words, the first by default."""
    return Control(name, label, "", "choice", options[0], options=tuple(options), **more)
