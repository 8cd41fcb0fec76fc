"""Expressions that can be both evaluated and shown: what is run and what "copy as Python" gives are the same thing."""

from __future__ import annotations

from dataclasses import dataclass
from operator import attrgetter
from typing import Any

import gyrostat as gs


@dataclass(frozen=True)
class Call:
    """A call of something that ``gyrostat`` exports, with arguments that are values or other calls.

    >>> law = call("TwoPoint", mean=1.0, spread=6.0)
    >>> law.text
    'gs.TwoPoint(mean=1.0, spread=6.0)'
    >>> law.build().bound
    7.0
    """

    name: str
    positional: tuple[Any, ...]
    named: tuple[tuple[str, Any], ...]

    def build(self) -> Any:
        """The object itself."""
        return attrgetter(self.name)(gs)(*map(_built, self.positional), **{k: _built(v) for k, v in self.named})

    @property
    def text(self) -> str:
        """The call as Python."""
        parts = [*map(_shown, self.positional), *(f"{k}={_shown(v)}" for k, v in self.named)]
        return f"gs.{self.name}({', '.join(parts)})"


def call(name: str, *positional: Any, **named: Any) -> Call:
    """A :class:`Call`; lists among the arguments become tuples, so that calls can be compared and be keys."""
    return Call(name, tuple(map(_fixed, positional)), tuple((k, _fixed(v)) for k, v in named.items()))


def _fixed(value: Any) -> Any:
    return tuple(map(_fixed, value)) if isinstance(value, list | tuple) else value


def _built(value: Any) -> Any:
    if isinstance(value, Call):
        return value.build()
    return [_built(x) for x in value] if isinstance(value, tuple) else value


def _shown(value: Any) -> str:
    if isinstance(value, Call):
        return value.text
    if isinstance(value, tuple):
        return "[" + ", ".join(map(_shown, value)) + "]"
    return repr(value)
