"""Features that do not vary within environments, exactly or up to rounding, and what they must not change."""

import numpy as np
import pytest
from scipy import stats

from gyrostat.estimators import InvariantLinearRegressor, InvariantLogisticClassifier
from gyrostat.estimators.invariant.random_effects import effects_differ_p


def rotated_features(seed):
    """Effects of which one combination of features changes its sign: no single feature holds everywhere."""
    rng = np.random.default_rng(seed)
    Z, site = rng.standard_normal((2400, 3)), np.repeat(np.arange(8), 300)
    effects = np.tile([1.0, 0.0, 0.5], (8, 1))
    effects[:, 1] = 2.0 * np.array([1, -1, 1, -1, 1, 1, -1, -1])
    y = np.sum(Z * effects[site], axis=1) + 0.5 * rng.standard_normal(2400)
    return Z @ np.linalg.qr(rng.standard_normal((3, 3)))[0].T, y, site


def test_a_constant_column_changes_nothing():
    combined = 0
    for X, y, site in map(rotated_features, range(5)):
        alone = InvariantLinearRegressor(random_state=0).fit(X, y, environments=site)
        more = InvariantLinearRegressor(random_state=0).fit(np.column_stack([X, np.ones(len(X))]), y, environments=site)
        np.testing.assert_allclose(more.coef_, np.append(alone.coef_, 0.0), atol=1e-9)
        # a constant column counts among the degrees of freedom of 300 rows
        np.testing.assert_allclose(more.coef_se_[:3], alone.coef_se_, rtol=0.01)
        assert np.isnan(more.coef_se_[3])
        combined += more.combined_
    assert combined > 0  # combinations were what a constant column prevented


@pytest.mark.parametrize("seed", range(5))
def test_a_repeated_column_shares_its_coefficient_and_changes_no_prediction(seed):
    X, y, site = rotated_features(seed)
    alone = InvariantLinearRegressor(random_state=0).fit(X, y, environments=site)
    twice = np.column_stack([X, X[:, 0]])
    more = InvariantLinearRegressor(random_state=0).fit(twice, y, environments=site)
    assert more.coef_[0] == pytest.approx(more.coef_[3], abs=1e-9)
    assert np.std(more.predict(twice) - alone.predict(X)) < 0.1 * np.std(alone.predict(X))
    by_feature = InvariantLinearRegressor(directions="features", random_state=0).fit(twice, y, environments=site)
    assert np.abs(by_feature.coef_).max() < 2.0  # a combination that is constant has no coefficient


def sites_with_a_property(seed, jitter):
    """A property of twelve sites with effect 2, written with small errors."""
    rng = np.random.default_rng([8, seed])
    site, z = np.repeat(np.arange(12), 20), rng.standard_normal(12)
    X = np.column_stack([z[site] + rng.standard_normal(240), z[site] + jitter * rng.standard_normal(240)])
    return X, X @ [1.0, 2.0] + rng.standard_normal(12)[site] + rng.standard_normal(240), site


@pytest.mark.parametrize("jitter", [1e-12, 1e-9, 1e-5])
def test_a_property_of_sites_is_recognised_through_rounding(jitter):
    covered = []
    for seed in range(40):
        X, y, site = sites_with_a_property(seed, jitter)
        model = InvariantLinearRegressor(random_state=0).fit(X, y, environments=site)
        assert model.site_level_features_.tolist() == [1]
        half = stats.t.isf(0.025, model.coef_dof_[1]) * model.coef_se_[1]
        covered.append(abs(model.coef_[1] - 2.0) <= half)
        assert abs(model.coef_[1] - 2.0) < 3.0
    assert stats.binomtest(sum(covered), 40, 0.95, alternative="less").pvalue > 0.01


def test_rounding_is_recognised_for_classes_and_in_parts_too():
    X, y, site = sites_with_a_property(0, 1e-6)
    assert InvariantLogisticClassifier(random_state=0).fit(
        X, y > 1, environments=site
    ).site_level_features_.tolist() == [1]
    whole = InvariantLinearRegressor(random_state=0).fit(X, y, environments=site)
    halves = [(X[:90], y[:90], site[:90]), (X[90:], y[90:], site[90:])]
    parts = InvariantLinearRegressor(random_state=0).fit_parts(lambda: iter(halves))
    np.testing.assert_allclose(parts.coef_, whole.coef_, rtol=1e-9)


def test_features_that_cannot_be_tested_do_not_count_in_the_adjustment():
    effects, errors = np.array([[1.0, 0.0], [1.5, 0.0]]), np.array([[0.15, 0.0], [0.15, 0.0]])
    both, alone = effects_differ_p(effects, errors), effects_differ_p(effects[:, :1], errors[:, :1])
    assert both[0] == pytest.approx(alone[0]) and both[1] == 1.0
