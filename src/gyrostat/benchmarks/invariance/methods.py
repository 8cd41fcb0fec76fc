"""The methods that are compared, and how each chooses its one hyper-parameter: all in the same way."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from gyrostat.benchmarks.invariance import packages, peers
from gyrostat.benchmarks.invariance.declare import Environment, Line

PENALTIES = (0.01, 0.1, 1.0, 10.0, 100.0, 1000.0)
WORST = " (worst)"
"""Ends the names of methods whose hyper-parameter was chosen by the worst environment left out."""


@dataclass(frozen=True)
class Method:
    """A method with the values of its hyper-parameter to choose from, and the one it takes when there is no choosing.

    ``rule`` says which error in environments left out one at a time is to be least: the mean over them, or the worst.
    """

    name: str
    fit: Callable[[Sequence[Environment], float], Line]
    grid: tuple[float, ...] = ()
    default: float = 0.0
    package: str | None = None
    rule: Literal["mean", "worst"] = "mean"

    @property
    def installed(self) -> bool:
        """Whether the package it comes from is there."""
        return self.package is None or packages.installed(self.package)


REFERENCE = "least squares"
OURS = "ours"
UNTUNED = "ours, untuned"
PRINCIPAL = "ours, principal"
OWN = (OURS, UNTUNED, PRINCIPAL)
"""Ours with its tolerance chosen; as it comes; and as it comes, but deciding on combinations of features."""
BY_MEAN = (
    Method(REFERENCE, peers.least_squares),
    Method(OURS, packages.ours, (0.25, 0.5, 1.0, 2.0), 0.5),
    Method(UNTUNED, packages.ours, (), 0.5),
    Method(PRINCIPAL, packages.principal, (), 0.5),
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
METHODS = (*BY_MEAN, *(replace(m, name=m.name + WORST, rule="worst") for m in BY_MEAN if m.grid))
"""Those with something to choose come twice, once for each rule."""


def fitted(methods: Sequence[Method], environments: Sequence[Environment]) -> dict[str, Line]:
    """Each installed method on environments in pooled standard units; its predictor in their own units.

    >>> rng = np.random.default_rng(0)
    >>> places = [(X, 3 + X @ [2.0, 0.0]) for X in rng.standard_normal((3, 50, 2))]
    >>> line = fitted(METHODS[:1], places)["least squares"]
    >>> line.coef.round(9).tolist(), round(line.intercept, 9)
    ([2.0, 0.0], 3.0)
    """
    X, y = (np.concatenate([place[i] for place in environments]) for i in (0, 1))
    mean, spread, middle, unit = X.mean(axis=0), _positive(X.std(axis=0)), y.mean(), float(_positive(y.std()))
    fits = Fits([((X - mean) / spread, (y - middle) / unit) for X, y in environments])
    found = {}
    for method in methods:
        if method.installed:
            line = fits.line(method)
            coef = line.coef * unit / spread
            found[method.name] = Line(coef, float(middle + unit * line.intercept - mean @ coef), line.status)
    return found


class Fits:
    """Fits to some environments, and errors where one is left out; each is made once, whichever rules ask for it."""

    def __init__(self, environments: Sequence[Environment]):
        self.environments = list(environments)
        self._errors: dict[tuple, np.ndarray] = {}
        self._lines: dict[tuple, Line] = {}

    def line(self, method: Method) -> Line:
        """The method's predictor with the value it chooses."""
        value = self.chosen(method)
        if (method.fit, value) not in self._lines:
            self._lines[method.fit, value] = method.fit(self.environments, value)
        return self._lines[method.fit, value]

    def chosen(self, method: Method) -> float:
        """The value with the least error in environments left out one at a time, each counted alike, or in the worst.

        With two environments one would be left to learn from, and nothing to compare: then, and in a tie, the default.
        """
        if not method.grid or len(self.environments) < 3:
            return method.default
        errors = np.array([self._left_out(method.fit, value) for value in method.grid])
        judged = errors.mean(axis=1) if method.rule == "mean" else errors.max(axis=1)
        tied = judged <= judged.min() * (1 + 1e-9)
        values = [value for value, is_least in zip(method.grid, tied, strict=True) if is_least]
        return method.default if method.default in values else values[0]

    def _left_out(self, fit: Callable[[Sequence[Environment], float], Line], value: float) -> np.ndarray:
        if (fit, value) not in self._errors:
            errors = []
            for e, (X, y) in enumerate(self.environments):
                line = fit([*self.environments[:e], *self.environments[e + 1 :]], value)
                errors.append(np.mean((y - line(X)) ** 2))
            self._errors[fit, value] = np.array(errors)
        return self._errors[fit, value]


def _positive(spread: np.ndarray) -> np.ndarray:
    return np.where(spread > 0, spread, 1.0)
