"""Mean, spread and verdict of effects from one random-effects model; what one environment, row, cluster or feature can do."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import optimize, stats
from sklearn.linear_model import LinearRegression

import gyrostat as gs
from benchmarks import calibration
from gyrostat.estimators import InvariantLinearRegressor
from gyrostat.estimators.invariant.hypothesis_tests import look_like_consequences
from gyrostat.estimators.invariant.random_effects import (
    averaged_error,
    between_effects,
    random_effects,
    shrunken,
)


def test_the_model_is_that_of_paule_and_mandel_with_hartung_s_and_knapp_s_error():
    """One direction at a time, by root finding; an unknown effect does not count."""
    rng = np.random.default_rng(0)
    errors = rng.uniform(0.2, 3.0, (7, 20))
    effects = 1 + rng.standard_normal((7, 20)) + errors * rng.standard_normal((7, 20))
    errors[2, 5], errors[4, 5] = 0.0, np.inf
    found, spread_out = random_effects(effects, errors), shrunken(effects, errors)
    for j in range(20):
        on = (errors[:, j] > 0) & np.isfinite(errors[:, j])
        b, s = effects[on, j], errors[on, j]

        def excess(tau2, b=b, s=s):
            w = 1 / (s**2 + tau2)
            return np.sum(w * (b - np.average(b, weights=w)) ** 2) - (len(b) - 1)

        tau2 = optimize.brentq(excess, 0, 1e3) if excess(0) > 0 else 0.0
        w = 1 / (s**2 + tau2)
        assert found.tau[j] ** 2 == pytest.approx(tau2, abs=1e-9)
        assert found.mean[j] == pytest.approx(np.average(b, weights=w)) and found.free[j] == len(b) - 1
        assert found.error[j] == pytest.approx(w.sum() ** -0.5)
        assert spread_out[:, j].mean() == pytest.approx(found.mean[j])
        assert spread_out[:, j].std() == pytest.approx(found.spread[j], abs=1e-9)


def test_intervals_of_the_mean_cover_it():
    rng = np.random.default_rng(1)
    errors = rng.uniform(0.3, 1.0, (6, 3000))
    effects = 1 + rng.standard_normal((6, 3000)) + errors * rng.standard_normal((6, 3000))
    low, high = random_effects(effects, errors).interval(0.95)
    assert abs(((low <= 1) & (high >= 1)).mean() - 0.95) < 0.02


@pytest.mark.parametrize("setting", ["noisy_site", "corrupted_row"])
def test_one_bad_environment_or_row_does_not_make_a_varying_effect_kept(setting):
    for seed in range(10):
        draw = getattr(calibration, setting)(np.random.default_rng(seed))
        found = gs.heterogeneity(draw.X, draw.y, draw.environments)
        assert found.features.verdict.values[0] == "removed"
        assert abs(found.features.coefficient.values[1] - 1) < 0.2
        if setting == "corrupted_row":
            at = int(np.argmax(np.abs(draw.y)))
            assert found.row.row == at and f"Row {at + 1} alone moves" in " ".join(found.advice)


def test_a_verdict_that_rests_on_one_environment_says_so():
    rng = np.random.default_rng(0)
    sites = np.repeat(list("abcdef"), 200)
    X = rng.standard_normal((1200, 1))
    y = np.where(sites == "e", -2.0, 1.0) * X[:, 0] + 0.3 * rng.standard_normal(1200)
    found = gs.heterogeneity(X, y, sites, feature_names=["dose"])
    assert found.features.verdict_without.sel(feature="dose").values.tolist() == ["removed"] * 4 + ["kept", "removed"]
    assert "without e the verdict on dose would be kept" in " ".join(found.advice)
    assert found.features.mean_without.sel(feature="dose", environment="e") == pytest.approx(1.0, abs=0.05)


def test_a_feature_that_varies_in_one_environment_is_not_kept():
    draw = calibration.one_site_only(np.random.default_rng(0))
    found = gs.heterogeneity(draw.X, draw.y, draw.environments, feature_names=["here", "all"])
    assert found.features.verdict.values.tolist() == ["unclear", "kept"]
    assert found.features.reason.values[0] == "it varies in 0 only: there is nothing to compare"
    assert np.isnan(found.features.effect.values[1:, 0]).all()
    assert found.features.coefficient.values[0] == pytest.approx(1, abs=0.2)
    model = InvariantLinearRegressor(random_state=0).fit(draw.X, draw.y, environments=draw.environments)
    assert model.invariant_features_.tolist() == [1] and model.spurious_features_.tolist() == []


def test_site_level_covariates_come_from_a_comparison_of_environments():
    covered, errors = [], []
    for seed in range(20):
        draw = calibration.site_level(np.random.default_rng(seed))
        model = InvariantLinearRegressor(random_state=0).fit(draw.X, draw.y, environments=draw.environments)
        covered.append(calibration.second_covered(draw, model, dict))
        errors.append(model.coef_[1] - 2)
    assert np.mean(covered) >= 0.8 and abs(np.mean(errors)) < 0.2
    few = gs.heterogeneity(draw.X[:200], draw.y[:200], draw.environments[:200], feature_names=["dose", "income"])
    assert few.features.coefficient.values[1] == 0 and np.isnan(few.features.mean_error.values[1])
    assert "income: the same for all rows of an environment. 4 environments are too few" in " ".join(few.advice)


def test_the_between_step_is_weighted_least_squares_at_its_tau():
    rng = np.random.default_rng(2)
    Z, errors = rng.standard_normal((9, 2)), rng.uniform(0.1, 1.0, 9)
    levels = Z @ [1.0, -2.0] + rng.standard_normal(9)
    design = np.column_stack([np.ones(9), Z])

    def fit(tau2):
        model = LinearRegression().fit(Z, levels, 1 / (errors**2 + tau2))
        return model, np.sum((levels - model.predict(Z)) ** 2 / (errors**2 + tau2)) - 6

    tau2 = optimize.brentq(lambda t: fit(t)[1], 0, 100)
    found = between_effects(levels, errors, Z)
    np.testing.assert_allclose(found.coefficients, fit(tau2)[0].coef_, rtol=1e-8)
    inverse = np.linalg.inv(design.T @ (design / (errors**2 + tau2)[:, None]))
    np.testing.assert_allclose(found.errors, np.sqrt(np.diag(inverse))[1:], rtol=1e-8)


def test_collinear_features_are_named_and_predictions_stay_good():
    shares = []
    for seed in range(10):
        draw = calibration.collinear(np.random.default_rng(seed))
        model = InvariantLinearRegressor(random_state=0).fit(draw.X, draw.y, environments=draw.environments)
        assert [group.tolist() for group in model.collinear_features_] == [[0, 1, 2, 3]]
        shares.append(calibration.explained(draw, model, dict))
    assert min(shares) > 0.9
    X = np.column_stack([draw.X[:, 4], draw.X[:, 4] * 2, draw.X[:, 0]])  # one feature twice
    found = gs.heterogeneity(X, draw.y, draw.environments)
    assert "x0 and x1 nearly repeat each other" in " ".join(found.advice)
    assert found.features.verdict.values.tolist() == ["kept"] * 3


# --- clusters and weights -------------------------------------------------------------------------


def test_dependent_rows_are_no_reason_to_remove():
    told, silent = [], []
    for seed in range(25):
        draw = calibration.clustered(np.random.default_rng(seed))
        for wrong, clusters in ((told, draw.fit["cluster"]), (silent, None)):
            model = InvariantLinearRegressor(random_state=0).fit(
                draw.X, draw.y, environments=draw.environments, cluster=clusters
            )
            wrong.append(len(model.spurious_features_) > 0)
    assert np.mean(told) <= 0.05 and np.mean(silent) > 0.8


def test_weights_are_repetitions_of_rows_for_coefficients_and_zero_leaves_out():
    rng = np.random.default_rng(0)
    X, sites = rng.standard_normal((300, 3)), np.repeat(["a", "b", "c"], 100)
    y, w = X @ [1.0, -1.0, 0.0] + rng.standard_normal(300), rng.integers(0, 4, 300)
    weighted = InvariantLinearRegressor(random_state=0).fit(X, y, environments=sites, sample_weight=w)
    oracle = LinearRegression().fit(np.column_stack([X, sites == "a", sites == "b"]), y, w)
    np.testing.assert_allclose(weighted.coef_, oracle.coef_[:3], atol=1e-9)
    left = w > 0
    same = InvariantLinearRegressor(random_state=0).fit(
        X[left], y[left], environments=sites[left], sample_weight=7 * w[left]
    )
    np.testing.assert_allclose(same.coef_, weighted.coef_, rtol=1e-10)
    np.testing.assert_allclose(same.coef_se_, weighted.coef_se_, rtol=1e-8)


def test_consequences_are_named_whatever_their_noise():
    named = []
    for seed in range(30):
        draw = calibration.consequence(np.random.default_rng(seed), noise=(0.5, 2.0, 1.0, 0.3))
        rows = [np.flatnonzero(draw.environments == e) for e in range(4)]
        named.append(look_like_consequences(draw.X, draw.y, rows, 0.01))
    cause, after = np.mean(named, axis=0)
    assert after > 0.9 and cause < 0.15


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"cluster": np.arange(10)}, "cluster must hold one label for each of the 600 rows of X; got 10"),
        ({"cluster": [None] * 600}, "cluster has 600 missing labels"),
    ],
)
def test_bad_clusters_and_weights_are_refused(options, message):
    draw = calibration.null(np.random.default_rng(0))
    with pytest.raises(gs.GyrostatError, match=message):
        InvariantLinearRegressor().fit(draw.X, draw.y, environments=draw.environments, **options)


def test_the_error_of_a_mean_whose_spread_is_unsure_is_that_of_a_sampled_posterior():
    """Brute force: tau from half of a Cauchy distribution, the mean from a flat one, both weighted by the likelihood."""
    rng = np.random.default_rng(5)
    effects = np.array([[1.0], [1.3], [0.8], [1.1], [7.0]])
    errors = np.array([[0.02], [0.2], [0.2], [0.3], [np.inf]])  # the last one is unknown
    tau, mean = np.abs(0.2 * rng.standard_cauchy(2_000_000)), rng.uniform(-4, 6, 2_000_000)
    log_weight = sum(
        stats.norm.logpdf(b, mean, np.hypot(s, tau)) for b, s in zip(effects[:4, 0], errors[:4, 0], strict=True)
    )
    far, weight = np.abs(mean - 1.01), np.exp(log_weight)
    order = np.argsort(far)
    half = far[order][np.searchsorted(np.cumsum(weight[order]), 0.95 * weight.sum())]
    # Two million draws: the quantile is within about one percent.
    found = averaged_error(effects, errors, np.array([1.01]))[0] * stats.t.isf(0.025, 3)
    assert found == pytest.approx(half, rel=0.03)


def test_intervals_cover_where_one_environment_has_most_rows_and_effects_vary_unseen():
    """Most rows are of one site, and so are the coefficients: they are as far off as effects of that site happen to be."""
    found, weights, removed = [], [], 0
    for seed in range(60):
        draw = calibration.one_large(np.random.default_rng([11, seed]))
        model = InvariantLinearRegressor(random_state=0, num_orders=1).fit(
            draw.X, draw.y, environments=draw.environments
        )
        half = stats.t.isf(0.025, model.coef_dof_) * model.coef_se_
        found.append(np.abs(model.coef_ - draw.truth)[0] <= half[0])
        weights.append(model.environment_weights_)
        removed += len(model.spurious_features_)
    assert removed == 0 and np.median([w[0].min() for w in weights]) > 0.9
    assert np.abs(np.sum(weights, axis=1) - 1).max() < 1e-9
    assert stats.binomtest(sum(found), 60, 0.95, alternative="less").pvalue > 0.01, np.mean(found)


@pytest.mark.parametrize("count", [3, 4])
def test_intervals_cover_with_few_environments_whose_effects_vary(count):
    """With three, the estimate of the spread is often zero although effects vary: intervals covered 0.83 to 0.89."""
    found = []
    for seed in range(100):
        draw = calibration.varying(np.random.default_rng([12, seed]), [100] * count, 0.2)
        model = InvariantLinearRegressor(random_state=0, num_orders=1).fit(
            draw.X, draw.y, environments=draw.environments
        )
        found.append(np.abs(model.coef_ - draw.truth)[0] <= stats.t.isf(0.025, model.coef_dof_[0]) * model.coef_se_[0])
    assert stats.binomtest(sum(found), 100, 0.95, alternative="less").pvalue > 0.01, np.mean(found)


# --- the mean effect and its interval --------------------------------------------------------------------------------------


def test_the_interval_of_the_mean_effect_covers_it_where_several_effects_vary():
    """Of 320 intervals of 95 %, fewer than 90 % cover with a probability below 1e-4. Those of refits, to the features that
    happened to look alike, cover 53 %."""
    truth, K, n = np.array([1.0, -0.5, 0.5, 0.0]), 8, 60
    covered = []
    for seed in range(80):
        rng = np.random.default_rng(seed)
        slopes = truth + 0.6 * rng.standard_normal((K, 4))
        X, site = rng.standard_normal((K * n, 4)), np.repeat(np.arange(K), n)
        y = np.sum(X * slopes[site], axis=1) + rng.standard_normal(K * n)
        model = InvariantLinearRegressor(random_state=0).fit(X, y, environments=site)
        half = stats.t.isf(0.025, model.mean_effect_dof_) * model.mean_effect_se_
        covered.append(np.abs(model.mean_effects_ - truth) <= half)
    assert np.mean(covered) >= 0.9


def test_the_mean_effect_is_that_of_the_report_and_unknown_effects_have_none():
    rng = np.random.default_rng(0)
    X, site = rng.standard_normal((200, 3)), np.repeat(np.arange(4), 50)
    X[:, 2] = site == 1  # the same for all rows of a site, in too few sites
    y = X[:, 0] + np.array([1.0, -1.0, 2.0, 0.0])[site] * X[:, 1] + 0.5 * rng.standard_normal(200)
    model = InvariantLinearRegressor(random_state=0).fit(X, y, environments=site)
    for confidence in (0.5, 0.95):
        features = gs.heterogeneity(X, y, site, confidence=confidence).features
        half = stats.t.isf((1 - confidence) / 2, model.mean_effect_dof_) * model.mean_effect_se_
        for name, value in (("mean", 0), ("mean_low", -half), ("mean_high", half)):
            np.testing.assert_allclose(features[name].values, model.mean_effects_ + value, rtol=1e-12)
    assert np.isnan(model.mean_effects_).tolist() == [False, False, True]
    assert 1 in model.spurious_features_ and model.mean_effect_se_[1] > 0.3
