"""The lab suite: the cost of moving a slider in the lab, against the library's own loop.

``tools/lab_latency.py`` measures what a browser adds.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

from benchmarks.measuring import best_of
from benchmarks.records import BenchmarkRecord, GroupResult, Report, run_groups

RECORD = ("signal", "spurious", "error")


class LabSizes(NamedTuple):
    """How much to time; the tests take less."""

    dimension: int = 60
    num_steps: int = 200
    seeds: int = 16
    num_samples: int = 8000
    repeats: int = 7
    algorithms: tuple[str, ...] = ("HeteroSGD", "PooledSGD")


def run(say: Callable[[str], Any], sizes: LabSizes = LabSizes()) -> Report:  # noqa: B008  (immutable)
    """Every record of the suite."""
    return run_groups([(name, partial(_move, name)) for name in sizes.algorithms], sizes, say)


def _move(name: str, sizes: LabSizes) -> GroupResult:
    """All seeds of one side, in single (drawn first) and double precision, against ``simulate`` with as many records."""
    import gyrostat as gs
    from gyrostat.engine.simulate import simulate
    from gyrostat.lab.declarations import RECORDS
    from gyrostat.lab.runs import SINGLE_RECORDS, parts

    environments = gs.RandomEnvironments(sizes.dimension, law=gs.TwoPoint(mean=1.0, spread=6.0))
    cell = getattr(gs, name)(0.05), gs.Problem(environments, gs.FreshGaussian(sizes.num_samples))
    records, (steps, seeds) = {"single": SINGLE_RECORDS, "double": RECORDS}, (sizes.num_steps, sizes.seeds)
    sides: dict[str, Callable[[], Any]] = {
        precision: partial(_all, parts, cell, RECORD, steps, seeds, precision) for precision in records
    }
    for precision, count in records.items():
        sides[f"{precision} loop"] = partial(
            simulate, [cell], num_steps=steps, seeds=seeds, record=RECORD, record_at=count
        )
    best = {side: 1e3 * seconds for side, seconds in best_of(sides, sizes.repeats).items()}
    return [
        BenchmarkRecord(
            f"lab/{name}-{precision}",
            best[precision],
            "milliseconds, all seeds",
            best[f"{precision} loop"],
            "gyrostat.run",
            None,
            sizes._asdict() | {"records": count},
        )
        for precision, count in records.items()
    ], []


def _all(parts: Callable[..., Any], *given: Any) -> list[Any]:
    return list(parts(*given))
