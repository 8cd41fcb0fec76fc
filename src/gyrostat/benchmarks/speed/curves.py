"""How the cost of a step of the fresh engine moves with m, with d and with the number of seeds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from gyrostat.benchmarks.panels import Axis
from gyrostat.benchmarks.records import Record
from gyrostat.benchmarks.speed import ours
from gyrostat.benchmarks.speed.naive import Setting
from gyrostat.benchmarks.timing import best_of

UNIT = "microseconds per step and seed"
IN_M = Axis("The number of measurements costs nothing", "measurements m")
IN_D = Axis("Growth with the dimension", "dimension d")
IN_SEEDS = Axis("Growth with the number of seeds", "seeds in one call")


def flat_in_m(setting: Setting, samples: Sequence[float], steps: int, seeds: int, repeats: int) -> Record:
    """Every m is timed in turn with the others; the largest must cost at most 1.25 times the smallest."""
    best = _best({m: (setting._replace(num_samples=int(m)), seeds) for m in samples}, steps, repeats)
    told = _told(setting, steps, IN_M, x=samples, y=best, seeds=seeds)
    told["largest_over_smallest_time"] = max(best) / min(best)
    name = f"the same with m = {samples[0]:.0e}"
    return Record("core/fresh-flat-in-m", best[-1], UNIT, best[0], name, 1 / 1.25, told)


def growth_in_d(setting: Setting, dimensions: Sequence[int], steps: int, seeds: int, repeats: int) -> Record:
    """The exponent of the cost in d, fitted over the upper half of the dimensions."""
    best = _best({d: (setting._replace(dimension=d), seeds) for d in dimensions}, steps, repeats)
    upper = slice(len(dimensions) // 2, None)
    exponent = float(np.polyfit(np.log(dimensions[upper]), np.log(best[upper]), 1)[0])
    told = _told(setting, steps, IN_D, x=dimensions, y=best, seeds=seeds) | {"exponent": exponent}
    return Record("core/fresh-growth-in-d", exponent, "exponent of the cost in d", settings=told)


def growth_in_seeds(setting: Setting, counts: Sequence[int], steps: int, repeats: int) -> Record:
    """The cost per seed when many run side by side."""
    best = _best({n: (setting, n) for n in counts}, steps, repeats)
    told = _told(setting, steps, IN_SEEDS, x=counts, y=best)
    return Record("core/fresh-growth-in-seeds", best[-1], f"{UNIT} at {counts[-1]} seeds", settings=told)


def _best(points: dict[Any, tuple[Setting, int]], steps: int, repeats: int) -> list[float]:
    sides: dict[str, Callable[[], Any]] = {
        str(x): partial(ours.run, setting, steps, seeds=seeds) for x, (setting, seeds) in points.items()
    }
    best = best_of(sides, repeats)
    return [best[str(x)] / (steps * seeds) * 1e6 for x, (_, seeds) in points.items()]


def _told(setting: Setting, steps: int, axis: Axis, *, x: Sequence, y: Sequence, **more: Any) -> dict[str, Any]:
    return {**setting._asdict(), "steps": steps, **more, "curve": axis.curve(x, y, UNIT)}
