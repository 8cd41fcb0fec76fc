"""Fits that once ended without a word in a wrong answer, or in an error: how often they succeed over many draws."""

from __future__ import annotations

import warnings

import numpy as np

from gyrostat.errors import GyrostatError
from gyrostat.estimators import InvariantQuadraticRegressor, MatrixSensingRegressor


def shared_component(seed: int, *, fit_intercept: bool, size: float = 30.0) -> float:
    """The training R^2 of ``MatrixSensingRegressor`` on measurements ``X_i = size C + noise`` of a matrix of rank 2.

    C is the same for all measurements and has rank one.
    """
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((8, 2)) @ rng.standard_normal((2, 6))
    C = np.outer(rng.standard_normal(8), rng.standard_normal(6)) / 7
    X = size * C + rng.standard_normal((160, 8, 6))
    y = np.einsum("mij,ij->m", X, A) + 0.1 * rng.standard_normal(160)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = MatrixSensingRegressor(random_state=seed, fit_intercept=fit_intercept).fit(X, y)
        return float(model.score(X, y))


def antisymmetric_part(seed: int) -> float:
    """The antisymmetric part of the estimate, as a share of the estimate, for symmetric X, which do not determine it."""
    rng = np.random.default_rng(seed)
    Q = np.linalg.qr(rng.standard_normal((8, 2)))[0]
    X = rng.standard_normal((200, 8, 8))
    X = (X + X.mT) / 2
    y = np.einsum("mij,ij->m", X, Q * [2.0, -1.0] @ Q.T) + 0.1 * rng.standard_normal(200)
    A = MatrixSensingRegressor(random_state=seed).fit(X, y).matrix_
    return float(np.linalg.norm(A - A.T) / 2 / np.linalg.norm(A))


def quadratic_step_is_found(seed: int, rows: int = 60) -> bool:
    """Whether ``InvariantQuadraticRegressor`` fits a small table (three environments, four features) with its own step."""
    rng = np.random.default_rng(seed)
    X, site = rng.standard_normal((rows, 4)), np.arange(rows) % 3
    y = X[:, 0] ** 2 + np.array([-1.0, 1.6, 0.3])[site] * X[:, 1] ** 2 + 0.3 * rng.standard_normal(rows)
    try:
        InvariantQuadraticRegressor(random_state=seed).fit(X, y, environments=site)
    except GyrostatError:
        return False
    return True
