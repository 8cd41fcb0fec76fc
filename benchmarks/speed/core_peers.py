"""Straightforward NumPy and PyTorch loops, as one would write them from the paper: the peers of the core suite.

A symmetric Gaussian matrix is drawn through its d (d + 1)/2 isometric coordinates, half the numbers of a full
matrix, so the peers are already twice as fast as a loop over full matrices.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from gyrostat.models.symmetric_coordinates import smat, svec, upper_triangle

Batch = tuple[Any, Any]
CHUNK = 4000
"""Measurements drawn together (160 MB at d = 100)."""


class CoreSetting(NamedTuple):
    """Two environments ``u u^T + (1 +- spread) v v^T``, u and v orthonormal, with m measurements per step."""

    dimension: int = 100
    num_samples: int = 8000
    spread: float = 6.0
    step_size: float = 0.05
    init_scale: float = 1e-3

    def targets(self) -> list[np.ndarray]:
        """The signals of the two environments."""
        u, v = np.linalg.qr(np.random.default_rng(0).standard_normal((self.dimension, 2)))[0].T
        return [np.outer(u, u) + s * np.outer(v, v) for s in (1 - self.spread, 1 + self.spread)]

    def start(self) -> np.ndarray:
        """``U0 = alpha I``."""
        return self.init_scale * np.eye(self.dimension)


def numpy_step(U: np.ndarray, batch: Iterable[Batch], m: int, eta: float) -> np.ndarray:
    """``U - eta G U`` with ``G = (1/m) sum (<X_i, U U^T> - y_i) X_i``; the batch comes in chunks (X, y)."""
    A = svec(U @ U.T)
    G = smat(sum((X @ A - y) @ X for X, y in batch) / m)
    return U - eta * (G @ U)


def numpy_fresh(setting: CoreSetting, steps: int) -> np.ndarray:
    """HeteroSGD with new measurements at every step."""
    rng, U, targets = np.random.default_rng(1), setting.start(), [svec(A) for A in setting.targets()]

    def draw(target: np.ndarray) -> Iterable[Batch]:
        for at in range(0, setting.num_samples, CHUNK):
            X = rng.standard_normal((min(CHUNK, setting.num_samples - at), target.size))
            yield X, X @ target

    for _ in range(steps):
        U = numpy_step(U, draw(targets[rng.integers(2)]), setting.num_samples, setting.step_size)
    return U


def numpy_designs(setting: CoreSetting) -> list[Batch]:
    """The measurements of both environments, drawn once."""
    rng, designs = np.random.default_rng(1), []
    for A in setting.targets():
        X = rng.standard_normal((setting.num_samples, setting.dimension * (setting.dimension + 1) // 2))
        designs.append((X, X @ svec(A)))
    return designs


def numpy_fixed(setting: CoreSetting, designs: list[Batch], steps: int) -> np.ndarray:
    """HeteroSGD on measurements that stay the same."""
    rng, U = np.random.default_rng(2), setting.start()
    for _ in range(steps):
        U = numpy_step(U, [designs[rng.integers(2)]], setting.num_samples, setting.step_size)
    return U


def torch_step(U: Any, batch: Iterable[Batch], m: int, eta: float) -> Any:
    """The same step in PyTorch."""
    import torch

    rows, columns, scale, _ = (torch.from_numpy(x) for x in upper_triangle(len(U)))
    A = (U @ U.T)[rows, columns] * scale
    g = sum(((X @ A - y) @ X for X, y in batch), torch.zeros_like(A)) / (m * scale)
    G = torch.empty_like(U)
    G[rows, columns] = g
    G[columns, rows] = g
    return U - eta * (G @ U)


def torch_fresh(setting: CoreSetting, steps: int) -> Any:
    """HeteroSGD with new measurements at every step, in PyTorch."""
    import torch

    source = torch.Generator().manual_seed(1)
    targets = [torch.from_numpy(svec(A)) for A in setting.targets()]
    U = torch.from_numpy(setting.start())

    def draw(target: Any) -> Iterable[Batch]:
        for at in range(0, setting.num_samples, CHUNK):
            rows = min(CHUNK, setting.num_samples - at)
            X = torch.randn(rows, len(target), dtype=torch.float64, generator=source)
            yield X, X @ target

    for _ in range(steps):
        e = int(torch.randint(2, (), generator=source))
        U = torch_step(U, draw(targets[e]), setting.num_samples, setting.step_size)
    return U
