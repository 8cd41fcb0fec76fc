"""The controls of the page: sliders, numbers and choices, and how their values are read from text."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gyrostat import errors
from gyrostat.errors import GyrostatError

Setting = dict[str, Any]
"""The value of every control of a laboratory, by name."""


@dataclass(frozen=True, kw_only=True)
class Control:
    """One control: a ``"number"``, a ``"whole"`` number or a ``"choice"``, made by the functions of these names.

    A slider is logarithmic unless it has a ``step``. ``needs`` is the name of another control followed by the values of it for
    which this control matters; for all others the page disables it and says why. ``compiles`` says that another value needs
    another program, so that the page waits until the slider is released.

    >>> number("step_size", "step size", "η", 0.05, 0.001, 1.0).read("0.1")
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
    options: tuple[Any, ...] = ()
    help: str = ""
    needs: tuple[str, ...] = ()
    compiles: bool = False

    @property
    def scale(self) -> str:
        """That of the slider: ``"linear"`` or ``"log"``."""
        return "linear" if self.step else "log"

    def read(self, text: Any) -> Any:
        """The value that ``text`` stands for, or an error that says which values are allowed."""
        if self.kind == "choice":
            words = {str(option): option for option in self.options}
            return words[errors.choice(self.name, str(text), words)]
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


def number(name: str, label: str, symbol: str, default: float, low: float, high: float, **more: Any) -> Control:
    """A real number."""
    return Control(kind="number", name=name, label=label, symbol=symbol, default=default, low=low, high=high, **more)


def whole(
    name: str, label: str, symbol: str, default: int, low: int, high: int, *, step: int = 1, **more: Any
) -> Control:
    """A whole number."""
    shape: dict[str, Any] = {"default": default, "low": low, "high": high, "step": step}
    return Control(kind="whole", name=name, label=label, symbol=symbol, **shape, **more)


def choice(
    name: str, label: str, options: Sequence[Any], *, symbol: str = "", default: Any = None, **more: Any
) -> Control:
    """One of several words or numbers; the first is the default unless another is given."""
    default = options[0] if default is None else default
    return Control(
        kind="choice", name=name, label=label, symbol=symbol, default=default, options=tuple(options), **more
    )


def read_setting(controls: Sequence[Control], values: Mapping[str, Any]) -> Setting:
    """The value of every control: what is in ``values``, and the defaults of the others.

    >>> read_setting([whole("rank", "rank", "r", 2, 1, 8)], {"rank": "3"})
    {'rank': 3}
    """
    names = [control.name for control in controls]
    for name in values:
        errors.choice("setting", name, names)
    return {control.name: control.read(values.get(control.name, control.default)) for control in controls}
