"""The console that every command prints to. What it prints is data: names may look like markup, emoji or control sequences."""

from __future__ import annotations

import os
import sys
import unicodedata
from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, ConsoleRenderable
    from rich.segment import Segment


def console() -> Console:
    """A console as wide as the terminal or as ``COLUMNS`` says; otherwise 140 columns, when the output is not a terminal."""
    from rich.console import Console

    made = Console(width=None if sys.stdout.isatty() or os.environ.get("COLUMNS") else 140, markup=False, emoji=False)
    made.push_render_hook(NamesAreData())  # type: ignore[arg-type]
    return made


def printable(text: str) -> str:
    r"""Text in which control characters are written out: a name must not move the cursor or change colours.

    >>> printable("a \x1b[31mred\x1b[0m\u202e name")
    'a \\x1b[31mred\\x1b[0m\\u202e name'
    """
    if text.isprintable():
        return text
    return "".join(_written_out(character) for character in text)


def _written_out(character: str) -> str:
    is_control = unicodedata.category(character) in ("Cc", "Cf", "Cs") and character not in "\n\t"
    return character.encode("unicode_escape").decode() if is_control else character


class NamesAreData:
    """A hook of a console that writes control characters out in whatever is printed."""

    def process_renderables(self, renderables: list[ConsoleRenderable]) -> list[ConsoleRenderable]:
        """Each thing to print, in a wrapper."""
        return [WrittenOut(renderable) for renderable in renderables]


class WrittenOut:
    """Something to print, with its control characters written out."""

    def __init__(self, inner: ConsoleRenderable):
        self.inner = inner

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterable[Segment]:
        from rich.segment import Segment

        for segment in console.render(self.inner, options):
            yield segment if segment.control else Segment(printable(segment.text), segment.style)
