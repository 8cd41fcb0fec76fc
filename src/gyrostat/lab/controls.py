"""The controls of the page: sliders, numbers and choices, and how a value is read from text."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from functools import partial
from typing import Any

from gyrostat import errors
from gyrostat.errors import GyrostatError

Setting = dict[str, Any]
"""The value of every control of a laboratory, by name."""


@dataclass(frozen=True)
class Control:
    """One control: a :func:`number`, a :func:`whole` number or a :func:`choice`.

    A slider is logarithmic unless it has a ``step``. ``needs`` is the name of another control followed by the values of it for
    which this control matters; for all others the page disables it and says why. ``compiles`` says that another value needs
    another program, so that the page waits until the slider is released.

    >>> number("step_size", "step size", "η", 0.05, 0.001, 1.0).read("0.1")
    0.1
    """

    kind: str
    name: str
    label: str
    symbol: str
    default: Any
    low: float = 0.0
    high: float = 1.0
    _: KW_ONLY
    step: float = 0.0
    options: tuple[Any, ...] = ()
    help: str = ""
    needs: tuple[str, ...] = ()
    compiles: bool = False

    @property
    def scale(self) -> str:
        """That of the slider: ``"linear"`` or ``"log"``."""
        return "linear" if self.step else "log"

    @property
    def ends(self) -> tuple[float, float]:
        """The ends of the slider: of its values, or of their decimal logarithms."""
        return (self.low, self.high) if self.step else (math.log10(self.low), math.log10(self.high))

    def shown(self, values: Mapping[str, str]) -> str:
        """The text of the page for its value among ``values``, or for the default where that cannot be read."""
        try:
            value = self.read(values.get(self.name, self.default))
        except GyrostatError:
            value = self.default
        return str(value) if self.kind == "choice" else f"{value:.7g}"

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


number = partial(Control, "number")
whole = partial(Control, "whole", step=1)


def choice(name: str, label: str, symbol: str, options: Sequence[Any], default: Any = None, **more: Any) -> Control:
    """One of several words or numbers; the first is the default unless another is given."""
    default = options[0] if default is None else default
    return Control("choice", name, label, symbol, default, options=tuple(options), **more)
