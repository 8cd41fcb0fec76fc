"""Training loops in processes of their own, which can be killed at any step and started again from their last checkpoint.

Each loop notes the rows of every optimiser step. ``launch`` starts one, ``Evidence`` reads what it left. The loops of trainers
that are heavy to install are in ``trainer_loops.py``.
"""

from __future__ import annotations

import faulthandler
import json
import multiprocessing
import os
import signal
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Subset, TensorDataset, random_split

import torch
from gyrostat.torch import EnvironmentBatchSampler, EnvironmentBatchStream, audit_environments
from torch import distributed

LABELS = np.random.default_rng(1).permutation(np.repeat([0, 1, 2], [50, 70, 90]))
EPOCHS, BATCH, SEED, EVERY = 2, 8, 5, 3
"""A checkpoint is written after every third step."""
PATIENCE = 120
"""Seconds that a process may take."""
PRELOADED = ["torch._dynamo", "torch.nn.parallel", "gyrostat.torch"]
"""What the process that all others are forked from imports."""


@dataclass(frozen=True)
class Run:
    """One process of a loop. ``kill_at`` is the step after which, before any checkpoint of it, the process kills itself."""

    folder: Path
    rank: int = 0
    world: int = 1
    workers: int = 0
    accumulate: int = 1
    kill_at: int | None = None
    fault: str = ""

    @property
    def checkpoint(self) -> Path:
        return self.folder / f"checkpoint{self.rank}.pt"

    def options(self) -> dict[str, Any]:
        return {"num_workers": self.workers, "multiprocessing_context": "fork"} if self.workers else {}

    def note(self, step: int, rows: list[list[int]]) -> None:
        """Write the rows of a step's batches, then die if it is time."""
        with (self.folder / f"rank{self.rank}.jsonl").open("a") as file:
            file.write(json.dumps({"step": step, "rows": rows}) + "\n")
        if step == self.kill_at:
            os.kill(os.getpid(), signal.SIGKILL)

    def save(self, content: Any) -> None:
        part = self.checkpoint.with_suffix(".part")
        torch.save(content, part)
        os.replace(part, self.checkpoint)

    def finish(self, model: torch.nn.Module, report: Any) -> None:
        torch.save(model.state_dict(), self.folder / f"weights{self.rank}.pt")
        found = {
            "steps": report.steps,
            "mixed": report.mixed,
            "repeated": report.repeated,
            "causes": list(report.causes),
        }
        (self.folder / f"audit{self.rank}.json").write_text(json.dumps(found))


def data() -> TensorDataset:
    """Rows with their numbers, so that a loop can say which it saw."""
    rng = np.random.default_rng(0)
    X = torch.as_tensor(rng.standard_normal((len(LABELS), 3)))
    y = X[:, :1] + torch.as_tensor(LABELS - 0.5)[:, None] * X[:, 1:2]
    return TensorDataset(X, y, torch.arange(len(LABELS)))


def network() -> torch.nn.Module:
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Tanh(), torch.nn.Linear(4, 1)).double()


