"""Given matrices and vectors, from which environments take their subspaces: checks, and two pieces of linear algebra."""

from __future__ import annotations

from typing import Any

import numpy as np

from gyrostat import errors
from gyrostat.errors import GyrostatError

DEPENDENT = 1e-10
"""A feature whose part orthogonal to the features before it is below this share of its length depends on them."""


def checked_targets(A_star: Any, matrices: Any, tolerance: float) -> tuple[np.ndarray, np.ndarray, float]:
    """A_star, the targets as one array (K, n1, n2) and the tolerance, or an error that says which of them is wrong."""
    A = errors.array("A_star", A_star, ndim=2)
    share = float(errors.number("tolerance", tolerance, above=0, most=0.1))
    if not A.any():
        raise GyrostatError("A_star is zero: there is no invariant signal to recover.")
    if not isinstance(matrices, list | tuple | np.ndarray) or len(matrices) == 0:
        raise GyrostatError(f"matrices must list at least one target; got {errors.shown(matrices)}.")
    targets = [errors.array(f"matrices[{e}]", M, ndim=2) for e, M in enumerate(matrices)]
    for e, M in enumerate(targets):
        if M.shape != A.shape:
            raise GyrostatError(f"matrices[{e}] has shape {M.shape}, A_star has {A.shape}: make them equal.")
    return A, np.stack(targets), share


def checked_features(name: str, features: Any) -> np.ndarray:
    """Feature vectors as the columns of an array, none of them zero."""
    x = errors.array(name, features, ndim=(1, 2))
    x = x[:, None] if x.ndim == 1 else x
    if x.shape[1] == 0 or not x.any(axis=0).all():
        raise GyrostatError(f"{name} must hold at least one column and no column of zeros; got shape {x.shape}.")
    return x


def gram_schmidt(b: np.ndarray) -> np.ndarray:
    """Orthonormal columns with the span of the columns of ``b``, in their order; dependent columns add nothing.

    >>> gram_schmidt(np.array([[2.0, 4.0, 1.0], [0.0, 0.0, 1.0]])).tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """
    V = np.zeros((len(b), 0))
    for column in b.T:
        rest = column - V @ (V.T @ column)
        rest = rest - V @ (V.T @ rest)  # once more, because the first pass leaves rounding errors along V
        if np.linalg.norm(rest) > DEPENDENT * np.linalg.norm(column):
            V = np.column_stack([V, rest / np.linalg.norm(rest)])
    return V


def generic_sum(matrices: np.ndarray) -> np.ndarray:
    """A sum with fixed coefficients that have no simple relation, so that it hides no difference between its terms.

    >>> generic_sum(np.ones((1, 1, 1))).round(6).tolist()
    [[2.035276]]
    """
    coefficients = 1 + np.sqrt(2) * np.modf(np.arange(1, len(matrices) + 1) * np.sqrt(3))[0]
    return np.einsum("e,eij->ij", coefficients, matrices)
