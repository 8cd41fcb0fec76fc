"""What ``environment_report`` finds in rectified networks that were trained on coloured digits, and what it is good for."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np

import torch
from benchmarks.coloured.methods import cross_entropy
from benchmarks.coloured.networks import WIDTH
from benchmarks.coloured.pictures import ColouredPictures, coloured
from benchmarks.coloured.study import BATCH, SIGN_CHANGES
from gyrostat.torch import environment_report, project_out
from torch import nn

FACTORS = (1.2, 5.0)
"""Multiples of the largest stable step at which training goes on."""


def loss(model: nn.Module, batch: tuple[torch.Tensor, torch.Tensor]) -> torch.Tensor:
    """The mean logistic loss."""
    rows, labels = batch
    return cross_entropy(model(rows).squeeze(-1), labels).mean()


def accuracy(model: nn.Module, rows: torch.Tensor, labels: torch.Tensor) -> float:
    """The share of right answers."""
    with torch.no_grad():
        return float((model(rows).squeeze(-1).sign() == labels).float().mean())


def reported(data: str, seeds: int, steps: int) -> list[dict[str, Any]]:
    """For each seed: the share of the first direction on the colours, accuracies before and after, what large steps do."""
    pictures = coloured(data, SIGN_CHANGES, seeds, as_pictures=False)
    return [_one(pictures, seed, steps) for seed in range(seeds)]


def _one(pictures: ColouredPictures, seed: int, steps: int) -> dict[str, Any]:
    rows, labels = pictures.train[seed], pictures.train_labels[seed]
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        model = nn.Sequential(nn.Linear(rows.shape[1], WIDTH), nn.ReLU(), nn.Linear(WIDTH, 1))
    half = len(rows) // 2
    batches = {"first": (rows[:half], labels[:half]), "second": (rows[half:], labels[half:])}
    _train(model, [(rows, labels)], 0.3, steps, seed)
    report = environment_report(model, loss, batches)
    without = project_out(model, report)
    tests = {view: tuple(part[seed] for part in pictures.tests[view]) for view in ("reversed", "grey")}
    found = {
        "on_colours": float((report.input_directions[0][-2:] ** 2).sum()),
        "before": accuracy(model, *tests["reversed"]),
        "after": accuracy(without, *tests["reversed"]),
        "grey": accuracy(without, *tests["grey"]),
        "bound": report.largest_stable_step,
    }
    for factor in FACTORS:
        end = _train(copy.deepcopy(model), list(batches.values()), factor * report.largest_stable_step, steps, seed)
        found[f"end at {factor:g}"] = end
    return found


def _train(model: nn.Module, parts: list, step_size: float, steps: int, seed: int) -> float:
    """Plain SGD on batches of the parts in turn; the loss of all rows in the end."""
    rng = np.random.default_rng([seed, 7])
    optimizer = torch.optim.SGD(model.parameters(), lr=step_size)
    for t in range(steps):
        rows, labels = parts[t % len(parts)]
        picked = torch.as_tensor(rng.integers(len(rows), size=BATCH))
        optimizer.zero_grad()
        loss(model, (rows[picked], labels[picked])).backward()
        optimizer.step()
    with torch.no_grad():
        return float(torch.stack([loss(model, part) for part in parts]).mean())
