"""Methods for several environments: linear models with a squared loss written here, and methods of installed packages.

Methods written here are exact, or minimised by L-BFGS. The objectives of IRMv1 and V-REx are not convex: the minimum reported
is the one that descent from least squares reaches. Each method takes environments (features and response in pooled standard
units, see ``methods.fitted``) and the value of its hyper-parameter.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from scipy import optimize

from gyrostat.benchmarks.invariance.simulations import Environment, LinearPredictor
from gyrostat.errors import GyrostatError


class Risks(NamedTuple):
    """``R_e(w) = mean (y - [1 X] w)^2 = energy - 2 cross . w + w . gram w`` of every environment e.

    >>> risks = Risks.of([(np.array([[0.0], [2.0]]), np.array([1.0, 3.0]))])
    >>> risks.values(np.array([1.0, 1.0])).tolist(), risks.values(np.zeros(2)).tolist()
    ([0.0], [5.0])
    """

    grams: np.ndarray
    crosses: np.ndarray
    energies: np.ndarray
    counts: np.ndarray

    @classmethod
    def of(cls, environments: Sequence[Environment]) -> Risks:
        """The losses of these environments; the first weight is the intercept."""
        moments = []
        for X, y in environments:
            Z = np.column_stack([np.ones(len(X)), X])
            moments.append((Z.T @ Z / len(y), Z.T @ y / len(y), y @ y / len(y), len(y)))
        return cls(*(np.array(x) for x in zip(*moments, strict=True)))

    def values(self, w: np.ndarray) -> np.ndarray:
        """Every ``R_e(w)``."""
        return self.energies - 2 * self.crosses @ w + (self.grams @ w) @ w

    def gradients(self, w: np.ndarray) -> np.ndarray:
        """Every gradient of ``R_e``, a row each."""
        return 2 * (self.grams @ w - self.crosses)

    def least(self, weights: np.ndarray, ridge: float = 0.0) -> np.ndarray:
        """The minimum of the weighted losses plus ``ridge |w|^2`` (without the intercept); the shortest if there are many."""
        gram = np.tensordot(weights, self.grams, axes=1)
        penalty = np.diag(np.append(0.0, np.full(len(gram) - 1, ridge)))
        return np.linalg.lstsq(gram + penalty, weights @ self.crosses, rcond=1e-12)[0]

    @property
    def shares(self) -> np.ndarray:
        """The share of rows of every environment: with these weights every row counts the same."""
        return self.counts / self.counts.sum()


def predictor(w: np.ndarray) -> LinearPredictor:
    """The predictor with these weights, the intercept first."""
    return LinearPredictor(w[1:], float(w[0]))


# --- written here ------------------------------------------------------------------------------------------------------------

MASK_STEPS, MASK_STEP = 2000, 0.1
"""Steps of ANDMask, and their size in units of one over the largest curvature: small, because a weight has to stop where
environments begin to disagree, and a large step overshoots."""


def least_squares(environments: Sequence[Environment], _: float = 0.0) -> LinearPredictor:
    """All rows together."""
    risks = Risks.of(environments)
    return predictor(risks.least(risks.shares))


def ridge(environments: Sequence[Environment], penalty: float) -> LinearPredictor:
    """All rows together, with ``penalty |coef|^2`` added to the mean of squares."""
    risks = Risks.of(environments)
    return predictor(risks.least(risks.shares, penalty))


def within(environments: Sequence[Environment], _: float = 0.0) -> LinearPredictor:
    """Fixed effects: all rows together after the means of each environment are taken out; the intercept fits all rows."""
    centred = [(X - X.mean(axis=0), y - y.mean()) for X, y in environments]
    coef = least_squares(centred).coef
    X, y = (np.concatenate([environment[i] for environment in environments]) for i in (0, 1))
    return LinearPredictor(coef, float(y.mean() - X.mean(axis=0) @ coef))


def irm_objective(risks: Risks, penalty: float, w: np.ndarray) -> tuple[float, np.ndarray]:
    """Arjovsky 2019, IRMv1: ``mean R_e + penalty mean (d/ds R_e(s w) at s = 1)^2``, over ``1 + penalty``, and its gradient."""
    slope = 2 * (risks.grams @ w - risks.crosses) @ w
    steep = 4 * risks.grams @ w - 2 * risks.crosses
    value = risks.values(w).mean() + penalty * np.mean(slope**2)
    gradient = risks.gradients(w).mean(axis=0) + penalty * np.mean(2 * slope[:, None] * steep, axis=0)
    return value / (1 + penalty), gradient / (1 + penalty)


def rex_objective(risks: Risks, penalty: float, w: np.ndarray) -> tuple[float, np.ndarray]:
    """Krueger 2021, V-REx: ``mean R_e + penalty variance of R_e``, over ``1 + penalty``, and its gradient."""
    values, gradients = risks.values(w), risks.gradients(w)
    away = values - values.mean()
    value = values.mean() + penalty * np.mean(away**2)
    gradient = gradients.mean(axis=0) + penalty * np.mean(2 * away[:, None] * gradients, axis=0)
    return value / (1 + penalty), gradient / (1 + penalty)


def irm(environments: Sequence[Environment], penalty: float) -> LinearPredictor:
    """IRMv1, from the least squares that weigh environments equally."""
    return _minimised(irm_objective, environments, penalty)


def rex(environments: Sequence[Environment], penalty: float) -> LinearPredictor:
    """V-REx, from the least squares that weigh environments equally."""
    return _minimised(rex_objective, environments, penalty)


def _minimised(objective: Callable, environments: Sequence[Environment], penalty: float) -> LinearPredictor:
    risks = Risks.of(environments)
    start = risks.least(np.full(len(environments), 1 / len(environments)))
    options = {"maxiter": 2000, "ftol": 1e-14, "gtol": 1e-9}
    minimum = optimize.minimize(
        lambda w: objective(risks, penalty, w), start, jac=True, method="L-BFGS-B", options=options
    )
    return predictor(minimum.x)


def group_dro(environments: Sequence[Environment], _: float = 0.0) -> LinearPredictor:
    """Sagawa 2020 without regularisation: the exact minimum of ``max_e R_e(w)``.

    Losses are convex, so it is ``max over weights q of min over w of sum q_e R_e(w)``: concave in q, with gradient ``R_e``.
    """
    risks, E = Risks.of(environments), len(environments)

    def dual(q: np.ndarray) -> tuple[float, np.ndarray]:
        values = risks.values(risks.least(q))
        return -float(q @ values), -values

    minimum = optimize.minimize(
        dual,
        np.full(E, 1 / E),
        jac=True,
        method="SLSQP",
        bounds=[(0, 1)] * E,
        constraints={"type": "eq", "fun": lambda q: q.sum() - 1, "jac": np.ones_like},
        options={"ftol": 1e-12},
    )
    return predictor(risks.least(np.clip(minimum.x, 0, 1)))


def and_mask(environments: Sequence[Environment], agreement: float) -> LinearPredictor:
    """Parascandolo 2021: gradient descent from zero that moves a weight only if environments agree on the sign of its gradient.

    A weight moves if ``|mean of the signs of its gradients| >= agreement``. With 0 all weights
    move, and the end is known: least squares that weigh environments equally.
    """
    risks, E = Risks.of(environments), len(environments)
    if agreement == 0:
        return predictor(risks.least(np.full(E, 1 / E)))
    w, step = np.zeros(risks.crosses.shape[1]), MASK_STEP / np.linalg.eigvalsh(risks.grams.mean(axis=0))[-1]
    for _ in range(MASK_STEPS):
        gradients = risks.gradients(w)
        agreed = np.abs(np.sign(gradients).sum(axis=0)) >= agreement * E - 1e-9
        moved = step * agreed * gradients.mean(axis=0)
        if np.abs(moved).max() < 1e-9:
            break
        w = w - moved
    return predictor(w)


# --- from installed packages: ours, ivmodels, causalicp ----------------------------------------------------------------------

CANDIDATES = 6
"""Features of which invariant causal prediction tries all subsets; more would take minutes."""
LEVEL = 0.05


def ours(environments: Sequence[Environment], tolerance: float, directions: str = "features") -> LinearPredictor:
    """:class:`gyrostat.estimators.InvariantLinearRegressor`; where it refuses, a constant with the status "refused"."""
    from gyrostat.estimators import InvariantLinearRegressor

    X, y, labels = _stacked(environments)
    model = InvariantLinearRegressor(tolerance=tolerance, directions=directions, random_state=0)
    try:
        model.fit(X, y, environments=labels)
    except GyrostatError:  # counted as a result: a user who is refused has nothing better than the mean
        return LinearPredictor(np.zeros(X.shape[1]), float(y.mean()), "refused")
    return LinearPredictor(model.coef_, float(model.intercept_), model.status_)


def principal(environments: Sequence[Environment], tolerance: float) -> LinearPredictor:
    """The same, deciding on principal directions of variation instead of features."""
    return ours(environments, tolerance, "principal")


def anchor(environments: Sequence[Environment], gamma: float) -> LinearPredictor:
    """Anchor regression (Rothenhäusler 2021, package ivmodels) with an indicator of each environment as anchor."""
    from ivmodels.models.anchor_regression import AnchorRegression

    X, y, labels = _stacked(environments)
    anchors = np.eye(len(environments))[labels][:, 1:]
    if anchors.shape[1] == 0:
        return least_squares(environments)
    model = AnchorRegression(gamma=gamma).fit(X, y, Z=anchors)
    return LinearPredictor(np.ravel(model.coef_), float(np.squeeze(model.intercept_)))


def causal_prediction(environments: Sequence[Environment], _: float = 0.0) -> LinearPredictor:
    """Invariant causal prediction (Peters 2016, package causalicp) at level .05, then least squares on the causes it names.

    As in its authors' package, candidates are preselected: here the first six features on the path of the lasso. If it
    rejects every set, or names no cause, the prediction is a constant and the status says which.
    """
    import causalicp

    X, y, _labels = _stacked(environments)
    candidates = [int(j) + 1 for j in _first_on_the_path(X, y)]
    sets = [set(s) for size in range(len(candidates) + 1) for s in itertools.combinations(candidates, size)]
    data = [np.column_stack([y, X]) for X, y in environments]
    named = causalicp.fit(data, 0, alpha=LEVEL, sets=sets, verbose=False, color=False).estimate
    kept = sorted(j - 1 for j in named or ())
    fit = least_squares([(X[:, kept], y) for X, y in environments])
    coef = np.zeros(X.shape[1])
    coef[kept] = fit.coef
    return LinearPredictor(
        coef, fit.intercept, "rejected" if named is None else "causes named" if kept else "no cause named"
    )


def _first_on_the_path(X: np.ndarray, y: np.ndarray) -> np.ndarray:
    from sklearn.linear_model import lars_path

    entered = lars_path(X - X.mean(axis=0), y - y.mean(), method="lasso")[2] != 0
    first = np.where(entered.any(axis=1), entered.argmax(axis=1), entered.shape[1])
    return np.argsort(first, kind="stable")[:CANDIDATES]


def _stacked(environments: Sequence[Environment]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    from gyrostat.estimators import stacked

    return stacked(list(environments))
