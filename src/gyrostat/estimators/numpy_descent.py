"""HeteroSGD in NumPy: the descents that estimators run on the gradients of their data, many runs at once.

Each descent yields the product before every step and after the last one. ``gradient(t, product)`` is what step t sees.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import numpy as np

Gradient = Callable[[int, np.ndarray], np.ndarray]


def vector_descent(
    gradient: Gradient, shape: tuple[int, int], *, init_scale: float, step_size: float, num_steps: int
) -> Iterator[np.ndarray]:
    """``beta = u * u - v * v`` from ``u = v = alpha``: ``u <- u - eta g u`` and ``v <- v + eta g v``; a row for each run.

    >>> steps = vector_descent(lambda t, beta: beta - 1.0, (1, 1), init_scale=1.0, step_size=0.5, num_steps=1)
    >>> [beta.item() for beta in steps]
    [0.0, 2.0]
    """
    u = v = np.full(shape, init_scale)
    for t in range(num_steps):
        beta = u * u - v * v
        yield beta
        g = step_size * gradient(t, beta)
        u, v = (1 - g) * u, (1 + g) * v
    yield u * u - v * v


def matrix_descent(
    gradient: Gradient, runs: int, d: int, *, init_scale: float, step_size: float, num_steps: int
) -> Iterator[np.ndarray]:
    """``A = U U^T - V V^T`` from ``U = V = alpha I``: ``U <- U - eta G U`` and ``V <- V + eta G V``; a matrix for each run.

    >>> steps = matrix_descent(lambda t, A: A - 1.0, 1, 1, init_scale=1.0, step_size=0.5, num_steps=1)
    >>> [A.item() for A in steps]
    [0.0, 2.0]
    """
    U = V = np.tile(init_scale * np.eye(d), (runs, 1, 1))
    for t in range(num_steps):
        A = U @ U.mT - V @ V.mT
        yield A
        G = gradient(t, A)
        U, V = U - step_size * (G @ U), V + step_size * (G @ V)
    yield U @ U.mT - V @ V.mT


def path_and_late_mean(
    products: Iterable[np.ndarray], num_steps: int, points: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Recorded steps, the mean product over the runs at each, and every run's mean over the second half of the steps.

    A descent that diverges is not stopped: its means are infinite or NaN, without warnings.
    """
    grid = np.linspace(0, num_steps, min(points, num_steps) + 1).round().astype(int)
    path: list[np.ndarray] = []
    late, middle = np.zeros(()), num_steps // 2
    with np.errstate(over="ignore", invalid="ignore"):
        for step, product in enumerate(products):
            if step == grid[len(path)]:
                path.append(product.mean(axis=0))
            if step > middle:
                late = late + product / (num_steps - middle)
    return grid, np.array(path), late
