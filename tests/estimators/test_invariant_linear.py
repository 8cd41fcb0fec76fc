"""The estimators: scikit-learn's contract, the core's steps, least squares as the oracle, and known answers."""

from __future__ import annotations

import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.base import clone
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import LeaveOneGroupOut, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

import gyrostat as gs
from gyrostat.estimators import InvariantLinearRegressor, stacked
from gyrostat.estimators.invariant.effects import (
    Effects,
    RowDesign,
    effects_from_moments,
    environment_parts,
    measured_effects,
    moments,
)
from gyrostat.estimators.invariant.hetero_sgd import effect_amplification, effect_descent, environment_orders
from gyrostat.estimators.invariant.outcomes_and_weights import OutcomeWarning
from gyrostat.estimators.invariant.random_effects import (
    cochran,
    mean_effect_p,
    random_effects,
    spread_interval,
)

SITES = np.repeat(["n", "s", "e", "w"], [150, 250, 200, 300])
STRENGTHS = {"n": 1.2, "s": -0.8, "e": 0.9, "w": -0.4}


@parametrize_with_checks([InvariantLinearRegressor()])
def test_scikit_learn_s_checks(estimator, check):
    check(estimator)


def data(seed: int = 0, *, correlation: float = 0.4, more: float = 0.0) -> tuple[np.ndarray, np.ndarray]:
    """y = 3 + x_0 - x_1 / 2 + s_e x_2 + a baseline of the site + noise; the features are correlated and shifted by site."""
    rng = np.random.default_rng(seed)
    mixing = np.linalg.cholesky((1 - correlation) * np.eye(6) + correlation)
    s = np.array([STRENGTHS[site] for site in SITES]) + more
    X = rng.standard_normal((len(s), 6)) @ mixing.T + s[:, None]
    return X, 3 + X[:, 0] - X[:, 1] / 2 + s * X[:, 2] + 5 * s + 0.5 * rng.standard_normal(len(s))


# --- the parts ------------------------------------------------------------------------------------


def by_site(X, y, centred=True):
    return moments(parts(X, y, centred))


def parts(X, y, centred=True):
    return environment_parts(X, y, RowDesign([np.flatnonzero(site == SITES) for site in STRENGTHS], centred=centred))


def test_effects_are_least_squares_in_each_environment():
    X, y = data()
    whole, alone = (effects_from_moments(by_site(X, y), adjust=adjust) for adjust in (True, False))
    for e, site in enumerate(STRENGTHS):
        Xe, ye = X[site == SITES], y[site == SITES]
        fit = LinearRegression().fit(Xe, ye)
        np.testing.assert_allclose(whole.effects[e], fit.coef_, atol=1e-10)
        centred = Xe - Xe.mean(axis=0)
        covariance = np.sum((ye - fit.predict(Xe)) ** 2) / (len(ye) - 7) * np.linalg.inv(centred.T @ centred)
        np.testing.assert_allclose(whole.errors[e], np.sqrt(np.diag(covariance)), rtol=1e-8)
        single = [LinearRegression().fit(Xe[:, [j]], ye).coef_[0] for j in range(X.shape[1])]
        np.testing.assert_allclose(alone.effects[e], single, atol=1e-10)
    np.testing.assert_allclose(whole.maps, np.broadcast_to(np.eye(6), (4, 6, 6)), atol=1e-10)


def test_the_tests_of_effects_have_their_level():
    """5000 features without effect, and 5000 with one effect everywhere: each test is wrong in one of a hundred."""
    rng = np.random.default_rng(0)
    errors = rng.uniform(0.5, 2.0, (4, 10_000))
    truth = np.repeat([0.0, 3.0], 5000)
    effects = truth + errors * rng.standard_normal(errors.shape)
    differ, present = cochran(effects, errors)[1] < 0.01, mean_effect_p(effects, errors, 0.01)[0] < 0.01
    assert abs(differ.mean() - 0.01) < 4 * np.sqrt(0.0099 / 10_000)
    assert abs(present[:5000].mean() - 0.01) < 4 * np.sqrt(0.0099 / 5000)
    assert present[5000:].mean() > 0.8
    varied = effects + np.array([6.0, -6.0, 6.0, -6.0])[:, None]
    assert (cochran(varied, errors)[1] < 0.01).mean() > 0.9


