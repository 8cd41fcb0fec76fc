"""Methods that look at subsets of features: invariant causal prediction, and invariance-guided regularisation."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np
from scipy import stats

from gyrostat.estimators.comparison.peer_methods import least_squares, through_the_mean
from gyrostat.estimators.environment_labels import stacked
from gyrostat.estimators.linear_predictor import LinearPredictor
from gyrostat.estimators.squared_losses import Environment

CANDIDATES = 6
"""Features of which invariant causal prediction tries all subsets; more would take minutes."""
LEVEL = 0.05
LARGEST_SUBSET = 2
"""The size of the subsets from which invariance-guided regularisation takes its weights."""
SWEEPS = 2000


def causal_prediction(environments: Sequence[Environment], _: float = 0.0) -> LinearPredictor:
    """Invariant causal prediction (Peters 2016) at level 0.05, then least squares on the causes that it names.

    A set of features is accepted if the residuals of pooled least squares on it have the same mean (Welch's t) and variance
    (F) in each environment as in all others, with a correction for the number of tests; the causes are what all accepted
    sets have in common. Candidates are preselected: the first six features on the path of the lasso. If every set is rejected,
    or no cause is named, the prediction is a constant and the status says which.
    """
    X, y, labels = stacked(list(environments))
    candidates = [int(j) for j in _first_on_the_path(X, y)]
    sets = [s for size in range(len(candidates) + 1) for s in itertools.combinations(candidates, size)]
    accepted = [set(s) for s in sets if invariance_p(X[:, list(s)], y, labels) > LEVEL]
    kept = sorted(set.intersection(*accepted)) if accepted else []
    coef = np.zeros(X.shape[1])
    coef[kept] = least_squares([(X[:, kept], y) for X, y in environments]).coef
    status = "rejected" if not accepted else "causes named" if kept else "no cause named"
    return through_the_mean(coef, environments, status)


def invariance_p(X: np.ndarray, y: np.ndarray, labels: np.ndarray) -> float:
    """The p-value of the hypothesis that residuals of pooled least squares on X are alike in all environments."""
    fit = least_squares([(X, y)])
    residuals, smallest = y - fit(X), 1.0
    for e in range(labels.max() + 1):
        own, other = residuals[labels == e], residuals[labels != e]
        below = stats.f.cdf(np.var(own, ddof=1) / np.var(other, ddof=1), len(own) - 1, len(other) - 1)
        smallest = min(smallest, stats.ttest_ind(own, other, equal_var=False).pvalue, 2 * min(below, 1 - below))
    return min(1.0, 2 * labels.max() * smallest)


def _first_on_the_path(X: np.ndarray, y: np.ndarray) -> np.ndarray:
    from sklearn.linear_model import lars_path

    entered = lars_path(X - X.mean(axis=0), y - y.mean(), method="lasso")[2] != 0
    first = np.where(entered.any(axis=1), entered.argmax(axis=1), entered.shape[1])
    return np.argsort(first, kind="stable")[:CANDIDATES]


def invariance_guided(environments: Sequence[Environment], penalty: float) -> LinearPredictor:
    """Invariance-guided regularisation (Gu and others 2025, arXiv 2501.17354).

    Least squares that weigh environments equally, plus ``penalty sum w_j |coef_j|``, where w_j is the least instability of a
    set of at most two features with j in it (:func:`instabilities`). The means of each environment are subtracted.
    """
    grams, crosses = [], []
    for X, y in environments:
        centred = X - X.mean(axis=0)
        grams.append(centred.T @ centred / len(y))
        crosses.append(centred.T @ (y - y.mean()) / len(y))
    thresholds = penalty * instabilities(np.array(grams), np.array(crosses))
    return through_the_mean(_weighted_lasso(np.mean(grams, axis=0), np.mean(crosses, axis=0), thresholds), environments)


def instabilities(grams: np.ndarray, crosses: np.ndarray) -> np.ndarray:
    """For each feature j, the least of ``v(S)`` over sets S of at most two features with j in it.

    ``v(S)^2`` is the mean over environments of ``(b_e - b)^T gram_e (b_e - b)``, where b_e and b are the coefficients of least
    squares on S in environment e and in all environments together.

    >>> grams, crosses = np.ones((2, 1, 1)), np.array([[1.0], [3.0]])
    >>> instabilities(grams, crosses).tolist()
    [1.0]
    """
    d = grams.shape[1]
    least = np.full(d, np.inf)
    for size in range(1, LARGEST_SUBSET + 1):
        for chosen in map(list, itertools.combinations(range(d), size)):
            G, c = grams[:, chosen][:, :, chosen], crosses[:, chosen]
            inverses = np.linalg.pinv(np.concatenate([G, G.mean(axis=0)[None]]), rcond=1e-6, hermitian=True)
            away = np.einsum("eij,ej->ei", inverses[:-1], c) - inverses[-1] @ c.mean(axis=0)
            least[chosen] = np.minimum(least[chosen], np.mean(np.einsum("ei,eij,ej->e", away, G, away)))
    return np.sqrt(np.maximum(least, 0.0))


def _weighted_lasso(gram: np.ndarray, cross: np.ndarray, thresholds: np.ndarray) -> np.ndarray:
    """The minimum of ``w . gram w / 2 - cross . w + thresholds . |w|``, one weight after another."""
    w = np.linalg.lstsq(gram, cross, rcond=1e-12)[0]
    for _ in range(SWEEPS):
        before = w.copy()
        for j in np.flatnonzero(np.diagonal(gram) > 0):
            pull = cross[j] - gram[j] @ w + gram[j, j] * w[j]
            w[j] = np.sign(pull) * max(abs(pull) - thresholds[j], 0.0) / gram[j, j]
        if np.abs(w - before).max() < 1e-10:
            break
    return w
