"""The methods that are compared, and how all of them choose their one hyper-parameter."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from gyrostat.estimators.comparison import peer_methods, subset_methods
from gyrostat.estimators.linear_predictor import LinearPredictor
from gyrostat.estimators.squared_losses import Environment

PENALTIES = (0.01, 0.1, 1.0, 10.0, 100.0, 1000.0)
TOLERANCES = (0.25, 0.5, 1.0, 2.0)
INNER_PARTS = 8
"""Inside the training environments, they are left out one at a time, or in this many parts if there are more."""


@dataclass(frozen=True)
class Method:
    """A method, the values of its hyper-parameter to choose from, and the default when nothing is chosen.

    ``rule`` says which error in environments left out is minimised: the mean over them, or the worst.
    """

    name: str
    fit: Callable[[Sequence[Environment], float], LinearPredictor]
    grid: tuple[float, ...] = ()
    default: float = 0.0
    rule: Literal["mean", "worst"] = "mean"


REFERENCE = "least squares"
FIXED = "fixed effects"
OURS = "ours, everywhere"
SAME_KIND = "ours, same kind"
WORST_CASE = "ours, worst case"
"""Our estimator for its purposes: what holds everywhere, what predicts best in environments of the same kind, and in the
worst environment."""
PEERS = {
    m.name: m
    for m in (
        Method(REFERENCE, peer_methods.least_squares),
        Method("ridge", peer_methods.ridge, (1e-4, 1e-3, 1e-2, 0.1, 1.0, 10.0), 1e-3),
        Method(FIXED, peer_methods.within),
        Method("mean of slopes", peer_methods.mean_of_slopes),
        Method("mixed model", peer_methods.mixed_model),
        Method("anchor", peer_methods.anchor, (1.0, 3.0, 10.0, 100.0, 1000.0), 10.0),
        Method("V-REx", peer_methods.rex, PENALTIES, 10.0),
        Method("IRMv1", peer_methods.irm, PENALTIES, 10.0),
        Method("GroupDRO", peer_methods.group_dro),
        Method("ANDMask", peer_methods.and_mask, (0.0, 0.5, 1.0), 1.0),
        Method("ICP", subset_methods.causal_prediction),
        Method("invariance-guided", subset_methods.invariance_guided, (0.0, 0.1, 0.3, 1.0, 3.0, 10.0), 1.0),
    )
}
"""The methods of others by name; pooled least squares, the reference, comes first."""
OWN = (
    Method(OURS, peer_methods.ours, TOLERANCES, 0.5),
    Method(SAME_KIND, peer_methods.same_kind),
    Method(WORST_CASE, peer_methods.worst_case),
)
COMPARED = (*PEERS.values(), *OWN)


def fitted(methods: Sequence[Method], environments: Sequence[Environment]) -> dict[str, LinearPredictor]:
    """Fit each method to environments in pooled standard units; predictors in the original units, by name.

    >>> rng = np.random.default_rng(0)
    >>> environments = [(X, 3 + X @ [2.0, 0.0]) for X in rng.standard_normal((3, 50, 2))]
    >>> fit = fitted(COMPARED[:1], environments)["least squares"]
    >>> fit.coef.round(9).tolist(), round(fit.intercept, 9)
    ([2.0, 0.0], 3.0)
    """
    X, y = (np.concatenate([environment[i] for environment in environments]) for i in (0, 1))
    mean, spread, middle, unit = X.mean(axis=0), _positive(X.std(axis=0)), y.mean(), float(_positive(y.std()))
    fits = Fits([((X - mean) / spread, (y - middle) / unit) for X, y in environments])
    predictors = {}
    for method in methods:
        fit = fits.predictor(method)
        coef = fit.coef * unit / spread
        predictors[method.name] = LinearPredictor(coef, float(middle + unit * fit.intercept - mean @ coef), fit.status)
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
        """The value with the least error in environments left out: the mean over them, or the worst.

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
        """The error in each environment by a fit without it, and without others if there are more than ``INNER_PARTS``."""
        if (fit, value) not in self._errors:
            errors = np.empty(len(self.environments))
            part = np.arange(len(self.environments)) % INNER_PARTS
            for out in range(part.max() + 1):
                kept = [rows for rows, its in zip(self.environments, part, strict=True) if its != out]
                predictor = fit(kept, value)
                for e in np.flatnonzero(part == out):
                    X, y = self.environments[e]
                    errors[e] = np.mean((y - predictor(X)) ** 2)
            self._errors[fit, value] = errors
        return self._errors[fit, value]


def _positive(spread: np.ndarray) -> np.ndarray:
    return np.where(spread > 0, spread, 1.0)
