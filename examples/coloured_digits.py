"""Coloured digits: batches of one environment each against pooled ones, in an ordinary PyTorch loop.

    python examples/coloured_digits.py [--seeds 10] [--out docs/images]

The label is whether a digit is at least 5, wrong for one training row in four. Each digit is printed red or green, and the
colour agrees with the label with probability ``0.6 + spread`` in one environment and ``0.6 - spread`` in the other. A network
sees ten principal components of the grey picture and the ink of each colour. ``docs/coloured-digits.md`` explains the result.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import xarray as xr
from sklearn.datasets import load_digits
from torch.utils.data import DataLoader, TensorDataset

import torch
from gyrostat.torch import EnvironmentBatchSampler, TrajectoryRecorder
from torch import nn

AGREEMENT, NOISE = 0.6, 0.25
COMPONENTS, TRAINING_ROWS, BATCH_SIZE = 10, 1300, 200
SPREADS = (0.0, 0.1, 0.2, 0.3, 0.4)
STEP_SIZES = (0.03, 0.1, 0.2, 0.3, 0.4, 0.5)
VIEWS = {"agreeing": 1.0, "random": 0.5, "reversed": 0.0}
"""Test sets by the probability that the colour agrees with the label; there is a grey one too."""


@dataclass(frozen=True)
class Digits:
    """Training rows with their environments, and the shapes and labels of the test rows."""

    rows: torch.Tensor
    labels: torch.Tensor
    environments: np.ndarray
    test_shapes: np.ndarray
    test_labels: np.ndarray


def ink(labels: np.ndarray, agreement: np.ndarray | float, rng: np.random.Generator) -> np.ndarray:
    """Red and green ink (n, 2), of mean square 1 each: red agrees with the label 1, green with -1."""
    red = np.where(rng.random(len(labels)) < agreement, labels, -labels) > 0
    return np.sqrt(2) * np.stack([red, ~red], axis=1)


@functools.cache
def _pictures() -> tuple[np.ndarray, np.ndarray]:
    return load_digits(return_X_y=True)


def digits(spread: float, seed: int) -> Digits:
    """A random split of scikit-learn's digits, coloured."""
    rng = np.random.default_rng([seed, 0])
    pictures, digit = _pictures()
    order = rng.permutation(len(digit))
    train, test = order[:TRAINING_ROWS], order[TRAINING_ROWS:]
    centred = pictures - pictures[train].mean(axis=0)
    variances, components = np.linalg.eigh(np.cov(centred[train].T))
    shapes = centred @ (components / np.sqrt(np.maximum(variances, 1e-9)))[:, : -COMPONENTS - 1 : -1]
    truth = np.where(digit >= 5, 1.0, -1.0)
    seen = truth[train] * np.where(rng.random(TRAINING_ROWS) < NOISE, -1, 1)
    environments = np.arange(TRAINING_ROWS) % 2
    colours = ink(seen, AGREEMENT + spread * (1 - 2 * environments), rng)
    rows = torch.as_tensor(np.hstack([shapes[train], colours]))
    return Digits(rows, torch.as_tensor(seen), environments, shapes[test], truth[test])


class Quadratic(nn.Module):
    """f(x) = sum_j (w_j . x)^2 - sum_k (w_k . x)^2: the matrix of Xu 2024's quadratic networks, with both signs."""

    def __init__(self, features: int, width: int = 40):
        super().__init__()
        self.first = nn.Linear(features, 2 * width, bias=False)
        self.register_buffer("signs", torch.tensor([1.0, -1.0]).repeat_interleave(width))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.first(x) ** 2 @ self.signs


