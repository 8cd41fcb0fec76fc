"""Gradient descent with one factor, with two, and after the imbalance step: rates and conditions of Xiong 2024.

All rates are those of the squared error (or of the loss) per step: ``||E||_F^2 ~ exp(-rate * t)``.
"""

from __future__ import annotations

import math

import numpy as np

from gyrostat import errors
from gyrostat.theory.condition import Condition

__all__ = [
    "exact_width_rate",
    "imbalance_increment",
    "imbalanced_rate",
    "increment_bound",
    "lower_bound",
    "symmetric_tail",
    "theorem31_conditions",
    "theorem41_bounds",
    "theorem42_conditions",
    "theorem42_rate",
    "theorem43_rate",
    "theorem51_rate",
    "toy_sequences",
]


def __dir__() -> list[str]:
    return __all__


@errors.explains_formula
def symmetric_tail(step_size: float, width: int, rank: int, steps: np.ndarray) -> np.ndarray:
    """Our sharp form of the 1/T^2 law for X X^T with k > r columns: ``||E||_F^2 -> (k - r) / (4 eta t)^2``.

    Each of the k - r superfluous singular values x of X obeys ``x <- x - 2 eta x^3``, hence ``x^2 -> 1 / (4 eta t)``,
    whatever the start.

    Parameters
    ----------
    step_size
        The step size eta.
    width
        The number k of columns of the factors.
    rank
        The rank r of the target.
    steps
        The steps at which to evaluate it.

    >>> float(symmetric_tail(0.01, 3, 2, np.array([1e4]))[0])
    6.25e-06
    """
    return (width - rank) / (4 * step_size * np.asarray(steps, dtype=float)) ** 2


@errors.explains_formula
def exact_width_rate(step_size: float, smallest: float) -> float:
    """The late rate for X X^T with k = r, update (2.3): ``-2 log(1 - 2 eta sigma_r)``.

    Parameters
    ----------
    step_size
        The step size eta.
    smallest
        The smallest singular value that matters, sigma_r.

    >>> round(exact_width_rate(0.01, 1.0), 6)
    0.040405
    """
    return -2 * math.log(1 - 2 * step_size * smallest)


@errors.explains_formula
def imbalanced_rate(step_size: float, smallest: float) -> float:
    """The late rate of factorisation by F G^T: ``-2 log(1 - eta lambda_min(F^T F))`` with F at the end.

    Parameters
    ----------
    step_size
        The step size eta.
    smallest
        The smallest eigenvalue of F^T F at the end.

    >>> round(imbalanced_rate(0.2, 1.0), 4)
    0.4463
    """
    return -2 * math.log(1 - step_size * smallest)


@errors.explains_formula
def lower_bound(
    step_size: float, init_scale: float, dimension: int, steps: np.ndarray, constant: float = 1.0
) -> np.ndarray:
    """The lower bound that (3.3) implies: ``||E||_F^2 >= A_t^2 / n`` with ``A_t = a / (1 + c eta a t)``, a = n alpha^2 / 8.

    For large t that is ``1 / (n (c eta t)^2)``, whatever the start. (3.2) is lower for small starts: it has the factor
    ``alpha^2 log(sqrt(r sigma_1) / alpha) / sigma_r``, up to a constant, in place of ``1 / c``.

    Parameters
    ----------
    step_size
        The step size eta.
    init_scale
        The scale alpha of the start.
    dimension
        The side d of the matrix (n in Xiong 2024).
    steps
        The steps at which to evaluate it.
    constant
        The c of (3.3b), which the paper leaves open; 8 is enough.
    """
    start = dimension * init_scale**2 / 8
    potential = start / (1 + constant * step_size * start * np.asarray(steps, dtype=float))
    return potential**2 / dimension


