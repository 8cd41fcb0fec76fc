"""Prints how long the laboratory takes, in a real browser, as two tables in Markdown.

    PYTHONPATH=tests/tools python tools/lab_latency.py [MOVES] [BUSY]

The first: from the opening of a page to its first visible curve, and until plotly has drawn it. The second: from a slider's
input event to the drawn plot. "first" is the first drawing, perhaps of a few seeds, "whole" the one with every seed of every
side, "double" the one in double precision. Every laboratory is at its defaults (the first: d = 60, 200 steps, 16 seeds, both
sides). BUSY loops run meanwhile (0 unless given; one for each processor makes a busy machine). Nothing is asserted, because
machines differ.
"""

from __future__ import annotations

import os
import re
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from browser import chromium

SLIDERS = {"environments": ("spread", 1.0, 0.5), "factors": ("init_scale", 150, 4), "completion": ("ridge", 250, 3)}
"""For each laboratory: a slider, its first position, and how far it moves each time."""
OPENINGS = 5
NOTE_FIRST_CURVE = """
(() => {
  const look = () => {
    const curve = document.querySelector("#first-drawing .median, #plot .scatterlayer .js-line");
    if (!curve?.getBoundingClientRect().width) return requestAnimationFrame(look);
    requestAnimationFrame(() => setTimeout(() => { window.firstCurve = performance.now(); }));  // when it is painted
  };
  requestAnimationFrame(look);
})()
"""
"""A script that writes down when a curve is first painted, in milliseconds after the beginning of the navigation."""
MOVE = (
    "([id, value]) => { const s = document.getElementById(id); s.value = value;"
    " s.dispatchEvent(new Event('input', { bubbles: true })); }"
)


def main(moves: int = 30, loops: int = 0) -> None:
    start = [sys.executable, "-c", "from gyrostat.cli import main; main()", "lab", "--no-browser"]
    with subprocess.Popen(start, stdout=subprocess.PIPE, text=True) as server, chromium() as browser:
        assert server.stdout is not None
        found = re.search(r"http://[\d.]+:\d+/\?token=[\w-]+", server.stdout.readline())
        assert found is not None
        with busy_loops(loops):
            time.sleep(5 if loops else 0)
            load = f"{os.cpu_count()} processors, load {os.getloadavg()[0]:.1f}, {loops} busy loops"
            print(f"{load}; milliseconds, median (90th percentile)\n")
            print("| laboratory | first curve | drawn by plotly |\n|---|---|---|")
            for lab in SLIDERS:
                times = [opened(browser, f"{found[0]}&lab={lab}") for _ in range(OPENINGS)]
                print(f"| {lab} | {summary([t[0] for t in times])} | {summary([t[1] for t in times])} |", flush=True)
            print("\n| laboratory | first | whole | double | processor per move |\n|---|---|---|---|---|")
            for lab, slider in SLIDERS.items():
                page = browser.new_page(viewport={"width": 1280, "height": 850})
                page.goto(f"{found[0]}&lab={lab}")
                page.wait_for_selector("#status[data-whole=true]", timeout=240_000)
                before = processor_seconds(server.pid)
                times = moved(page, *slider, moves)
                cpu = 1000 * (processor_seconds(server.pid) - before) / moves
                cells = " | ".join(summary([t[name] for t in times]) for name in ("first", "whole", "double"))
                print(f"| {lab} | {cells} | {cpu:.0f} |", flush=True)
                page.close()
        server.terminate()


@contextmanager
def busy_loops(count: int) -> Iterator[None]:
    """Processes that do nothing, and do not stop."""
    loops = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(count)]
    try:
        yield
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()


def opened(browser: Any, address: str) -> tuple[float, float]:
    """Milliseconds until a new window shows its first curve, and until plotly has drawn curves."""
    page = browser.new_page(viewport={"width": 1280, "height": 850})
    page.add_init_script(NOTE_FIRST_CURVE)
    page.goto(address, wait_until="commit")
    page.wait_for_selector("#status[data-level]", timeout=240_000)
    found = page.evaluate("[window.firstCurve, gyrostat.opening.milliseconds]")
    page.close()
    return found[0], found[1]


def moved(page: Any, name: str, start: float, step: float, moves: int) -> list[dict[str, float]]:
    """Move a slider repeatedly, each time after the drawing of the last move is complete."""
    page.evaluate("gyrostat.latencies.length = 0")
    for i in range(moves):
        before = page.evaluate("gyrostat.shown.number")
        page.evaluate(MOVE, [f"slide-{name}", start + step * i])
        page.wait_for_selector(f"#status[data-whole=true]:not([data-number='{before}'])", timeout=60_000)
    return page.evaluate("gyrostat.latencies")


def summary(times: list[float]) -> str:
    return f"{statistics.median(times):.0f} ({statistics.quantiles(times, n=10)[-1]:.0f})"


def processor_seconds(pid: int) -> float:
    """The processor time of a process and its children."""
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
