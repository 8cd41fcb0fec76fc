"""The progress display: counts, rate, time left, failures; bars on a terminal, lines elsewhere."""

from __future__ import annotations

import io
from types import SimpleNamespace

from rich.console import Console

from gyrostat.parallel import progress
from gyrostat.parallel.progress import ProgressDisplay

HEAVY, LIGHT = (SimpleNamespace(items=n, weight=50.0) for n in (1, 10))


def test_rate_time_left_and_failures(monkeypatch):
    """Half of the work done in ten seconds leaves ten, however few the items."""
    now = [100.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    said = io.StringIO()
    shown = ProgressDisplay(Console(file=said, width=100), "cells", show_rate=True)
    shown.expect(items=13, kept=2, weight=100.0)
    shown.started(HEAVY)
    now[0] += 10
    shown.finished(HEAVY)
    assert said.getvalue() == "3/13 cells, 0.1 cells/s, 0:10 left\n"
    shown.advanced(LIGHT, 0.5)
    assert said.getvalue().count("\n") == 1  # not again so soon
    assert shown.counts() == "3/13 cells, 0.6 cells/s, 0:03 left"
    shown.dropped(LIGHT)
    shown.failed("a = 1: broken", SimpleNamespace(items=1, weight=25.0))
    assert shown.counts() == "3/13 cells, 0.1 cells/s, 0:03 left, 1 failed" and "FAILED: a = 1" in said.getvalue()
    shown.failed("a = 2: refused")
    assert shown.counts() == "3/13 cells, 0.1 cells/s, 0:03 left, 2 failed"


def test_named_work_has_a_line_when_it_starts_and_one_when_it_ends():
    said = io.StringIO()
    with ProgressDisplay(Console(file=said, width=100), "experiments") as shown:
        shown.expect(items=2, weight=100.0)
        shown.started(HEAVY, "p/a")
        shown.advanced(HEAVY, 0.5)
        shown.finished(HEAVY, "p/a finished in 1.0 s")
        shown.started(LIGHT, "p/b")
        shown.failed("p/b: broken", LIGHT)
    assert said.getvalue().splitlines()[:2] == ["p/a started", "[1/2] p/a finished in 1.0 s"]
    assert "FAILED: p/b: broken" in said.getvalue()


def test_bars_on_a_terminal():
    console = Console(file=io.StringIO(), force_terminal=True, width=100)
    with ProgressDisplay(console, "experiments") as shown:
        shown.expect(items=2, weight=3.0)
        works = [SimpleNamespace(items=1, weight=weight) for weight in (2.0, 1.0)]
        shown.started(works[0], "p/a")
        shown.advanced(works[0], 0.5)
        shown.finished(works[0], "p/a finished in 1.0 s")
        shown.started(works[1], "p/b")
    said = console.file.getvalue()
    assert "p/a finished in 1.0 s" in said and "1/2 experiments" in said and "67%" in said