def test_intervals_of_the_spread_cover_it():
    """Effects with tau = 1 over 6 environments, 4000 times, intervals at level 0.1: one of twenty begins above it, no more than
    that end below it (fewer, as effects that agree by chance are spread out), and tau = 4 is rarely held.
    """
    rng = np.random.default_rng(1)
    errors = rng.uniform(0.3, 1.0, (6, 4000))
    effects = rng.standard_normal((6, 4000)) + errors * rng.standard_normal((6, 4000))
    low, high = spread_interval(effects, errors, 0.1)
    assert abs((low > 1).mean() - 0.05) < 4 * np.sqrt(0.0475 / 4000)
    assert 0 < (high < 1).mean() < 0.05 + 4 * np.sqrt(0.0475 / 4000)
    alike = 1 + 1e-3 * errors * rng.standard_normal(
        errors.shape
    )  # closer than errors let expect: the bound is not zero
    assert (spread_interval(alike, errors, 0.1)[1] > errors.min(axis=0)).all()
    assert (spread_interval(np.ones_like(errors), errors, 0.1)[1] > errors.min(axis=0)).all()
    assert ((low <= 4) & (high >= 4)).mean() < 0.2 and (low <= high).all()


def test_descent_sees_the_mean_of_effects_and_no_more_than_their_variation():
    rng, errors = np.random.default_rng(2), np.full((40, 5), 0.5)
    effects = 1 + 2 * rng.standard_normal((40, 5)) + errors * rng.standard_normal((40, 5))
    seen = Effects(np.zeros((40, 1, 1)), effects, errors[:, :, None] ** 2 * np.eye(5))
    shown = seen.denoised(seen.differ(0.01)).effects
    np.testing.assert_allclose(shown.std(axis=0), random_effects(effects, errors).spread)
    alike = seen._replace(effects=1 + 0.1 * effects)
    shown = alike.denoised(alike.differ(0.01)).effects
    np.testing.assert_allclose(shown, np.broadcast_to(alike.mean, (40, 5)), rtol=1e-12)


def sandwich(Z, y):
    """HC3: each row left out in turn, by brute force."""
    slopes = np.stack([LinearRegression().fit(np.delete(Z, i, 0), np.delete(y, i)).coef_ for i in range(len(y))])
    return np.sqrt(np.sum((slopes - LinearRegression().fit(Z, y).coef_) ** 2, axis=0))


def test_standard_errors_allow_for_uneven_noise():
    """Noise that grows with |x|: each row left out by brute force, where that is more than the classical error."""
    rng = np.random.default_rng(3)
    X = rng.standard_normal((len(SITES), 3))
    y = X @ [1.0, 0.0, -1.0] + X[:, 0] ** 2 * rng.standard_normal(len(SITES))
    rows = [np.flatnonzero(site == SITES) for site in STRENGTHS]
    for adjust in (True, False):
        plain = effects_from_moments(moments(parts(X, y)), adjust=adjust)
        found = measured_effects(X, y, RowDesign(rows), adjust=adjust)
        for chosen in [[0, 1, 2]] if adjust else [[0], [1], [2]]:
            free = len(rows[0]) - 1 - len(chosen)
            wanted = np.maximum(sandwich(X[rows[0]][:, chosen], y[rows[0]]), plain.errors[0, chosen])
            wanted *= np.sqrt(free / (free - 2))
            np.testing.assert_allclose(found.feature_effects[1][0, chosen], wanted, rtol=1e-8)
        assert (found.feature_effects[1][:, 0] > 1.3 * plain.errors[:, 0]).all()