@errors.explains_formula
def toy_sequences(step_size: float, init_scale: float, rank: int, num_steps: int) -> tuple[np.ndarray, ...]:
    """``a <- a - eta a b^2``, ``b <- b - eta a^2 b``, ``u <- u (1 + eta - eta u^2)`` from alpha, alpha/3, alpha (4.4).

    The toy example of Theorem 4.1: a and b are superfluous, u carries the signal. The fourth array is the squared error
    of the product.

    Parameters
    ----------
    step_size
        The step size eta.
    init_scale
        The scale alpha of the start.
    rank
        The rank r of the target.
    num_steps
        The number of steps T.

    >>> a, b, u, error = toy_sequences(0.1, 0.5, 2, 10)
    >>> error.shape
    (11,)
    """
    eta, alpha = step_size, init_scale
    a, b, u = (np.empty(num_steps + 1) for _ in range(3))
    a[0], b[0], u[0] = alpha, alpha / 3, alpha
    for t in range(num_steps):
        a[t + 1], b[t + 1] = a[t] - eta * a[t] * b[t] ** 2, b[t] - eta * a[t] ** 2 * b[t]
        u[t + 1] = u[t] * (1 + eta - eta * u[t] ** 2)
    return a, b, u, rank * (u**2 - 1) ** 2 + (a * b) ** 2


@errors.explains_formula
def theorem41_bounds(
    step_size: float, init_scale: float, dimension: int, steps: np.ndarray, waiting: float = 0.0
) -> tuple[np.ndarray, np.ndarray]:
    """Theorem 4.1: ``a^4/36 (1 - 4 eta a^2)^(2t) <= ||E||_F^2 <= 4n (1 - eta a^2/4)^(2(t - T1))``, a = alpha, as logarithms.

    Parameters
    ----------
    step_size
        The step size eta.
    init_scale
        The scale alpha of the start.
    dimension
        The side d of the matrix (n in Xiong 2024).
    steps
        The steps at which to evaluate it.
    waiting
        T1, the number of steps before the bound begins.
    """
    eta, alpha2, t = step_size, init_scale**2, np.asarray(steps, dtype=float)
    low = math.log(alpha2**2 / 36) + 2 * t * math.log1p(-4 * eta * alpha2)
    high = math.log(4 * dimension) + 2 * (t - waiting) * math.log1p(-eta * alpha2 / 4)
    return low, high


@errors.explains_formula
def theorem42_rate(step_size: float, init_scale: float) -> float:
    """The rate that Theorem 4.2 promises to k > r: ``(1 - eta alpha^2 / 8)^(t/4)``.

    Parameters
    ----------
    step_size
        The step size eta.
    init_scale
        The scale alpha of the start.
    """
    return -math.log1p(-step_size * init_scale**2 / 8) / 4


@errors.explains_formula
def theorem43_rate(step_size: float, largest: float, smallest: float) -> float:
    """The rate that the proof of Theorem 4.3 gives to k = r (E.10): ``(1 - eta sigma_r^2 / (64 sigma_1))^(t/2)``.

    Parameters
    ----------
    step_size
        The step size eta.
    largest
        The largest singular value, sigma_1.
    smallest
        The smallest singular value that matters, sigma_r.
    """
    return -math.log1p(-step_size * smallest**2 / (64 * largest)) / 2


@errors.explains_formula
def theorem51_rate(step_size: float, beta: float) -> float:
    """The rate that Theorem 5.1 promises after the imbalance step: ``(1 - eta beta^2 / 2)^(2t)``.

    Parameters
    ----------
    step_size
        The step size eta.
    beta
        The size of F after the step.
    """
    return -2 * math.log1p(-step_size * beta**2 / 2)


@errors.explains_formula
def imbalance_increment(factor: np.ndarray, cofactor: np.ndarray, gradient: np.ndarray, step_size: float) -> np.ndarray:
    """The exact change of F^T F - G^T G in one step: ``eta^2 (G^T M^T M G - F^T M M^T F)``.

    Parameters
    ----------
    factor
        F, of size n1 x k.
    cofactor
        G, of size n2 x k.
    gradient
        The matrix M that the measurements return: the gradient by the product.
    step_size
        The step size eta.
    """
    F, G, M = factor, cofactor, gradient
    right, left = M @ G, M.T @ F
    return step_size**2 * (right.T @ right - left.T @ left)


