"""One of two processes that train with amplified steps; test_amplified_optimiser.py starts them and compares what they save."""

from __future__ import annotations

import os
import sys
from datetime import timedelta
from pathlib import Path

from torch.nn.parallel import DistributedDataParallel

import torch
from gyrostat.torch import AmplifiedHeterogeneity
from torch import distributed, nn

STEPS, ROWS = 12, 16


def network(seed: int) -> nn.Module:
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1)).double()


def batch(step: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Rows of environment ``step % 2``, in which the second feature has another sign."""
    X = torch.randn(ROWS, 3, generator=torch.Generator().manual_seed(step), dtype=torch.float64)
    return X, X[:, :1] + (1 - 2 * (step % 2)) * X[:, 1:2]


def train(model: nn.Module, rank: int = 0, world_size: int = 1) -> AmplifiedHeterogeneity:
    """Train on this process's share of every batch."""
    optimizer = AmplifiedHeterogeneity(torch.optim.SGD(model.parameters(), lr=0.05), [0, 1], amplify=4.0)
    for step in range(STEPS):
        X, y = (values[rank::world_size] for values in batch(step))
        optimizer.zero_grad()
        nn.functional.mse_loss(model(X), y).backward()
        optimizer.step(step % 2)
    return optimizer


def main(rank: int, folder: Path) -> None:
    meeting = f"file://{folder / 'meeting'}"  # no port that another process could take
    distributed.init_process_group("gloo", init_method=meeting, rank=rank, world_size=2, timeout=timedelta(seconds=60))
    wrapped = DistributedDataParallel(network(rank))
    averaged = train(wrapped, rank, 2).averaged(wrapped)
    torch.save({"last": wrapped.module.state_dict(), "averaged": averaged.state_dict()}, folder / f"rank{rank}.pt")
    # Together, and without a network that still holds the group: otherwise its threads may abort the process at its end.
    distributed.barrier()
    del wrapped
    distributed.destroy_process_group()


if __name__ == "__main__":
    torch.set_num_threads(1)
    main(int(sys.argv[1]), Path(sys.argv[2]))
    os._exit(0)  # all is written; threads of gloo that still end abort the interpreter at its end, on a busy machine
