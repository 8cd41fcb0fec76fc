"""The reproduce suite at the size of ``make reproduce``; it takes as long as that."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from benchmarks.records import Report
from benchmarks.speed import reproduce


def run(say: Callable[[str], Any]) -> Report:
    """Every record of the suite."""
    return reproduce.run(say, "standard")
