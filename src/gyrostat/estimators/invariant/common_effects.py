"""The part of effects that all environments have in common: the combination of their coefficients nearest to none.

Of all mixtures ``sum w_e b_e`` of the coefficients of environments (w_e at least zero, with sum one) it is the one with the
least variance of predictions, ``b^T gram b``: the maximin effects of Meinshausen and Buehlmann (2015). An effect of both signs
becomes zero, one that is the same everywhere stays, and so does what is the same in a combination of features. The result does
not depend on the coordinates: features may be mixed with each other.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy import optimize

from gyrostat.estimators.invariant.effects import CONSTANT, Effects, principal_directions

FEWEST_ENVIRONMENTS = 3
"""With two environments, any difference looks like a direction in which effects vary."""

ROUNDING = 1e-7
"""Coefficients below this share of the largest effect are zero: the weights are found to about this precision."""

WEAK = 1e-4
"""The weight of errors beside distances: they only decide between mixtures at the same distance."""


class CommonEffects(NamedTuple):
    """Coefficients (d,), their covariance, and the weight of each environment in them."""

    coef: np.ndarray
    covariance: np.ndarray
    weights: np.ndarray


def common_effects(measured: Effects, gram: np.ndarray, level: float) -> CommonEffects:
    """The combination nearest to none, of effects from which errors of estimation were taken out first.

    ``gram`` is the second moment of the features. Effects differ only along the directions in which they are seen to vary at
    ``level`` (:func:`principal_directions`, in units of predictions).

    >>> effects = np.array([[1.0, 1.0], [1.0, -1.0], [1.0, 0.5]])
    >>> covariances = np.broadcast_to(1e-6 * np.eye(2), (3, 2, 2))
    >>> np.abs(common_effects(Effects(covariances, effects, covariances), np.eye(2), 0.01).coef).round(2).tolist()
    [1.0, 0.0]
    """
    along, back = effects_without_errors(measured, gram, level)
    w = nearest_to_none(along, np.sqrt(np.einsum("eii->e", back.T @ gram @ measured.covariances @ gram @ back)))
    coef = back @ (w @ along)
    coef[np.abs(coef) < ROUNDING * np.abs(measured.effects).max(initial=0.0)] = 0.0
    return CommonEffects(coef, np.tensordot(w**2, measured.covariances, axes=1), w)


def effects_without_errors(measured: Effects, gram: np.ndarray, level: float) -> tuple[np.ndarray, np.ndarray]:
    """Effects in units of predictions, which differ only where they are seen to, and the matrix back to coefficients."""
    values, vectors = np.linalg.eigh(gram)
    used = vectors[:, values > CONSTANT * values[-1]]
    roots = np.sqrt(values[values > CONSTANT * values[-1]])
    white = _in_units_of_predictions(measured, used * roots)
    W, varies = principal_directions(white, level)
    return white.rotated(W).denoised(varies).effects @ W.T, used / roots


def nearest_to_none(points: np.ndarray, errors: np.ndarray | None = None) -> np.ndarray:
    """The weights of the mixture of points (K, d) that is nearest to zero; of several, the one with the least error.

    ``errors`` (K,) are the sizes of the errors of the points, all the same if they are not given.

    >>> nearest_to_none(np.array([[1.0, 2.0], [1.0, -1.0]])).round(3).tolist()
    [0.333, 0.667]
    >>> nearest_to_none(np.array([[1.0], [1.0], [2.0]]), np.array([1.0, 2.0, 0.1])).round(3).tolist()
    [0.8, 0.2, 0.0]
    """
    size = max(float(np.abs(points).max()), 1e-12)
    errors = np.ones(len(points)) if errors is None else errors
    # Nonnegative least squares with the sum of the weights as one more equation. It need not hold exactly: all other terms are
    # squares of weights, so that the minimum is a multiple of the one with sum one.
    weak = WEAK * size * errors / max(float(errors.max()), 1e-300)
    A = np.vstack([points.T, np.full(len(points), size), np.diag(weak)])
    w, _ = optimize.nnls(A, np.concatenate([np.zeros(points.shape[1]), [size], np.zeros(len(points))]))
    return w / w.sum()


def _in_units_of_predictions(measured: Effects, root: np.ndarray) -> Effects:
    return Effects(
        np.broadcast_to(np.eye(root.shape[1]), (len(measured.effects), root.shape[1], root.shape[1])),
        measured.effects @ root,
        root.T @ measured.covariances @ root,
    )
