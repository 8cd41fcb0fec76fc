"""Errors in environments left out, of what holds everywhere and of least squares, and what `predict` makes of them."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.linear_model import LinearRegression

from gyrostat.errors import GyrostatError
from gyrostat.estimators import InvariantLinearRegressor


def panel(rng, states, years=20):
    """Logarithms of labour, capital and output by state: states differ in size far more than years of a state do, and the
    effect of capital within states has either sign."""
    state = np.repeat(np.arange(states), years)
    size, slope = 2 * rng.standard_normal(states), rng.choice([-1.5, 2.5], states)
    years_apart = 0.1 * rng.standard_normal((len(state), 2))
    X = size[state, None] + years_apart
    y = (
        size[state]
        + 0.5 * years_apart[:, 0]
        + slope[state] * years_apart[:, 1]
        + 0.05 * rng.standard_normal(len(state))
    )
    return X, y, state


def root_mean_square(values):
    return float(np.sqrt(np.mean(np.square(values))))


def test_the_default_prediction_in_new_states_is_as_good_as_that_of_least_squares():
    for seed in range(5):
        rng = np.random.default_rng(seed)
        X, y, state = panel(rng, 24)
        model = InvariantLinearRegressor(random_state=0).fit(X, y, environments=state)
        new_X, new_y, _ = panel(rng, 200)
        plain = root_mean_square(new_y - LinearRegression().fit(X, y).predict(new_X))
        default = root_mean_square(new_y - model.predict(new_X))
        assert default < 1.05 * plain, f"seed {seed}: {default / plain:.1f} times the error of least squares"
        assert model.left_out_errors_["everywhere"] > 3 * model.left_out_errors_["least-squares"]
        assert model.best_purpose_ == "least-squares"


@pytest.mark.parametrize(
    ("varying", "rho", "options", "tolerance"),
    [
        (0.0, 0.0, {}, 1e-6),
        (2.0, 0.0, {"directions": "features"}, 0.05),
        (2.0, 0.9, {"directions": "features"}, 0.05),
        (2.0, 0.9, {"directions": "principal"}, 0.05),
        (2.0, 0.9, {}, 0.05),
    ],
)
def test_errors_in_sites_left_out_are_those_of_fits_without_them(varying, rho, options, tolerance):
    """By brute force. Where effects vary, the decision on what varies is that of all sites, which moves the error a little."""
    rng = np.random.default_rng(1)
    site = np.repeat(np.arange(9), [30, 80, 80, 120, 80, 80, 80, 80, 50])
    X = 5 + rng.standard_normal((len(site), 3)) + rho * rng.standard_normal((len(site), 1))
    levels, slopes = rng.standard_normal((2, 9))
    y = X[:, 0] + 2 * levels[site] + varying * slopes[site] * X[:, 1] + rng.standard_normal(len(site))
    weight = np.ones(len(site)) if varying else rng.choice([1.0, 3.0], len(site))
    model = InvariantLinearRegressor(random_state=0, **options).fit(X, y, environments=site, sample_weight=weight)
    losses = []
    for s in range(9):
        here, there = site == s, site != s
        plain = LinearRegression().fit(X[there], y[there], sample_weight=weight[there])
        ours = clone(model).fit(X[there], y[there], environments=site[there], sample_weight=weight[there])
        predictions = plain.predict(X[here]), ours.predict(X[here], purpose="everywhere")
        losses.append([np.average((y[here] - p) ** 2, weights=weight[here]) for p in predictions])
    plain, ours = np.sqrt(np.mean(losses, axis=0))
    assert model.best_purpose_ == ("everywhere" if ours**2 < 1.01 * plain**2 else "least-squares")
    assert model.left_out_errors_["least-squares"] == pytest.approx(plain, rel=1e-6)
    assert model.left_out_errors_["everywhere"] == pytest.approx(ours, rel=tolerance)


def test_a_tie_keeps_what_holds_everywhere():
    rng = np.random.default_rng(0)
    X, site = rng.standard_normal((1000, 2)), np.repeat(np.arange(5), 200)
    for noise in (0.0, 1.0):
        y = 3 + X @ [1.0, 2.0] + noise * rng.standard_normal(1000)
        assert InvariantLinearRegressor(random_state=0).fit(X, y, environments=site).best_purpose_ == "everywhere"


def test_errors_need_three_sites_and_a_squared_loss():
    rng = np.random.default_rng(0)
    X, site = rng.standard_normal((300, 1)), np.repeat(np.arange(3), 100)
    y = X[:, 0] + 5 * site + rng.standard_normal(300)
    two = InvariantLinearRegressor(random_state=0).fit(X[:200], y[:200], environments=site[:200])
    counts = InvariantLinearRegressor(family="poisson", random_state=0).fit(X, np.floor(np.abs(y)), environments=site)
    for model in (two, counts):
        assert (model.best_purpose_, model.left_out_errors_) == ("everywhere", {})
        np.testing.assert_array_equal(model.predict(X), model.predict(X, purpose="everywhere"))
    assert two.predict(X, purpose="least-squares") == pytest.approx(LinearRegression().fit(X[:200], y[:200]).predict(X))
    with pytest.raises(GyrostatError, match="least-squares"):
        counts.predict(X, purpose="least-squares")
