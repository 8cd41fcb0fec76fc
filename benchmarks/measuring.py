"""Timing and memory tools: the two sides of a comparison take turns on one core, and the best turn of each counts."""

from __future__ import annotations

import ctypes
import gc
import importlib.util
import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple


def best_of(
    sides: Mapping[str, Callable[[], Any]], repeats: int, clock: Callable[[], float] = time.perf_counter
) -> dict[str, float]:
    """The least time of each side over ``repeats`` rounds; every side is called once beforehand, to compile.

    In a round every side takes one turn, so a slow spell of the machine affects all sides alike.

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


def pin_to_one_core() -> int | None:
    """Keep this process, and the processes it starts, on one core; its number, or None where that is not possible.

    XLA's own switches leave its pool for element-wise loops at one thread per core; the pool is only as wide
    as the cores the process may use, so this makes it single-threaded too.
    """
    if not hasattr(os, "sched_setaffinity"):
        return None
    core = max(os.sched_getaffinity(0))
    os.sched_setaffinity(0, {core})
    return core


def allow_all_cores() -> None:
    """Undo :func:`pin_to_one_core`; worker processes started afterwards may use all cores too."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, range(os.cpu_count() or 1))


def extra_memory(work: Callable[[], object]) -> tuple[float, float]:
    """Megabytes by which the resident size grows at its peak while ``work`` runs, and that peak."""
    gc.collect()
    if sys.platform == "linux":
        ctypes.CDLL(None).malloc_trim(0)
        Path("/proc/self/clear_refs").write_text("5")
    before = _resident("VmRSS")
    work()
    highest = _resident("VmHWM")
    return highest - before, highest


def _resident(field: str) -> float:
    # Not getrusage on Linux: its peak is inherited from the process that started this one.
    if sys.platform != "linux":
        unit = 2**20 if sys.platform == "darwin" else 2**10
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(field + ":")) / 1024


def peer_torch() -> Any:
    """PyTorch on one thread, or None where it is not installed."""
    if not importlib.util.find_spec("torch"):
        return None
    import torch

    torch.set_num_threads(1)
    return torch


def without_torch(suite: str) -> str:
    """The note of a suite whose comparisons with PyTorch are left out.

    >>> without_torch("gd")
    'gd: comparisons with PyTorch left out: it is not installed; pip install gyrostat[bench].'
    """
    return f"{suite}: comparisons with PyTorch left out: it is not installed; pip install gyrostat[bench]."


class ProcessCost(NamedTuple):
    """What a process and those that it started cost: CPU seconds, seconds on the clock, and what was printed."""

    cpu: float
    wall: float
    printed: str


def fresh_process(arguments: Sequence[str], cache: str, *, statuses: Sequence[int] = (0,)) -> ProcessCost:
    """The cost of ``python ARGUMENTS`` in a new process as a newcomer has it, with a folder of compiled programs or ``"off"``.

    It must end with one of ``statuses``.

    >>> fresh_process(["-c", "print(1 + 1)"], "off").printed
    '2\\n'
    """
    import gyrostat
    from gyrostat.jax_tools.compile_cache import VARIABLE  # here: suites without JAX use this module too

    # Without byte code, every process would compile the sources of all modules again, which a newcomer's does not.
    threads = ("XLA_FLAGS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
    ours = (*threads, "JAX_COMPILATION_CACHE_DIR", "PYTHONDONTWRITEBYTECODE")
    plain = {name: value for name, value in os.environ.items() if name not in ours}
    paths = os.pathsep.join(filter(None, (str(Path(gyrostat.__file__).parents[1]), plain.get("PYTHONPATH"))))
    command, environment = [sys.executable, *arguments], plain | {VARIABLE: cache, "PYTHONPATH": paths}
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    child = subprocess.run(command, env=environment, capture_output=True, text=True)
    wall, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    if child.returncode not in statuses:
        raise subprocess.CalledProcessError(child.returncode, command, child.stdout, child.stderr)
    return ProcessCost(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, wall, child.stdout)
