"""The console that every command prints to."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console


def console() -> Console:
    """A console as wide as the terminal, or 140 columns wide when the output is not a terminal."""
    from rich.console import Console

    return Console(width=None if sys.stdout.isatty() else 140)
