"""The methods that are compared, and how each chooses its one hyper-parameter: all in the same way."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from gyrostat.lab.invariance import packages, peers
from gyrostat.lab.invariance.declare import Environment, Line

PENALTIES = (0.01, 0.1, 1.0, 10.0, 100.0, 1000.0)


@dataclass(frozen=True)
class Method:
    """A method with the values of its hyper-parameter to choose from, and the one it takes when there is no choosing."""

    name: str
    fit: Callable[[Sequence[Environment], float], Line]
    grid: tuple[float, ...] = ()
    default: float = 0.0
    package: str | None = None

    @property
    def installed(self) -> bool:
        """Whether the package it comes from is there."""
        return self.package is None or packages.installed(self.package)


REFERENCE = "least squares"
OURS = "ours"
METHODS = (
    Method(REFERENCE, peers.least_squares),
    Method(OURS, packages.ours, (0.25, 0.5, 1.0, 2.0), 0.5),
    Method("ours, untuned", packages.ours, (), 0.5),
    Method("ridge", peers.ridge, (1e-4, 1e-3, 1e-2, 0.1, 1.0, 10.0), 1e-3),
    Method("fixed effects", peers.within),
    Method("IRMv1", peers.irm, PENALTIES, 10.0),
    Method("V-REx", peers.rex, PENALTIES, 10.0),
    Method("GroupDRO", peers.group_dro),
    Method("ANDMask", peers.and_mask, (0.0, 0.5, 1.0), 1.0),
    Method("anchor", packages.anchor, (1.0, 3.0, 10.0, 100.0, 1000.0), 10.0, "ivmodels"),
    Method("ICP", packages.causal_prediction, package="causalicp"),
)
"""Pooled least squares, which all are compared with, comes first."""


def fitted(method: Method, environments: Sequence[Environment]) -> Line:
    """The method on environments in pooled standard units, with its hyper-parameter chosen; the predictor in their own units.

    >>> rng = np.random.default_rng(0)
    >>> places = [(X, 3 + X @ [2.0, 0.0]) for X in rng.standard_normal((3, 50, 2))]
    >>> line = fitted(METHODS[0], places)
    >>> line.coef.round(9).tolist(), round(line.intercept, 9)
    ([2.0, 0.0], 3.0)
    """
    X, y = (np.concatenate([place[i] for place in environments]) for i in (0, 1))
    mean, spread, middle, unit = X.mean(axis=0), _positive(X.std(axis=0)), y.mean(), float(_positive(y.std()))
    scaled = [((X - mean) / spread, (y - middle) / unit) for X, y in environments]
    line = method.fit(scaled, chosen(method, scaled))
    coef = line.coef * unit / spread
    return Line(coef, float(middle + unit * line.intercept - mean @ coef), line.status)


def chosen(method: Method, environments: Sequence[Environment]) -> float:
    """The value with the least squared error in environments left out one at a time, each counted alike.

    With two environments one would be left to learn from, and nothing to compare: then, and in a tie, the default.
    """
    if not method.grid or len(environments) < 3:
        return method.default
    errors = np.array([_left_out(method, environments, value) for value in method.grid])
    if method.default in method.grid and errors[method.grid.index(method.default)] <= errors.min() * (1 + 1e-9):
        return method.default
    return method.grid[int(errors.argmin())]


def _left_out(method: Method, environments: Sequence[Environment], value: float) -> float:
    errors = []
    for e, (X, y) in enumerate(environments):
        line = method.fit([*environments[:e], *environments[e + 1 :]], value)
        errors.append(np.mean((y - line(X)) ** 2))
    return float(np.mean(errors))


def _positive(spread: np.ndarray) -> np.ndarray:
    return np.where(spread > 0, spread, 1.0)
