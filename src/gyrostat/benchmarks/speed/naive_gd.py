"""Gradient descent as one would write it from Xiong 2024: the peers of the gd suite."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np


class Descent(NamedTuple):
    """Recover diag(1, 1, 0, ...) of size n with k columns."""

    dimension: int = 50
    width: int = 5
    step_size: float = 0.01
    scale: float = 0.5

    def target(self) -> np.ndarray:
        """The truth."""
        return np.diag([1.0, 1.0] + [0.0] * (self.dimension - 2))

    def one_factor(self) -> np.ndarray:
        """X0 = alpha N(0, 1/k)."""
        X = np.random.default_rng(0).standard_normal((self.dimension, self.width))
        return self.scale / self.width**0.5 * X

    def two_factors(self) -> tuple[np.ndarray, np.ndarray]:
        """F0 = alpha N(0, 1/n), G0 = (alpha/3) N(0, 1/n)."""
        F, G = np.random.default_rng(0).standard_normal((2, self.dimension, self.width)) / self.dimension**0.5
        return self.scale * F, self.scale / 3 * G


def numpy_factorisation(setting: Descent, steps: int) -> np.ndarray:
    """``X <- X - 2 eta (X X^T - Sigma) X``."""
    X, S, eta = setting.one_factor(), setting.target(), setting.step_size
    for _ in range(steps):
        X = X - 2 * eta * ((X @ X.T - S) @ X)
    return X


def torch_factorisation(setting: Descent, steps: int) -> Any:
    """The same by automatic differentiation of the loss."""
    import torch

    X = torch.from_numpy(setting.one_factor()).requires_grad_()
    S = torch.from_numpy(setting.target())
    for _ in range(steps):
        loss = ((X @ X.T - S) ** 2).sum() / 2
        (slope,) = torch.autograd.grad(loss, X)
        with torch.no_grad():
            X -= setting.step_size * slope
    return X


def design(setting: Descent, num_samples: int) -> np.ndarray:
    """Rows vec(A_i) with entries N(0, 1/m)."""
    return np.random.default_rng(1).standard_normal((num_samples, setting.dimension**2)) / num_samples**0.5


def numpy_sensing(setting: Descent, A: np.ndarray, steps: int) -> tuple[np.ndarray, np.ndarray]:
    """``F <- F - eta M G``, ``G <- G - eta M^T F`` with ``M = A^T (A vec(F G^T) - y)``."""
    (F, G), eta, n = setting.two_factors(), setting.step_size, setting.dimension
    y = A @ setting.target().ravel()
    for _ in range(steps):
        M = ((A @ (F @ G.T).ravel() - y) @ A).reshape(n, n)
        F, G = F - eta * M @ G, G - eta * M.T @ F
    return F, G


def torch_sensing(setting: Descent, A: Any, steps: int) -> tuple[Any, Any]:
    """The same in PyTorch, with the products written out."""
    import torch

    F, G = (torch.from_numpy(x) for x in setting.two_factors())
    eta, n = setting.step_size, setting.dimension
    y = A @ torch.from_numpy(setting.target()).ravel()
    for _ in range(steps):
        M = ((A @ (F @ G.T).ravel() - y) @ A).reshape(n, n)
        F, G = F - eta * M @ G, G - eta * M.T @ F
    return F, G
