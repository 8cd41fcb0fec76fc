"""What every suite does: walk over its groups, and bring in PyTorch where it is installed."""

from __future__ import annotations

import importlib.util
import time
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from pathlib import Path
from typing import Any, TypeVar

from gyrostat.benchmarks.records import Record, Report
from gyrostat.parallel.progress import clock

Found = tuple[list[Record], list[str]]
"""Records of a group, and a sentence for each comparison that was left out."""

Sizes = TypeVar("Sizes")

kept_in: ContextVar[Path | None] = ContextVar("kept_in", default=None)
"""The file in which the report so far is kept after every group, if any."""
LONG = 60
"""Seconds from which on the time so far is told."""


def walk(groups: Sequence[tuple[str, Callable[[Sizes], Found]]], sizes: Sizes, say: Callable[[str], Any]) -> Report:
    """The report of all groups; each is announced by its text and its number.

    >>> walk([("nothing", lambda sizes: ([], ["left out"])), ("still nothing", lambda sizes: ([], ["left out"]))], 3, print)
    nothing (1 of 2)
    still nothing (2 of 2)
    Report(records=[], notes=['left out'], crashed=False)
    """
    report, start = Report([], []), time.monotonic()
    for number, (text, group) in enumerate(groups, start=1):
        passed = time.monotonic() - start
        say(f"{text} ({number} of {len(groups)}{f', {clock(passed)} so far' if passed >= LONG else ''})")
        found, missing = group(sizes)
        report = Report(report.records + found, list(dict.fromkeys(report.notes + missing)))
        if (path := kept_in.get()) is not None:
            report.write(path)
    return report


def peer_torch() -> Any:
    """PyTorch on one thread, or None where it is not installed."""
    if not importlib.util.find_spec("torch"):
        return None
    import torch

    torch.set_num_threads(1)
    return torch


def without_torch(suite: str) -> str:
    """The sentence for comparisons that need PyTorch.

    >>> without_torch("gd")
    'gd: comparisons with PyTorch left out: it is not installed; pip install gyrostat[bench].'
    """
    return f"{suite}: comparisons with PyTorch left out: it is not installed; pip install gyrostat[bench]."
