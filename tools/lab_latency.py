"""Prints how long the laboratory takes, in a real browser, as two tables in Markdown.

    PYTHONPATH=src:tests/tools python tools/lab_latency.py [MOVES] [BUSY] [SRC ...]

The first: from the opening of a page to its first visible curve, and to the first drawing with all seeds of all sides. The
second: from the input event of a control to its first drawing, perhaps of a few seeds, and to the one of all seeds. Every
laboratory is at its defaults, and versions take turns. BUSY loops run meanwhile (0 unless given; one for each processor makes
a busy machine). SRC are folders with other versions of the package. Nothing is asserted: machines differ.
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

MOVES = {
    "environments": ("spread", 1.0, 1.08),
    "factors": ("init_scale", 0.1, 1.03),
    "completion": ("ridge", 0.03, 1.03),
}
"""For each laboratory: a control, its first value, and the factor by which it moves each time."""
OPENINGS = 5
WHOLE = "#status[data-whole=true]"
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
MOVE = """
([id, value]) => new Promise((done) => {
  const status = document.getElementById("status"), before = status.dataset.number, begin = performance.now(), times = {};
  new MutationObserver((_, observer) => {
    if (status.dataset.number === before) return;
    times.first ??= performance.now() - begin;
    if (status.dataset.whole !== "true") return;
    observer.disconnect();
    done({ ...times, whole: performance.now() - begin });
  }).observe(status, { attributes: true });
  const box = document.getElementById(id);
  box.value = value;
  box.dispatchEvent(new Event("input", { bubbles: true }));
})
"""
"""A function of the page that sets a control and gives the milliseconds until a drawing, and until that of all seeds."""


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
        for lab in MOVES:
            times = {source: [] for source in sources}
            for source in sources * OPENINGS:
                times[source].append(opened(browser, f"{addresses[source]}&lab={lab}"))
            for source in sources:
                cells = " | ".join(summary(column) for column in zip(*times[source], strict=True))
                print(f"| {lab} | {source} | {cells} |", flush=True)
        print("\n| laboratory | version | first drawing of a move | all seeds |\n|---|---|---|---|")
        for lab in MOVES:
            with ExitStack() as pages:
                opened_pages = {source: pages.enter_context(browser.new_page()) for source in sources}
                for source, page in opened_pages.items():
                    page.goto(f"{addresses[source]}&lab={lab}")
                    page.wait_for_selector(WHOLE, timeout=240_000)
                times = moved(opened_pages, *MOVES[lab], moves)
            for source in sources:
                cells = " | ".join(summary([t[name] for t in times[source]]) for name in ("first", "whole"))
                print(f"| {lab} | {source} | {cells} |", flush=True)
        print(f"\nload at the end: {os.getloadavg()[0]:.1f}")


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
    page.wait_for_selector(WHOLE, timeout=240_000)
    times = page.evaluate("[window.firstCurve, performance.now()]")
    page.close()
    return times[0], times[1]


def moved(
    pages: dict[str, Any], name: str, value: float, factor: float, moves: int
) -> dict[str, list[dict[str, float]]]:
    """The milliseconds of moves of a control, of each version in turn."""
    times: dict[str, list[dict[str, float]]] = {source: [] for source in pages}
    for i in range(moves):
        for source, page in pages.items():
            page.bring_to_front()
            times[source].append(page.evaluate(MOVE, [f"set-{name}", f"{value * factor**i:.3g}"]))
    return times


def summary(times: list[float]) -> str:
    return f"{statistics.median(times):.0f} ({statistics.quantiles(times, n=10)[-1]:.0f})"


if __name__ == "__main__":
    main(*map(int, sys.argv[1:3]), *sys.argv[3:])
