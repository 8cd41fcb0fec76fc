"""Peers for several environments agree with independent oracles: scikit-learn, closed forms, brute force, differences."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import optimize
from sklearn.linear_model import LinearRegression, Ridge

from gyrostat.estimators.comparison import peer_methods as peers
from gyrostat.estimators.comparison import subset_methods
from gyrostat.estimators.linear_predictor import LinearPredictor
from gyrostat.estimators.squared_losses import Risks


@pytest.fixture(scope="module")
def environments():
    rng = np.random.default_rng(3)
    effects = ([1.0, 0.5, 0.0], [1.2, -0.5, 0.2], [0.8, 0.1, 0.4])
    found = []
    for e, (effect, n) in enumerate(zip(effects, (40, 60, 80), strict=True)):
        X = (1 + e) * rng.standard_normal((n, 3)) + e
        found.append((X, 0.3 * e + X @ effect + (0.5 + e) * rng.standard_normal(n)))
    return found


def together(environments):
    return tuple(np.concatenate([environment[i] for environment in environments]) for i in (0, 1))


def weights(fit: LinearPredictor) -> np.ndarray:
    return np.append(fit.intercept, fit.coef)


def alike(environments) -> np.ndarray:
    """Least squares by scikit-learn with every environment counted alike."""
    X, y = together(environments)
    fit = LinearRegression().fit(
        X, y, sample_weight=np.concatenate([np.full(len(y), 1 / len(y)) for _, y in environments])
    )
    return np.append(fit.intercept_, fit.coef_)


def test_least_squares_ridge_and_fixed_effects_are_scikit_learns(environments):
    X, y = together(environments)
    other = LinearRegression().fit(X, y)
    np.testing.assert_allclose(weights(peers.least_squares(environments)), [other.intercept_, *other.coef_], atol=1e-9)
    other = Ridge(alpha=0.7 * len(y)).fit(X, y)
    np.testing.assert_allclose(weights(peers.ridge(environments, 0.7)), [other.intercept_, *other.coef_], atol=1e-9)
    labels = np.repeat(np.arange(3), [len(y) for _, y in environments])
    dummies = LinearRegression().fit(np.column_stack([X, np.eye(3)[labels][:, 1:]]), y)
    found = peers.within(environments)
    np.testing.assert_allclose(found.coef, dummies.coef_[:3], atol=1e-9)
    assert np.mean(y - found(X)) == pytest.approx(0, abs=1e-12)


def brute_irm(environments, penalty, w):
    """IRMv1 from its words: the slope of each risk in a factor on the prediction, by a central difference."""

    def risk(X, y, s):
        return np.mean((y - s * (w[0] + X @ w[1:])) ** 2)

    h = 1e-4  # risks are quadratic in s: the central difference is exact but for rounding
    slopes_ = [(risk(X, y, 1 + h) - risk(X, y, 1 - h)) / (2 * h) for X, y in environments]
    return (np.mean([risk(X, y, 1) for X, y in environments]) + penalty * np.mean(np.square(slopes_))) / (1 + penalty)


def brute_rex(environments, penalty, w):
    risks = [np.mean((y - w[0] - X @ w[1:]) ** 2) for X, y in environments]
    return (np.mean(risks) + penalty * np.var(risks)) / (1 + penalty)


@pytest.mark.parametrize(("objective", "brute"), [(peers.irm_objective, brute_irm), (peers.rex_objective, brute_rex)])
@pytest.mark.parametrize("penalty", [0.0, 3.0])
def test_objectives_are_what_papers_say_and_gradients_agree_with_differences(environments, objective, brute, penalty):
    risks, rng = Risks.of(environments), np.random.default_rng(0)
    for w in rng.standard_normal((4, 4)):
        value, gradient = objective(risks, penalty, w)
        assert value == pytest.approx(brute(environments, penalty, w), rel=1e-6)
        other = optimize.approx_fprime(w, lambda v: objective(risks, penalty, v)[0], 1e-7)
        np.testing.assert_allclose(gradient, other, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("method", [peers.irm, peers.rex, peers.and_mask])
def test_without_a_penalty_all_are_least_squares(environments, method):
    np.testing.assert_allclose(weights(method(environments, 0.0)), alike(environments), atol=1e-6)


@pytest.mark.parametrize(("method", "brute"), [(peers.irm, brute_irm), (peers.rex, brute_rex)])
@pytest.mark.parametrize("penalty", [2.0, 1e4])
def test_no_other_descent_finds_less(environments, method, brute, penalty):
    found = weights(method(environments, penalty))
    other = optimize.minimize(
        lambda w: brute(environments, penalty, w),
        alike(environments),
        method="Nelder-Mead",
        options={"maxiter": 4000, "xatol": 1e-9, "fatol": 1e-12},
    )
    assert brute(environments, penalty, found) <= other.fun + 1e-8


def test_group_dro_is_the_minimum_of_the_maximum(environments):
    risks = Risks.of(environments)
    found = risks.values(weights(peers.group_dro(environments))).max()
    # the same as a smooth programme: least t above all risks
    start = np.append(alike(environments), 100.0)
    above = {"type": "ineq", "fun": lambda v: v[-1] - risks.values(v[:-1])}
    other = optimize.minimize(lambda v: v[-1], start, constraints=above, method="SLSQP", options={"maxiter": 500})
    assert other.success and found == pytest.approx(other.fun, rel=1e-6)
    assert found < risks.values(alike(environments)).max()


def test_and_mask_stops_where_environments_begin_to_disagree():
    """Orthogonal features: one on whose sign environments agree until the smaller effect, one on which they never do."""
    X = np.array([[1.0, 1.0], [1.0, -1.0], [-1.0, 1.0], [-1.0, -1.0]])
    found = peers.and_mask([(X, X @ [1.0, 1.0]), (X, X @ [3.0, -2.0])], 1.0)
    assert 1.0 <= found.coef[0] <= 1.0 + 2 * peers.MASK_STEP  # not more than one step beyond
    assert found.coef[1] == 0 and found.intercept == pytest.approx(0, abs=1e-12)


def test_anchor_regression_is_its_closed_form(environments):
    X, y = together(environments)
    labels = np.repeat(np.arange(3), [len(y) for _, y in environments])
    project = np.eye(3)[labels] @ np.diag(1 / np.bincount(labels)) @ np.eye(3)[labels].T
    lift = np.eye(len(y)) + (np.sqrt(7.0) - 1) * project
    centred = lift @ (X - X.mean(axis=0)), lift @ (y - y.mean())
    found = peers.anchor(environments, 7.0)
    np.testing.assert_allclose(found.coef, np.linalg.lstsq(*centred, rcond=None)[0], atol=1e-6)
    np.testing.assert_allclose(
        weights(peers.anchor(environments, 1.0)), weights(peers.least_squares(environments)), atol=1e-6
    )


def test_causal_prediction_names_the_cause_it_can():
    rng = np.random.default_rng(0)
    environments = []
    for scale in (1.0, 3.0):
        x = scale * rng.standard_normal(500)
        y = 2 * x + rng.standard_normal(500)
        environments.append((np.column_stack([x, y + scale * rng.standard_normal(500)]), y))
    found = subset_methods.causal_prediction(environments)
    assert found.status == "causes named" and found.coef == pytest.approx([2, 0], abs=0.15)


def test_causal_prediction_is_that_of_the_package():
    """The p-value of every set of features, and the causes, against causalicp."""
    causalicp = pytest.importorskip("causalicp")
    rng = np.random.default_rng(1)
    environments = []
    for scale in (1.0, 2.0, 4.0):
        x = scale * rng.standard_normal((300, 2))
        y = 2 * x[:, 0] - x[:, 1] + rng.standard_normal(300)
        environments.append((np.column_stack([x, y + scale * rng.standard_normal(300)]), y))
    theirs = causalicp.fit(
        [np.column_stack([y, X]) for X, y in environments], 0, alpha=0.05, verbose=False, color=False
    )
    X, y = together(environments)
    labels = np.repeat(np.arange(3), 300)
    accepted = [
        s
        for s in ((), (0,), (1,), (2,), (0, 1), (0, 2), (1, 2), (0, 1, 2))
        if subset_methods.invariance_p(X[:, list(s)], y, labels) > 0.05
    ]
    assert [{j + 1 for j in s} for s in accepted] == sorted(theirs.accepted_sets, key=lambda s: (len(s), sorted(s)))
    found = subset_methods.causal_prediction(environments)
    assert {int(j) + 1 for j in np.flatnonzero(found.coef)} == theirs.estimate == {1, 2}


def test_the_mean_of_slopes_is_a_mean(environments):
    slopes = [LinearRegression().fit(X, y).coef_ for X, y in environments]
    np.testing.assert_allclose(peers.mean_of_slopes(environments).coef, np.mean(slopes, axis=0), atol=1e-9)


def test_invariance_guided_weights_are_what_the_paper_says(environments):
    """Weights by brute force over sets of one and two features; the optimum by its conditions."""
    centred = [(X - X.mean(axis=0), y - y.mean()) for X, y in environments]
    grams, crosses = (
        np.array(m) for m in zip(*[(X.T @ X / len(y), X.T @ y / len(y)) for X, y in centred], strict=True)
    )
    expected = np.full(3, np.inf)
    for s in ([0], [1], [2], [0, 1], [0, 2], [1, 2]):
        G, c = grams[:, s][:, :, s], crosses[:, s]
        b = np.linalg.solve(G.mean(axis=0), c.mean(axis=0))
        away = [np.linalg.solve(G[e], c[e]) - b for e in range(3)]
        v = np.sqrt(np.mean([a @ G[e] @ a for e, a in enumerate(away)]))
        expected[s] = np.minimum(expected[s], v)
    np.testing.assert_allclose(subset_methods.instabilities(grams, crosses), expected, rtol=1e-9)
    found = subset_methods.invariance_guided(environments, 0.5)
    slope = crosses.mean(axis=0) - grams.mean(axis=0) @ found.coef
    on = found.coef != 0
    np.testing.assert_allclose(slope[on], 0.5 * (expected * np.sign(found.coef))[on], atol=1e-7)
    assert (np.abs(slope[~on]) <= 0.5 * expected[~on] + 1e-9).all()
