"""Peak memory of one side, in a process of its own: ``python -m gyrostat.benchmarks.speed.memory SIDE JSON``."""

from __future__ import annotations

import ctypes
import gc
import json
import resource
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from gyrostat.benchmarks.speed import naive, ours
from gyrostat.benchmarks.speed.naive import Setting

METHOD = (
    "Each side runs in a process of its own. Ours runs once, which compiles; freed memory is given back to "
    "the system (malloc_trim), so that the compiler's cannot be reused unseen; the resident size is noted, "
    "the kernel's peak counter is reset (/proc/self/clear_refs), and the same run is repeated. extra is the "
    "new peak minus the resident size before. The peer draws both designs and takes its steps in the same "
    "way. first_run is the extra memory of our first run, compilation included; total is the peak of the "
    "whole process, libraries and compilation included."
)


def peak(side: str, setting: Setting, steps: int) -> dict[str, float]:
    """Megabytes of "ours", "ours_once" (no second run) or "brute", under the names of ``METHOD``."""
    arguments = json.dumps([setting._asdict(), steps])
    command = [sys.executable, "-m", "gyrostat.benchmarks.speed.memory", side, arguments]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"measuring the memory of {side} failed: {done.stderr.strip()[-500:]}")
    return json.loads(done.stdout.splitlines()[-1])


def extra(work: Callable[[], object]) -> tuple[float, float]:
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


def main(side: str, arguments: str) -> None:
    """Measure one side and print the numbers as JSON."""
    given, steps = json.loads(arguments)
    setting, tiny = Setting(**given), Setting(dimension=5, num_samples=50)
    if side == "brute":
        naive.numpy_fixed(tiny, naive.numpy_designs(tiny), 2)
        first, highest = extra(lambda: naive.numpy_fixed(setting, naive.numpy_designs(setting), steps))
        warm = first
    else:
        ours.run(tiny, steps, fixed=True)
        first, highest = extra(lambda: ours.run(setting, steps, fixed=True))
        warm = first if side == "ours_once" else extra(lambda: ours.run(setting, steps, fixed=True))[0]
    print(json.dumps({"extra": warm, "first_run": first, "total": highest}))


if __name__ == "__main__":
    main(*sys.argv[1:])
