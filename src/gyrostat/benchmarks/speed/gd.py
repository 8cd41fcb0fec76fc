"""The gd suite: descent by the library against straightforward loops, and what an iteration of each method costs."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from gyrostat.benchmarks.groups import Found, peer_torch, walk, without_torch
from gyrostat.benchmarks.panels import Axis, panels
from gyrostat.benchmarks.records import Record, Report
from gyrostat.benchmarks.speed import naive_gd as naive
from gyrostat.benchmarks.speed.naive_gd import Descent
from gyrostat.benchmarks.timing import best_of

__all__ = ["panels", "run"]

UNIT = "microseconds per iteration and run"
IN_N = Axis("Factorisation costs nothing in n", "dimension n")


class Sizes(NamedTuple):
    """How much to time; the tests take less."""

    factorisation: Descent = Descent()
    sensing: Descent = Descent(width=4, step_size=0.2, scale=0.05)
    iterations: int = 100_000
    runs: int = 256
    naive_iterations: int = 1000
    dimensions: tuple[int, ...] = (50, 100, 300, 1000, 3000, 10_000)
    curve_runs: int = 64
    samples: tuple[int, ...] = (700, 1200, 2000)
    sensing_iterations: int = 100
    sharing: int = 32
    repeats: int = 3
    limit: int = 1500


def run(say: Callable[[str], Any], sizes: Sizes = Sizes()) -> Report:  # noqa: B008  (immutable)
    """Every record of the suite."""
    return walk(GROUPS, sizes, say)


def _ours(algorithm: Any, problem: Any, steps: int, runs: int, **options: Any) -> Any:
    """The end of every run; the time spans everything from the call to NumPy arrays."""
    from gyrostat.engine.simulate import simulate

    return simulate([(algorithm, problem)], num_steps=steps, seeds=runs, record=("distance",), record_at=1, **options)


def _symmetric(setting: Descent, dimension: int | None = None) -> tuple[Any, Any]:
    import gyrostat as gs

    problem = gs.Problem(gs.Environments.diagonal(dimension or setting.dimension, [1.0, 1.0]), gs.Identity())
    return gs.GradientDescent(setting.step_size, width=setting.width, symmetric=True, start=setting.scale), problem


def _sensed(setting: Descent, num_samples: int, precision: str, values: Any = (1.0, 1.0)) -> tuple[Any, Any]:
    import gyrostat as gs

    seen = gs.Dense(num_samples, design=0, precision=precision)
    problem = gs.Problem(gs.Environments.diagonal(setting.dimension, values), seen)
    return gs.GradientDescent(setting.step_size, width=setting.width, start=setting.scale), problem


def factorisation(sizes: Sizes) -> Found:
    """Symmetric factorisation, per iteration and run when many runs go together."""
    setting = sizes.factorisation
    cell = _symmetric(setting)
    sides: dict[str, Callable[[], Any]] = {
        "ours": partial(_ours, *cell, sizes.iterations, sizes.runs),
        "NumPy loop": partial(naive.numpy_factorisation, setting, sizes.naive_iterations),
    }
    goals = {"NumPy loop": 100.0, "PyTorch autograd loop": 1000.0}
    if peer_torch():
        sides["PyTorch autograd loop"] = partial(naive.torch_factorisation, setting, sizes.naive_iterations)
    best = best_of(sides, sizes.repeats)
    mine = best["ours"] / (sizes.iterations * sizes.runs) * 1e6
    told = {
        **setting._asdict(),
        "iterations": sizes.iterations,
        "runs": sizes.runs,
        "peer_iterations": sizes.naive_iterations,
    }
    records = [
        Record(
            f"gd/factorisation-vs-{name.split()[0].lower()}",
            mine,
            UNIT,
            best[name] / sizes.naive_iterations * 1e6,
            name,
            goals[name],
            told,
        )
        for name in sides
        if name != "ours"
    ]
    return records, [] if peer_torch() else [without_torch("gd")]


def flat_in_n(sizes: Sizes) -> Found:
    """The reduced run's cost of an iteration against n; the largest must cost at most 1.25 times the smallest.

    The start (drawing n x k numbers and one QR decomposition) grows with n: a call of one step is taken off, and told.
    """
    setting, runs, T = sizes.factorisation, sizes.curve_runs, sizes.iterations
    sides: dict[str, Callable[[], Any]] = {
        f"{n} {steps}": partial(_ours, *_symmetric(setting, n), steps, runs)
        for n in sizes.dimensions
        for steps in (1, T + 1)
    }
    best = best_of(sides, sizes.repeats)
    y = [(best[f"{n} {T + 1}"] - best[f"{n} 1"]) / (T * runs) * 1e6 for n in sizes.dimensions]
    told = {**setting._asdict(), "iterations": T, "runs": runs, "curve": IN_N.curve(sizes.dimensions, y, UNIT)}
    told["seconds_to_start_at_the_largest"] = best[f"{sizes.dimensions[-1]} 1"]
    told["largest_over_smallest_time"] = max(y) / min(y)
    name = f"the same with n = {sizes.dimensions[0]}"
    return [Record("gd/factorisation-flat-in-n", y[-1], UNIT, y[0], name, 1 / 1.25, told)], []


def sensing(sizes: Sizes) -> Found:
    """Asymmetric sensing: many runs that share a design, and a single one, in single and in double precision."""
    records: list[Record] = []
    for m in sizes.samples:
        records += _sensing_records(sizes, m)
    return records, [] if peer_torch() else [without_torch("gd")]


def _sensing_records(sizes: Sizes, m: int) -> list[Record]:
    setting, T, torch = sizes.sensing, sizes.sensing_iterations, peer_torch()
    A = naive.design(setting, m)
    # The design is drawn once in either case; ours draws it inside the call, so a call of one step is taken off.
    sides: dict[str, Callable[[], Any]] = {"NumPy": partial(naive.numpy_sensing, setting, A, T)}
    if torch:
        sides["PyTorch"] = partial(naive.torch_sensing, setting, torch.from_numpy(A), T)
    for precision in ("single", "double"):
        for runs in (sizes.sharing, 1):
            cell = _sensed(setting, m, precision)
            for steps in (1, T + 1):
                sides[f"{precision} {runs} {steps}"] = partial(_ours, *cell, steps, runs)
    best = best_of(sides, sizes.repeats)
    records = []
    for precision in ("single", "double"):
        for runs, kind, goal in ((sizes.sharing, "shared", 8.0), (1, "one", 2.0)):
            mine = (best[f"{precision} {runs} {T + 1}"] - best[f"{precision} {runs} 1"]) / (T * runs) * 1e6
            told = {
                **setting._asdict(),
                "num_samples": m,
                "iterations": T,
                "runs": runs,
                "precision_of_the_design": precision,
            }
            for peer in ("NumPy", "PyTorch"):
                if peer in sides:
                    records.append(
                        Record(
                            f"gd/sensing-{m}-{kind}-{precision}-vs-{peer.lower()}",
                            mine,
                            UNIT,
                            best[peer] / T * 1e6,
                            f"{peer} loop with matrix-vector products",
                            goal if precision == "single" else None,
                            told,
                        )
                    )
    return records


def methods(sizes: Sizes) -> Found:
    """Time to a loss of 1e-12 for each method that gets there: iterations (median) times the cost of one."""
    import gyrostat as gs

    setting, m = sizes.sensing, sizes.samples[0]
    made: dict[str, dict[str, Any]] = {
        "imbalance": {"events": (gs.ImbalanceStep(below=0.02),)},
        "orthonormal": {"start": gs.OrthonormalZero()},
        "scaled": {},
        "prec": {},
    }
    kinds = {"scaled": gs.ScaledGD, "prec": gs.PrecGD}
    found: dict[tuple[float, str], float] = {}
    told: dict[tuple[float, str], dict[str, Any]] = {}
    for kappa in (1.0, 10.0):
        problem = _sensed(setting, m, "single", (1.0, 1 / kappa))[1]
        sides: dict[str, Callable[[], Any]] = {}
        reached = {}
        for name, options in made.items():
            start: dict[str, Any] = {"start": setting.scale, **options}
            algorithm = kinds.get(name, gs.GradientDescent)(setting.step_size, width=setting.width, **start)
            steps = sizes.limit * (4 if kappa > 1 else 1)
            reached[name] = _ours(algorithm, problem, steps, 8, tolerance=1e-12).ends["reached"].ravel()
            for T in (1, sizes.sensing_iterations + 1):
                sides[f"{name} {T}"] = partial(_ours, algorithm, problem, T, 8)
        best = best_of(sides, sizes.repeats)
        for name in made:
            cost = (best[f"{name} {sizes.sensing_iterations + 1}"] - best[f"{name} 1"]) / (8 * sizes.sensing_iterations)
            there = np.where(reached[name] < 0, np.inf, reached[name])
            found[kappa, name] = float(np.median(there)) * cost
            told[kappa, name] = {"num_samples": m, "kappa": kappa, "microseconds_per_iteration": cost * 1e6, "runs": 8}
            if np.isfinite(np.median(there)):
                told[kappa, name]["iterations"] = float(np.median(there))
    return [
        Record(
            f"gd/sensing-time-kappa-{kappa:g}-{name}",
            seconds,
            "seconds per run to 1e-12",
            found[kappa, "scaled"],
            "ScaledGD, the same iterations of ours",
            None,
            told[kappa, name],
        )
        for (kappa, name), seconds in found.items()
        if np.isfinite(seconds)
    ], [
        f"gd/sensing-time-kappa-{kappa:g}-{name}: half of the runs did not get to 1e-12."
        for (kappa, name), seconds in found.items()
        if not np.isfinite(seconds)
    ]


GROUPS: tuple[tuple[str, Callable[[Sizes], Found]], ...] = (
    ("factorisation against loops", factorisation),
    ("factorisation: the curve in n", flat_in_n),
    ("sensing against loops", sensing),
    ("time to 1e-12 of each method", methods),
)
