"""HeteroSGD written out in NumPy, step by step, in coordinates in which U* and V* are axes.

The proof of Theorem 2 speaks of quantities that the engine does not record: the isometry error of each batch, and the
controller driven by the same environments. Rotations do not matter to Gaussian measurements, so U* may be axes, and V* too, up
to its overlap with U*. Up to the overlap, the rows of U are then R, Q and E themselves, each with the precision of its own
size, and E is right even where it is 1e-18.
"""

import math
from typing import NamedTuple

import numpy as np


class AxisSetting(NamedTuple):
    """One setting: A_star has eigenvalues ``values``, and the diagonal of Sigma independent entries 1 - M or 1 + M.

    ``overlap`` is epsilon_1: column i of V* is sqrt(1 - epsilon_1^2) times its own axis plus epsilon_1 times column i of U*.
    ``off_diagonal`` is each other entry of Sigma.
    """

    dimension: int
    values: tuple[float, ...]
    spurious_rank: int
    spread: float
    step_size: float
    init_scale: float
    num_samples: float
    overlap: float = 0.0
    off_diagonal: float = 0.0

    @property
    def rank(self):
        """r1."""
        return len(self.values)

    @property
    def ranks(self):
        """r1 + r2."""
        return self.rank + self.spurious_rank

    @property
    def bound(self):
        """M1 of (6)."""
        return 1 + self.spread

    @property
    def ratio(self):
        """M2 of (6)."""
        return self.spread**2 / 2

    @property
    def delta(self):
        """The isometry constant of all symmetric matrices: the edge ``(1 + sqrt(D/m))^2 - 1`` of a D x D Wishart matrix.

        It is that of rank 4 (r1 + r2), which Assumption 3 asks for, where that is at least d.
        """
        D = self.dimension * (self.dimension + 1) / 2
        x = math.sqrt(D / self.num_samples)
        return 2 * x + x**2


def axis_runs(s, num_steps, *, runs, rng, start=None, signs=None, symmetric=True):
    """All runs side by side along the first axis: for t = 0, ..., ``num_steps``, t, the factors U, the diagonal of Sigma, the
    residual U U^T - A_star - A_e, and the isometry error of the batch.

    ``start`` (runs, d, k) replaces alpha I. ``signs(t)`` gives the (s - 1)/M of step t, (runs, r2), instead of random signs.
    ``symmetric`` is that of :func:`isometry_error`.
    """
    d, r1, r2, eta = s.dimension, s.rank, s.spurious_rank, s.step_size
    U = np.broadcast_to(s.init_scale * np.eye(d), (runs, d, d)) if start is None else start
    A_star = np.diag([*s.values, *[0.0] * (d - r1)])
    V_star = math.sqrt(1 - s.overlap**2) * np.eye(d)[:, r1 : r1 + r2] + s.overlap * np.eye(d)[:, :r2]
    off_diagonal = s.off_diagonal * (1 - np.eye(r2))
    for t in range(num_steps + 1):
        sigma = 1 + s.spread * (rng.choice([-1.0, 1.0], size=(runs, r2)) if signs is None else signs(t))
        Sigma = sigma[:, None] * np.eye(r2) + off_diagonal
        M = U @ U.swapaxes(1, 2) - A_star - V_star @ Sigma @ V_star.T
        noise = isometry_error(M, s.num_samples, rng, symmetric)
        yield t, U, sigma, M, noise
        U = U - eta * (M @ U) - eta * (noise @ U)


def axis_end(s, num_steps, **options):
    """U U^T of every run after ``num_steps`` steps, and its distance from A_star."""
    *_, (_, U, _, _, _) = axis_runs(s, num_steps, **options)
    A = U @ U.swapaxes(1, 2)
    return A, np.linalg.norm(A - np.diag([*s.values, *[0.0] * (s.dimension - s.rank)]), axis=(1, 2))


def isometry_error(M, m, rng, symmetric=True):
    """``E o (M) = (1/m) sum <X_i, M> X_i - M`` for fresh Gaussian X_i, in law, up to 1/sqrt(m) of itself.

    It is ``|M| / sqrt(m)`` times a matrix with the law of X_i whose part along M is sqrt(2) times as large. The entries of X_i
    are independent N(0, 1), or those of the ``symmetric`` part of such a matrix.
    """
    W = rng.standard_normal(M.shape)
    if symmetric:
        W = (W + W.swapaxes(1, 2)) / 2
    norm = np.linalg.norm(M, axis=(1, 2))[:, None, None]
    unit = M / norm
    along = np.sum(W * unit, axis=(1, 2))[:, None, None]
    return norm / math.sqrt(m) * (W + (math.sqrt(2) - 1) * along * unit)


def operator_norm(A):
    """The largest singular value of each matrix (n, a, b), by the smaller Gram matrix."""
    tall = A.shape[1] > A.shape[2]
    gram = A.swapaxes(1, 2) @ A if tall else A @ A.swapaxes(1, 2)
    return np.sqrt(np.linalg.eigvalsh(gram)[:, -1])


def factor_norms(s, U):
    """The singular values of R, the column norms of Q, and both norms of E."""
    r1, r2, r, overlap = s.rank, s.spurious_rank, s.ranks, s.overlap
    R, E = U[:, :r1], U[:, r:]
    rows, cosine = U[:, r1:r], math.sqrt(1 - overlap**2)
    Q = cosine * rows + overlap * R[:, :r2]
    if overlap:
        # U - U* R^T - V* Q^T, without the cancellation.
        E = np.concatenate([-overlap * Q, overlap**2 * rows - overlap * cosine * R[:, :r2], E], axis=1)
    return {
        "sigma": np.sqrt(np.linalg.eigvalsh(R @ R.swapaxes(1, 2)))[:, ::-1],
        "q": np.linalg.norm(Q, axis=2),
        "e": operator_norm(E),
        "f": np.sum(E**2, axis=(1, 2)),
    }
