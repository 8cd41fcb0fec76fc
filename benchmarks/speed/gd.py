"""The gd suite: gradient descent by the library against straightforward loops, and the time that each method needs."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from benchmarks.measuring import best_of, peer_torch, without_torch
from benchmarks.records import BenchmarkRecord, CurveAxis, Group, GroupResult, Report, run_groups

UNIT = "microseconds per iteration and run"
IN_N = CurveAxis("Factorisation costs nothing in n", "dimension n")


# --- the peers: loops as one would write them from Xiong 2024 ----------------------------------------------------------------


class DescentSetting(NamedTuple):
    """Recover diag(1, 1, 0, ...) of size n with k columns."""

    dimension: int = 50
    width: int = 5
    step_size: float = 0.01
    scale: float = 0.5

    def target(self) -> np.ndarray:
        """The truth."""
        return np.diag([1.0, 1.0] + [0.0] * (self.dimension - 2))

    def one_factor(self) -> np.ndarray:
        """X0 = alpha N(0, 1/k)."""
        X = np.random.default_rng(0).standard_normal((self.dimension, self.width))
        return self.scale / self.width**0.5 * X

    def two_factors(self) -> tuple[np.ndarray, np.ndarray]:
        """F0 = alpha N(0, 1/n), G0 = (alpha/3) N(0, 1/n)."""
        F, G = np.random.default_rng(0).standard_normal((2, self.dimension, self.width)) / self.dimension**0.5
        return self.scale * F, self.scale / 3 * G


def numpy_factorisation(setting: DescentSetting, steps: int) -> np.ndarray:
    """``X <- X - 2 eta (X X^T - Sigma) X``."""
    X, S, eta = setting.one_factor(), setting.target(), setting.step_size
    for _ in range(steps):
        X = X - 2 * eta * ((X @ X.T - S) @ X)
    return X


def torch_factorisation(setting: DescentSetting, steps: int) -> Any:
    """The same by automatic differentiation of the loss."""
    import torch

    X = torch.from_numpy(setting.one_factor()).requires_grad_()
    S = torch.from_numpy(setting.target())
    for _ in range(steps):
        loss = ((X @ X.T - S) ** 2).sum() / 2
        (slope,) = torch.autograd.grad(loss, X)
        with torch.no_grad():
            X -= setting.step_size * slope
    return X


def design(setting: DescentSetting, num_samples: int) -> np.ndarray:
    """Rows vec(A_i) with entries N(0, 1/m)."""
    return np.random.default_rng(1).standard_normal((num_samples, setting.dimension**2)) / num_samples**0.5


def numpy_sensing(setting: DescentSetting, A: np.ndarray, steps: int) -> tuple[np.ndarray, np.ndarray]:
    """``F <- F - eta M G``, ``G <- G - eta M^T F`` with ``M = A^T (A vec(F G^T) - y)``."""
    (F, G), eta, n = setting.two_factors(), setting.step_size, setting.dimension
    y = A @ setting.target().ravel()
    for _ in range(steps):
        M = ((A @ (F @ G.T).ravel() - y) @ A).reshape(n, n)
        F, G = F - eta * M @ G, G - eta * M.T @ F
    return F, G


def torch_sensing(setting: DescentSetting, A: Any, steps: int) -> tuple[Any, Any]:
    """The same in PyTorch, with the products written out."""
    import torch

    F, G = (torch.from_numpy(x) for x in setting.two_factors())
    eta, n = setting.step_size, setting.dimension
    y = A @ torch.from_numpy(setting.target()).ravel()
    for _ in range(steps):
        M = ((A @ (F @ G.T).ravel() - y) @ A).reshape(n, n)
        F, G = F - eta * M @ G, G - eta * M.T @ F
    return F, G


# --- the suite ---------------------------------------------------------------------------------------------------------------


class GdSizes(NamedTuple):
    """How much to time; the tests take less."""

    factorisation: DescentSetting = DescentSetting()
    sensing: DescentSetting = DescentSetting(width=4, step_size=0.2, scale=0.05)
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


def run(say: Callable[[str], Any], sizes: GdSizes = GdSizes()) -> Report:  # noqa: B008  (immutable)
    """Every record of the suite."""
    return run_groups(GROUPS, sizes, say)


def _ours(algorithm: Any, problem: Any, steps: int, runs: int, **options: Any) -> Any:
    """The end of every run; the time spans everything from the call to NumPy arrays."""
    from gyrostat.engine.simulate import simulate

    return simulate([(algorithm, problem)], num_steps=steps, seeds=runs, record=("distance",), record_at=1, **options)


def _symmetric(setting: DescentSetting, dimension: int | None = None) -> tuple[Any, Any]:
    import gyrostat as gs

    problem = gs.Problem(gs.Environments.diagonal(dimension or setting.dimension, [1.0, 1.0]), gs.Identity())
    return gs.GradientDescent(setting.step_size, width=setting.width, symmetric=True, start=setting.scale), problem


def _sensed(setting: DescentSetting, num_samples: int, precision: str, values: Any = (1.0, 1.0)) -> tuple[Any, Any]:
    import gyrostat as gs

    measurements = gs.Dense(num_samples, design=0, precision=precision)
    problem = gs.Problem(gs.Environments.diagonal(setting.dimension, values), measurements)
    return gs.GradientDescent(setting.step_size, width=setting.width, start=setting.scale), problem


def factorisation(sizes: GdSizes) -> GroupResult:
    """Symmetric factorisation, per iteration and run, many runs in one call."""
    setting = sizes.factorisation
    cell = _symmetric(setting)
    sides: dict[str, Callable[[], Any]] = {
        "ours": partial(_ours, *cell, sizes.iterations, sizes.runs),
        "NumPy loop": partial(numpy_factorisation, setting, sizes.naive_iterations),
    }
    goals = {"NumPy loop": 100.0, "PyTorch autograd loop": 1000.0}
    if peer_torch():
        sides["PyTorch autograd loop"] = partial(torch_factorisation, setting, sizes.naive_iterations)
    best = best_of(sides, sizes.repeats)
    mine = best["ours"] / (sizes.iterations * sizes.runs) * 1e6
    settings = {
        **setting._asdict(),
        "iterations": sizes.iterations,
        "runs": sizes.runs,
        "peer_iterations": sizes.naive_iterations,
    }
    records = [
        BenchmarkRecord(
            f"gd/factorisation-vs-{name.split()[0].lower()}",
            mine,
            UNIT,
            best[name] / sizes.naive_iterations * 1e6,
            name,
            goals[name],
            settings,
        )
        for name in sides
        if name != "ours"
    ]
    return records, [] if peer_torch() else [without_torch("gd")]


def flat_in_n(sizes: GdSizes) -> GroupResult:
    """The reduced run's cost of an iteration against n; the largest must cost at most 1.25 times the smallest.

    The start (drawing n x k numbers and one QR decomposition) grows with n: a call of one step is taken off, and settings.
    """
    setting, runs, T = sizes.factorisation, sizes.curve_runs, sizes.iterations
    sides: dict[str, Callable[[], Any]] = {
        f"{n} {steps}": partial(_ours, *_symmetric(setting, n), steps, runs)
        for n in sizes.dimensions
        for steps in (1, T + 1)
    }
    best = best_of(sides, sizes.repeats)
    y = [(best[f"{n} {T + 1}"] - best[f"{n} 1"]) / (T * runs) * 1e6 for n in sizes.dimensions]
    settings = {**setting._asdict(), "iterations": T, "runs": runs, "curve": IN_N.curve(sizes.dimensions, y, UNIT)}
    settings["seconds_to_start_at_the_largest"] = best[f"{sizes.dimensions[-1]} 1"]
    settings["largest_over_smallest_time"] = max(y) / min(y)
    name = f"the same with n = {sizes.dimensions[0]}"
    return [BenchmarkRecord("gd/factorisation-flat-in-n", y[-1], UNIT, y[0], name, 1 / 1.25, settings)], []


def sensing(sizes: GdSizes) -> GroupResult:
    """Asymmetric sensing: many runs that share a design, and a single one, in single and in double precision."""
    records: list[BenchmarkRecord] = []
    for m in sizes.samples:
        records += _sensing_records(sizes, m)
    return records, [] if peer_torch() else [without_torch("gd")]


def _sensing_records(sizes: GdSizes, m: int) -> list[BenchmarkRecord]:
    setting, T, torch = sizes.sensing, sizes.sensing_iterations, peer_torch()
    A = design(setting, m)
    # The design is drawn once in either case; ours draws it inside the call, so the time of a call of one step is subtracted.
    sides: dict[str, Callable[[], Any]] = {"NumPy": partial(numpy_sensing, setting, A, T)}
    if torch:
        sides["PyTorch"] = partial(torch_sensing, setting, torch.from_numpy(A), T)
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
            settings = {
                **setting._asdict(),
                "num_samples": m,
                "iterations": T,
                "runs": runs,
                "precision_of_the_design": precision,
            }
            for peer in ("NumPy", "PyTorch"):
                if peer in sides:
                    records.append(
                        BenchmarkRecord(
                            f"gd/sensing-{m}-{kind}-{precision}-vs-{peer.lower()}",
                            mine,
                            UNIT,
                            best[peer] / T * 1e6,
                            f"{peer} loop with matrix-vector products",
                            goal if precision == "single" else None,
                            settings,
                        )
                    )
    return records


def methods(sizes: GdSizes) -> GroupResult:
    """Time to a loss of 1e-12 of each method that reaches it: the median number of iterations times the cost of one."""
    import gyrostat as gs

    setting, m = sizes.sensing, sizes.samples[0]
    options: dict[str, dict[str, Any]] = {
        "imbalance": {"events": (gs.events.ImbalanceStep(below=0.02),)},
        "orthonormal": {"start": gs.starts.OrthonormalZero()},
        "scaled": {},
        "prec": {},
    }
    kinds = {"scaled": gs.ScaledGD, "prec": gs.PrecGD}
    seconds: dict[tuple[float, str], float] = {}
    settings: dict[tuple[float, str], dict[str, Any]] = {}
    for kappa in (1.0, 10.0):
        problem = _sensed(setting, m, "single", (1.0, 1 / kappa))[1]
        sides: dict[str, Callable[[], Any]] = {}
        reached = {}
        for name, given in options.items():
            start = {"start": setting.scale, **given}
            algorithm = kinds.get(name, gs.GradientDescent)(setting.step_size, width=setting.width, **start)
            steps = sizes.limit * (4 if kappa > 1 else 1)
            reached[name] = _ours(algorithm, problem, steps, 8, tolerance=1e-12).ends["reached"].ravel()
            for T in (1, sizes.sensing_iterations + 1):
                sides[f"{name} {T}"] = partial(_ours, algorithm, problem, T, 8)
        best = best_of(sides, sizes.repeats)
        for name in options:
            cost = (best[f"{name} {sizes.sensing_iterations + 1}"] - best[f"{name} 1"]) / (8 * sizes.sensing_iterations)
            iterations = float(np.median(np.where(reached[name] < 0, np.inf, reached[name])))
            about = {"num_samples": m, "kappa": kappa, "microseconds_per_iteration": cost * 1e6, "runs": 8}
            seconds[kappa, name] = iterations * cost
            settings[kappa, name] = about | ({"iterations": iterations} if np.isfinite(iterations) else {})
    records = [
        BenchmarkRecord(
            f"gd/sensing-time-kappa-{kappa:g}-{name}",
            mine,
            "seconds per run to 1e-12",
            seconds[kappa, "scaled"],
            "ScaledGD, the same iterations of ours",
            None,
            settings[kappa, name],
        )
        for (kappa, name), mine in seconds.items()
        if np.isfinite(mine)
    ]
    return records, [
        f"gd/sensing-time-kappa-{kappa:g}-{name}: half of the runs did not reach 1e-12."
        for (kappa, name), mine in seconds.items()
        if not np.isfinite(mine)
    ]


GROUPS: tuple[Group[GdSizes], ...] = (
    ("factorisation against loops", factorisation),
    ("factorisation: the curve in n", flat_in_n),
    ("sensing against loops", sensing),
    ("time to 1e-12 of each method", methods),
)
