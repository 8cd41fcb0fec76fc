"""Prints how long the laboratory takes, in a real browser, as two tables in Markdown.

    PYTHONPATH=src:tests/tools python tools/lab_latency.py [MOVES] [BUSY] [SRC ...]

The first: from the opening of a page to its first visible curve, and to the first drawing with all seeds of all sides. The
second: from a slider's input event to its first drawing, perhaps of a few seeds, and to the one of all seeds. Every
laboratory is at its defaults. BUSY loops run meanwhile (0 unless given; one for each processor makes a busy machine). SRC are
folders with other versions of the package, to be measured in turn with this one. Nothing is asserted: machines differ.
"""

from __future__ import annotations

import os
import re
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from browser import chromium

SLIDERS = {"environments": ("spread", 1.0, 0.5), "factors": ("init_scale", 150, 4), "completion": ("ridge", 250, 3)}
"""For each laboratory: a slider, its first position, and how far it moves each time."""
OPENINGS = 5
HERE = Path(__file__).parents[1] / "src"
NOTE_FIRST_CURVE = """
(() => {
  const look = () => {
    const curve = document.querySelector("#first-drawing .median, .scatterlayer .js-line");
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
NUMBER = "document.getElementById('status').dataset.number"


def main(moves: int = 30, loops: int = 0, *others: str) -> None:
    sources = [*others, str(HERE)]
    with ExitStack() as stack:
        browser = stack.enter_context(chromium())
        addresses = {source: stack.enter_context(served(source)) for source in sources}
        stack.enter_context(busy_loops(loops))
        time.sleep(5 if loops else 0)
        load = f"{os.cpu_count()} processors, load {os.getloadavg()[0]:.1f}, {loops} busy loops"
        print(f"{load}; milliseconds, median (90th percentile)\n")
        print("| laboratory | version | first curve | all seeds |\n|---|---|---|---|")
        for lab in SLIDERS:
            for source, address in addresses.items():
                times = [opened(browser, f"{address}&lab={lab}") for _ in range(OPENINGS)]
                print(
                    f"| {lab} | {source} | {summary([t[0] for t in times])} | {summary([t[1] for t in times])} |",
                    flush=True,
                )
        print("\n| laboratory | version | first drawing of a move | all seeds |\n|---|---|---|---|")
        for lab, slider in SLIDERS.items():
            for source, address in addresses.items():
                page = browser.new_page(viewport={"width": 1280, "height": 850})
                page.goto(f"{address}&lab={lab}")
                page.wait_for_selector("#status[data-whole=true]", timeout=240_000)
                latencies = moved(page, *slider, moves)
                cells = " | ".join(summary([t[name] for t in latencies]) for name in ("first", "whole"))
                print(f"| {lab} | {source} | {cells} |", flush=True)
                page.close()


@contextmanager
def served(source: str) -> Iterator[str]:
    """The address of a laboratory of the package in this folder."""
    start = [sys.executable, "-c", "from gyrostat.cli import main; main()", "lab", "--no-browser"]
    environment = {**os.environ, "PYTHONPATH": source}
    with subprocess.Popen(start, stdout=subprocess.PIPE, text=True, env=environment) as server:
        assert server.stdout is not None
        address = re.search(r"http://[\d.]+:\d+/\?token=[\w-]+", server.stdout.readline())
        assert address is not None
        yield address[0]
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
    """Milliseconds until a new window shows its first curve, and until it has drawn all seeds."""
    page = browser.new_page(viewport={"width": 1280, "height": 850})
    page.add_init_script(NOTE_FIRST_CURVE)
    page.goto(address, wait_until="commit")
    page.wait_for_selector("#status[data-whole=true]", timeout=240_000)
    times = page.evaluate("[window.firstCurve, performance.now()]")
    page.close()
    return times[0], times[1]


def moved(page: Any, name: str, start: float, step: float, moves: int) -> list[dict[str, float]]:
    """Move a slider repeatedly, each time after the drawing of the last move is complete."""
    page.evaluate("gyrostat.latencies.length = 0")
    for i in range(moves):
        before = page.evaluate(NUMBER)
        page.evaluate(MOVE, [f"slide-{name}", start + step * i])
        page.wait_for_selector(f"#status[data-whole=true]:not([data-number='{before}'])", timeout=60_000)
    return page.evaluate("gyrostat.latencies")


def summary(times: list[float]) -> str:
    return f"{statistics.median(times):.0f} ({statistics.quantiles(times, n=10)[-1]:.0f})"


if __name__ == "__main__":
    main(*map(int, sys.argv[1:3]), *sys.argv[3:])
