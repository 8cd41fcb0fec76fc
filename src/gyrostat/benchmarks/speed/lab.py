"""The lab suite: what a move of a slider costs the live laboratory, beside the library's own loop.

What a browser adds is printed by ``tests/tools/lab_latency.py``.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

from gyrostat.benchmarks.groups import Found, walk
from gyrostat.benchmarks.panels import panels
from gyrostat.benchmarks.records import Record, Report
from gyrostat.benchmarks.timing import best_of

__all__ = ["panels", "run"]

RECORD = ("signal", "spurious", "error")


class Sizes(NamedTuple):
    """How much to time; the tests take less."""

    dimension: int = 60
    num_steps: int = 200
    seeds: int = 16
    num_samples: int = 8000
    repeats: int = 7
    algorithms: tuple[str, ...] = ("HeteroSGD", "PooledSGD")


def run(say: Callable[[str], Any], sizes: Sizes = Sizes()) -> Report:  # noqa: B008  (immutable)
    """Every record of the suite."""
    return walk([(name, partial(_move, name)) for name in sizes.algorithms], sizes, say)


def _move(name: str, sizes: Sizes) -> Found:
    """All seeds of one side, in single precision as drawn first, and in double, beside ``simulate`` with as many records."""
    import gyrostat as gs
    from gyrostat.engine.simulate import simulate
    from gyrostat.lab.engine import FEWER, parts
    from gyrostat.lab.lab import RECORDS

    places = gs.RandomEnvironments(sizes.dimension, law=gs.TwoPoint(mean=1.0, spread=6.0))
    cell = getattr(gs, name)(0.05), gs.Problem(places, gs.FreshGaussian(sizes.num_samples))
    records, (steps, seeds) = {"single": FEWER, "double": RECORDS}, (sizes.num_steps, sizes.seeds)
    sides: dict[str, Callable[[], Any]] = {
        way: partial(_all, parts, cell, RECORD, steps, seeds, way) for way in records
    }
    for way, count in records.items():
        sides[f"{way} loop"] = partial(simulate, [cell], num_steps=steps, seeds=seeds, record=RECORD, record_at=count)
    best = {side: 1e3 * seconds for side, seconds in best_of(sides, sizes.repeats).items()}
    unit, told = "milliseconds, all seeds", sizes._asdict()
    return [
        Record(
            f"lab/{name}-{way}", best[way], unit, best[f"{way} loop"], "gyrostat.run", None, told | {"records": count}
        )
        for way, count in records.items()
    ], []


def _all(parts: Callable[..., Any], *given: Any) -> list[Any]:
    return list(parts(*given))
