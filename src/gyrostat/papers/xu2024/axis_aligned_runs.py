"""HeteroSGD written out in NumPy, step by step, in coordinates in which U* and V* are axes.

The proof of Theorem 2 speaks of quantities that the engine does not record: the isometry error of each batch, and the
controller driven by the same environments. Rotations do not matter to Gaussian measurements, so U* and V* may be axes. The rows
of U are then R, Q and E themselves, each with the precision of its own size, and E is right even where it is 1e-18.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np


class AxisSetting(NamedTuple):
    """One setting: A_star has eigenvalues ``values``, and Sigma is diagonal with independent entries 1 - M or 1 + M."""

    dimension: int
    values: tuple[float, ...]
    spurious_rank: int
    spread: float
    step_size: float
    init_scale: float
    num_samples: float

    @property
    def rank(self) -> int:
        """r1."""
        return len(self.values)

    @property
    def bound(self) -> float:
        """M1 of (6)."""
        return 1 + self.spread

    @property
    def ratio(self) -> float:
        """M2 of (6)."""
        return self.spread**2 / 2

    @property
    def ranks(self) -> int:
        """r1 + r2."""
        return self.rank + self.spurious_rank

    @property
    def delta(self) -> float:
        """The isometry constant of all symmetric matrices: the edge ``(1 + sqrt(D/m))^2 - 1`` of a D x D Wishart matrix.

        It is that of rank 4 (r1 + r2), which Assumption 3 asks for, where that is at least d.
        """
        D = self.dimension * (self.dimension + 1) / 2
        x = math.sqrt(D / self.num_samples)
        return 2 * x + x**2


class AxisStep(NamedTuple):
    """The runs before step t: factors U, entries of Sigma, the residual, and the isometry error of the batch."""

    t: int
    U: np.ndarray
    sigma: np.ndarray
    residual: np.ndarray
    noise: np.ndarray


def axis_runs(
    setting: AxisSetting,
    num_steps: int,
    *,
    runs: int,
    rng: np.random.Generator,
    start: np.ndarray | None = None,
    signs: Callable[[int], np.ndarray] | None = None,
) -> Iterator[AxisStep]:
    """All runs at t = 0, ..., ``num_steps``, side by side along the first axis.

    ``start`` (runs, d, k) replaces alpha I. ``signs(t)`` gives the (s - 1)/M of step t, (runs, r2), instead of random signs.
    """
    d, r1, r2, eta = setting.dimension, setting.rank, setting.spurious_rank, setting.step_size
    U = np.broadcast_to(setting.init_scale * np.eye(d), (runs, d, d)) if start is None else start
    for t in range(num_steps + 1):
        sigma = 1 + setting.spread * (rng.choice([-1.0, 1.0], size=(runs, r2)) if signs is None else signs(t))
        target = np.zeros((runs, d))
        target[:, :r1], target[:, r1 : r1 + r2] = setting.values, sigma
        M = U @ U.swapaxes(1, 2)
        M[:, np.arange(d), np.arange(d)] -= target
        noise = isometry_error(M, setting.num_samples, rng)
        yield AxisStep(t, U, sigma, M, noise)
        U = U - eta * (M @ U) - eta * (noise @ U)


def isometry_error(M: np.ndarray, m: float, rng: np.random.Generator) -> np.ndarray:
    """``E o (M) = (1/m) sum <X_i, M> X_i - M`` for fresh symmetric Gaussian X_i, in law, up to 1/sqrt(m) of itself.

    It is ``|M| / sqrt(m)`` times a symmetric Gaussian matrix whose part along M is sqrt(2) times as large.
    """
    Z = rng.standard_normal(M.shape)
    W = (Z + Z.swapaxes(1, 2)) / 2
    norm = np.linalg.norm(M, axis=(1, 2))[:, None, None]
    unit = M / norm
    along = np.sum(W * unit, axis=(1, 2))[:, None, None]
    return norm / math.sqrt(m) * (W + (math.sqrt(2) - 1) * along * unit)


def operator_norm(A: np.ndarray) -> np.ndarray:
    """The largest singular value of each matrix (n, a, b), by the smaller Gram matrix."""
    tall = A.shape[1] > A.shape[2]
    gram = A.swapaxes(1, 2) @ A if tall else A @ A.swapaxes(1, 2)
    return np.sqrt(np.linalg.eigvalsh(gram)[:, -1])


def factor_norms(setting: AxisSetting, U: np.ndarray) -> dict[str, np.ndarray]:
    """The singular values of R, the column norms of Q, and both norms of E."""
    r1, r = setting.rank, setting.ranks
    R, E = U[:, :r1], U[:, r:]
    sigma = np.sqrt(np.linalg.eigvalsh(R @ R.swapaxes(1, 2)))[:, ::-1]
    return {
        "sigma": sigma,
        "q": np.linalg.norm(U[:, r1:r], axis=2),
        "e": operator_norm(E),
        "f": np.sum(E**2, axis=(1, 2)),
        "u": np.linalg.norm(U, axis=(1, 2)),
    }
