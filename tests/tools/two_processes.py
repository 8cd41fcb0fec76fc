"""One of the processes of a DistributedDataParallel run; test_torch_distributed.py starts them and compares what they save."""

from __future__ import annotations

import sys
from datetime import timedelta
from pathlib import Path

import numpy as np
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, TensorDataset

import torch
from gyrostat.torch import EnvironmentBatchSampler
from torch import distributed

LABELS = np.repeat([0, 1, 2], [50, 70, 90])
EPOCHS = 2


def data() -> TensorDataset:
    """Rows with their numbers, so that a loop can say which it saw."""
    rng = np.random.default_rng(0)
    X = torch.as_tensor(rng.standard_normal((210, 3)))
    y = X[:, :1] + torch.as_tensor(LABELS - 0.5)[:, None] * X[:, 1:2]
    return TensorDataset(X, y, torch.arange(210))


def network(seed: int) -> torch.nn.Module:
    torch.manual_seed(seed)
    return torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Tanh(), torch.nn.Linear(4, 1)).double()


def train(network: torch.nn.Module, sampler: EnvironmentBatchSampler) -> list[list[int]]:
    """Two epochs of plain SGD; the rows of every step."""
    optimizer = torch.optim.SGD(network.parameters(), lr=0.1)
    loader, seen = DataLoader(data(), batch_sampler=sampler), []
    for epoch in range(EPOCHS):
        sampler.set_epoch(epoch)
        for X, y, rows in loader:
            optimizer.zero_grad()
            torch.nn.functional.mse_loss(network(X), y).backward()
            optimizer.step()
            seen.append(rows.tolist())
    return seen


def main(rank: int, folder: Path) -> None:
    meeting = f"file://{folder / 'meeting'}"  # no port that another process could take
    sampler = EnvironmentBatchSampler(LABELS, 8, order="shuffled", seed=5)  # finds its process when it is iterated
    distributed.init_process_group("gloo", init_method=meeting, rank=rank, world_size=2, timeout=timedelta(seconds=60))
    # The networks start apart; DistributedDataParallel gives all of them rank 0's parameters.
    wrapped = DistributedDataParallel(network(rank))
    seen = train(wrapped, sampler)
    found = {"seen": seen, "process": [sampler.rank, sampler.num_replicas], "state": wrapped.module.state_dict()}
    torch.save(found, folder / f"rank{rank}.pt")
    # Together, and without a network that still holds the group: otherwise its threads may abort the process at its end.
    distributed.barrier()
    del wrapped
    distributed.destroy_process_group()


if __name__ == "__main__":
    torch.set_num_threads(1)
    main(int(sys.argv[1]), Path(sys.argv[2]))
