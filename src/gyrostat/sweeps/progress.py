"""What the user sees while a sweep runs: cells, rate, time left, failures; a bar on a terminal, lines elsewhere."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any, Protocol, Self

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn

from gyrostat.parallel.progress import clock

LINE_EVERY = 10.0


class Part(Protocol):
    """Some cells that are computed together; ``weight`` is their rough cost."""

    @property
    def weight(self) -> float: ...
    @property
    def points(self) -> Sequence[Any]: ...


class Counts:
    """The numbers that every display shows. The time left goes by weights: a cell may cost a thousand times another."""

    def __init__(self) -> None:
        self.cells = self.kept = self.done = self.bad = 0
        self.asked = self.made = 0.0
        self.parts: dict[int, tuple[float, float]] = {}
        self.began = time.monotonic()

    def text(self) -> str:
        """Cells, rate, time left, failures on one line.

        >>> counts = Counts()
        >>> counts.cells, counts.bad = 12, 1
        >>> counts.text()
        '0/12 cells, 1 failed'
        """
        seconds = time.monotonic() - self.began
        cells, weight = (sum(part[i] for part in self.parts.values()) for i in (0, 1))
        words = f"{self.kept + self.done}/{self.cells} cells"
        if self.made + weight > 0 and seconds > 0:
            left = seconds * max(0.0, self.asked / (self.made + weight) - 1)
            words += f", {(self.done + cells) / seconds:.3g} cells/s, {clock(left)} left"
        return words + (f", {self.bad} failed" if self.bad else "")


class Lines:
    """A line now and then; also what the bar is made of."""

    def __init__(self, console: Console):
        self.console, self.counts, self.last = console, Counts(), time.monotonic()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        return None

    def expect(self, cells: int, kept: int, weight: float) -> None:
        """So many cells in all, so many from before, and so much more work than was known."""
        self.counts.cells, self.counts.kept = cells, kept
        self.counts.asked += weight
        self.show()

    def advanced(self, part: Part, fraction: float) -> None:
        """This much of a part is computed."""
        self.counts.parts[id(part)] = fraction * len(part.points), fraction * part.weight
        self.show()

    def finished(self, part: Part) -> None:
        """A part is written."""
        self.forgotten(part)
        self.counts.done += len(part.points)
        self.counts.made += part.weight
        self.show()

    def forgotten(self, part: Part) -> None:
        """A part went wrong, and will be done again."""
        self.counts.parts.pop(id(part), None)

    def failed(self, text: str, weight: float) -> None:
        """A cell is given up."""
        self.counts.bad += 1
        self.counts.made += weight
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
        there = c.kept + c.done + c.bad + sum(cells for cells, _ in c.parts.values())
        self.bar.update(self.task, total=max(1, c.cells), completed=there, description=c.text())


def display(console: Console) -> Lines:
    """A bar when the console is a terminal, else lines."""
    return Bar(console) if console.is_terminal else Lines(console)
