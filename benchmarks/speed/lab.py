"""The lab suite: the cost of moving a slider in the lab, against a call of ``gyrostat.run``.

``tools/lab_latency.py`` measures what a browser adds.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

from benchmarks.measuring import best_of
from benchmarks.records import BenchmarkRecord, GroupResult, Report, run_groups


class LabSizes(NamedTuple):
    """How much to time; the tests take less."""

    dimension: int = 30
    num_steps: int = 200
    seeds: int = 16
    num_samples: int = 2400
    repeats: int = 7


def run(say: Callable[[str], Any], sizes: LabSizes = LabSizes()) -> Report:  # noqa: B008  (immutable)
    """Every record of the suite."""
    return run_groups([(name, partial(_move, name)) for name in ("hetero", "pooled")], sizes, say)


def _move(side: str, sizes: LabSizes) -> GroupResult:
    """All seeds of one side with the quartiles that the page draws, against ``run`` with as many records."""
    import gyrostat as gs
    from gyrostat.lab.computations import curves
    from gyrostat.lab.declarations import RECORDS
    from gyrostat.lab.laboratories import lab_of

    lab, options = lab_of("environments"), sizes._asdict()
    repeats = options.pop("repeats")
    setting = lab.read(options)
    place = [side.name for side in lab.sides(setting)].index(side)
    cell, record = lab.sides(setting)[place].build(), lab.view(setting).record
    calls: dict[str, Callable[[], Any]] = {
        "lab": lambda: list(curves("environments", setting, place)),
        "run": lambda: gs.run(*cell, num_steps=sizes.num_steps, seeds=sizes.seeds, record=record, record_at=RECORDS),
    }
    best = {name: 1e3 * seconds for name, seconds in best_of(calls, repeats).items()}
    unit = "milliseconds, all seeds"
    return [BenchmarkRecord(f"lab/{side}", best["lab"], unit, best["run"], "gyrostat.run", None, sizes._asdict())], []
