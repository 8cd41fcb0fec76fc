"""The deep suite: SGD on deep linear networks, exactly reduced to few dimensions and in full, against a PyTorch loop."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial, wraps
from typing import Any, NamedTuple

import numpy as np

from benchmarks.measuring import best_of, peer_torch, without_torch
from benchmarks.records import BenchmarkRecord, Group, GroupResult, Report, run_groups

UNIT = "microseconds per step and run"
PEER = "PyTorch autograd loop, SGD with weight decay"


# --- the peer: a loop as one would write it in PyTorch from Wang 2023 -------------------------------------------------------


class NetworkSetting(NamedTuple):
    """Complete [[1, *], [eps, 1]] with layers of one width, by the schedule of Figure 1."""

    depth: int = 3
    width: int = 100
    eps: float = 0.25
    ridge: float = 0.1
    step_size: float = 0.2
    warm_up: int = 500
    warm_step_size: float = 0.03
    observed: tuple[tuple[int, int], ...] = ((0, 0), (1, 0), (1, 1))

    def target(self) -> np.ndarray:
        """The truth, of rank one."""
        return np.array([[1.0, 1 / self.eps], [self.eps, 1.0]])

    def shapes(self) -> list[tuple[int, int]]:
        """The shape of every layer."""
        widths = [2, *[self.width] * (self.depth - 1), 2]
        return list(zip(widths[1:], widths[:-1], strict=True))

    def layers(self) -> list[np.ndarray]:
        """Uniform between -+ 1 / sqrt(fan_in), as ``torch.nn.Linear`` draws them."""
        rng = np.random.default_rng(0)
        return [rng.uniform(-1, 1, shape) / shape[1] ** 0.5 for shape in self.shapes()]


def torch_sgd(setting: NetworkSetting, steps: int, precision: str = "float32") -> Any:
    """SGD on one observed entry per step, chosen with replacement; the final product. PyTorch's default is single precision."""
    import torch

    dtype = getattr(torch, precision)
    linear = [torch.nn.Linear(n, m, bias=False, dtype=dtype) for m, n in setting.shapes()]
    network = torch.nn.Sequential(*linear)
    with torch.no_grad():
        for layer, W in zip(linear, setting.layers(), strict=True):
            layer.weight.copy_(torch.from_numpy(W))
    optimiser = torch.optim.SGD(network.parameters(), lr=setting.warm_step_size, weight_decay=setting.ridge)
    inputs, target = torch.eye(2, dtype=dtype), torch.from_numpy(setting.target()).to(dtype)
    chosen = np.random.default_rng(1).integers(len(setting.observed), size=steps).tolist()
    for t in range(steps):
        if t == setting.warm_up:
            optimiser.param_groups[0]["lr"] = setting.step_size
        i, j = setting.observed[chosen[t]]
        optimiser.zero_grad()
        loss = (network(inputs[j])[i] - target[i, j]) ** 2
        loss.backward()
        optimiser.step()
    with torch.no_grad():
        return network(inputs).T


# --- the suite ---------------------------------------------------------------------------------------------------------------


class DeepSizes(NamedTuple):
    """How much to time; the tests take less."""

    network: NetworkSetting = NetworkSetting()
    depths: tuple[int, ...] = (3, 4)
    runs: int = 512
    steps: int = 20_000
    krylov_runs: int = 64
    krylov_steps: int = 1000
    plain_steps: int = 20_000
    naive_steps: int = 1000
    seeds: int = 1000
    figure_steps: int = 20_000
    collapse: tuple[int, int] = (2000, 10_000)
    repeats: int = 3


def run(say: Callable[[str], Any], sizes: DeepSizes = DeepSizes()) -> Report:  # noqa: B008  (immutable)
    """Every record of the suite."""
    return run_groups(GROUPS, sizes, say)


def cell(network: NetworkSetting, start: Any) -> tuple[Any, Any]:
    """The library's algorithm and problem for a network."""
    import gyrostat as gs

    schedule = gs.schedules.WarmUp(
        network.warm_up, network.warm_step_size, gs.schedules.Constant(network.step_size, network.ridge)
    )
    algorithm = gs.RidgeDescent(schedule, model=gs.DeepLinear(network.depth, network.width), start=start)
    environments = gs.RectangularEnvironments.of(network.target())
    return algorithm, gs.Problem(environments, gs.Entries(network.observed, batch_size=1))


def _ours(network: NetworkSetting, start: Any, steps: int, runs: int, **options: Any) -> Any:
    """Singular values of every run; the time spans everything from the call to NumPy arrays."""
    from gyrostat.engine.simulate import simulate

    options = {"record_at": 1, **options}
    return simulate([cell(network, start)], num_steps=steps, seeds=runs, record=("singular_values",), **options)


def _against_torch(group: Callable[[DeepSizes], GroupResult]) -> Callable[[DeepSizes], GroupResult]:
    """A group whose only peer is PyTorch; it is left out where PyTorch is not installed."""

    @wraps(group)
    def guarded(sizes: DeepSizes) -> GroupResult:
        return group(sizes) if peer_torch() else ([], [without_torch("deep")])

    return guarded


