"""Prints how long the laboratory takes from a slider's input event to the drawn plot, in a real browser.

    python tests/tools/lab_latency.py [MOVES]

Every laboratory is at its defaults (the first: d = 60, 200 steps, 16 seeds, both sides). "whole" is the time until every seed
of every side is drawn, "double" until double precision has replaced single. Nothing is asserted, because machines differ.
"""

from __future__ import annotations

import os
import re
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from browser import chromium

SLIDERS = {"environments": ("spread", 1.0, 0.5), "factors": ("init_scale", 150, 4), "completion": ("ridge", 250, 3)}
"""For each laboratory: a slider, its first position, and how far it moves each time."""


def main(moves: int = 30) -> None:
    start = [sys.executable, "-c", "from gyrostat.cli import main; main()", "lab", "--no-browser"]
    with subprocess.Popen(start, stdout=subprocess.PIPE, text=True) as server, chromium() as browser:
        assert server.stdout is not None
        found = re.search(r"http://[\d.]+:\d+/\?token=[\w-]+", server.stdout.readline())
        assert found is not None
        print(f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} processors; milliseconds, median and 90th percentile")
        for lab, slider in SLIDERS.items():
            page = browser.new_page(viewport={"width": 1280, "height": 850})
            page.goto(f"{found[0]}&lab={lab}")
            begun = time.monotonic()
            page.wait_for_selector("#status[data-whole=true]", timeout=120_000)
            first, before = time.monotonic() - begun, busy(server.pid)
            times = moved(page, *slider, moves)
            cpu = 1000 * (busy(server.pid) - before) / moves
            shown = ", ".join(f"{name} {summary([t[name] for t in times])}" for name in ("first", "whole", "double"))
            print(f"{lab:13} {shown}; {cpu:.0f} ms of processor per move; the first drawing after {first:.1f} s")
            page.close()
        server.terminate()


def moved(page: Any, name: str, start: float, step: float, moves: int) -> list[dict[str, float]]:
    """Move a slider repeatedly, each time after the drawing of the last move is complete."""
    page.evaluate("gyrostat.latencies.length = 0")
    for i in range(moves):
        before = page.evaluate("gyrostat.shown.number")
        page.evaluate(
            "([id, value]) => { const s = document.getElementById(id); s.value = value;"
            " s.dispatchEvent(new Event('input', { bubbles: true })); }",
            [f"slide-{name}", start + step * i],
        )
        page.wait_for_selector(f"#status[data-whole=true]:not([data-number='{before}'])", timeout=60_000)
    return page.evaluate("gyrostat.latencies")


def summary(times: list[float]) -> str:
    return f"{statistics.median(times):.0f} ({statistics.quantiles(times, n=10)[-1]:.0f})"


def busy(pid: int) -> float:
    """The processor time, in seconds, of a process and its children."""
    ticks = 0
    for folder in os.listdir("/proc"):
        if folder.isdigit():
            try:
                fields = Path(f"/proc/{folder}/stat").read_text().rsplit(") ", 1)[1].split()
            except (FileNotFoundError, ProcessLookupError):
                continue
            ticks += int(fields[11]) + int(fields[12]) if pid in (int(folder), int(fields[1])) else 0
    return ticks / os.sysconf("SC_CLK_TCK")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
