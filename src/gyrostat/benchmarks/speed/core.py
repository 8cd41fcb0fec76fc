"""The core suite: the exact-in-law engines against straightforward loops and against their parts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from gyrostat.benchmarks.groups import Found, peer_torch, walk, without_torch
from gyrostat.benchmarks.panels import panels
from gyrostat.benchmarks.records import Record, Report
from gyrostat.benchmarks.speed import curves, memory, naive, ours
from gyrostat.benchmarks.speed.naive import Setting
from gyrostat.benchmarks.speed.parts import parts
from gyrostat.benchmarks.timing import best_of

__all__ = ["panels", "run"]


class Sizes(NamedTuple):
    """How much to time; the tests take less."""

    setting: Setting = Setting()
    large: Setting = Setting(dimension=1000, num_samples=80_000)
    steps: int = 200
    seeds: int = 8
    naive_steps: int = 2
    brute_steps: int = 200
    repeats: int = 5
    few_repeats: int = 3
    dimensions: tuple[int, ...] = (10, 20, 50, 100, 200, 300)
    counts: tuple[int, ...] = (1, 2, 4, 8, 16, 32, 64, 128, 256)
    curve_steps: int = 50
    samples: tuple[float, ...] = (1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9)


def run(say: Callable[[str], Any], sizes: Sizes = Sizes()) -> Report:  # noqa: B008  (immutable)
    """Every record of the suite."""
    return walk(GROUPS, sizes, say)


def fresh(sizes: Sizes) -> Found:
    """Fresh batches, per step and seed, against NumPy and PyTorch loops that draw every measurement."""
    setting = sizes.setting
    sides: dict[str, Callable[[], Any]] = {
        "ours": lambda: ours.run(setting, sizes.steps, seeds=sizes.seeds),
        "numpy": lambda: naive.numpy_fresh(setting, sizes.naive_steps),
    }
    notes = []
    if peer_torch():
        sides["torch"] = lambda: naive.torch_fresh(setting, sizes.naive_steps)
    else:
        notes.append(without_torch("core"))
    best = best_of(sides, sizes.few_repeats)
    told = {**setting._asdict(), "steps": sizes.steps, "seeds": sizes.seeds, "naive_steps": sizes.naive_steps}
    mine = best["ours"] / (sizes.steps * sizes.seeds) * 1e6
    names = {"numpy": "NumPy loop, all measurements drawn", "torch": "PyTorch loop, all measurements drawn"}
    return [
        Record(
            f"core/fresh-vs-{name}",
            mine,
            curves.UNIT,
            best[name] / sizes.naive_steps * 1e6,
            names[name],
            1000.0,
            told,
        )
        for name in sides
        if name != "ours"
    ], notes


def fixed(sizes: Sizes) -> Found:
    """A fixed design in time: with the drawing of the peer's matrices, and without."""
    setting, T = sizes.setting, sizes.steps
    designs = naive.numpy_designs(setting)
    best = best_of(
        {
            "ours": lambda: ours.run(setting, T, fixed=True),
            "steps": lambda: naive.numpy_fixed(setting, designs, sizes.brute_steps),
            "draw": lambda: naive.numpy_designs(setting),
        },
        sizes.few_repeats,
    )
    stepping = best["steps"] * T / sizes.brute_steps
    told = {**setting._asdict(), "steps": T, "peer_steps_timed": sizes.brute_steps, "environments": 2}
    told |= {"peer_draw_seconds": best["draw"], "peer_step_seconds": stepping}
    both, name = best["draw"] + stepping, "NumPy, both designs in memory"
    return [
        Record("core/fixed-vs-brute-time", best["ours"], "seconds", both, name, 30.0, told),
        Record("core/fixed-vs-brute-steps", best["ours"], "seconds", stepping, f"{name}, given", None, told),
    ], []


def fixed_memory(sizes: Sizes) -> Found:
    """A fixed design in extra memory."""
    mine, theirs = (memory.peak(side, sizes.setting, sizes.steps) for side in ("ours", "brute"))
    told = {**sizes.setting._asdict(), "steps": sizes.steps, "ours_megabytes": mine, "peer_megabytes": theirs}
    told |= {"method": memory.METHOD, "ratio_with_compilation": theirs["extra"] / mine["first_run"]}
    name, unit = "NumPy, both designs in memory", "MB of extra memory"
    record = Record("core/fixed-vs-brute-memory", mine["extra"], unit, theirs["extra"], name, 10.0, told)
    return [record], []


def fixed_large(sizes: Sizes) -> Found:
    """A fixed design that no memory would hold: the whole process, interpreter and compiler included."""
    setting = sizes.large
    found = memory.peak("ours_once", setting, sizes.steps)
    D = setting.dimension * (setting.dimension + 1) // 2
    told = {**setting._asdict(), "steps": sizes.steps, "measured": found}
    told["peer"] = "computed, not measured: one m x d(d+1)/2 matrix of doubles; two environments need two"
    theirs = setting.num_samples * D * 8 / 1e9
    name = "one design in memory (computed)"
    mine = found["total"] * 2**20 / 1e9
    return [Record("core/fixed-large", mine, "GB", theirs, name, theirs / 4, told)], []


def fresh_parts(sizes: Sizes) -> Found:
    """The engine against the two products and the normals that a step cannot do without."""
    setting = sizes.setting
    pieces = parts(setting.dimension)
    sides: dict[str, Callable[[], Any]] = {name: piece.work for name, piece in pieces.items()}
    sides["ours"] = lambda: ours.run(setting, sizes.steps, seeds=sizes.seeds)
    best = best_of(sides, sizes.repeats)
    mine = best["ours"] / (sizes.steps * sizes.seeds) * 1e6
    costs = {name: best[name] / piece.calls * 1e6 for name, piece in pieces.items()}
    product = min(costs["product by NumPy"], costs["product by JAX"])
    normals = min(costs["normals by NumPy"], costs["normals by JAX"])
    told = {**setting._asdict(), "steps": sizes.steps, "seeds": sizes.seeds, "microseconds": costs}
    name = "two d x d products and d(d+1)/2 normals, each by the faster of NumPy and JAX"
    return [Record("core/fresh-parts", mine, curves.UNIT, 2 * product + normals, name, 0.5, told)], []


def fresh_curves(sizes: Sizes) -> Found:
    """The cost of a step against m, d and the number of seeds."""
    s = sizes
    return [
        curves.flat_in_m(s.setting, s.samples, s.steps, s.seeds, s.repeats),
        curves.growth_in_d(s.setting, s.dimensions, s.curve_steps, s.seeds, s.few_repeats),
        curves.growth_in_seeds(s.setting, s.counts, s.curve_steps, s.few_repeats),
    ], []


GROUPS: tuple[tuple[str, Callable[[Sizes], Found]], ...] = (
    ("fresh batches against loops", fresh),
    ("fresh batches against their parts", fresh_parts),
    ("fresh batches: curves in m, d and seeds", fresh_curves),
    ("a fixed design against brute force, time", fixed),
    ("a fixed design against brute force, memory", fixed_memory),
    ("a large fixed design, about a minute", fixed_large),
)