def loss_of(model: torch.nn.Module, X: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return torch.nn.functional.mse_loss(model(X), y)


def join_group(run: Run) -> None:
    """A gloo group of the run's processes, on 127.0.0.1 only and without a port that another process could take.

    It ends with the process: destroyed before the networks that use it, it hangs once in a while.
    """
    if run.world == 1:
        return
    os.environ["GLOO_SOCKET_IFNAME"] = "lo"
    meeting = f"file://{run.folder / f'meeting{run.kill_at}'}"
    limit = timedelta(seconds=60)
    distributed.init_process_group("gloo", init_method=meeting, rank=run.rank, world_size=run.world, timeout=limit)


def sampler_of(run: Run, **options: Any) -> EnvironmentBatchSampler:
    hold = 1 if run.fault == "unheld" else run.accumulate
    return EnvironmentBatchSampler(LABELS, BATCH, order="shuffled", seed=SEED, hold=hold, **options)


def plain(run: Run) -> None:
    """A loop of one's own: one or several processes, with or without workers, with or without accumulation."""
    sampler = sampler_of(run)  # before the process group exists
    join_group(run)
    train(run, sampler, DataLoader(data(), batch_sampler=sampler, **run.options()))


def unheld(run: Run) -> None:
    """The fault: accumulation without ``hold``."""
    sampler = EnvironmentBatchSampler(LABELS, BATCH, order="shuffled", seed=SEED, num_batches=24)
    train(run, sampler, DataLoader(data(), batch_sampler=sampler))


def one_environment_per_process(run: Run) -> None:
    """The fault: each process takes its own batches, as a tool that divides them would hand them out."""
    sampler = sampler_of(run, rank=0, num_replicas=1)
    join_group(run)
    sampler.seed += run.rank
    train(run, sampler, DataLoader(data(), batch_sampler=sampler))


def same_rows(run: Run) -> None:
    """The fault: all processes think that they are alone."""
    sampler = sampler_of(run, rank=0, num_replicas=1)
    join_group(run)
    train(run, sampler, DataLoader(data(), batch_sampler=sampler))


def part_of_split() -> Subset:
    return random_split(Subset(data(), range(20, 210)), [150, 40], generator=torch.Generator().manual_seed(3))[0]


def subset_sampler() -> EnvironmentBatchSampler:
    return EnvironmentBatchSampler.for_dataset(part_of_split(), LABELS, BATCH, order="shuffled", seed=SEED)


def subset(run: Run) -> None:
    """A part of a random split of a subset, with the labels of the whole data set."""
    sampler = subset_sampler()
    train(run, sampler, DataLoader(part_of_split(), batch_sampler=sampler))


def batch_stream(batch_size: int) -> EnvironmentBatchStream:
    whole = data()
    samples = [whole[i] for i in range(len(whole))]
    return EnvironmentBatchStream(samples, lambda sample: int(LABELS[sample[2]]), batch_size, buffer_size=16, seed=SEED)


def stream(run: Run) -> None:
    """A stream that is read from beginning to end."""
    batches = batch_stream(BATCH)
    join_group(run)
    train(run, batches, DataLoader(batches, batch_size=None, **run.options()))


def train(run: Run, order: EnvironmentBatchSampler | EnvironmentBatchStream, loader: DataLoader) -> None:
    """Plain SGD from the last checkpoint on; every step is noted, and every third is saved."""
    model = network()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    epoch, batch, step = 0, 0, 0
    if run.checkpoint.exists():
        saved = torch.load(run.checkpoint, weights_only=True)
        model.load_state_dict(saved["model"])
        optimizer.load_state_dict(saved["optimizer"])
        step = saved["step"]
        if isinstance(order, EnvironmentBatchSampler):
            order.load_state_dict(saved["order"])
            epoch, batch = saved["order"]["epoch"], saved["order"]["start"]
        else:
            epoch, batch = saved["order"]
            order.set_epoch(epoch, start=batch)
    wrapped = DistributedDataParallel(model) if run.world > 1 else model
    with audit_environments(optimizer) as audit:
        for now in range(epoch, EPOCHS):
            order.set_epoch(now)
            rows: list[list[int]] = []
            for X, y, numbers in loader:
                batch += 1
                rows.append(numbers.tolist())
                audit.batch(LABELS[rows[-1]], rows=rows[-1])
                (loss_of(wrapped, X, y) / run.accumulate).backward()
                if len(rows) < run.accumulate:
                    continue
                optimizer.step()
                optimizer.zero_grad()
                run.note(step, rows)
                step, rows = step + 1, []
                if step % EVERY == 0:
                    at = order.state_dict(start=batch) if isinstance(order, EnvironmentBatchSampler) else [now, batch]
                    run.save(
                        {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "step": step, "order": at}
                    )
            batch = 0
        run.finish(model, audit.report())


# --- processes -------------------------------------------------------------------------------------------------------------


def _child(loop: Callable[[Run], None], run: Run) -> None:
    torch.set_num_threads(1)
    with (run.folder / f"stderr{run.rank}").open("w") as errors:
        os.dup2(errors.fileno(), 2)
        faulthandler.dump_traceback_later(PATIENCE - 20)  # where it hangs, if it does
        loop(run)
    os._exit(0)


def launch(loop: Callable[[Run], None], folder: Path, *, world: int = 1, **options: Any) -> None:
    """Run all processes of a loop to their end: a clean one, or the one that they give themselves at ``kill_at``."""
    folder.mkdir(parents=True, exist_ok=True)
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(PRELOADED)
    runs = [Run(folder, rank=rank, world=world, **options) for rank in range(world)]
    children = [context.Process(target=_child, args=(loop, run)) for run in runs]
    try:
        for child in children:
            child.start()
        for child in children:
            child.join(PATIENCE)
    finally:
        for child in children:
            child.kill()
    wanted = 0 if options.get("kill_at") is None else -signal.SIGKILL
    for run, child in zip(runs, children, strict=True):
        trouble = (run.folder / f"stderr{run.rank}").read_text()
        if child.exitcode != wanted:
            raise RuntimeError(f"process {run.rank} ended with {child.exitcode}:\n{trouble}")


@dataclass(frozen=True)
class Evidence:
    """What the processes of a loop left in their folder."""

    folder: Path
    world: int = 1

    def steps(self) -> list[dict[int, list[list[int]]]]:
        """For each process, the rows of the batches of each step; of steps that were done twice, the second."""
        return [
            {note["step"]: note["rows"] for note in map(json.loads, (self.folder / f"rank{rank}.jsonl").open())}
            for rank in range(self.world)
        ]

    def notes(self) -> int:
        """How many steps were noted, counting those that were done twice twice."""
        return sum(1 for _ in (self.folder / "rank0.jsonl").open())

    def weights(self) -> list[dict[str, torch.Tensor]]:
        return [torch.load(self.folder / f"weights{rank}.pt", weights_only=True) for rank in range(self.world)]

    def audit(self) -> dict[str, Any]:
        return json.loads((self.folder / "audit0.json").read_text())

    def mixed_steps(self) -> int:
        """Steps with rows of several environments, counted from the rows themselves, without the audit."""
        steps = self.steps()
        together = ([row for rank in steps for batch in rank[n] for row in batch] for n in steps[0])
        return sum(len(set(LABELS[rows])) > 1 for rows in together)

    def rows_of_first_epoch(self) -> set[int]:
        """The rows that the first epoch used, over all processes, if all epochs have the same length."""
        count = len(self.steps()[0]) // EPOCHS
        return {row for rank in self.steps() for n in range(count) for batch in rank[n] for row in batch}


@dataclass(frozen=True)
class Resumed:
    """A loop that ran undisturbed, and the same loop killed and started again."""

    undisturbed: Evidence
    resumed: Evidence

    def exact(self) -> bool:
        """Whether all batches and the final weights are the same, bit for bit."""
        same = self.undisturbed.steps() == self.resumed.steps()
        pairs = zip(self.undisturbed.weights(), self.resumed.weights(), strict=True)
        return same and all(torch.equal(one[name], two[name]) for one, two in pairs for name in one)


def killed_and_resumed(
    loop: Callable[[Run], None], folder: Path, *, kill_at: int, world: int = 1, **options: Any
) -> Resumed:
    """Run a loop undisturbed, then again with ``kill -9`` after step ``kill_at`` and a second start from the checkpoint."""
    launch(loop, folder / "undisturbed", world=world, **options)
    launch(loop, folder / "killed", world=world, kill_at=kill_at, **options)
    launch(loop, folder / "killed", world=world, **options)
    return Resumed(Evidence(folder / "undisturbed", world), Evidence(folder / "killed", world))
