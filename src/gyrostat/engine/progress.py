"""How a call shows that it is alive: ``progress=True`` is a bar with the time left, and long compilations are announced."""

from __future__ import annotations

import math
import multiprocessing
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeAlias

from gyrostat import errors
from gyrostat.errors import GyrostatError

Progress: TypeAlias = Callable[[float, int], None]
"""Called with the number of runs done and the number of all runs; runs that are under way count by their steps."""

SAY_AFTER = 1.0
"""Seconds after which a compilation is announced."""


class ProgressReport:
    """What a call tells while it runs: the runs that are newly done, and that it has been compiling for a second."""

    def __init__(self, total: int = 0, show: Progress | None = None, say: Callable[[str], Any] | None = None):
        self.total, self.show, self.say, self.done = total, show, say, 0.0

    def add(self, count: float) -> None:
        """So many more runs are done, or parts of runs."""
        self.done += count
        whole = round(self.done)
        if self.show is not None:  # fractions add up to almost 1
            self.show(whole if math.isclose(self.done, whole, abs_tol=1e-9) else self.done, self.total)

    @contextmanager
    def compiling(self) -> Iterator[None]:
        """In this block a program may be compiled, which is announced if it takes longer than a second, once."""
        if self.say is None:
            yield
            return
        timer = threading.Timer(SAY_AFTER, self._announce)
        timer.daemon = True
        timer.start()
        try:
            yield
        finally:
            timer.cancel()

    def _announce(self) -> None:
        say, self.say = self.say, None
        if say is not None:
            say("gyrostat: compiling, once ...")


@contextmanager
def progress_shown(progress: Progress | bool | None, total: int) -> Iterator[ProgressReport]:
    """The report of a call with so many runs, which is shown as ``progress`` says.

    True shows a bar on standard error; a function is called with the runs done and all runs; None and False show nothing. A
    compilation that takes longer than a second is announced with True, and with None on a terminal.

    >>> with progress_shown(lambda done, total: print(done, total), 3) as report:
    ...     report.add(1)
    ...     report.add(2)
    1 3
    3 3
    """
    if progress is True:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
        from rich.progress import Progress as Bars

        columns = (BarColumn(), MofNCompleteColumn(), TextColumn("runs"), TimeElapsedColumn(), TimeRemainingColumn())
        with Bars(*columns, TextColumn("left"), console=Console(stderr=True), refresh_per_second=4) as bars:
            task = bars.add_task("", total=total)
            yield ProgressReport(
                total,
                lambda done, total: bars.update(task, completed=done),
                lambda line: bars.console.print(line, markup=False, highlight=False),
            )
    elif progress is None or progress is False:
        # A worker process is silent: its parent shows the progress of all.
        alone = progress is None and sys.stderr.isatty() and multiprocessing.parent_process() is None
        yield ProgressReport(total, say=(lambda line: print(line, file=sys.stderr, flush=True)) if alone else None)
    elif callable(progress):
        yield ProgressReport(total, progress)
    else:
        raise GyrostatError(
            f"progress must be True, False or a function of (done, total); got {errors.shown(progress)}."
        )
