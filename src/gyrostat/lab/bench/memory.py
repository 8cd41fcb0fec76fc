"""Peak memory of one side, measured in a process of its own: ``python -m gyrostat.lab.bench.memory SIDE JSON``."""

from __future__ import annotations

import ctypes
import gc
import json
import resource
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from gyrostat.errors import GyrostatError
from gyrostat.lab.bench import naive, ours
from gyrostat.lab.bench.naive import Setting

METHOD = (
    "Each side runs in a process of its own. Ours runs once, which compiles; freed memory is given back to the system "
    "(malloc_trim) so that the compiler's cannot be reused unseen; the resident size is noted, the peak counter of the "
    "kernel is reset (/proc/self/clear_refs), and the same run is repeated. Extra memory is the new peak minus the "
    "resident size before. The peer draws both designs and steps in the same way. first_run is the extra memory of "
    "our first run, compilation included."
)


def peak(side: str, setting: Setting, steps: int) -> dict[str, float]:
    """Megabytes used by a side: ``extra`` (warm), ``first_run`` (with compilation) and ``total`` (whole process)."""
    command = [sys.executable, "-m", "gyrostat.lab.bench.memory", side, json.dumps([setting._asdict(), steps])]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise GyrostatError(f"measuring the memory of {side} failed: {done.stderr.strip().splitlines()[-1:]}.")
    return json.loads(done.stdout.splitlines()[-1])


def extra(work: Callable[[], object]) -> float:
    """Megabytes by which the resident size grows at its peak while ``work`` runs."""
    gc.collect()
    if sys.platform == "linux":
        ctypes.CDLL(None).malloc_trim(0)
        Path("/proc/self/clear_refs").write_text("5")
    before = _status("VmRSS") if sys.platform == "linux" else _highest()
    work()
    return (_status("VmHWM") if sys.platform == "linux" else _highest()) - before


def _status(field: str) -> float:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(field + ":")) / 1024


def _highest() -> float:
    unit = 2**20 if sys.platform == "darwin" else 2**10
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit


def main(side: str, arguments: str) -> None:
    """Measure one side and print the numbers as JSON."""
    given, steps = json.loads(arguments)
    setting, tiny = Setting(**given), Setting(dimension=5, num_samples=50)
    if side == "ours":
        ours.run(tiny, steps, fixed=True)
        first = extra(lambda: ours.run(setting, steps, fixed=True))
        warm = extra(lambda: ours.run(setting, steps, fixed=True))
    elif side == "ours_once":
        first = warm = extra(lambda: ours.run(setting, steps, fixed=True))
    else:
        naive.numpy_fixed(tiny, naive.numpy_designs(tiny), 2)
        first = warm = extra(lambda: naive.numpy_fixed(setting, naive.numpy_designs(setting), steps))
    print(json.dumps({"extra": warm, "first_run": first, "total": _highest()}))


if __name__ == "__main__":
    main(*sys.argv[1:])