@_against_torch
def reduced(sizes: DeepSizes) -> GroupResult:
    """Many runs in one call, from an orthogonal start (a width of four), and from PyTorch's start (Krylov spaces)."""
    import gyrostat as gs

    records = []
    for depth in sizes.depths:
        network = sizes.network._replace(depth=depth)
        sides: dict[str, Callable[[], Any]] = {
            "ours": partial(_ours, network, gs.starts.Orthogonal(), sizes.steps, sizes.runs, reduction="always"),
            "peer": partial(torch_sgd, network, sizes.naive_steps),
        }
        if depth == 3:
            krylov = (sizes.krylov_steps, sizes.krylov_runs)
            sides["krylov"] = partial(_ours, network, gs.starts.FanInUniform(), *krylov, reduction="auto")
        best = best_of(sides, sizes.repeats)
        peer = best["peer"] / sizes.naive_steps * 1e6
        settings = {
            **network._asdict(),
            "steps": sizes.steps,
            "runs": sizes.runs,
            "peer_steps": sizes.naive_steps,
            "start": "orthogonal",
        }
        mine = best["ours"] / (sizes.steps * sizes.runs) * 1e6
        records.append(BenchmarkRecord(f"deep/reduced-l{depth}-vs-torch", mine, UNIT, peer, PEER, 1000.0, settings))
        if depth == 3:
            settings = settings | {"steps": sizes.krylov_steps, "runs": sizes.krylov_runs, "start": "uniform"}
            mine = best["krylov"] / (sizes.krylov_steps * sizes.krylov_runs) * 1e6
            records.append(
                BenchmarkRecord(f"deep/reduced-krylov-l{depth}-vs-torch", mine, UNIT, peer, PEER, None, settings)
            )
    return records, []


@_against_torch
def plain(sizes: DeepSizes) -> GroupResult:
    """One run without reduction, from PyTorch's start."""
    import gyrostat as gs

    records = []
    for depth in sizes.depths:
        network = sizes.network._replace(depth=depth)
        sides: dict[str, Callable[[], Any]] = {
            "ours": partial(_ours, network, gs.starts.FanInUniform(), sizes.plain_steps, 1, reduction="never"),
            "peer": partial(torch_sgd, network, sizes.naive_steps),
        }
        best = best_of(sides, sizes.repeats)
        settings = {
            **network._asdict(),
            "steps": sizes.plain_steps,
            "runs": 1,
            "peer_steps": sizes.naive_steps,
            "start": "uniform",
        }
        mine, peer = best["ours"] / sizes.plain_steps * 1e6, best["peer"] / sizes.naive_steps * 1e6
        records.append(BenchmarkRecord(f"deep/plain-l{depth}-vs-torch", mine, UNIT, peer, PEER, 20.0, settings))
    return records, []


def collapse(sizes: DeepSizes) -> GroupResult:
    """The cost of a step when all layers shrink to zero: with denormal numbers it would be several times higher."""
    import gyrostat as gs

    first, last = sizes.collapse
    # The start is near zero, and the ridge shrinks it by a tenth in each step: products of three layers leave the normal
    # numbers (2e-308) after 2200 steps, those of two after 3300, the layers themselves after 6600.
    network = sizes.network._replace(warm_up=0, step_size=0.5, ridge=0.2)
    sides: dict[str, Callable[[], Any]] = {
        str(steps): partial(_ours, network, gs.starts.Orthogonal(0.01), steps, sizes.runs) for steps in (1, first, last)
    }
    best = best_of(sides, sizes.repeats)
    before = (best[str(first)] - best["1"]) / ((first - 1) * sizes.runs) * 1e6
    mine = (best[str(last)] - best[str(first)]) / ((last - first) * sizes.runs) * 1e6
    settings = {**network._asdict(), "runs": sizes.runs, "steps_before": first, "steps_after": last - first}
    return [
        BenchmarkRecord("deep/reduced-collapse", mine, UNIT, before, "the same before the collapse", 1 / 1.25, settings)
    ], []


@_against_torch
def figure(sizes: DeepSizes) -> GroupResult:
    """All of Figure 1 of Wang 2023: every seed with its path of singular values."""
    import gyrostat as gs

    network, T = sizes.network, sizes.figure_steps
    sides: dict[str, Callable[[], Any]] = {
        "ours": partial(_ours, network, gs.starts.Orthogonal(), T, sizes.seeds, record_at=101),
        "peer": partial(torch_sgd, network, sizes.naive_steps),
    }
    best = best_of(sides, sizes.repeats)
    mine, peer = best["ours"] / (T * sizes.seeds) * 1e6, best["peer"] / sizes.naive_steps * 1e6
    settings = {
        **network._asdict(),
        "steps": T,
        "runs": sizes.seeds,
        "seconds": best["ours"],
        "peer_steps": sizes.naive_steps,
    }
    return [BenchmarkRecord("deep/reduced-figure-1", mine, UNIT, peer, PEER, 1000.0, settings)], []


GROUPS: tuple[Group[DeepSizes], ...] = (
    ("many runs in few dimensions against a loop", reduced),
    ("one run in all dimensions against a loop", plain),
    ("before and after a collapse", collapse),
    ("Figure 1 of Wang 2023", figure),
)