def test_tests_hold_their_level_in_small_environments():
    """Eight environments with 12 rows and three features: 600 tests at level 0.01; with classical errors 6 % are wrong."""
    rng = np.random.default_rng(4)
    wrong = []
    for _ in range(200):
        X, design = rng.standard_normal((96, 3)), RowDesign(np.split(np.arange(96), 8))
        seen = measured_effects(X, X @ [1.0, 0.0, -0.5] + rng.standard_normal(96), design, adjust=True).effects
        wrong += (cochran(seen.effects, seen.errors)[1] < 0.01).tolist()
    assert np.mean(wrong) < 0.025


def test_the_kernel_takes_the_steps_of_the_core():
    X, y = data(correlation=0.2)
    X, y = X - X.mean(axis=0), (y - y.mean()) / 5
    kappa, eta, steps = 1.5, 0.02, 40
    whole = by_site(X, y, centred=False)
    seen = Effects(whole.grams, whole.crosses, np.ones_like(whole.grams)).amplified(np.full(6, kappa))
    orders = np.arange(steps)[None] % 4
    at, path, late = effect_descent(seen, orders, step_size=eta, init_scale=0.1)
    labels = np.select([site == SITES for site in STRENGTHS], range(4))
    problem = gs.Problem(gs.Observed((6,), 4), gs.DenseData(X, y, environment=labels))
    algorithm = gs.HeteroSGD(eta, init_scale=0.1, order="cyclic", amplify=kappa, model=gs.Diagonal())
    beta = gs.diagnostics.Diagnostic("beta", lambda view: view.product, ("feature",))
    core = gs.run(algorithm, problem, num_steps=steps, record=[beta], record_at=steps + 1).beta.values[0]
    assert at.tolist() == list(range(41))
    np.testing.assert_allclose(path, core, atol=1e-12)
    np.testing.assert_allclose(late[0], core[21:].mean(axis=0), atol=1e-12)


def test_orders_visit_every_environment_once_per_round():
    found = environment_orders(5, 22, 300, np.random.RandomState(0))
    assert found.shape == (300, 22) and (np.sort(found[:, 5:10], axis=1) == np.arange(5)).all()
    assert (np.bincount(found[:, 0], minlength=5) > 30).all()


@pytest.mark.parametrize("effect", [0.1, 0.3, 0.8])
@pytest.mark.parametrize("tolerance", [0.3, 1.0])
def test_tolerance_is_where_descent_changes_its_mind(effect, tolerance):
    """Known effects m (1 +- r) in two environments, many features at once: kept below the tolerance, forgotten above.

    In between, E log(1 + eta (m - beta + noise)) = 0 leaves beta = m (1 - (r / tolerance)^2) for small steps and long
    runs; at m = 0.1, M* is 6 % below its limit sqrt(2 m / eta), so the law is off by 2 x 6 % of (r / tolerance)^2.
    """
    eta, alpha, steps = 0.05, 1e-3, 8000
    ratios = tolerance * np.array([0.0, 0.25, 0.5, 0.75, 1.3, 2.0, 5.0])
    effects = effect * np.stack([1 - ratios, 1 + ratios])
    seen = Effects(np.broadcast_to(np.eye(7), (2, 7, 7)), effects, np.ones((2, 7, 7)))
    kappa = effect_amplification(seen, tolerance, step_size=eta, init_scale=alpha, num_steps=steps)
    orders = environment_orders(2, steps, 4, np.random.RandomState(0))
    learnt = effect_descent(seen.amplified(kappa), orders, step_size=eta, init_scale=alpha)[2].mean(axis=0) / effect
    assert (learnt[4:] < 0.1).all()
    np.testing.assert_allclose(learnt[:4], 1 - (ratios[:4] / tolerance) ** 2, atol=0.08)


