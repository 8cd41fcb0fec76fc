"""The deep suite: SGD on deep linear networks, in few dimensions and in all of them, against a PyTorch loop."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial, wraps
from typing import Any, NamedTuple

from gyrostat.benchmarks.groups import Found, peer_torch, walk, without_torch
from gyrostat.benchmarks.panels import panels
from gyrostat.benchmarks.records import Record, Report
from gyrostat.benchmarks.speed import naive_deep as naive
from gyrostat.benchmarks.speed.naive_deep import Network
from gyrostat.benchmarks.timing import best_of

__all__ = ["panels", "run"]

UNIT = "microseconds per step and run"
PEER = "PyTorch autograd loop, SGD with weight decay"


class Sizes(NamedTuple):
    """How much to time; the tests take less."""

    network: Network = Network()
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


def run(say: Callable[[str], Any], sizes: Sizes = Sizes()) -> Report:  # noqa: B008  (immutable)
    """Every record of the suite."""
    return walk(GROUPS, sizes, say)


def cell(network: Network, start: Any) -> tuple[Any, Any]:
    """The library's algorithm and problem for a setting."""
    import gyrostat as gs

    schedule = gs.WarmUp(network.warm_up, network.warm_step_size, gs.Constant(network.step_size, network.ridge))
    algorithm = gs.RidgeDescent(schedule, model=gs.DeepLinear(network.depth, network.width), start=start)
    places = gs.RectangularEnvironments.of(network.target())
    return algorithm, gs.Problem(places, gs.Entries(network.observed, batch_size=1))


def _ours(network: Network, start: Any, steps: int, runs: int, **options: Any) -> Any:
    """Singular values of every run; the time spans everything from the call to NumPy arrays."""
    from gyrostat.engine.simulate import simulate

    options = {"record_at": 1, **options}
    return simulate([cell(network, start)], num_steps=steps, seeds=runs, record=("singular_values",), **options)


def _told(network: Network, **more: Any) -> dict[str, Any]:
    return {**network._asdict(), **more}


def _against_torch(group: Callable[[Sizes], Found]) -> Callable[[Sizes], Found]:
    """A group that has no other peer than PyTorch, and is left out without it."""

    @wraps(group)
    def guarded(sizes: Sizes) -> Found:
        return group(sizes) if peer_torch() else ([], [without_torch("deep")])

    return guarded


@_against_torch
def reduced(sizes: Sizes) -> Found:
    """Many runs together from an orthogonal start (a width of four), and from PyTorch's start (Krylov spaces)."""
    import gyrostat as gs

    records = []
    for depth in sizes.depths:
        network = sizes.network._replace(depth=depth)
        sides: dict[str, Callable[[], Any]] = {
            "ours": partial(_ours, network, gs.Orthogonal(), sizes.steps, sizes.runs, reduction="always"),
            "peer": partial(naive.torch_sgd, network, sizes.naive_steps),
        }
        if depth == 3:
            krylov = (sizes.krylov_steps, sizes.krylov_runs)
            sides["krylov"] = partial(_ours, network, gs.FanInUniform(), *krylov, reduction="auto")
        best = best_of(sides, sizes.repeats)
        peer = best["peer"] / sizes.naive_steps * 1e6
        told = _told(network, steps=sizes.steps, runs=sizes.runs, peer_steps=sizes.naive_steps, start="orthogonal")
        mine = best["ours"] / (sizes.steps * sizes.runs) * 1e6
        records.append(Record(f"deep/reduced-l{depth}-vs-torch", mine, UNIT, peer, PEER, 1000.0, told))
        if depth == 3:
            told = told | {"steps": sizes.krylov_steps, "runs": sizes.krylov_runs, "start": "uniform"}
            mine = best["krylov"] / (sizes.krylov_steps * sizes.krylov_runs) * 1e6
            records.append(Record(f"deep/reduced-krylov-l{depth}-vs-torch", mine, UNIT, peer, PEER, None, told))
    return records, []


@_against_torch
def plain(sizes: Sizes) -> Found:
    """One run in all dimensions, from PyTorch's start."""
    import gyrostat as gs

    records = []
    for depth in sizes.depths:
        network = sizes.network._replace(depth=depth)
        sides: dict[str, Callable[[], Any]] = {
            "ours": partial(_ours, network, gs.FanInUniform(), sizes.plain_steps, 1, reduction="never"),
            "peer": partial(naive.torch_sgd, network, sizes.naive_steps),
        }
        best = best_of(sides, sizes.repeats)
        told = _told(network, steps=sizes.plain_steps, runs=1, peer_steps=sizes.naive_steps, start="uniform")
        mine, peer = best["ours"] / sizes.plain_steps * 1e6, best["peer"] / sizes.naive_steps * 1e6
        records.append(Record(f"deep/plain-l{depth}-vs-torch", mine, UNIT, peer, PEER, 20.0, told))
    return records, []


def collapse(sizes: Sizes) -> Found:
    """The cost of a step when all layers shrink to zero: with denormal numbers it would be several times higher."""
    import gyrostat as gs

    first, last = sizes.collapse
    # A start near zero, which the ridge takes by a tenth in each step: products of three layers leave the normal numbers
    # (2e-308) after 2200 steps, those of two after 3300, the layers themselves after 6600.
    network = sizes.network._replace(warm_up=0, step_size=0.5, ridge=0.2)
    sides: dict[str, Callable[[], Any]] = {
        str(steps): partial(_ours, network, gs.Orthogonal(0.01), steps, sizes.runs) for steps in (1, first, last)
    }
    best = best_of(sides, sizes.repeats)
    before = (best[str(first)] - best["1"]) / ((first - 1) * sizes.runs) * 1e6
    mine = (best[str(last)] - best[str(first)]) / ((last - first) * sizes.runs) * 1e6
    told = _told(network, runs=sizes.runs, steps_before=first, steps_after=last - first)
    return [Record("deep/reduced-collapse", mine, UNIT, before, "the same before the collapse", 1 / 1.25, told)], []


@_against_torch
def figure(sizes: Sizes) -> Found:
    """All of Figure 1: every seed with its path of singular values."""
    import gyrostat as gs

    network, T = sizes.network, sizes.figure_steps
    sides: dict[str, Callable[[], Any]] = {
        "ours": partial(_ours, network, gs.Orthogonal(), T, sizes.seeds, record_at=101),
        "peer": partial(naive.torch_sgd, network, sizes.naive_steps),
    }
    best = best_of(sides, sizes.repeats)
    mine, peer = best["ours"] / (T * sizes.seeds) * 1e6, best["peer"] / sizes.naive_steps * 1e6
    told = _told(network, steps=T, runs=sizes.seeds, seconds=best["ours"], peer_steps=sizes.naive_steps)
    return [Record("deep/reduced-figure-1", mine, UNIT, peer, PEER, 1000.0, told)], []


GROUPS: tuple[tuple[str, Callable[[Sizes], Found]], ...] = (
    ("many runs in few dimensions against a loop", reduced),
    ("one run in all dimensions against a loop", plain),
    ("before and after a collapse", collapse),
    ("Figure 1 of Wang 2023", figure),
)