class Rectified(nn.Module):
    """f(x) = a . relu(W x)."""

    def __init__(self, features: int, width: int = 40):
        super().__init__()
        self.first, self.last = nn.Linear(features, width, bias=False), nn.Linear(width, 1, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.last(torch.relu(self.first(x))).squeeze(1)


NETWORKS = {"quadratic": Quadratic, "rectified": Rectified}


def train(network: nn.Module, data: Digits, batches: str, step_size: float, steps: int, seed: int) -> np.ndarray:
    """Plain SGD on the squared loss; the share of the first layer that lies on the colours, twenty times along the way."""
    # Pooled batches are those of one environment that holds every row.
    environments = data.environments if batches == "hetero" else np.zeros(TRAINING_ROWS)
    sampler = EnvironmentBatchSampler(environments, BATCH_SIZE, order="shuffled", seed=seed, num_batches=steps)
    # batch_size=None: the data set is asked for a whole batch at once, which is faster than row by row.
    loader = DataLoader(TensorDataset(data.rows, data.labels), batch_size=None, sampler=sampler)
    optimizer = torch.optim.SGD(network.parameters(), lr=step_size)
    axes = np.eye(COMPONENTS + 2)
    subspaces = {"shape": axes[:, :COMPONENTS], "colour": axes[:, COMPONENTS:]}
    recorder = TrajectoryRecorder(network.first.weight, subspaces, every=steps // 20)
    recorder.attach(optimizer)
    for rows, labels in loader:
        optimizer.zero_grad()
        (0.5 * (network(rows) - labels) ** 2).mean().backward()
        optimizer.step()
    path = recorder.result()
    squares = {name: (path[name] ** 2).sum(["axis_0", f"{name}_direction"]).values for name in subspaces}
    return squares["colour"] / (squares["colour"] + squares["shape"])


@torch.no_grad()
def judged(network: nn.Module, data: Digits, seed: int) -> dict[str, float]:
    """The share of right answers on test digits whose colour agrees, is random, is reversed, or is missing.

    ``colour_effect`` is half of what red adds to the answer over green, on average: labels are 1 and -1.
    """
    rng, truth = np.random.default_rng([seed, 1]), data.test_labels

    def answers(colours: np.ndarray) -> np.ndarray:
        return network(torch.as_tensor(np.hstack([data.test_shapes, colours]))).numpy()

    ones = np.ones_like(truth)
    inks = {view: ink(truth, agreement, rng) for view, agreement in VIEWS.items()}
    inks["grey"] = np.full((len(truth), 2), np.sqrt(0.5))  # half of each
    found = {view: float((np.sign(answers(colours)) == truth).mean()) for view, colours in inks.items()}
    effect = (answers(ink(ones, 1.0, rng)) - answers(ink(ones, 0.0, rng))).mean() / 2
    return {**found, "colour_effect": float(effect)}


def run(
    seeds: int = 10, steps: int = 400, spreads: Sequence[float] = SPREADS, step_sizes: Sequence[float] = STEP_SIZES
) -> xr.Dataset:
    """Both networks with both kinds of batches, over spreads and step sizes; a seed has its own split, colouring and start."""
    grid = {
        "network": list(NETWORKS),
        "batches": ["pooled", "hetero"],
        "spread": list(spreads),
        "step_size": list(step_sizes),
        "seed": list(range(seeds)),
    }
    shape = tuple(map(len, grid.values()))
    found = {name: np.empty(shape) for name in (*VIEWS, "grey", "colour_effect")}
    share = np.empty((*shape, 21))
    for place in itertools.product(*map(range, shape)):
        kind, batches, spread, step_size, seed = (values[i] for values, i in zip(grid.values(), place, strict=True))
        data, network = digits(spread, seed), started(kind, seed)
        share[place] = train(network, data, batches, step_size, steps, seed)
        for name, value in judged(network, data, seed).items():
            found[name][place] = value
    dims = tuple(grid)
    variables = {**{name: (dims, values) for name, values in found.items()}, "colour_share": ((*dims, "step"), share)}
    return xr.Dataset(variables, {**grid, "step": np.arange(21) * (steps // 20)}, {"steps": steps})


def started(kind: str, seed: int, scale: float = 0.1) -> nn.Module:
    """A network whose parameters are PyTorch's, made small: what the theory asks of a start."""
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        network = NETWORKS[kind](COMPONENTS + 2).double()
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.mul_(scale)
    return network


if __name__ == "__main__":
    from coloured_digits_figure import main

    main()
