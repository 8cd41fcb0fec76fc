"""Methods for several environments, as linear models with a squared loss.

They are exact, or minimised by L-BFGS. The objectives of IRMv1 and V-REx are not convex: the minimum reported
is the one that descent from least squares reaches. Each method takes environments (features and response in pooled standard
units, see :func:`~gyrostat.estimators.comparison.compared_methods.fitted`) and the value of its hyper-parameter.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from scipy import optimize

from gyrostat.errors import GyrostatError
from gyrostat.estimators.environment_labels import stacked
from gyrostat.estimators.invariant.linear import InvariantLinearRegressor
from gyrostat.estimators.invariant.partial_pooling import fixed_effects, random_slopes, same_kind_weights
from gyrostat.estimators.invariant.worst_case import worst_case_weights
from gyrostat.estimators.linear_predictor import LinearPredictor, predictor
from gyrostat.estimators.squared_losses import Environment, Risks

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
    return predictor(fixed_effects(Risks.of(environments)))


def through_the_mean(coef: np.ndarray, environments: Sequence[Environment], status: str = "") -> LinearPredictor:
    """The predictor with these coefficients whose intercept fits the mean of all rows."""
    X, y = (np.concatenate([environment[i] for environment in environments]) for i in (0, 1))
    return LinearPredictor(coef, float(y.mean() - X.mean(axis=0) @ coef), status)


def mean_of_slopes(environments: Sequence[Environment], _: float = 0.0) -> LinearPredictor:
    """The mean of the coefficients of each environment, every environment with the same weight."""
    coef = np.mean([least_squares([environment]).coef for environment in environments], axis=0)
    return through_the_mean(coef, environments)


def mixed_model(environments: Sequence[Environment], _: float = 0.0) -> LinearPredictor:
    """Intercepts and slopes that vary over environments, each with a variance of its own: the mean of their law."""
    return predictor(random_slopes(Risks.of(environments)).weights)


def anchor(environments: Sequence[Environment], gamma: float) -> LinearPredictor:
    """Anchor regression (Rothenhäusler 2021) with an indicator of each environment as anchor.

    What lies between environments, their means, has the weight ``gamma`` and what lies within them the weight 1: 0 would be
    fixed effects, 1 is least squares.
    """
    X, y, labels = stacked(list(environments))
    X, y = X - X.mean(axis=0), y - y.mean()
    counts = np.bincount(labels)
    means = np.stack([X[labels == e].mean(axis=0) for e in range(len(counts))])
    levels = np.bincount(labels, y) / counts
    gram = X.T @ X + (gamma - 1) * (means * counts[:, None]).T @ means
    coef = np.linalg.lstsq(gram, X.T @ y + (gamma - 1) * (means * counts[:, None]).T @ levels, rcond=1e-12)[0]
    return through_the_mean(coef, environments)


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
    """Sagawa 2020 without regularisation: the exact minimum of ``max_e R_e(w)``."""
    return predictor(Risks.of(environments).least_worst())


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


# --- ours ------------------------------------------------------------------------------------------------------------------


def ours(environments: Sequence[Environment], tolerance: float, directions: str = "auto") -> LinearPredictor:
    """:class:`gyrostat.estimators.InvariantLinearRegressor`; where it refuses, a constant with the status "refused"."""
    X, y, labels = stacked(list(environments))
    model = InvariantLinearRegressor(tolerance=tolerance, directions=directions, family="gaussian", random_state=0)
    try:
        model.fit(X, y, environments=labels)
    except GyrostatError:  # counted as a result: a user who is refused has nothing better than the mean
        return LinearPredictor(np.zeros(X.shape[1]), float(y.mean()), "refused")
    return LinearPredictor(model.coef_, float(model.intercept_), model.status_)


def principal(environments: Sequence[Environment], tolerance: float) -> LinearPredictor:
    """The same, deciding on principal directions of variation instead of features."""
    return ours(environments, tolerance, "principal")


def same_kind(environments: Sequence[Environment], _: float = 0.0) -> LinearPredictor:
    """The purpose "same kind" of our estimator: partial pooling instead of removal."""
    return predictor(same_kind_weights(Risks.of(environments)))


def worst_case(environments: Sequence[Environment], _: float = 0.0) -> LinearPredictor:
    """The purpose "worst-case" of our estimator."""
    return predictor(worst_case_weights(Risks.of(environments)))
