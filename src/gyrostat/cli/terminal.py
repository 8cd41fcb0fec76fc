"""The terminal as the commands see it."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console


def console() -> Console:
    """A console as wide as the terminal; elsewhere wide enough for a table."""
    from rich.console import Console

    return Console(width=None if sys.stdout.isatty() else 140)