@errors.explains_formula
def increment_bound(factor: np.ndarray, cofactor: np.ndarray, gradient: np.ndarray, step_size: float) -> float:
    """``eta^2 ||M||^2 max(||F||, ||G||)^2``: the increment's norm is at most this; (D.5) prints it with a factor 2.

    Parameters
    ----------
    factor
        F, of size n1 x k.
    cofactor
        G, of size n2 x k.
    gradient
        The matrix M that the measurements return: the gradient by the product.
    step_size
        The step size eta.
    """
    largest = max(np.linalg.norm(factor, 2), np.linalg.norm(cofactor, 2))
    return float((step_size * np.linalg.norm(gradient, 2) * largest) ** 2)


OPEN = "the paper leaves its constant open; taken as 1"


@errors.explains_formula
def theorem31_conditions(
    step_size: float, init_scale: float, values: np.ndarray, width: int, dimension: int
) -> list[Condition]:
    """(3.1) of Theorem 3.1 with the open constants set to one.

    Parameters
    ----------
    step_size
        The step size eta.
    init_scale
        The scale alpha of the start.
    values
        The singular values of the target.
    width
        The number k of columns of the factors.
    dimension
        The side d of the matrix (n in Xiong 2024).

    >>> [c.holds for c in theorem31_conditions(0.01, 0.5, np.ones(2), 3, 50)]
    [False, False, False]
    """
    first, last, r = _spectrum(values)
    kappa = first / last
    size = math.sqrt(first) / (math.sqrt(dimension) * math.log(r * math.sqrt(dimension)))
    columns = ((r * kappa) ** 2 * max(math.log(r * math.sqrt(first) / init_scale), 0.0)) ** 4
    return [
        Condition("init scale", "Xiong 2024, (3.1)", init_scale, "<=", size, OPEN),
        Condition("width", "Xiong 2024, (3.1)", float(width), ">=", columns, OPEN),
        Condition("step size", "Xiong 2024, (3.1)", step_size, "<=", 1 / (dimension**2 * kappa * first), OPEN),
    ]


@errors.explains_formula
def theorem42_conditions(
    step_size: float, init_scale: float, values: np.ndarray, width: int, dimension: int, isometry: float
) -> list[Condition]:
    """(4.7) and (4.8) of Theorem 4.2 with the open constants set to one; ``isometry`` is the RIP constant of order 2k + 1.

    Parameters
    ----------
    step_size
        The step size eta.
    init_scale
        The scale alpha of the start.
    values
        The singular values of the target.
    width
        The number k of columns of the factors.
    dimension
        The side d of the matrix (n in Xiong 2024).
    isometry
        The restricted isometry constant of order 2k + 1.

    >>> [c.holds for c in theorem42_conditions(0.2, 0.05, np.ones(2), 4, 50, 0.3)]
    [True, False, False, True]
    """
    first, last, r = _spectrum(values)
    kappa = first / last
    logarithm = max(math.log(math.sqrt(last) / (dimension * init_scale)), 1.0)
    near = isometry * math.sqrt(2 * width + 1)
    return [
        Condition("init scale", "Xiong 2024, (4.7)", init_scale, "<=", math.sqrt(last) / kappa**2, OPEN),
        Condition("step size", "Xiong 2024, (4.7)", step_size, "<=", init_scale**4 / first**3, OPEN),
        Condition("isometry", "Xiong 2024, (4.8)", near, "<=", min(1 / (kappa**6 * logarithm), 1 / 128), OPEN),
        Condition("width", "Xiong 2024, Theorem 4.2", float(width), "in", (float(r), dimension / 8)),
    ]


def _spectrum(values: np.ndarray) -> tuple[float, float, int]:
    x = errors.array("values", values, ndim=1)
    return float(x.max()), float(x.min()), x.size