# --- the estimator --------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(10))
def test_recovers_what_holds_everywhere(seed):
    X, y = data(seed)
    model = InvariantLinearRegressor(random_state=0).fit(X, y, environments=SITES)
    assert {0, 1} <= set(model.invariant_features_) and model.spurious_features_.tolist() == [2]
    assert model.status_ == "settled" and model.environments_ == ["n", "s", "e", "w"]


def test_the_coefficients_kept_are_those_of_least_squares():
    """Every environment with a baseline of its own (dummies) and, where noise differs, its own precision as weight."""
    X, y = data(correlation=0.0)
    dummies = (SITES[:, None] == np.array(list(STRENGTHS))).astype(float)
    for response in (y, X[:, 0] + 0.5 * np.random.default_rng(1).standard_normal(len(y))):
        model = InvariantLinearRegressor(random_state=0).fit(X, response, environments=SITES)
        kept = np.setdiff1d(range(6), model.spurious_features_)
        weights = np.ones(len(y))
        # The removed effect is noise, of another size in each environment.
        for site in STRENGTHS if len(kept) < 6 else []:
            here = site == SITES
            left = response[here] - LinearRegression().fit(X[here][:, kept], response[here]).predict(X[here][:, kept])
            weights[here] = (here.sum() - 1 - len(kept)) / (left @ left)
        oracle = LinearRegression(fit_intercept=False).fit(np.hstack([X[:, kept], dummies]), response, weights)
        np.testing.assert_allclose(model.coef_[kept], oracle.coef_[: len(kept)], atol=1e-8)
        assert np.count_nonzero(model.coef_) == len(kept)
        assert model.predict(X).mean() == pytest.approx(response.mean(), abs=1e-10)


def test_one_environment_is_least_squares():
    X, y = data()
    model = InvariantLinearRegressor().fit(X, y)
    assert model.status_ == "one environment" and model.spurious_features_.size == 0
    kept = model.invariant_features_
    np.testing.assert_allclose(model.coef_[kept], LinearRegression().fit(X[:, kept], y).coef_, atol=1e-8)


def test_without_refit_and_without_intercept():
    X, y = data()
    X, y = X - X.mean(axis=0), y - y.mean()
    model = InvariantLinearRegressor(refit=False, fit_intercept=False, standardize=False, num_steps=400, random_state=0)
    model.fit(X, y, environments=SITES)
    assert model.intercept_ == 0.0 and model.n_iter_ == 400 and model.path_.shape == (101, 6)
    assert (model.path_[0] == 0).all() and model.path_steps_[[0, -1]].tolist() == [0, 400]


# --- scikit-learn ---------------------------------------------------------------------------------


def test_pandas_cloning_pickling_and_labels_of_any_kind():
    X, y = data()
    frame = pd.DataFrame(X, columns=list("abcdef"))
    model = InvariantLinearRegressor(random_state=0).fit(
        frame, pd.Series(y), environments=pd.Series(SITES, dtype="category")
    )
    assert model.feature_names_in_.tolist() == list("abcdef")
    again = clone(model).fit(X, y, environments=[("site", s) for s in SITES])
    np.testing.assert_array_equal(again.coef_, model.coef_)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(model)).predict(frame), model.predict(frame))
    X, y, environments = stacked([(X[site == SITES], y[site == SITES]) for site in STRENGTHS])
    assert (environments == np.repeat(range(4), [150, 250, 200, 300])).all()
    np.testing.assert_array_equal(clone(model).fit(X, y, environments=environments).coef_, model.coef_)


def test_pipelines_and_leave_one_environment_out():
    X, y = data()
    with sklearn.config_context(enable_metadata_routing=True):
        model = InvariantLinearRegressor(random_state=0).set_fit_request(environments=True)
        pipeline = make_pipeline(StandardScaler(), model)
        alone = clone(model).fit(StandardScaler().fit_transform(X), y, environments=SITES)
        np.testing.assert_array_equal(pipeline.fit(X, y, environments=SITES)[-1].coef_, alone.coef_)
        scores = cross_val_score(
            pipeline, X, y, cv=LeaveOneGroupOut(), params={"environments": SITES, "groups": SITES}, error_score="raise"
        )
    assert scores.shape == (4,) and np.isfinite(scores).all()


