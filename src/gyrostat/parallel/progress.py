"""Progress of a long computation: counts, rate, time left and failures, as bars on a terminal and as lines elsewhere."""

from __future__ import annotations

import time
from typing import Protocol, Self

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TaskProgressColumn, TextColumn

LINE_EVERY = 10.0
"""Seconds of silence after which a console that is not a terminal gets a line with the counts."""


class Work(Protocol):
    """A part of the computation: ``items`` are counted and ``weight`` is a rough cost."""

    @property
    def items(self) -> int: ...
    @property
    def weight(self) -> float: ...


class ProgressDisplay:
    """Shows how far a computation is, in items of a ``unit`` such as experiments or cells.

    The bar and the time left go by weights, since one item can cost a thousand times another. Work that is started with a
    name also has a bar of its own on a terminal; elsewhere it has a line when it starts and one when it ends.

    >>> with ProgressDisplay(Console(quiet=True), "cells") as shown:
    ...     shown.expect(items=12, kept=3)
    >>> shown.counts()
    '3/12 cells'
    """

    def __init__(self, console: Console, unit: str, *, show_rate: bool = False):
        self.console, self.unit, self.show_rate = console, unit, show_rate
        self.expected_items = self.kept_items = self.finished_items = self.failed_items = 0
        self.expected_weight = self.done_weight = 0.0
        self.running: dict[int, tuple[float, float]] = {}
        self.named_bars: dict[int, TaskID] = {}
        self.began: float | None = None
        self.last_line = time.monotonic()
        columns = TextColumn("{task.description}", markup=False), BarColumn(), TaskProgressColumn()
        off = console.quiet or not console.is_terminal
        self.bars = Progress(*columns, console=console, refresh_per_second=4, disable=off)
        self.overall = self.bars.add_task(self.counts(), total=None)

    def __enter__(self) -> Self:
        self.bars.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.bars.stop()

    def expect(self, *, items: int = 0, kept: int = 0, weight: float = 0.0) -> None:
        """Announce ``items`` more, ``kept`` of them from an earlier computation, and the weight of the others."""
        self.expected_items += items
        self.kept_items += kept
        self.expected_weight += weight
        self._show()

    def started(self, work: Work, name: str = "") -> None:
        """Work begins; with a name it is shown separately."""
        self.advanced(work, 0.0)
        if name:
            self.named_bars[id(work)] = self.bars.add_task(name, total=1.0)
            if self.bars.disable:
                self.print(f"{name} started")

    def advanced(self, work: Work, fraction: float) -> None:
        """This fraction of the work is computed."""
        if self.began is None:
            self.began = time.monotonic()
        self.running[id(work)] = fraction * work.items, fraction * work.weight
        if id(work) in self.named_bars:
            self.bars.update(self.named_bars[id(work)], completed=fraction)
        self._show()

    def finished(self, work: Work, text: str = "") -> None:
        """Work is done; ``text`` is printed, if there is any."""
        self.finished_items += work.items
        self.done_weight += work.weight
        self._ended(work, text)

    def dropped(self, work: Work) -> None:
        """Work went wrong and will be done again."""
        self._ended(work, "")

    def failed(self, text: str, work: Work | None = None) -> None:
        """Work is given up for the reason ``text``; None is one item that was refused before it became work."""
        self.failed_items += 1 if work is None else work.items
        self.done_weight += 0.0 if work is None else work.weight
        self._ended(work, f"FAILED: {text}")

    def print(self, line: str) -> None:
        """Print a line, above the bars if there are any."""
        self.last_line = time.monotonic()
        print_line(self.console, line)

    def counts(self) -> str:
        """Items, rate, time left and failures on one line."""
        text = f"{self.kept_items + self.finished_items}/{self.expected_items} {self.unit}"
        seconds = 0.0 if self.began is None else time.monotonic() - self.began
        items, weight = (sum(part[i] for part in self.running.values()) for i in (0, 1))
        if self.done_weight + weight > 0 and seconds > 0:
            if self.show_rate:
                text += f", {(self.finished_items + items) / seconds:.3g} {self.unit}/s"
            left = seconds * max(0.0, self.expected_weight / (self.done_weight + weight) - 1)
            text += f", {clock(left)} left"
        return text + (f", {self.failed_items} failed" if self.failed_items else "")

    def _ended(self, work: Work | None, text: str) -> None:
        self.running.pop(id(work), None)
        if id(work) in self.named_bars:
            self.bars.remove_task(self.named_bars.pop(id(work)))
            ended = self.kept_items + self.finished_items + self.failed_items
            text = f"[{ended}/{self.expected_items}] {text}"
        if text:
            self.print(text)
        self._show()

    def _show(self) -> None:
        done = self.done_weight + sum(weight for _, weight in self.running.values())
        total = self.expected_weight or None
        self.bars.update(self.overall, description=self.counts(), completed=done, total=total)
        if self.bars.disable and time.monotonic() - self.last_line >= LINE_EVERY:
            self.print(self.counts())


def print_line(console: Console, line: str) -> None:
    """Print a line as it is: not wrapped, and without markup or colours."""
    console.print(line, markup=False, highlight=False, soft_wrap=True)


def clock(seconds: float) -> str:
    """A time in minutes and seconds.

    >>> clock(75.2), clock(7530)
    ('1:15', '2:05:30')
    """
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes}:{rest:02}" if minutes < 60 else f"{minutes // 60}:{minutes % 60:02}:{rest:02}"
