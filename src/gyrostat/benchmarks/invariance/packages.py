"""Methods that come from installed packages: ours, and two optional peers from PyPI."""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence

import numpy as np

from gyrostat.benchmarks.invariance.declare import Environment, Line
from gyrostat.benchmarks.invariance.peers import least_squares
from gyrostat.errors import GyrostatError

CANDIDATES = 6
"""Features that invariant causal prediction looks at, in all their subsets; more would take minutes."""
LEVEL = 0.05


def installed(package: str) -> bool:
    """Whether a package can be imported; nothing is imported.

    >>> installed("numpy"), installed("no_such_package")
    (True, False)
    """
    return importlib.util.find_spec(package) is not None


def ours(environments: Sequence[Environment], tolerance: float, directions: str = "features") -> Line:
    """:class:`gyrostat.estimators.InvariantLinearRegressor`; where it refuses, a constant, and the status says so."""
    from gyrostat.estimators import InvariantLinearRegressor

    X, y, labels = _stacked(environments)
    model = InvariantLinearRegressor(tolerance=tolerance, directions=directions, random_state=0)
    try:
        model.fit(X, y, environments=labels)
    except GyrostatError:  # a result as any other: a user who is refused has nothing better than the mean
        return Line(np.zeros(X.shape[1]), float(y.mean()), "refused")
    return Line(model.coef_, float(model.intercept_), model.status_)


def principal(environments: Sequence[Environment], tolerance: float) -> Line:
    """The same, deciding on principal directions of variation instead of features."""
    return ours(environments, tolerance, "principal")


def anchor(environments: Sequence[Environment], gamma: float) -> Line:
    """Anchor regression (Rothenhäusler 2021, package ivmodels) with an indicator of each environment as anchor."""
    from ivmodels.models.anchor_regression import AnchorRegression

    X, y, labels = _stacked(environments)
    anchors = np.eye(len(environments))[labels][:, 1:]
    if anchors.shape[1] == 0:
        return least_squares(environments)
    model = AnchorRegression(gamma=gamma).fit(X, y, Z=anchors)
    return Line(np.ravel(model.coef_), float(np.squeeze(model.intercept_)))


def causal_prediction(environments: Sequence[Environment], _: float = 0.0) -> Line:
    """Invariant causal prediction (Peters 2016, package causalicp) at level .05, then least squares on what it names.

    As in its authors' package, candidates are preselected: here the first six features on the path of the lasso. Where it
    rejects every set, or names no cause, the prediction is a constant and the status says which.
    """
    import itertools

    import causalicp

    X, y, _labels = _stacked(environments)
    candidates = [int(j) + 1 for j in _first_on_the_path(X, y)]
    sets = [set(s) for size in range(len(candidates) + 1) for s in itertools.combinations(candidates, size)]
    data = [np.column_stack([y, X]) for X, y in environments]
    named = causalicp.fit(data, 0, alpha=LEVEL, sets=sets, verbose=False, color=False).estimate
    kept = sorted(j - 1 for j in named or ())
    found = least_squares([(X[:, kept], y) for X, y in environments])
    coef = np.zeros(X.shape[1])
    coef[kept] = found.coef
    return Line(coef, found.intercept, "rejected" if named is None else "causes named" if kept else "no cause named")


def _first_on_the_path(X: np.ndarray, y: np.ndarray) -> np.ndarray:
    from sklearn.linear_model import lars_path

    entered = lars_path(X - X.mean(axis=0), y - y.mean(), method="lasso")[2] != 0
    first = np.where(entered.any(axis=1), entered.argmax(axis=1), entered.shape[1])
    return np.argsort(first, kind="stable")[:CANDIDATES]


def _stacked(environments: Sequence[Environment]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    from gyrostat.estimators import stacked

    return stacked(list(environments))
