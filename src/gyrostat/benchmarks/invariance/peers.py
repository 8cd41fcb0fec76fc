"""Other methods for several environments, for linear models with a squared loss: exact, or by L-BFGS to a minimum.

The objectives of IRMv1 and V-REx are not convex: theirs is the minimum to which descent from least squares leads. Each method
takes environments (features and response in pooled standard units, see ``methods.fitted``) and its hyper-parameter.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from scipy import optimize

from gyrostat.benchmarks.invariance.declare import Environment, Line
from gyrostat.benchmarks.invariance.risks import Risks, line

MASK_STEPS, MASK_STEP = 2000, 0.1
"""Steps of ANDMask, and their size in units of one over the largest curvature: small, because a weight is to stop where
environments begin to disagree, and a large step goes beyond."""


def least_squares(environments: Sequence[Environment], _: float = 0.0) -> Line:
    """All rows together."""
    risks = Risks.of(environments)
    return line(risks.least(risks.shares))


def ridge(environments: Sequence[Environment], penalty: float) -> Line:
    """All rows together, with ``penalty |coef|^2`` beside the mean of squares."""
    risks = Risks.of(environments)
    return line(risks.least(risks.shares, penalty))


def within(environments: Sequence[Environment], _: float = 0.0) -> Line:
    """Fixed effects: all rows together after the means of each environment are taken out; the intercept fits all rows."""
    centred = [(X - X.mean(axis=0), y - y.mean()) for X, y in environments]
    coef = least_squares(centred).coef
    X, y = (np.concatenate([place[i] for place in environments]) for i in (0, 1))
    return Line(coef, float(y.mean() - X.mean(axis=0) @ coef))


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


def irm(environments: Sequence[Environment], penalty: float) -> Line:
    """IRMv1, from the least squares that count environments alike."""
    return _descended(irm_objective, environments, penalty)


def rex(environments: Sequence[Environment], penalty: float) -> Line:
    """V-REx, from the least squares that count environments alike."""
    return _descended(rex_objective, environments, penalty)


def _descended(objective: Callable, environments: Sequence[Environment], penalty: float) -> Line:
    risks = Risks.of(environments)
    start = risks.least(np.full(len(environments), 1 / len(environments)))
    options = {"maxiter": 2000, "ftol": 1e-14, "gtol": 1e-9}
    found = optimize.minimize(
        lambda w: objective(risks, penalty, w), start, jac=True, method="L-BFGS-B", options=options
    )
    return line(found.x)


def group_dro(environments: Sequence[Environment], _: float = 0.0) -> Line:
    """Sagawa 2020 without regularisation: least ``max_e R_e(w)``, exactly.

    Losses are convex, so it is ``max over weights q of min over w of sum q_e R_e(w)``: concave in q, with gradient ``R_e``.
    """
    risks, E = Risks.of(environments), len(environments)

    def dual(q: np.ndarray) -> tuple[float, np.ndarray]:
        values = risks.values(risks.least(q))
        return -float(q @ values), -values

    found = optimize.minimize(
        dual,
        np.full(E, 1 / E),
        jac=True,
        method="SLSQP",
        bounds=[(0, 1)] * E,
        constraints={"type": "eq", "fun": lambda q: q.sum() - 1, "jac": np.ones_like},
        options={"ftol": 1e-12},
    )
    return line(risks.least(np.clip(found.x, 0, 1)))


def and_mask(environments: Sequence[Environment], agreement: float) -> Line:
    """Parascandolo 2021: gradient descent from zero that moves only weights on whose sign environments agree.

    A weight moves if ``|mean of the signs of its gradients| >= agreement``. With 0 all move, and the end is known: least
    squares that count environments alike.
    """
    risks, E = Risks.of(environments), len(environments)
    if agreement == 0:
        return line(risks.least(np.full(E, 1 / E)))
    w, step = np.zeros(risks.crosses.shape[1]), MASK_STEP / np.linalg.eigvalsh(risks.grams.mean(axis=0))[-1]
    for _ in range(MASK_STEPS):
        gradients = risks.gradients(w)
        agreed = np.abs(np.sign(gradients).sum(axis=0)) >= agreement * E - 1e-9
        moved = step * agreed * gradients.mean(axis=0)
        if np.abs(moved).max() < 1e-9:
            break
        w = w - moved
    return line(w)
