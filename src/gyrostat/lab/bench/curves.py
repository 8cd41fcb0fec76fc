"""How the cost of a step of the fresh engine moves with m, with d and with the number of seeds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from gyrostat.lab.bench import ours
from gyrostat.lab.bench.naive import Setting
from gyrostat.lab.bench.records import Record
from gyrostat.lab.bench.timing import best_of
from gyrostat.lab.figures import Line, Panel, Points

UNIT = "microseconds per step and seed"


def flat_in_m(setting: Setting, samples: Sequence[float], steps: int, seeds: int, repeats: int) -> Record:
    """Every m is timed in turn with the others; the largest must cost at most 1.25 times the smallest."""
    best = _best({m: (setting._replace(num_samples=int(m)), seeds) for m in samples}, steps, repeats)
    told = _told(setting, steps, x=samples, y=best, seeds=seeds)
    told["largest_over_smallest_time"] = max(best) / min(best)
    name = f"the same with m = {samples[0]:.0e}"
    return Record("core/fresh-flat-in-m", best[-1], UNIT, best[0], name, 1 / 1.25, told)


def growth_in_d(setting: Setting, dimensions: Sequence[int], steps: int, seeds: int, repeats: int) -> Record:
    """The exponent of the cost in d, fitted over the upper half of the dimensions."""
    best = _best({d: (setting._replace(dimension=d), seeds) for d in dimensions}, steps, repeats)
    upper = slice(len(dimensions) // 2, None)
    exponent = float(np.polyfit(np.log(dimensions[upper]), np.log(best[upper]), 1)[0])
    told = _told(setting, steps, x=dimensions, y=best, seeds=seeds) | {"exponent": exponent}
    return Record("core/fresh-growth-in-d", exponent, "exponent of the cost in d", settings=told)


def growth_in_seeds(setting: Setting, counts: Sequence[int], steps: int, repeats: int) -> Record:
    """The cost per seed when many run side by side."""
    best = _best({n: (setting, n) for n in counts}, steps, repeats)
    told = _told(setting, steps, x=counts, y=best)
    return Record("core/fresh-growth-in-seeds", best[-1], f"{UNIT} at {counts[-1]} seeds", settings=told)


def _best(points: dict[Any, tuple[Setting, int]], steps: int, repeats: int) -> list[float]:
    sides: dict[str, Callable[[], Any]] = {
        str(x): partial(ours.run, setting, steps, seeds=seeds) for x, (setting, seeds) in points.items()
    }
    best = best_of(sides, repeats)
    return [best[str(x)] / (steps * seeds) * 1e6 for x, (_, seeds) in points.items()]


def _told(setting: Setting, steps: int, *, x: Sequence, y: Sequence, **more: Any) -> dict[str, Any]:
    return {**setting._asdict(), "steps": steps, **more, "curve": {"x": list(x), "y": list(y), "unit": UNIT}}


TITLES = {
    "core/fresh-flat-in-m": ("The number of measurements costs nothing", "measurements m"),
    "core/fresh-growth-in-d": ("Growth with the dimension", "dimension d"),
    "core/fresh-growth-in-seeds": ("Growth with the number of seeds", "seeds in one call"),
}


def panels(records: Sequence[Record]) -> list[Panel]:
    """A panel for every record that carries a curve."""
    return [_panel(record) for record in records if record.id in TITLES]


def _panel(record: Record) -> Panel:
    title, xlabel = TITLES[record.id]
    x, y = (np.asarray(record.settings["curve"][axis], dtype=float) for axis in "xy")
    series: list[Any] = [Line(x, y, "measured", colour=0), Points(x, y, "measured", colour=0)]
    if "exponent" in record.settings:
        slope = record.settings["exponent"]
        upper = x[len(x) // 2 :]
        fitted = y[-1] * (upper / x[-1]) ** slope
        series.append(Line(upper, fitted, f"fitted power {slope:.2f}", "theory", colour=1))
    limits = None if "exponent" in record.settings else (float(y.min() / 3), float(y.max() * 3))
    return Panel(title, xlabel, UNIT, series, xscale="log", yscale="log", ylim=limits)
