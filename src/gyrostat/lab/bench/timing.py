"""Fair timing: sides take turns on one core, and the best turn of each counts."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from typing import Any

THREAD_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMEXPR_NUM_THREADS")
XLA_SINGLE = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"


def best_of(
    sides: Mapping[str, Callable[[], Any]],
    repeats: int,
    clock: Callable[[], float] = time.perf_counter,
    *,
    at_least: float = 0.0,
) -> dict[str, float]:
    """The least time of each side over ``repeats`` rounds in which every side takes one turn; one round before warms up.

    Turns are interleaved so that a slow spell of the machine falls on all sides alike. A side whose turn is shorter
    than ``at_least`` seconds is called several times per turn and the mean counts.

    >>> ticks = iter(range(100))
    >>> best_of({"ours": lambda: None, "peer": lambda: None}, 2, lambda: next(ticks))
    {'ours': 1.0, 'peer': 1.0}
    """
    calls = {name: 1 for name in sides}
    for name, side in sides.items():
        side()  # compiles
        if at_least > 0:
            calls[name] = max(1, round(at_least / max(_turn(side, 1, clock), 1e-9)))
    best = dict.fromkeys(sides, float("inf"))
    for _ in range(repeats):
        for name, side in sides.items():
            best[name] = min(best[name], _turn(side, calls[name], clock))
    return best


def _turn(side: Callable[[], Any], calls: int, clock: Callable[[], float]) -> float:
    start = clock()
    for _ in range(calls):
        side()
    return (clock() - start) / calls


def single_threaded() -> dict[str, str]:
    """The environment of a child process in which every library computes on one thread."""
    flags = f"{os.environ.get('XLA_FLAGS', '')} {XLA_SINGLE}".strip()
    return {**os.environ, "XLA_FLAGS": flags, "JAX_PLATFORMS": "cpu", **dict.fromkeys(THREAD_VARIABLES, "1")}


def pin() -> int | None:
    """Keep this process, and what it starts, on one core; the core's number, or None where that is not possible.

    XLA's own switches leave its pool for element-wise loops at one thread per core; the pool is only as wide as the
    cores the process may use, so this makes it single-threaded too.
    """
    if not hasattr(os, "sched_setaffinity"):
        return None
    core = max(os.sched_getaffinity(0))
    os.sched_setaffinity(0, {core})
    return core
