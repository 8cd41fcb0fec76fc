"""Standard errors where few rows or few clusters decide on a coefficient: rates over simulations, and brute force."""

import warnings

import numpy as np
import pytest
from scipy import stats

from gyrostat.errors import GyrostatError
from gyrostat.estimators import InvariantLinearRegressor

TRUTH = np.array([1.0, 0.5])


def covered(model, truth):
    half = stats.t.isf(0.025, model.coef_dof_) * model.coef_se_
    return np.abs(model.coef_ - truth) <= half


def rare_feature(seed, num_sites, rows, share, noise_at_one):
    """A normal feature and one that is 1 in few rows, whose noise may be larger there."""
    rng = np.random.default_rng([3, seed])
    X, site = rng.standard_normal((num_sites * rows, 2)), np.repeat(np.arange(num_sites), rows)
    X[:, 1] = rng.random(len(X)) < share
    X[0, 1] = 1.0
    noise = rng.standard_normal(len(X)) * np.where(X[:, 1] > 0, noise_at_one, 1.0)
    return X, X @ TRUTH + noise, site


def test_a_rare_feature_with_larger_noise_is_not_removed():
    """Its effect is the same everywhere. In most sites one or two rows decide on it, and their residuals hide their noise."""
    fits = (
        InvariantLinearRegressor(random_state=0).fit(X, y, environments=site)
        for X, y, site in (rare_feature(seed, 12, 30, 0.02, 3.0) for seed in range(60))
    )
    wrong = sum(1 in model.spurious_features_ for model in fits)
    assert stats.binomtest(wrong, 60, 0.05, alternative="greater").pvalue > 0.01, wrong


def test_intervals_of_a_rare_feature_cover():
    found = []
    for seed in range(150):
        X, y, site = rare_feature(seed, 12, 30, 0.02, 1.0)
        found.append(covered(InvariantLinearRegressor(random_state=0).fit(X, y, environments=site), TRUTH)[1])
    assert stats.binomtest(sum(found), 150, 0.95, alternative="less").pvalue > 0.01, np.mean(found)


def test_the_error_of_a_coefficient_that_one_row_decides_is_that_of_its_noise():
    rng = np.random.default_rng(0)
    X, site = rng.standard_normal((400, 2)), np.repeat(np.arange(4), 100)
    X[:, 1] = 0.0
    X[7, 1] = 2.0
    y = X[:, 0] + rng.standard_normal(400)
    model = InvariantLinearRegressor(random_state=0).fit(X, y, environments=site)
    A = np.column_stack([np.ones(100), X[:100]])  # least squares in the only site where the feature varies
    squares = np.linalg.lstsq(A, y[:100], rcond=None)[1][0]
    textbook = np.sqrt(squares / 97 * np.linalg.inv(A.T @ A)[2, 2])
    assert model.coef_se_[1] == pytest.approx(textbook, rel=0.02)
    assert np.isnan(model.effects_[1:, 1]).all()


def clustered(seed, num_clusters, rows):
    """Features and noise that rows of a cluster share."""
    rng = np.random.default_rng([5, seed])
    cluster = np.repeat(np.arange(6 * num_clusters), rows)
    X = np.column_stack([rng.standard_normal(cluster[-1] + 1)[cluster], rng.standard_normal(len(cluster))])
    X[:, 1] += rng.standard_normal(cluster[-1] + 1)[cluster]
    y = X @ TRUTH + rng.standard_normal(cluster[-1] + 1)[cluster] + rng.standard_normal(len(cluster))
    return X, y, cluster // num_clusters, cluster


@pytest.mark.parametrize("num_clusters", [4, 5])
def test_intervals_cover_with_few_clusters(num_clusters):
    found = []
    for seed in range(100):
        X, y, site, cluster = clustered(seed, num_clusters, 20)
        model = InvariantLinearRegressor(random_state=0).fit(X, y, environments=site, cluster=cluster)
        found.append(covered(model, TRUTH))
    for share in np.mean(found, axis=0):
        assert stats.binomtest(round(100 * share), 100, 0.95, alternative="less").pvalue > 0.01, share


@pytest.mark.parametrize("sizes", [[3, 9, 5, 12, 4, 8, 6], [1] * 15], ids=["clusters", "rows"])
def test_the_variance_is_that_of_leaving_each_cluster_or_row_out(sizes):
    """The jackknife by brute force: least squares with weights and an intercept, without one cluster or row at a time."""
    from gyrostat.estimators.invariant.effects import RowDesign, RowsInMemory, effects_of_rows

    rng = np.random.default_rng(1)
    count, cluster = len(sizes), np.repeat(np.arange(len(sizes)), sizes)
    X = rng.standard_normal((len(cluster), 2)) + rng.standard_normal((count, 2))[cluster]
    y = X @ TRUTH + rng.standard_normal(count)[cluster] + rng.standard_normal(len(cluster))
    w = rng.uniform(0.1, 5, len(cluster))

    def fitted(rows):
        A, root = np.column_stack([np.ones(len(X)), X])[rows], np.sqrt(w[rows])
        return np.linalg.lstsq(A * root[:, None], y[rows] * root, rcond=None)[0][1:]

    changes = np.stack([fitted(cluster != g) - fitted(cluster >= 0) for g in range(count)])
    by_row = count == len(y)
    wanted = (1.0 if by_row else (count - 1) / count) * changes.T @ changes
    rows = RowsInMemory(X, y, RowDesign([np.arange(len(y))], w, None if by_row else cluster))
    data = rows.moments()
    bread, beta = np.linalg.inv(data.grams[0]), np.linalg.solve(data.grams[0], data.crosses[0])
    meat = rows.score_covariances(beta[None], bread[None], adjust=True)[0].meat
    np.testing.assert_allclose(bread @ meat @ bread, wanted, rtol=1e-9)
    assert effects_of_rows(rows, adjust=True).effects.known.all()


def test_clusters_that_reach_over_environments_are_reported():
    X, y, site, cluster = clustered(0, 5, 20)
    with pytest.warns(UserWarning, match="5 labels that occur in several environments"):
        InvariantLinearRegressor(random_state=0).fit(X, y, environments=site, cluster=cluster % 5)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        InvariantLinearRegressor(random_state=0).fit(X, y, environments=site, cluster=cluster)
    with pytest.raises(GyrostatError, match="at least 4 values"):
        InvariantLinearRegressor().fit(X, y, environments=site, cluster=cluster % 3)
