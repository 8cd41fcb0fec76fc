"""The core suite: runs with fresh or fixed Gaussian measurements, against straightforward loops and against their parts.

``python -m benchmarks.speed.core SIDE JSON`` measures the peak memory of one side in a process of its own.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from benchmarks.measuring import best_of, extra_memory, peer_torch, without_torch
from benchmarks.records import BenchmarkRecord, CurveAxis, Group, GroupResult, Report, run_groups
from benchmarks.speed import core_peers as peers
from benchmarks.speed.core_peers import CoreSetting

UNIT = "microseconds per step and seed"


class CoreSizes(NamedTuple):
    """How much to time; the tests take less."""

    setting: CoreSetting = CoreSetting()
    large: CoreSetting = CoreSetting(dimension=1000, num_samples=80_000)
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


def run(say: Callable[[str], Any], sizes: CoreSizes = CoreSizes()) -> Report:  # noqa: B008  (immutable)
    """Every record of the suite."""
    return run_groups(GROUPS, sizes, say)


# --- our side --------------------------------------------------------------------------------------------------------------


def cell(setting: CoreSetting, *, fixed: bool = False) -> Any:
    """HeteroSGD on the setting, with fresh or fixed Gaussian measurements."""
    import gyrostat as gs

    law = gs.TwoPoint(mean=1.0, spread=setting.spread)
    measurements = (gs.FixedGaussian if fixed else gs.FreshGaussian)(setting.num_samples)
    problem = gs.Problem(gs.RandomEnvironments(setting.dimension, law=law), measurements)
    return gs.HeteroSGD(setting.step_size, init_scale=setting.init_scale), problem


def ours(setting: CoreSetting, steps: int, *, seeds: int = 1, fixed: bool = False) -> Any:
    """Run the setting and record only the end; the time spans everything from the call to NumPy arrays."""
    from gyrostat.engine.simulate import simulate

    return simulate([cell(setting, fixed=fixed)], num_steps=steps, seeds=seeds, record_at=1)


# --- fresh measurements ----------------------------------------------------------------------------------------------------


def fresh(sizes: CoreSizes) -> GroupResult:
    """Fresh batches, per step and seed, against NumPy and PyTorch loops that draw every measurement."""
    setting = sizes.setting
    sides: dict[str, Callable[[], Any]] = {
        "ours": lambda: ours(setting, sizes.steps, seeds=sizes.seeds),
        "numpy": lambda: peers.numpy_fresh(setting, sizes.naive_steps),
    }
    notes = []
    if peer_torch():
        sides["torch"] = lambda: peers.torch_fresh(setting, sizes.naive_steps)
    else:
        notes.append(without_torch("core"))
    best = best_of(sides, sizes.few_repeats)
    settings = {**setting._asdict(), "steps": sizes.steps, "seeds": sizes.seeds, "naive_steps": sizes.naive_steps}
    mine = best["ours"] / (sizes.steps * sizes.seeds) * 1e6
    names = {"numpy": "NumPy loop, all measurements drawn", "torch": "PyTorch loop, all measurements drawn"}
    return [
        BenchmarkRecord(
            f"core/fresh-vs-{name}",
            mine,
            UNIT,
            best[name] / sizes.naive_steps * 1e6,
            names[name],
            1000.0,
            settings,
        )
        for name in sides
        if name != "ours"
    ], notes


class TimedOperation(NamedTuple):
    """Work that repeats one operation ``calls`` times."""

    work: Callable[[], Any]
    calls: int


OPERATIONS = ("product by NumPy", "normals by NumPy", "product by JAX", "normals by JAX")


def operations(d: int, calls: int = 500) -> dict[str, TimedOperation]:
    """A product of two d x d matrices and d (d + 1)/2 normals, by NumPy and by JAX, in double precision and tight loops."""
    rng = np.random.default_rng(0)
    A = np.linalg.qr(rng.standard_normal((d, d)))[0]  # orthogonal: repeated products neither grow nor vanish
    out, z = np.empty((d, d)), np.empty(d * (d + 1) // 2)

    def products() -> None:
        for _ in range(calls):
            np.matmul(A, A, out=out)

    def normals() -> None:
        for _ in range(calls):
            rng.standard_normal(out=z)

    works = (products, normals, *_jax_operations(A, z.size, calls))
    return {name: TimedOperation(work, calls) for name, work in zip(OPERATIONS, works, strict=True)}


def _jax_operations(A: np.ndarray, count: int, calls: int) -> tuple[Callable[[], Any], Callable[[], Any]]:
    import jax
    import jax.numpy as jnp

    from gyrostat.jax_tools.float64 import double

    @jax.jit
    def products(A: jax.Array) -> jax.Array:
        return jax.lax.fori_loop(0, calls, lambda _, x: x @ A, A)

    @jax.jit
    def normals(key: jax.Array) -> jax.Array:
        def add(i: jax.Array, x: jax.Array) -> jax.Array:
            return x + jax.random.normal(jax.random.fold_in(key, i), x.shape, dtype=float)

        return jax.lax.fori_loop(0, calls, add, jnp.zeros(count, dtype=float))

    def in_double(work: Callable[[Any], Any], argument: Callable[[], Any]) -> Callable[[], Any]:
        def call() -> None:
            with double():
                jax.block_until_ready(work(argument()))

        return call

    return in_double(products, lambda: jnp.asarray(A)), in_double(normals, lambda: jax.random.key(0))


def fresh_parts(sizes: CoreSizes) -> GroupResult:
    """The engine against the two products and the normals that a step cannot do without."""
    setting = sizes.setting
    pieces = operations(setting.dimension)
    sides: dict[str, Callable[[], Any]] = {name: piece.work for name, piece in pieces.items()}
    sides["ours"] = lambda: ours(setting, sizes.steps, seeds=sizes.seeds)
    best = best_of(sides, sizes.repeats)
    mine = best["ours"] / (sizes.steps * sizes.seeds) * 1e6
    costs = {name: best[name] / piece.calls * 1e6 for name, piece in pieces.items()}
    product = min(costs["product by NumPy"], costs["product by JAX"])
    normals = min(costs["normals by NumPy"], costs["normals by JAX"])
    settings = {**setting._asdict(), "steps": sizes.steps, "seeds": sizes.seeds, "microseconds": costs}
    name = "two d x d products and d(d+1)/2 normals, each by the faster of NumPy and JAX"
    return [BenchmarkRecord("core/fresh-parts", mine, UNIT, 2 * product + normals, name, 0.5, settings)], []


# --- curves of the cost of a step ------------------------------------------------------------------------------------------

IN_M = CurveAxis("The number of measurements costs nothing", "measurements m")
IN_D = CurveAxis("Growth with the dimension", "dimension d")
IN_SEEDS = CurveAxis("Growth with the number of seeds", "seeds in one call")


def fresh_curves(sizes: CoreSizes) -> GroupResult:
    """The cost of a step against m, d and the number of seeds."""
    return [_flat_in_m(sizes), _growth_in_d(sizes), _growth_in_seeds(sizes)], []


def _flat_in_m(sizes: CoreSizes) -> BenchmarkRecord:
    """Every m is timed in turn with the others; the largest must cost at most 1.25 times the smallest."""
    setting, samples, steps, seeds = sizes.setting, sizes.samples, sizes.steps, sizes.seeds
    best = _costs({m: (setting._replace(num_samples=int(m)), seeds) for m in samples}, steps, sizes.repeats)
    settings = _with_curve(setting, steps, IN_M, x=samples, y=best, seeds=seeds)
    settings["largest_over_smallest_time"] = max(best) / min(best)
    name = f"the same with m = {samples[0]:.0e}"
    return BenchmarkRecord("core/fresh-flat-in-m", best[-1], UNIT, best[0], name, 1 / 1.25, settings)


def _growth_in_d(sizes: CoreSizes) -> BenchmarkRecord:
    """The exponent of the cost in d, fitted over the upper half of the dimensions."""
    setting, dimensions, steps, seeds = sizes.setting, sizes.dimensions, sizes.curve_steps, sizes.seeds
    best = _costs({d: (setting._replace(dimension=d), seeds) for d in dimensions}, steps, sizes.few_repeats)
    upper = slice(len(dimensions) // 2, None)
    exponent = float(np.polyfit(np.log(dimensions[upper]), np.log(best[upper]), 1)[0])
    settings = _with_curve(setting, steps, IN_D, x=dimensions, y=best, seeds=seeds) | {"exponent": exponent}
    return BenchmarkRecord("core/fresh-growth-in-d", exponent, "exponent of the cost in d", settings=settings)


def _growth_in_seeds(sizes: CoreSizes) -> BenchmarkRecord:
    """The cost per seed when many seeds run in one call."""
    setting, counts, steps = sizes.setting, sizes.counts, sizes.curve_steps
    best = _costs({n: (setting, n) for n in counts}, steps, sizes.few_repeats)
    settings = _with_curve(setting, steps, IN_SEEDS, x=counts, y=best)
    return BenchmarkRecord("core/fresh-growth-in-seeds", best[-1], f"{UNIT} at {counts[-1]} seeds", settings=settings)


def _costs(points: dict[Any, tuple[CoreSetting, int]], steps: int, repeats: int) -> list[float]:
    """Microseconds per step and seed at every point (setting, seeds) of a curve."""
    sides: dict[str, Callable[[], Any]] = {
        str(x): partial(ours, setting, steps, seeds=seeds) for x, (setting, seeds) in points.items()
    }
    best = best_of(sides, repeats)
    return [best[str(x)] / (steps * seeds) * 1e6 for x, (_, seeds) in points.items()]


def _with_curve(
    setting: CoreSetting, steps: int, axis: CurveAxis, *, x: Sequence, y: Sequence, **more: Any
) -> dict[str, Any]:
    return {**setting._asdict(), "steps": steps, **more, "curve": axis.curve(x, y, UNIT)}


# --- fixed measurements ----------------------------------------------------------------------------------------------------


def fixed(sizes: CoreSizes) -> GroupResult:
    """The time of a fixed design, with and without the time in which the peer draws its matrices."""
    setting, T = sizes.setting, sizes.steps
    designs = peers.numpy_designs(setting)
    best = best_of(
        {
            "ours": lambda: ours(setting, T, fixed=True),
            "steps": lambda: peers.numpy_fixed(setting, designs, sizes.brute_steps),
            "draw": lambda: peers.numpy_designs(setting),
        },
        sizes.few_repeats,
    )
    stepping = best["steps"] * T / sizes.brute_steps
    settings = {**setting._asdict(), "steps": T, "peer_steps_timed": sizes.brute_steps, "environments": 2}
    settings |= {"peer_draw_seconds": best["draw"], "peer_step_seconds": stepping}
    both, name = best["draw"] + stepping, "NumPy, both designs in memory"
    return [
        BenchmarkRecord("core/fixed-vs-brute-time", best["ours"], "seconds", both, name, 30.0, settings),
        BenchmarkRecord(
            "core/fixed-vs-brute-steps", best["ours"], "seconds", stepping, f"{name}, given", None, settings
        ),
    ], []


MEMORY_METHOD = (
    "Each side runs in a process of its own. Ours runs once, which compiles; freed memory is given back to "
    "the system (malloc_trim), so that the compiler's cannot be reused unseen; the resident size is noted, "
    "the kernel's peak counter is reset (/proc/self/clear_refs), and the same run is repeated. extra is the "
    "new peak minus the resident size before. The peer draws both designs and takes its steps in the same "
    "way. first_run is the extra memory of our first run, compilation included; total is the peak of the "
    "whole process, libraries and compilation included."
)


def fixed_memory(sizes: CoreSizes) -> GroupResult:
    """The extra memory of a fixed design."""
    mine, theirs = (peak_memory(side, sizes.setting, sizes.steps) for side in ("ours", "brute"))
    settings = {**sizes.setting._asdict(), "steps": sizes.steps, "ours_megabytes": mine, "peer_megabytes": theirs}
    settings |= {"method": MEMORY_METHOD, "ratio_with_compilation": theirs["extra"] / mine["first_run"]}
    name, unit = "NumPy, both designs in memory", "MB of extra memory"
    record = BenchmarkRecord("core/fixed-vs-brute-memory", mine["extra"], unit, theirs["extra"], name, 10.0, settings)
    return [record], []


def fixed_large(sizes: CoreSizes) -> GroupResult:
    """The memory of the whole process, interpreter and compiler included, for a design that no memory would hold."""
    setting = sizes.large
    measured = peak_memory("ours_once", setting, sizes.steps)
    D = setting.dimension * (setting.dimension + 1) // 2
    settings = {**setting._asdict(), "steps": sizes.steps, "measured": measured}
    settings["peer"] = "computed, not measured: one m x d(d+1)/2 matrix of doubles; two environments need two"
    theirs = setting.num_samples * D * 8 / 1e9
    name = "one design in memory (computed)"
    mine = measured["total"] * 2**20 / 1e9
    return [BenchmarkRecord("core/fixed-large", mine, "GB", theirs, name, theirs / 4, settings)], []


def peak_memory(side: str, setting: CoreSetting, steps: int) -> dict[str, float]:
    """Megabytes of "ours", "ours_once" (no second run) or "brute", under the names of ``MEMORY_METHOD``."""
    arguments = json.dumps([setting._asdict(), steps])
    command = [sys.executable, "-m", "benchmarks.speed.core", side, arguments]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"measuring the memory of {side} failed: {done.stderr.strip()[-500:]}")
    return json.loads(done.stdout.splitlines()[-1])


def main(side: str, arguments: str) -> None:
    """Measure the memory of one side in this process and print the numbers as JSON."""
    given, steps = json.loads(arguments)
    setting, tiny = CoreSetting(**given), CoreSetting(dimension=5, num_samples=50)
    if side == "brute":
        peers.numpy_fixed(tiny, peers.numpy_designs(tiny), 2)
        first, highest = extra_memory(lambda: peers.numpy_fixed(setting, peers.numpy_designs(setting), steps))
        warm = first
    else:
        ours(tiny, steps, fixed=True)
        first, highest = extra_memory(lambda: ours(setting, steps, fixed=True))
        warm = first if side == "ours_once" else extra_memory(lambda: ours(setting, steps, fixed=True))[0]
    print(json.dumps({"extra": warm, "first_run": first, "total": highest}))


GROUPS: tuple[Group[CoreSizes], ...] = (
    ("fresh batches against loops", fresh),
    ("fresh batches against their parts", fresh_parts),
    ("fresh batches: curves in m, d and seeds", fresh_curves),
    ("a fixed design against brute force, time", fixed),
    ("a fixed design against brute force, memory", fixed_memory),
    ("a large fixed design, about a minute", fixed_large),
)

if __name__ == "__main__":
    main(*sys.argv[1:])
