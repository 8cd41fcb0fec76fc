"""What the user sees while experiments run: bars on a terminal, plain lines elsewhere."""

from __future__ import annotations

from types import TracebackType
from typing import Protocol, Self

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TaskProgressColumn, TextColumn, TimeRemainingColumn


class Display(Protocol):
    """Shows experiments as they start, advance and end."""

    def started(self, name: str) -> None: ...
    def advanced(self, name: str, fraction: float) -> None: ...
    def ended(self, name: str, text: str) -> None: ...
    def __enter__(self) -> Self: ...
    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...


def display(console: Console, weights: dict[str, float]) -> Display:
    """Bars when the console is a terminal, else lines; ``weights`` are the rough costs of the experiments."""
    return Bars(console, weights) if console.is_terminal else Lines(console, weights)


class Lines:
    """One line when an experiment starts and one when it ends."""

    def __init__(self, console: Console, weights: dict[str, float]):
        self.console, self.total, self.done = console, len(weights), 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        return None

    def started(self, name: str) -> None:
        self._say(f"{name} started")

    def advanced(self, name: str, fraction: float) -> None:
        """Nothing: a log wants no bars."""

    def ended(self, name: str, text: str) -> None:
        self.done += 1
        self._say(f"[{self.done}/{self.total}] {name} {text}")

    def _say(self, line: str) -> None:
        self.console.print(line, markup=False, highlight=False, soft_wrap=True)


class Bars:
    """One bar for everything, with the time left, and one for each running experiment."""

    def __init__(self, console: Console, weights: dict[str, float]):
        self.weights, self.done = weights, 0
        self.fractions: dict[str, float] = {}
        self.running: dict[str, TaskID] = {}
        self.bars = Progress(
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            TaskProgressColumn(),
            TimeRemainingColumn(),
            console=console,
            refresh_per_second=4,
            speed_estimate_period=600,
        )
        self.overall = self.bars.add_task(f"all 0/{len(weights)}", total=sum(weights.values()) or 1.0)

    def __enter__(self) -> Self:
        self.bars.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.bars.stop()

    def started(self, name: str) -> None:
        self.running[name] = self.bars.add_task(name, total=1.0)

    def advanced(self, name: str, fraction: float) -> None:
        self.fractions[name] = fraction
        self.bars.update(self.running[name], completed=fraction)
        self._advance_overall()

    def ended(self, name: str, text: str) -> None:
        self.fractions[name] = 1.0
        self.done += 1
        self.bars.remove_task(self.running.pop(name))
        self.bars.console.print(f"{name} {text}", markup=False, highlight=False)
        self._advance_overall()

    def _advance_overall(self) -> None:
        completed = sum(self.weights[name] * fraction for name, fraction in self.fractions.items())
        self.bars.update(self.overall, completed=completed, description=f"all {self.done}/{len(self.weights)}")


def clock(seconds: float) -> str:
    """A time in minutes and seconds.

    >>> clock(75.2), clock(7530)
    ('1:15', '2:05:30')
    """
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes}:{rest:02}" if minutes < 60 else f"{minutes // 60}:{minutes % 60:02}:{rest:02}"
