"""How a call shows that it is alive: ``progress=True`` is a bar with the time left, and long compilations are announced."""

from __future__ import annotations

import math
import multiprocessing
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeAlias

from gyrostat import errors
from gyrostat.errors import GyrostatError
from gyrostat.jax_tools.compile_cache import long_compilations_announced

Progress: TypeAlias = Callable[[float, int], None]
"""Called with the number of runs done and the number of all runs; runs that are under way count by their steps."""


@contextmanager
def progress_shown(progress: Progress | bool | None, total: int) -> Iterator[Callable[[float], None]]:
    """A function to call with the number of runs that are newly done; shows them as ``progress`` says.

    True shows a bar on standard error; a function is called with the runs done and all runs; None and False show nothing. A
    compilation that takes longer than a second is announced with True, and with None on a terminal.

    >>> with progress_shown(lambda done, total: print(done, total), 3) as report:
    ...     report(1)
    ...     report(2)
    1 3
    3 3
    """
    if progress is True:
        with _bar(total) as (show, say), long_compilations_announced(say):
            yield _adding(show, total)
    elif progress is None or progress is False:
        # A worker process is silent: its parent shows the progress of all.
        alone = progress is None and sys.stderr.isatty() and multiprocessing.parent_process() is None
        with long_compilations_announced(_say_plainly if alone else None):
            yield lambda count: None
    elif callable(progress):
        yield _adding(progress, total)
    else:
        raise GyrostatError(
            f"progress must be True, False or a function of (done, total); got {errors.shown(progress)}."
        )


def _adding(show: Progress, total: int) -> Callable[[float], None]:
    done = 0.0

    def report(count: float) -> None:
        nonlocal done
        done += count
        whole = round(done)
        show(whole if math.isclose(done, whole, abs_tol=1e-9) else done, total)  # fractions add up to almost 1

    return report


@contextmanager
def _bar(total: int) -> Iterator[tuple[Progress, Callable[[str], Any]]]:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
    from rich.progress import Progress as Bars

    columns = (BarColumn(), MofNCompleteColumn(), TextColumn("runs"), TimeElapsedColumn())
    left = (TimeRemainingColumn(), TextColumn("left"))
    with Bars(*columns, *left, console=Console(stderr=True), refresh_per_second=4) as bars:
        task = bars.add_task("", total=total)
        yield (
            lambda done, total: bars.update(task, completed=done),
            lambda line: bars.console.print(line, markup=False, highlight=False),
        )


def _say_plainly(line: str) -> None:
    print(line, file=sys.stderr, flush=True)
