"""The controls of the page: sliders, numbers and choices, and how their values are read from text."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from gyrostat import errors
from gyrostat.errors import GyrostatError

Setting = dict[str, Any]
"""The value of every control of a laboratory, by name."""


@dataclass(frozen=True, kw_only=True)
class Control:
    """One control: a ``"number"``, a ``"whole"`` number or a ``"choice"``.

    The functions :func:`number`, :func:`whole` and :func:`choice` make controls. ``scale`` is that of the slider,
    ``"linear"`` or ``"log"``. ``needs`` is the name of another control followed by the values of it for which this control
    matters; the page hides it for all others.

    >>> number("step_size", label="step size", symbol="η", default=0.05, low=0.001, high=1.0).read("0.1")
    0.1
    """

    name: str
    label: str
    symbol: str = ""
    kind: str
    default: Any
    low: float = 0.0
    high: float = 1.0
    step: float = 0.0
    scale: str = "linear"
    options: tuple[str, ...] = ()
    group: str = ""
    help: str = ""
    needs: tuple[str, ...] = ()

    def read(self, text: Any) -> Any:
        """The value that ``text`` stands for, or an error that says which values are allowed."""
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

    def next_notch(self, value: float) -> float:
        """The value one notch of the slider further; at the upper end one notch back.

        >>> whole("rank", label="rank", default=2, low=1, high=8).next_notch(8)
        7
        """
        notch = self.step or (1 if self.kind == "whole" else 0.02 * value)
        return value + notch if value + notch <= self.high else value - notch

    @property
    def described(self) -> dict[str, Any]:
        """The control as plain data, for the page."""
        return asdict(self)


def number(
    name: str, *, label: str, symbol: str, default: float, low: float, high: float, step: float = 0.0, **more: Any
) -> Control:
    """A real number. Its slider is logarithmic unless a ``step`` is given."""
    return _numeric("number", name, label, symbol, default, low, high, step, **more)


def whole(
    name: str, *, label: str, symbol: str = "", default: int, low: int, high: int, step: int = 1, **more: Any
) -> Control:
    """A whole number. Its slider is logarithmic if ``step`` is 0."""
    return _numeric("whole", name, label, symbol, default, low, high, step, **more)


def _numeric(
    kind: str, name: str, label: str, symbol: str, default: float, low: float, high: float, step: float, **more: Any
) -> Control:
    shape: dict[str, Any] = {"low": low, "high": high, "step": step, "scale": "linear" if step else "log"}
    return Control(kind=kind, name=name, label=label, symbol=symbol, default=default, **shape, **more)


def choice(name: str, *, label: str, options: Sequence[str], **more: Any) -> Control:
    """One of several words; the first is the default."""
    return Control(kind="choice", name=name, label=label, default=options[0], options=tuple(options), **more)


def read_setting(controls: Sequence[Control], given: Mapping[str, Any]) -> Setting:
    """The values of all controls: those given, and the defaults of the others.

    >>> read_setting([whole("rank", label="rank", default=2, low=1, high=8)], {"rank": "3"})
    {'rank': 3}
    """
    names = [control.name for control in controls]
    for name in given:
        errors.choice("setting", name, names)
    return {control.name: control.read(given.get(control.name, control.default)) for control in controls}
