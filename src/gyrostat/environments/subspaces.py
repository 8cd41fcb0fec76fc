"""Subspaces of given matrices and vectors: eigenvectors, common axes of several matrices, Gram-Schmidt. In NumPy."""

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


def is_symmetric(M: np.ndarray) -> bool:
    """Whether a square matrix is symmetric up to rounding."""
    return M.shape[0] == M.shape[1] and bool(np.allclose(M, M.T, rtol=0, atol=1e-9 * np.abs(M).max(initial=0.0)))


def eigenvectors(A: np.ndarray, share: float) -> tuple[np.ndarray, np.ndarray]:
    """The eigenvalues above ``share`` of the largest, in absolute value and largest first, and their eigenvectors.

    >>> eigenvectors(np.diag([1.0, 0.0, -3.0]), 1e-10)[0].tolist()
    [-3.0, 1.0]
    """
    values, vectors = np.linalg.eigh((A + A.T) / 2)
    order = np.argsort(-np.abs(values), kind="stable")
    order = order[np.abs(values[order]) > share * np.abs(values).max()]
    return values[order], _with_positive_peaks(vectors[:, order])


def common_axes(differences: np.ndarray, smallest: float) -> tuple[np.ndarray, np.ndarray]:
    """An orthonormal basis V of the span of symmetric matrices D_e, and the matrices ``V^T D_e V``.

    The matrices are diagonal in V if they commute. Otherwise V holds the principal axes of ``sum_e D_e^2``. Directions whose
    singular value is not above ``smallest`` are left out.

    >>> V, sigmas = common_axes(np.stack([np.diag([0.0, 2.0]), np.diag([0.0, 3.0])]), 1e-10)
    >>> sigmas.ravel().tolist()
    [2.0, 3.0]
    """
    D = (differences + np.swapaxes(differences, 1, 2)) / 2
    span, sizes, _ = np.linalg.svd(np.concatenate(list(D), axis=1), full_matrices=False)
    V = _with_positive_peaks(span[:, sizes > smallest])
    sigmas = V.T @ D @ V
    # The eigenvectors of a generic sum of matrices that commute are eigenvectors of each of them.
    axes = V @ np.linalg.eigh(_generic_sum(sigmas))[1]
    rotated = axes.T @ D @ axes
    strengths = np.diagonal(rotated, axis1=1, axis2=2)
    off = np.abs(rotated * (1 - np.eye(V.shape[1]))).max(initial=0.0)
    if off <= max(1e-9 * np.abs(sigmas).max(initial=0.0), smallest):
        order = np.argsort(-np.square(strengths).sum(axis=0), kind="stable")
        V, sigmas = _with_positive_peaks(axes[:, order]), strengths[:, order, None] * np.eye(len(order))
    return V, (sigmas + np.swapaxes(sigmas, 1, 2)) / 2


def common_singular_vectors(differences: np.ndarray, smallest: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Left and right bases of matrices D_e with common singular vectors, and the diagonal matrices of their strengths."""
    W, sizes, Zt = np.linalg.svd(_generic_sum(differences), full_matrices=False)
    left, right = W[:, sizes > smallest], Zt[sizes > smallest].T
    strengths = np.einsum("ik,eij,jk->ek", left, differences, right)
    rest = differences - np.einsum("ek,ik,jk->eij", strengths, left, right)
    if np.abs(rest).max(initial=0.0) > max(1e-8 * np.abs(differences).max(), smallest):
        raise GyrostatError(
            "matrices minus A_star have no common left and right singular vectors, which rectangular environments need: "
            "give targets A_star + sum_k s_ek v_k z_k^T with the same orthonormal v_k and z_k in every environment."
        )
    return left, right, strengths[:, :, None] * np.eye(left.shape[1])


def checked_features(name: str, features: Any) -> np.ndarray:
    """Feature vectors as the columns of an array, none of them zero."""
    x = errors.array(name, features, ndim=(1, 2))
    x = x[:, None] if x.ndim == 1 else x
    if x.shape[1] == 0 or not x.any(axis=0).all():
        raise GyrostatError(f"{name} must hold at least one column and no column of zeros; got shape {x.shape}.")
    return x


def feature_directions(a: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The eigenvalues and eigenvectors of ``sum_j a_j a_j^T``; orthogonal features stay in their directions and order.

    >>> feature_directions(np.array([[1.0, 0.0], [0.0, 2.0]]))[0].tolist()
    [1.0, 4.0]
    """
    squares = np.square(a).sum(axis=0)
    gram = a.T @ a
    if np.abs(gram - np.diag(squares)).max() <= 1e-12 * squares.max():
        return squares, a / np.sqrt(squares)
    U, s, _ = np.linalg.svd(a, full_matrices=False)
    kept = s > DEPENDENT * s[0]
    return s[kept] ** 2, _with_positive_peaks(U[:, kept])


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


def _generic_sum(matrices: np.ndarray) -> np.ndarray:
    """A sum with fixed coefficients that have no simple relation, so that it hides no difference between its terms."""
    coefficients = 1 + np.sqrt(2) * np.modf(np.arange(1, len(matrices) + 1) * np.sqrt(3))[0]
    return np.einsum("e,eij->ij", coefficients, matrices)


def _with_positive_peaks(vectors: np.ndarray) -> np.ndarray:
    """The columns with the sign that makes their largest entry positive, which LAPACK leaves open."""
    if vectors.size == 0:
        return vectors
    peaks = vectors[np.abs(vectors).argmax(axis=0), np.arange(vectors.shape[1])]
    return vectors * np.where(peaks < 0, -1.0, 1.0)