@pytest.mark.parametrize(
    ("options", "environments", "message"),
    [
        ({"tolerance": 0}, SITES, "tolerance must be a finite number above 0; got 0"),
        ({"step_size": "big"}, SITES, "unknown step_size 'big': choose one of auto"),
        ({"step_size": 50.0}, SITES, "step_size=50 makes the descent diverge: give a smaller one"),
        ({"num_steps": 1}, SITES, "num_steps must be a whole number of at least 4"),
        ({}, SITES[1:], "environments must hold one label for each of the 900 rows of X; got 899"),
        ({}, ["alone", *SITES[1:]], "environments must have at least 2 rows each; 'alone' has fewer"),
        ({}, [None, *SITES[1:]], "environments has 1 missing labels"),
        (
            {},
            ["few"] * 8 + [*SITES[8:]],
            "adjust=True estimates 6 effects .* at least 10 rows; 'few' has 8: use adjust=False",
        ),
    ],
)
def test_bad_input_is_refused(options, environments, message):
    X, y = data()
    with pytest.raises(gs.GyrostatError, match=message):
        InvariantLinearRegressor(**options).fit(X, y, environments=environments)


def test_missing_values_and_odd_pairs_are_refused():
    X, y = data()
    X[3, 2] = np.nan
    with pytest.raises(ValueError, match="NaN"):
        InvariantLinearRegressor().fit(X, y, environments=SITES)
    with pytest.raises(gs.GyrostatError, match=r"pairs\[1\] has X of shape \(2, 3\)"):
        stacked([(np.ones((2, 2)), [1, 2]), (np.ones((2, 3)), [1, 2])])
    with pytest.raises(gs.GyrostatError, match=r"pairs must list one \(X, y\) per environment"):
        stacked([])


def test_effects_that_grow_together_keep_their_signs():
    """The direction that varies is the whole signal: what is left beside it is noise, with signs of its own."""
    for seed in range(10):
        rng = np.random.default_rng(seed)
        site, X = np.repeat(np.arange(6), 300), rng.standard_normal((1800, 2))
        k = np.geomspace(1, 6, 6)[site]
        y = k * (X @ [1.0, -0.5]) + k * rng.standard_normal(1800)
        model = InvariantLinearRegressor(random_state=0, family="gaussian").fit(X, y, environments=site)
        assert (model.coef_ * [1, -1] >= 0).all(), model.coef_


def test_effects_in_proportion_to_the_mean_response_are_warned_of():
    rng = np.random.default_rng(0)
    site, X = np.repeat(np.arange(6), 300), rng.standard_normal((1800, 2))
    y = rng.poisson(np.geomspace(10, 60, 6)[site] * np.exp(X @ [0.2, -0.1])).astype(float)
    with pytest.warns(OutcomeWarning, match="in proportion to the mean of y"):
        InvariantLinearRegressor(random_state=0).fit(X, y, environments=site)
    for response, is_told in ((y, True), (np.log(y + 1), False)):
        advice = gs.heterogeneity(X, response, site).advice
        assert any("in proportion to the mean response" in sentence for sentence in advice) == is_told
    parts = [(X[i::2], y[i::2], site[i::2]) for i in range(2)]
    with pytest.warns(OutcomeWarning, match="in proportion to the mean of y"):
        InvariantLinearRegressor(random_state=0).fit_parts(lambda: iter(parts))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        InvariantLinearRegressor(random_state=0, family="gaussian").fit(X, y, environments=site)
        InvariantLinearRegressor(random_state=0).fit(X, y - 40, environments=site)  # some are negative
        InvariantLinearRegressor(random_state=0).fit(
            X, 50 + X[:, 0] * site + rng.standard_normal(1800), environments=site
        )
