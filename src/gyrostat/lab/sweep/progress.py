"""What the user sees while a sweep runs: cells, rate, time left, failures; a bar on a terminal, lines elsewhere."""

from __future__ import annotations

import time
from collections.abc import Hashable
from typing import Protocol, Self

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn

LINE_EVERY = 10.0


class Display(Protocol):
    """Shows the cells of a sweep as they are finished."""

    def expect(self, cells: int, kept: int) -> None: ...
    def advanced(self, chunk: Hashable, cells: float) -> None: ...
    def finished(self, chunk: Hashable, cells: int) -> None: ...
    def forgotten(self, chunk: Hashable) -> None: ...
    def failed(self, text: str) -> None: ...
    def __enter__(self) -> Self: ...
    def __exit__(self, *_: object) -> None: ...


class Counts:
    """The numbers that every display shows."""

    def __init__(self) -> None:
        self.cells = self.kept = self.done = self.bad = 0
        self.part: dict[int, float] = {}
        self.began = time.monotonic()

    def text(self) -> str:
        """Cells, rate, time left, failures on one line."""
        seconds = time.monotonic() - self.began
        made = self.done + sum(self.part.values())
        rate = made / seconds if seconds > 0 else 0.0
        left = self.cells - self.kept - made - self.bad
        words = f"{self.kept + self.done}/{self.cells} cells"
        if made > 0:
            words += f", {rate:.3g} cells/s, {clock(max(0.0, left) / rate)} left"
        return words + (f", {self.bad} failed" if self.bad else "")


def clock(seconds: float) -> str:
    """A time in minutes and seconds.

    >>> clock(75.2), clock(7530)
    ('1:15', '2:05:30')
    """
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes}:{rest:02}" if minutes < 60 else f"{minutes // 60}:{minutes % 60:02}:{rest:02}"


class Lines:
    """A line now and then; also what the bar is made of."""

    def __init__(self, console: Console):
        self.console, self.counts, self.last = console, Counts(), time.monotonic()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        return None

    def expect(self, cells: int, kept: int) -> None:
        self.counts.cells, self.counts.kept = cells, kept
        self.show()

    def advanced(self, chunk: Hashable, cells: float) -> None:
        self.counts.part[id(chunk)] = cells
        self.show()

    def finished(self, chunk: Hashable, cells: int) -> None:
        self.forgotten(chunk)
        self.counts.done += cells
        self.show()

    def forgotten(self, chunk: Hashable) -> None:
        self.counts.part.pop(id(chunk), None)

    def failed(self, text: str) -> None:
        self.counts.bad += 1
        self._say(f"FAILED {text}")

    def show(self) -> None:
        """Say where it stands, if that was not said just before."""
        if time.monotonic() - self.last >= LINE_EVERY:
            self.last = time.monotonic()
            self._say(self.counts.text())

    def _say(self, line: str) -> None:
        self.console.print(line, markup=False, highlight=False, soft_wrap=True)


class Bar(Lines):
    """One bar for all cells."""

    def __init__(self, console: Console):
        super().__init__(console)
        self.bar = Progress(BarColumn(), TextColumn("{task.description}", markup=False), console=console)
        self.task = self.bar.add_task("starting", total=1)

    def __enter__(self) -> Self:
        self.bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.bar.stop()

    def show(self) -> None:
        c = self.counts
        there = c.kept + c.done + c.bad + sum(c.part.values())
        self.bar.update(self.task, total=max(1, c.cells), completed=there, description=c.text())


def display(console: Console) -> Lines:
    """A bar when the console is a terminal, else lines."""
    return Bar(console) if console.is_terminal else Lines(console)
