"""The torch suite: what a batch of one environment costs, against PyTorch's batches and a group sampler; building."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from benchmarks.measuring import best_of, peer_torch, without_torch
from benchmarks.records import BenchmarkRecord, Group, GroupResult, Report, run_groups


class TorchSizes(NamedTuple):
    """How much to time; the tests take less."""

    rows: int = 300_000
    environments: int = 10
    batch_size: int = 32
    group_batches: int = 300
    many_rows: int = 10_000_000
    few_environments: int = 100
    some_rows: int = 1_000_000
    many_environments: int = 100_000
    repeats: int = 5
    few_repeats: int = 3


def run(say: Callable[[str], Any], sizes: TorchSizes = TorchSizes()) -> Report:  # noqa: B008  (immutable)
    """Every record of the suite."""
    if not peer_torch():
        return Report([], [without_torch("torch")])
    return run_groups(GROUPS, sizes, say)


def group_batches(labels: np.ndarray, batch_size: int, count: int, seed: int = 0) -> Iterator[list[int]]:
    """A group sampler as those of the domain-generalisation suites: per batch a random group, and rows of it by ``choice``.

    ``RandomState.choice`` without replacement permutes all rows of the group for every batch.
    """
    rng = np.random.RandomState(seed)
    groups = [np.flatnonzero(labels == label) for label in np.unique(labels)]
    for _ in range(count):
        rows = groups[rng.choice(len(groups))]
        yield rng.choice(rows, size=batch_size, replace=rows.size < batch_size).tolist()


def overhead(sizes: TorchSizes) -> GroupResult:
    """An epoch of batches in a bare loop, per batch."""
    from torch.utils.data import BatchSampler, RandomSampler

    from gyrostat.torch import EnvironmentBatchSampler

    labels = np.random.default_rng(0).integers(sizes.environments, size=sizes.rows)
    ours = EnvironmentBatchSampler(labels, sizes.batch_size, order="shuffled")
    torch_batches = BatchSampler(RandomSampler(range(sizes.rows)), sizes.batch_size, drop_last=True)

    def empty(batches: Any) -> None:
        for _ in batches:
            pass

    best = best_of(
        {
            "ours": lambda: empty(ours),
            "torch": lambda: empty(torch_batches),
            "groups": lambda: empty(group_batches(labels, sizes.batch_size, sizes.group_batches)),
        },
        sizes.repeats,
    )
    mine, unit = best["ours"] / len(ours) * 1e6, "microseconds per batch"
    settings = {**sizes._asdict(), "batches": len(ours)}
    peers = {
        "torch": (best["torch"] / len(torch_batches), "BatchSampler of a RandomSampler (PyTorch)", 1.0),
        "groups": (best["groups"] / sizes.group_batches, "a group sampler by RandomState.choice", 100.0),
    }
    return [
        BenchmarkRecord(f"torch/batch-vs-{name}", mine, unit, seconds * 1e6, peer, goal, settings)
        for name, (seconds, peer, goal) in peers.items()
    ], []


def building(sizes: TorchSizes) -> GroupResult:
    """Making a sampler from integer labels; the peer is the time that we allow ourselves."""
    from gyrostat.torch import EnvironmentBatchSampler

    records = []
    for name, rows, environments, allowed in (
        ("many-labels", sizes.many_rows, sizes.few_environments, 3.0),
        ("many-environments", sizes.some_rows, sizes.many_environments, 1.0),
    ):
        labels = np.random.default_rng(0).integers(environments, size=rows)
        make = {"ours": lambda labels=labels: EnvironmentBatchSampler(labels, 32, small="wrap")}
        mine = best_of(make, sizes.few_repeats)["ours"]
        settings = {"rows": rows, "environments": environments}
        goal = f"the goal of {allowed:g} s"
        records.append(BenchmarkRecord(f"torch/build-{name}", mine, "seconds", allowed, goal, 1.0, settings))
    return records, []


GROUPS: list[Group[TorchSizes]] = [("overhead per batch", overhead), ("building from labels", building)]
