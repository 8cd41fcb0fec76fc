"""Outcomes that are not measured on a line: 0/1, shares and counts, by a regression with a link in each environment."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from scipy import special, stats

from gyrostat.errors import GyrostatError
from gyrostat.estimators.invariant.collinear_features import identifiable_basis
from gyrostat.estimators.invariant.effects import (
    Effects,
    EnvironmentPart,
    MeasuredEffects,
    Moments,
    RowDesign,
    RowsInMemory,
    environment_parts,
    inverse_moments,
)
from gyrostat.estimators.invariant.score_covariance import RowInfluence, robust_factors, score_covariance

FAMILIES = ("gaussian", "binomial", "poisson")
FARTHEST = 30.0
"""Linear predictors are kept within this distance from zero."""
FEW_EVENTS = 10.0
"""With fewer events than this in an environment (the sum of weights times variances, in rows of 0/1 or counts), residuals do
not show the dispersion: where nothing happened, all are nearly zero."""


@dataclass(frozen=True)
class LinkFamily:
    """A family with its canonical link: the mean, the variance and the third cumulant are functions of ``eta``."""

    name: str

    def mean(self, eta: np.ndarray) -> np.ndarray:
        """The mean of the outcome."""
        eta = np.clip(eta, -FARTHEST, FARTHEST)
        return special.expit(eta) if self.name == "binomial" else np.exp(eta)

    def variance(self, mu: np.ndarray) -> np.ndarray:
        """The variance of the outcome."""
        return np.maximum(mu * (1 - mu) if self.name == "binomial" else mu, 1e-12)

    def skewness(self, mu: np.ndarray) -> np.ndarray:
        """The third cumulant over the variance."""
        return 1 - 2 * mu if self.name == "binomial" else np.ones_like(mu)

    def start(self, y: np.ndarray, weights: np.ndarray) -> float:
        """The linear predictor of the mean, a little away from the boundary."""
        total, events = weights.sum(), weights @ y
        return float(np.log((events + 0.5) / ((total - events if self.name == "binomial" else total) + 0.5)))

    def check(self, y: np.ndarray) -> None:
        """Refuse responses that the family does not have."""
        if self.name == "binomial" and ((y < 0) | (y > 1)).any():
            raise GyrostatError(
                f"family='binomial' needs responses from 0 to 1 (0/1 or shares); they go from {y.min():g} to {y.max():g}: "
                "recode them, divide percentages by 100, or use another family."
            )
        if self.name == "poisson" and (y < 0).any():
            raise GyrostatError(f"family='poisson' needs responses of at least 0; the smallest is {y.min():g}.")


def outcome_kind(y: np.ndarray) -> str:
    """What the response looks like: "binary" (0 and 1), "two values" (other ones), "count", "skewed" (durations, amounts) or
    "" if nothing speaks against a line.

    A count is a whole number from zero up with a mean below ten; larger counts, and amounts that never fall below zero,
    are "skewed" if their logarithms are closer to symmetric than they are.

    >>> outcome_kind(np.array([0.0, 1.0, 1.0])), outcome_kind(np.array([0.0, 2.0, 1.0, 0.0])), outcome_kind(np.arange(30.0))
    ('binary', 'count', '')
    """
    if len(y) > 2 and len(np.unique(y[:1000])) <= 2 and len(values := np.unique(y)) == 2:
        return "binary" if np.array_equal(values, [0.0, 1.0]) else "two values"
    if (y < 0).any() or len(y) < 2:
        return ""
    if (y == np.round(y)).all() and (y == 0).any() and y.mean() < 10 and y.max() > 1:
        return "count"
    positive = y[y > 0]
    if len(positive) > 20 and len(np.unique(positive)) > 20 and (skew := float(stats.skew(positive))) > 1.5:
        return "skewed" if abs(float(stats.skew(np.log(positive)))) < 0.75 * skew else ""
    return ""


def fitted_intercept(eta: np.ndarray, y: np.ndarray, weights: np.ndarray | None, family: str) -> float:
    """The intercept with which the mean prediction is the mean response, given linear predictors without it.

    >>> round(fitted_intercept(np.zeros(4), np.array([0.0, 1.0, 1.0, 1.0]), None, "binomial"), 4)  # the logarithm of 3
    1.0986
    """
    w = np.ones(len(y)) if weights is None else weights
    if family == "gaussian":
        return float(np.average(y, weights=w) - np.average(eta, weights=w))
    part = EnvironmentPart(eta[:, None], y, np.zeros(1), 0.0, float(w.sum()), np.arange(len(y)), w)
    return _with_intercept(part, np.ones(1), LinkFamily(family)).intercept


# --- one environment ------------------------------------------------------------------------------


class LinkFit(NamedTuple):
    """A fit to one environment: coefficients, the intercept, the information about the coefficients, and pseudo rows.

    ``rows.X^T rows.X`` is the information, and ``rows.X^T rows.y`` the score of the coefficients.
    """

    coef: np.ndarray
    intercept: float
    information: np.ndarray
    rows: EnvironmentPart
    mean: np.ndarray


def firth_fit(part: EnvironmentPart, family: LinkFamily) -> LinkFit:
    """The maximum of the likelihood with Jeffreys' prior (Firth 1993), by scoring steps that are halved when they overshoot.

    The prior removes the first-order bias of small samples, and keeps estimates finite where classes are separated or
    an environment has no event; their standard errors are then large.
    """
    Z, y, w = np.column_stack([np.ones(len(part.y)), part.X]), part.y, _given(part)
    beta = np.append(family.start(y, w), np.zeros(part.X.shape[1]))

    def at(beta: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, float]:
        mu = family.mean(Z @ beta)
        root = Z * np.sqrt(w * family.variance(mu))[:, None]
        Q, R = np.linalg.qr(root)
        leverage = np.einsum("ij,ij->i", Q, Q)
        score = Z.T @ (w * (y - mu) + leverage * family.skewness(mu) / 2)
        step = np.linalg.lstsq(R.T @ R, score, rcond=1e-12)[0]
        return mu, score, step, float(score @ step)

    mu, _, step, size = at(beta)
    for _ in range(100):
        if size < 1e-16 * len(y):
            break
        for _ in range(30):  # the size of the score in its own metric falls along a good step
            moved = at(beta + step)
            if moved[3] < size:
                break
            step = step / 2
        beta, (mu, _, step, size) = beta + step, moved
    return _profiled(part, beta[1:], float(beta[0]), mu, family)


def _given(part: EnvironmentPart) -> np.ndarray:
    return np.ones(len(part.y)) if part.weights is None else part.weights


def _profiled(part: EnvironmentPart, coef: np.ndarray, intercept: float, mu: np.ndarray, family: LinkFamily) -> LinkFit:
    """The information about the coefficients if the intercept is estimated too."""
    w = _given(part)
    v = w * family.variance(mu)
    Z = (part.X - v @ part.X / v.sum()) * np.sqrt(v)[:, None]
    rows = part._replace(X=Z, y=w * (part.y - mu) / np.sqrt(v), weights=v / v.mean())
    return LinkFit(coef, intercept, Z.T @ Z, rows, mu)


def _with_intercept(part: EnvironmentPart, coef: np.ndarray, family: LinkFamily) -> LinkFit:
    """The fit with given coefficients and the best intercept."""
    w, eta, a = _given(part), part.X @ coef, 0.0
    a = family.start(part.y, w) - float(np.average(eta, weights=w))
    for _ in range(100):
        mu = family.mean(a + eta)
        step = float(np.clip(w @ (part.y - mu) / (w @ family.variance(mu)), -2.0, 2.0))
        a = float(np.clip(a + step, -FARTHEST, FARTHEST))
        if abs(step) < 1e-12:
            break
    return _profiled(part, coef, a, family.mean(a + eta), family)


class Information(NamedTuple):
    """The information (K, k, k) of each environment about its coefficients, and its product with their estimate (K, k)."""

    matrices: np.ndarray
    products: np.ndarray


# --- all environments -----------------------------------------------------------------------------


@dataclass(frozen=True)
class LinkRows:
    """The rows of all environments along a basis of features, for regressions on the scale of a link."""

    family: LinkFamily
    data: Moments
    basis: np.ndarray
    scale: np.ndarray
    gram: np.ndarray
    means: np.ndarray
    unknown: np.ndarray
    parts: list[EnvironmentPart]
    measured_variance: bool

    def measured(self) -> MeasuredEffects:
        """Effects in every environment, with standard errors as for least squares."""
        K, d = self.unknown.shape
        effects, classical, meats, influences = np.zeros((K, d)), np.zeros((K, d, d)), np.zeros((K, d, d)), []
        levels, level_errors = np.zeros(K), np.zeros(K)
        ratios, deciding, factors, lone = (
            np.ones((K, d)),
            np.full((K, d), np.inf),
            np.ones((K, d)),
            np.zeros((K, d), bool),
        )
        for e, part in enumerate(self.parts):
            on = np.flatnonzero(~self.unknown[e])
            fit = firth_fit(part._replace(X=part.X[:, on]), self.family)
            n, inverse = len(part.y), np.linalg.pinv(fit.information, rcond=1e-12, hermitian=True)
            found = score_covariance(fit.rows, np.zeros(len(on)), inverse * n, adjust=True)
            dispersion = self._dispersion(part, fit)
            plain = inverse * dispersion
            sandwich = n**2 * np.diagonal(inverse @ found.meat @ inverse)
            ratios[e, on] = sandwich / np.maximum(np.diagonal(plain), 1e-300)
            deciding[e, on], factors[e, on], lone[e, on] = found.rows, found.factor, found.lone
            effects[e, on], classical[e, on[:, None], on], meats[e, on[:, None], on] = fit.coef, plain, found.meat
            levels[e] = fit.intercept
            level_errors[e] = (dispersion / float(_given(part) @ self.family.variance(fit.mean))) ** 0.5
            influences.append(_of_features(found.influence, (self.basis / self.scale[:, None])[:, on]))
        factors, known = robust_factors(ratios, deciding, factors, ~self.unknown & ~lone)
        factors = np.where(known, factors, 0.0)
        covariances = classical * factors[:, :, None] * factors[:, None, :]
        known = np.diagonal(covariances, axis1=1, axis2=2) > 0
        means = np.divide((effects * known).sum(axis=0), known.sum(axis=0), out=np.zeros(d), where=known.any(axis=0))
        maps = np.broadcast_to(np.eye(d), (K, d, d)).copy()
        measured = Effects(maps, np.where(known, effects, means), covariances)
        return MeasuredEffects(
            self.data,
            measured,
            scales=(self.scale, 1.0),
            basis=self.basis,
            gram=self.gram,
            means=self.means,
            levels=levels,
            level_errors=level_errors,
            meats=meats,
            influences=influences,
        )

    def _dispersion(self, part: EnvironmentPart, fit: LinkFit) -> float:
        """Pearson's estimate, for counts not below one (amounts, rates and shares have a variance of their own); for 0/1 the
        mean weight, because only the relative sizes of weights matter for errors.

        Where hardly anything happened, Firth's penalty decides on effects. The dispersion is then at least one, that of 0/1 or
        counts with these weights (:func:`unit_weights`).
        """
        if self.family.name == "binomial" and not self.measured_variance:
            return float(sum(_given(one).sum() for one in self.parts) / self.data.counts.sum())
        w, v = _given(part), self.family.variance(fit.mean)
        found = float(w @ ((part.y - fit.mean) ** 2 / v)) / max(len(part.y) - 1 - len(fit.coef), 1)
        shown = self.measured_variance and float(w @ v) >= FEW_EVENTS
        return max(found, 1e-10 if shown else 1.0)

    def fits(self, beta: np.ndarray) -> list[LinkFit]:
        """One fit for each environment with common coefficients."""
        return [_with_intercept(part, beta, self.family) for part in self.parts]

    def information(self, beta: np.ndarray) -> tuple[Information, np.ndarray]:
        """The information at common coefficients: a step of generalised least squares with it is one of scoring.

        The score has Firth's penalty, so that coefficients stay finite if the classes of all rows together are separated.
        """
        fits = self.fits(beta)
        matrices = np.array([fit.information for fit in fits])
        inverse = np.linalg.pinv(matrices.sum(axis=0), rcond=1e-12, hermitian=True)
        products = np.array(
            [
                fit.information @ beta + self._score(part, fit, inverse)
                for part, fit in zip(self.parts, fits, strict=True)
            ]
        )
        return Information(matrices, products), np.ones(len(fits))

    def _score(self, part: EnvironmentPart, fit: LinkFit, inverse: np.ndarray) -> np.ndarray:
        v = _given(part) * self.family.variance(fit.mean)
        leverage = np.einsum("ij,ij->i", fit.rows.X @ inverse, fit.rows.X) + v / v.sum()
        return fit.rows.X.T @ (fit.rows.y + leverage * self.family.skewness(fit.mean) / 2 / np.sqrt(v))

    def score_covariances(self, beta: np.ndarray) -> np.ndarray:
        """The covariances of the sums of scores at common coefficients; differences between environments do not count."""
        found = []
        for fit in self.fits(beta):
            n, own = len(fit.rows.y), np.linalg.lstsq(fit.information, fit.rows.X.T @ fit.rows.y, rcond=1e-10)[0]
            bread = np.linalg.pinv(fit.information / n, rcond=1e-10, hermitian=True)
            found.append(n**2 * score_covariance(fit.rows, own, bread, adjust=True).meat)
        return np.array(found)

    def along(self, W: np.ndarray) -> LinkRows:
        """The same rows along the columns of W."""
        data = self.data.rotated(W)
        parts = [part._replace(X=part.X @ W) for part in self.parts]
        return replace(self, data=data, basis=self.basis @ W, unknown=inverse_moments(data, True)[0], parts=parts)


def has_measured_variance(y: np.ndarray, design: RowDesign, family: LinkFamily) -> bool:
    """Whether the variance of a row is known only up to a factor: for shares, amounts, and rates with weights (exposures)."""
    if family.name == "binomial":
        return bool(((y != 0) & (y != 1)).any())
    return design.weights is not None or bool((y != np.round(y)).any())


def unit_weights(y: np.ndarray, design: RowDesign, family: LinkFamily) -> np.ndarray | None:
    """Weights with which a row has about the variance of the family, whatever the units of weights and amounts.

    Small weights are made larger, or Firth's penalty would outweigh the rows. Where the variance is known only up to a factor,
    this follows from the variance around the means of environments. A share with little noise then counts as many rows of 0/1.
    None if rows are counts or 0/1 themselves.
    """
    measured = has_measured_variance(y, design, family)
    if design.weights is None and not measured:
        return None
    w = np.ones(len(y)) if design.weights is None else design.weights
    if not measured:
        return w / min(float(w.mean()), 1.0)
    pearson = 0.0
    for mine in design.rows:
        mean = np.average(y[mine], weights=w[mine])
        variance = mean * (1 - mean) if family.name == "binomial" else mean
        pearson += w[mine] @ (y[mine] - mean) ** 2 / variance if variance > 0 else 0.0
    dispersion = pearson / max(len(y) - len(design.rows), 1)
    return w / dispersion if dispersion > 0 else w


def link_rows(X: np.ndarray, y: np.ndarray, design: RowDesign, family: LinkFamily, *, standardize: bool) -> LinkRows:
    """The rows in standard deviations, along features or (where features repeat each other) combinations of them."""
    family.check(y)
    raw = RowsInMemory(X, y, design).moments().without_jitter()
    features = raw.scales[0] if standardize else np.ones(X.shape[1])
    data = raw.scaled(features, 1.0)
    basis, weights = identifiable_basis(data.gram), unit_weights(y, design, family)
    parts = [
        part._replace(
            X=(X[part.where] - part.means) / features @ basis,
            y=y[part.where],
            weights=None if weights is None else weights[part.where],
        )
        for part in environment_parts(X, y, design)
    ]
    along = data.rotated(basis)
    unknown = inverse_moments(along, True)[0]
    measured = has_measured_variance(y, design, family)
    return LinkRows(family, along, basis, features, data.gram, raw.means, unknown, parts, measured)


def _of_features(influence: RowInfluence, directions: np.ndarray) -> RowInfluence:
    """The influence on some directions, as one on all features in units of the data."""
    covariance = directions @ influence.covariance @ directions.T
    return influence._replace(change=directions @ influence.change, covariance=covariance)
