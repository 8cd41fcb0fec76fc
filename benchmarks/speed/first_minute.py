"""The first-minute suite: what a newcomer waits for, in fresh processes, with and without the cache of compiled programs.

The README's ten lines are run in a process that finds an empty cache (cold) and in one after it (warm); the peer is the same
process with the cache off, as it was before. The results of all three must be the same to the last bit. Costs are CPU seconds,
which depend less on what else the machine does than seconds on the clock, and include starting Python. Byte code is there in
all of them, as pip leaves it: without it every process compiles the sources of what it imports, 2.5 seconds more.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

from benchmarks.measuring import ProcessCost, allow_all_cores, fresh_process
from benchmarks.records import BenchmarkRecord, GroupResult, Report, run_groups

TEN_LINES = """
import hashlib
import gyrostat as gs
environments = gs.RandomEnvironments({dimension}, rank=1, law=gs.TwoPoint(mean=1.0, spread=6.0))
problem = gs.Problem(environments, gs.FreshGaussian(8000))
hetero = gs.run(gs.HeteroSGD(0.05), problem, num_steps={num_steps}, seeds={seeds})
pooled = gs.run(gs.PooledSGD(0.05), problem, num_steps={num_steps}, seeds={seeds})
for result in (hetero, pooled):
    end = gs.summary(result).isel(step=-1).sel(quantile=0.5)
    print(f"{{end.signal:.2f}}, {{end.spurious:.2f}}, {{end.diverged_share:.0%}}")
    print(hashlib.sha256(result.to_array().values.tobytes()).hexdigest())
"""
CHECK = "import sys; sys.argv = ['gyrostat', 'check']; from gyrostat.cli import main; main()"
GOALS = {"ten-lines-cold": 8.0, "ten-lines-warm": 4.0, "check-cold": 3.0, "check-warm": 3.0}
"""CPU seconds that we aim at, on two cores of 2024."""


class FirstMinuteSizes(NamedTuple):
    """The setting of the README, and how often each process is started; the tests take less."""

    dimension: int = 60
    num_steps: int = 200
    seeds: int = 50
    repeats: int = 2


def run(say: Callable[[str], Any], sizes: FirstMinuteSizes = FirstMinuteSizes()) -> Report:  # noqa: B008  (immutable)
    """Every record of the suite."""
    allow_all_cores()  # as a newcomer's process has them
    lines = TEN_LINES.format(**sizes._asdict())
    groups = [(name, partial(_compare, name, code)) for name, code in (("ten-lines", lines), ("check", CHECK))]
    return run_groups(groups, sizes, say)


def _compare(name: str, code: str, sizes: FirstMinuteSizes) -> GroupResult:
    """The best of several turns of each side: the cache off, empty, and filled."""
    costs: dict[str, list[ProcessCost]] = {"off": [], "cold": [], "warm": []}
    for _ in range(sizes.repeats):
        with tempfile.TemporaryDirectory() as folder:
            for side, cache in (("off", "off"), ("cold", folder), ("warm", folder)):
                costs[side].append(fresh_process(["-c", code], cache))
    printed = {cost.printed for side in costs.values() for cost in side}
    notes = [] if len(printed) == 1 else [f"first-minute: {name} PRINTED DIFFERENT NUMBERS with and without the cache."]
    best = {side: min(cost.cpu for cost in turns) for side, turns in costs.items()}
    aims = {side: GOALS[f"{name}-{side}"] for side in ("cold", "warm")}
    notes += [
        f"first-minute: {name}-{side} aims at {aim:g} CPU seconds on a quiet machine." for side, aim in aims.items()
    ]
    records = [
        BenchmarkRecord(
            f"first-minute/{name}-{side}",
            best[side],
            "CPU seconds",
            best["off"],
            "without the cache",
            None,
            sizes._asdict() | {"aim": aim, "reached": best[side] <= aim},
        )
        for side, aim in aims.items()
    ]
    return records, notes
