"""All that descent on a squared loss needs of the data: second moments, environment by environment."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np


class Moments(NamedTuple):
    """``X_e^T X_e / n_e``, ``X_e^T y_e / n_e`` and ``y_e^T y_e / n_e`` of every environment e, and its number of rows.

    A step then costs d^2, however many rows there are, and the data are passed over once.
    """

    grams: np.ndarray
    crosses: np.ndarray
    energies: np.ndarray
    counts: np.ndarray

    @property
    def gram(self) -> np.ndarray:
        """The mean over environments, each counted alike as descent visits them alike."""
        return self.grams.mean(axis=0)

    @property
    def scales(self) -> tuple[np.ndarray, float]:
        """The root mean square of every feature and of the response; one where it is zero."""
        squares = np.append(np.diagonal(self.gram), self.energies.mean())
        roots = np.where(squares > 0, np.sqrt(np.maximum(squares, 0.0)), 1.0)
        return roots[:-1], float(roots[-1])

    def scaled(self, features: np.ndarray, response: float) -> Moments:
        """The moments of ``X / features`` and ``y / response``."""
        grams = self.grams / np.multiply.outer(features, features)
        return Moments(grams, self.crosses / (features * response), self.energies / response**2, self.counts)

    def turned(self, W: np.ndarray) -> Moments:
        """Those along the columns of an orthogonal W instead of the features."""
        return self._replace(grams=W.T @ self.grams @ W, crosses=self.crosses @ W)

    def least_squares(self, chosen: np.ndarray) -> np.ndarray:
        """The coefficients of least squares on the chosen features (the shortest, if there are many), others zero.

        Every row counts alike: what holds everywhere is known best where there are most rows.
        """
        weights = self.counts / self.counts.sum()
        gram, cross = np.tensordot(weights, self.grams, axes=1), weights @ self.crosses
        beta, where = np.zeros(len(cross)), np.flatnonzero(chosen)
        if where.size:
            beta[where] = np.linalg.lstsq(gram[np.ix_(where, where)], cross[where], rcond=1e-10)[0]
        return beta


def parts_of(
    X: np.ndarray, y: np.ndarray, rows: list[np.ndarray], *, centred: bool
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Copies of the rows and responses of every environment in turn, about its own means if ``centred``."""
    for mine in rows:
        Xe, ye = X[mine], y[mine].astype(np.float64)
        if centred:
            Xe -= Xe.mean(axis=0)
            ye -= ye.mean()
        yield Xe, ye


def moments(parts: Iterable[tuple[np.ndarray, np.ndarray]]) -> Moments:
    """The moments of every environment.

    >>> moments([(np.array([[1.0], [3.0]]), np.array([2.0, 6.0]))]).crosses.tolist()
    [[10.0]]
    """
    found = [(X.T @ X / len(y), X.T @ y / len(y), y @ y / len(y), len(y)) for X, y in parts]
    return Moments(*(np.array(x) for x in zip(*found, strict=True)))
