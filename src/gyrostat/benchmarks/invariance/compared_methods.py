"""The methods that are compared, and how all of them choose their one hyper-parameter."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from gyrostat.benchmarks.invariance import peers
from gyrostat.benchmarks.invariance.simulations import Environment, LinearPredictor
from gyrostat.tables.examples import is_installed

PENALTIES = (0.01, 0.1, 1.0, 10.0, 100.0, 1000.0)
WORST = " (worst)"
"""The suffix of methods whose hyper-parameter is chosen by the worst error in an environment left out."""


@dataclass(frozen=True)
class Method:
    """A method, the values of its hyper-parameter to choose from, and the default when nothing is chosen.

    ``rule`` says which error in environments left out one at a time is minimised: the mean over them, or the worst.
    """

    name: str
    fit: Callable[[Sequence[Environment], float], LinearPredictor]
    grid: tuple[float, ...] = ()
    default: float = 0.0
    package: str | None = None
    rule: Literal["mean", "worst"] = "mean"

    @property
    def installed(self) -> bool:
        """Whether the package it comes from is installed."""
        return self.package is None or is_installed(self.package)


REFERENCE = "least squares"
OURS = "ours"
UNTUNED = "ours, untuned"
PRINCIPAL = "ours, principal"
OWN = (OURS, UNTUNED, PRINCIPAL)
"""Our estimator with its tolerance chosen; with defaults; and with defaults, deciding on combinations of features."""
BY_MEAN = (
    Method(REFERENCE, peers.least_squares),
    Method(OURS, peers.ours, (0.25, 0.5, 1.0, 2.0), 0.5),
    Method(UNTUNED, peers.ours, (), 0.5),
    Method(PRINCIPAL, peers.principal, (), 0.5),
    Method("ridge", peers.ridge, (1e-4, 1e-3, 1e-2, 0.1, 1.0, 10.0), 1e-3),
    Method("fixed effects", peers.within),
    Method("IRMv1", peers.irm, PENALTIES, 10.0),
    Method("V-REx", peers.rex, PENALTIES, 10.0),
    Method("GroupDRO", peers.group_dro),
    Method("ANDMask", peers.and_mask, (0.0, 0.5, 1.0), 1.0),
    Method("anchor", peers.anchor, (1.0, 3.0, 10.0, 100.0, 1000.0), 10.0, "ivmodels"),
    Method("ICP", peers.causal_prediction, package="causalicp"),
)
"""All methods with hyper-parameters chosen by the mean; pooled least squares, the reference, comes first."""
METHODS = (*BY_MEAN, *(replace(m, name=m.name + WORST, rule="worst") for m in BY_MEAN if m.grid))
"""Methods with a hyper-parameter to choose come twice, once for each rule."""


def fitted(methods: Sequence[Method], environments: Sequence[Environment]) -> dict[str, LinearPredictor]:
    """Fit each installed method to environments in pooled standard units; predictors in the original units, by name.

    >>> rng = np.random.default_rng(0)
    >>> environments = [(X, 3 + X @ [2.0, 0.0]) for X in rng.standard_normal((3, 50, 2))]
    >>> fit = fitted(METHODS[:1], environments)["least squares"]
    >>> fit.coef.round(9).tolist(), round(fit.intercept, 9)
    ([2.0, 0.0], 3.0)
    """
    X, y = (np.concatenate([environment[i] for environment in environments]) for i in (0, 1))
    mean, spread, middle, unit = X.mean(axis=0), _positive(X.std(axis=0)), y.mean(), float(_positive(y.std()))
    fits = Fits([((X - mean) / spread, (y - middle) / unit) for X, y in environments])
    predictors = {}
    for method in methods:
        if method.installed:
            fit = fits.predictor(method)
            coef = fit.coef * unit / spread
            predictors[method.name] = LinearPredictor(
                coef, float(middle + unit * fit.intercept - mean @ coef), fit.status
            )
    return predictors


class Fits:
    """Fits to some environments, and errors in environments left out; each is computed once and shared by both rules."""

    def __init__(self, environments: Sequence[Environment]):
        self.environments = list(environments)
        self._errors: dict[tuple, np.ndarray] = {}
        self._predictors: dict[tuple, LinearPredictor] = {}

    def predictor(self, method: Method) -> LinearPredictor:
        """The method's predictor with the hyper-parameter it chooses."""
        value = self.chosen(method)
        if (method.fit, value) not in self._predictors:
            self._predictors[method.fit, value] = method.fit(self.environments, value)
        return self._predictors[method.fit, value]

    def chosen(self, method: Method) -> float:
        """The value with the least error in environments left out one at a time: the mean over them, or the worst.

        The default is taken in a tie, and with two environments: one would be left to learn from, with nothing to compare.
        """
        if not method.grid or len(self.environments) < 3:
            return method.default
        errors = np.array([self._left_out(method.fit, value) for value in method.grid])
        judged = errors.mean(axis=1) if method.rule == "mean" else errors.max(axis=1)
        tied = judged <= judged.min() * (1 + 1e-9)
        values = [value for value, is_least in zip(method.grid, tied, strict=True) if is_least]
        return method.default if method.default in values else values[0]

    def _left_out(self, fit: Callable[[Sequence[Environment], float], LinearPredictor], value: float) -> np.ndarray:
        if (fit, value) not in self._errors:
            errors = []
            for e, (X, y) in enumerate(self.environments):
                predictor = fit([*self.environments[:e], *self.environments[e + 1 :]], value)
                errors.append(np.mean((y - predictor(X)) ** 2))
            self._errors[fit, value] = np.array(errors)
        return self._errors[fit, value]


def _positive(spread: np.ndarray) -> np.ndarray:
    return np.where(spread > 0, spread, 1.0)
