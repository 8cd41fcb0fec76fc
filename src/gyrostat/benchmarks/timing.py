"""Fair timing: sides take turns on one core, and the best turn of each counts."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from typing import Any

from gyrostat.parallel.threads import one_thread


def best_of(
    sides: Mapping[str, Callable[[], Any]], repeats: int, clock: Callable[[], float] = time.perf_counter
) -> dict[str, float]:
    """The least time of each side over ``repeats`` rounds; every side is called once beforehand, to compile.

    In a round every side takes one turn, so that a slow spell of the machine falls on all sides alike.

    >>> ticks = iter(range(100))
    >>> best_of({"ours": lambda: None, "peer": lambda: None}, 2, lambda: next(ticks))
    {'ours': 1, 'peer': 1}
    """
    for side in sides.values():
        side()
    best = dict.fromkeys(sides, float("inf"))
    for _ in range(repeats):
        for name, side in sides.items():
            start = clock()
            side()
            best[name] = min(best[name], clock() - start)
    return best


def single_threaded() -> dict[str, str]:
    """The environment of a child process in which every library computes on one thread."""
    with one_thread():
        return {**os.environ, "JAX_PLATFORMS": "cpu"}


def pin() -> int | None:
    """Keep this process, and what it starts, on one core; its number, or None where that is not possible.

    XLA's own switches leave its pool for element-wise loops at one thread per core; the pool is only as wide
    as the cores the process may use, so this makes it single-threaded too.
    """
    if not hasattr(os, "sched_setaffinity"):
        return None
    core = max(os.sched_getaffinity(0))
    os.sched_setaffinity(0, {core})
    return core
