"""Features that nearly repeat each other: which they are, and the combinations of them that the data can tell apart."""

from __future__ import annotations

import numpy as np

COLLINEAR = 0.02
"""A combination of standardised features with less than this variance (their mean variance is one) is nearly constant."""
PART = 0.02
"""A feature belongs to such combinations if the projection on them keeps at least this share of it."""
NULL = 1e-8
"""A combination with less than this variance is constant: its effect cannot be known."""


def collinear_groups(gram: np.ndarray) -> list[np.ndarray]:
    """Groups of features of which some combination is nearly constant within environments.

    ``gram`` is the mean second moment of the features within environments. Two features belong together if the projection on
    the nearly constant combinations connects them.

    >>> collinear_groups(np.array([[1.0, 0.0, 0.999], [0.0, 1.0, 0.0], [0.999, 0.0, 1.0]]))
    [array([0, 2])]
    """
    correlations, varying = _correlations(gram)
    values, vectors = np.linalg.eigh(correlations)
    small = vectors[:, values < COLLINEAR]
    projection = small @ small.T
    own = np.diagonal(projection)
    linked = np.abs(projection) > 0.1 * np.sqrt(np.multiply.outer(own, own))
    linked &= np.multiply.outer(own > PART, own > PART)
    return [varying[group] for group in _connected(linked) if len(group) > 1]


def identifiable_basis(gram: np.ndarray) -> np.ndarray:
    """A basis (d, d): single features, and for each group of collinear ones the principal combinations, from the largest down.

    Combinations have unit variance; those that are constant have the length one. They stand in the places of their features.

    >>> identifiable_basis(np.array([[1.0, 1.0], [1.0, 1.0]])).round(3).tolist()
    [[0.5, -0.707], [0.5, 0.707]]
    """
    basis = np.eye(len(gram))
    for group in collinear_groups(gram):
        values, vectors = np.linalg.eigh(gram[np.ix_(group, group)])
        order = np.argsort(-values)
        vectors = vectors[:, order] * np.where(vectors[:, order].sum(axis=0) < -1e-9, -1.0, 1.0)
        sizes = np.where(values[order] > NULL * values[-1], np.maximum(values[order], 1e-300), 1.0)
        basis[np.ix_(group, group)] = vectors / np.sqrt(sizes)
    return basis


def _correlations(gram: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The correlations of the features that vary, and their numbers."""
    varying = np.flatnonzero(np.diagonal(gram) > 0)
    roots = np.sqrt(np.diagonal(gram)[varying])
    return gram[np.ix_(varying, varying)] / np.multiply.outer(roots, roots), varying


def _connected(linked: np.ndarray) -> list[np.ndarray]:
    """The connected components of a graph."""
    from scipy.sparse.csgraph import connected_components

    count, labels = connected_components(linked, directed=False)
    return [np.flatnonzero(labels == k) for k in range(count)]
