"""The rows of one environment, as descent on matrices needs them: means, gradients and features along directions.

There are two kinds of rows: symmetric matrices, and squares ``x x^T`` of which only x is stored. No array of size d^2 x d^2
is made unless it is smaller than the data.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable

import numpy as np

from gyrostat.models.symmetric_coordinates import smat, svec

Gradient = Callable[[np.ndarray], np.ndarray]
"""Maps symmetric matrices A (runs, d, d) to the gradients ``mean of (<X_i, A> - y_i) X_i``, as coordinates (runs, D)."""


class EnvironmentRows(ABC):
    """The rows X_i and responses y_i of one environment, both minus their means."""

    responses: np.ndarray

    @property
    @abstractmethod
    def variance(self) -> float:
        """The mean square of all coordinates of all rows."""

    @property
    def effect(self) -> np.ndarray:
        """``mean of y_i X_i``: the least-squares solution of this environment if its rows are isotropic."""
        return smat(self.means(self.responses, [slice(None)])[0])

    @abstractmethod
    def means(self, weights: np.ndarray, blocks: list) -> np.ndarray:
        """The mean of ``w_i X_i`` over each block of rows, as coordinates."""

    @abstractmethod
    def inside(self, Q: np.ndarray) -> np.ndarray:
        """``<X_i, Q C Q^T>`` as (rows, coordinates of C)."""

    @abstractmethod
    def gradient(self, size: float, unit: float) -> Gradient:
        """The gradient function for rows divided by ``size`` and responses divided by ``unit``."""


class MatrixRows(EnvironmentRows):
    """Rows that are symmetric matrices, as coordinates (n, D)."""

    def __init__(self, features: np.ndarray, responses: np.ndarray):
        self.features, self.responses = features - features.mean(axis=0), responses - responses.mean()

    @property
    def variance(self) -> float:
        return float(np.mean(self.features**2))

    def means(self, weights: np.ndarray, blocks: list) -> np.ndarray:
        return np.stack([weights[b] @ self.features[b] / len(weights[b]) for b in blocks])

    def inside(self, Q: np.ndarray) -> np.ndarray:
        r = Q.shape[1]
        return self.features @ svec(Q @ smat(np.eye(r * (r + 1) // 2)) @ Q.T).T

    def gradient(self, size: float, unit: float) -> Gradient:
        X, y, (n, D) = self.features, self.responses / (unit * size), self.features.shape
        if n <= D:
            return lambda A: ((svec(A) @ X.T) / size**2 - y) @ X / n
        gram, cross = X.T @ X / (n * size**2), y @ X / n
        return lambda A: svec(A) @ gram - cross


class SquareRows(EnvironmentRows):
    """Rows ``x x^T`` of which x is given, (n, d).

    Subtracting its mean removes the trace of ``x x^T``, which violates the restricted isometry property: with centred
    residuals r_i, ``mean of r_i (x_i x_i^T - S) = mean of r_i x_i x_i^T``. Algorithm 4 of Xu 2024 subtracts
    ``(tr A - mean of y) I`` instead (by a shrinkage that agrees to first order in the step), which is the same if the second
    moment S is the identity. ``truncation`` is its R: rows with larger predictions are left out.
    """

    def __init__(self, x: np.ndarray, responses: np.ndarray, truncation: float | None = None):
        self.x, self.truncation = x, truncation
        self.responses, self.second = responses - responses.mean(), x.T @ x / len(x)

    @property
    def variance(self) -> float:
        d = self.x.shape[1]
        fourth = np.mean(np.einsum("ij,ij->i", self.x, self.x) ** 2)
        return float((fourth - np.sum(self.second**2)) / (d * (d + 1) / 2))

    def means(self, weights: np.ndarray, blocks: list) -> np.ndarray:
        def one(b: slice | np.ndarray) -> np.ndarray:
            w, x = weights[b], self.x[b]
            return (x * w[:, None]).T @ x / len(w) - w.mean() * self.second

        return svec(np.stack([one(b) for b in blocks]))

    def inside(self, Q: np.ndarray) -> np.ndarray:
        z = self.x @ Q
        squares = svec(z[:, :, None] * z[:, None, :])
        return squares - squares.mean(axis=0)

    def gradient(self, size: float, unit: float) -> Gradient:
        x, y, (n, d) = self.x / np.sqrt(size), self.responses / unit, self.x.shape
        # Second moments of squares are used only if they are no larger than the data. They are faster then, too.
        if self.truncation is None and (d * (d + 1) // 2) ** 2 <= n * d:
            gram, cross = self._gram() / size**2, svec((x * y[:, None]).T @ x) / n
            return lambda A: svec(A) @ gram - cross
        most = np.inf if self.truncation is None else self.truncation / size

        def one(A: np.ndarray) -> np.ndarray:
            q = np.einsum("ij,ij->i", x @ A, x)
            residual = np.where(q <= most, q - q.mean() - y, 0.0)
            return svec((x * (residual - residual.mean())[:, None]).T @ x) / n

        return lambda A: np.stack([one(a) for a in A])

    def _gram(self) -> np.ndarray:
        """The second moment of ``x x^T - S`` in coordinates, computed one block of rows at a time."""
        total: np.ndarray | float = 0.0
        for x in np.array_split(self.x, max(1, len(self.x) // 4096)):
            block = svec(x[:, :, None] * x[:, None, :] - self.second)
            total = total + block.T @ block
        return np.asarray(total) / len(self.x)
