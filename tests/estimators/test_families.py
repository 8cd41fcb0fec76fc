"""0/1 outcomes, shares and counts: other software per environment, base rates, separation, the classifier and its contract."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from scipy import optimize, special
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression, PoissonRegressor
from sklearn.utils.estimator_checks import parametrize_with_checks

import gyrostat as gs
from benchmarks import calibration
from gyrostat.estimators import InvariantLinearRegressor, InvariantLogisticClassifier
from gyrostat.estimators.invariant.outcomes_and_weights import OutcomeWarning


@parametrize_with_checks([InvariantLogisticClassifier()])
def test_scikit_learn_s_checks_of_the_classifier(estimator, check):
    check(estimator)


def penalised(Z, y):
    """The maximum of Firth's penalised likelihood of a logistic regression, by a general optimiser."""

    def loss(beta):
        p = special.expit(Z @ beta)
        information = (Z * (p * (1 - p))[:, None]).T @ Z
        return np.sum(np.logaddexp(0, Z @ beta) - y * (Z @ beta)) - 0.5 * np.linalg.slogdet(information)[1]

    start = [special.logit(y.mean()), *np.zeros(Z.shape[1] - 1)]
    return optimize.minimize(loss, start, method="Nelder-Mead", options={"xatol": 1e-8, "fatol": 1e-10}).x


def test_effects_are_those_of_firth_s_logistic_regression_in_each_environment():
    draw = calibration.base_rates(np.random.default_rng(0))
    model = InvariantLinearRegressor(family="binomial", random_state=0).fit(
        draw.X, draw.y, environments=draw.environments
    )
    for e in (0, 5):
        here = draw.environments == e
        wanted = penalised(np.column_stack([np.ones(here.sum()), draw.X[here]]), draw.y[here])[1:]
        np.testing.assert_allclose(model.effects_[e], wanted, rtol=1e-4)
    dummies = (draw.environments[:, None] == np.arange(6)).astype(float)
    pooled = LogisticRegression(C=np.inf, fit_intercept=False, tol=1e-10, max_iter=1000)
    pooled.fit(np.column_stack([draw.X, dummies]), draw.y)
    np.testing.assert_allclose(model.coef_, pooled.coef_[0, :2], rtol=0.01)  # apart from the penalty
    assert model.predict(draw.X).mean() == pytest.approx(draw.y.mean(), abs=1e-9)


def test_counts_are_those_of_a_poisson_regression():
    draw = calibration.counts(np.random.default_rng(0))
    model = InvariantLinearRegressor(family="poisson", random_state=0).fit(
        draw.X, draw.y, environments=draw.environments
    )
    here = draw.environments == 5
    peer = PoissonRegressor(alpha=0, tol=1e-10, max_iter=1000).fit(draw.X[here], draw.y[here])
    np.testing.assert_allclose(model.effects_[5], peer.coef_, rtol=0.01)
    assert model.spurious_features_.size == 0 and model.predict(draw.X).mean() == pytest.approx(draw.y.mean(), rel=1e-9)
    assert (np.abs(model.coef_ - draw.truth) < 4 * model.coef_se_).all()


@pytest.mark.parametrize(("setting", "least"), [(calibration.base_rates, 30), (calibration.shares, 25)])
def test_verdicts_do_not_follow_the_levels_of_environments(setting, least):
    wrong, covered = {"binomial": 0, "gaussian": 0}, []
    for seed in range(15):
        for family in wrong:
            draw = setting(np.random.default_rng(seed), family=family)
            model = InvariantLinearRegressor(random_state=0, **draw.options)
            model.fit(draw.X, draw.y, environments=draw.environments)
            wrong[family] += len(model.spurious_features_)
            covered += [calibration.covers(draw, model, lambda: None)] if family == "binomial" else []
    assert wrong["binomial"] == 0 and wrong["gaussian"] >= least and np.mean(covered) >= 0.85


def test_separated_classes_have_finite_effects_with_large_errors():
    rng = np.random.default_rng(0)
    X, sites = rng.standard_normal((400, 1)), np.repeat(list("abcd"), 100)
    y = (rng.random(400) < special.expit(X[:, 0])).astype(float)
    y[sites == "a"], y[sites == "b"] = X[sites == "a", 0] > 0, 0.0  # separated, and without an event
    model = InvariantLogisticClassifier(random_state=0).fit(X, y, environments=sites)
    assert np.isfinite(model.effects_).all() and model.spurious_features_.size == 0
    assert (model.effect_errors_[:2] > 3 * model.effect_errors_[2:]).all()
    assert 0.5 < model.coef_[0, 0] < 3


def test_the_classifier_takes_labels_clusters_weights_and_metadata():
    draw = calibration.base_rates(np.random.default_rng(1))
    words, patients = np.where(draw.y, "yes", "no"), np.arange(6000) // 3
    model = InvariantLogisticClassifier(random_state=0).fit(
        draw.X, words, environments=draw.environments, cluster=patients, sample_weight=np.ones(6000)
    )
    assert model.classes_.tolist() == ["no", "yes"] and model.coef_.shape == (1, 2) and model.coef_se_.shape == (2,)
    p = model.predict_proba(draw.X)
    np.testing.assert_allclose(p.sum(axis=1), 1)
    assert (model.predict(draw.X) == np.where(p[:, 1] > 0.5, "yes", "no")).all()
    with pytest.raises(gs.GyrostatError, match="y must hold two classes; got 3"):
        InvariantLogisticClassifier().fit(draw.X[:3], ["a", "b", "c"])


@pytest.mark.parametrize(
    ("family", "message"),
    [
        ("binomial", "family='binomial' needs responses from 0 to 1"),
        ("poisson", "family='poisson' needs responses of at least 0"),
        ("binomal", "unknown family 'binomal': did you mean 'binomial'"),
    ],
)
def test_responses_that_a_family_does_not_take_are_refused(family, message):
    X = np.random.default_rng(0).standard_normal((100, 2))
    with pytest.raises(gs.GyrostatError, match=message):
        InvariantLinearRegressor(family=family).fit(X, X[:, 0], environments=np.repeat([0, 1], 50))


# --- units of weights and amounts, and responses that no line suits ---


@pytest.mark.parametrize(("kind", "tolerance"), [("classes", 0.05), ("shares", 1e-6), ("rates", 1e-6)])
@pytest.mark.parametrize("unit", [1e-9, 365.25])
def test_the_unit_of_weights_does_not_matter(kind, tolerance, unit):
    """For classes, Firth's penalty is within the tolerance: it is smaller for larger weights, as for repeated rows."""
    rng = np.random.default_rng(0)
    X, site = rng.standard_normal((900, 2)), np.repeat(np.arange(3), 300)
    p, w = special.expit(np.array([-2.0, -1.0, 0.0])[site] + X @ [1.0, -0.5]), rng.uniform(0.5, 2.0, 900)
    y = {"classes": rng.random(900) < p, "shares": rng.beta(20 * p, 20 * (1 - p)), "rates": rng.poisson(9 * p) / 9}[
        kind
    ]
    model = InvariantLinearRegressor(family="poisson" if kind == "rates" else "binomial", random_state=0)
    one, other = (clone(model).fit(X, y, environments=site, sample_weight=w * size) for size in (1.0, unit))
    np.testing.assert_allclose(other.coef_, one.coef_, rtol=tolerance)
    np.testing.assert_allclose(other.coef_se_, one.coef_se_, rtol=tolerance)
    np.testing.assert_allclose(other.effect_errors_, one.effect_errors_, rtol=tolerance)


@pytest.mark.parametrize("unit", [1e-6, 1e6])
def test_the_unit_of_amounts_does_not_matter(unit):
    rng = np.random.default_rng(1)
    X, site = rng.standard_normal((600, 2)), np.repeat(np.arange(4), 150)
    y = rng.exponential(np.array([1.0, 3.0, 10.0, 30.0])[site] * np.exp(X @ [0.5, -0.3]))
    one, other = (
        InvariantLinearRegressor(family="poisson", random_state=0).fit(X, y * size, environments=site)
        for size in (1.0, unit)
    )
    np.testing.assert_allclose(other.coef_, one.coef_, rtol=1e-6)
    np.testing.assert_allclose(other.effect_errors_, one.effect_errors_, rtol=1e-6)
    np.testing.assert_allclose(other.effects_, [[0.5, -0.3]] * 4, atol=0.5)


@pytest.mark.parametrize(
    ("response", "words"),
    [
        (lambda rng: rng.integers(0, 2, 300), "y holds only 0 and 1: use family='binomial'"),
        (lambda rng: rng.choice([-1.0, 1.0], 300), "only two values"),
        (lambda rng: rng.poisson(2.0, 300), "looks like counts"),
        (lambda rng: rng.exponential(5.0, 300), "long tail"),
        (lambda rng: 50 + 10 * rng.standard_normal(300), None),
        (lambda rng: rng.integers(8, 19, 300), None),
    ],
)
def test_responses_that_no_line_suits_are_reported(response, words):
    rng = np.random.default_rng(3)
    told = _told(rng.standard_normal((300, 1)), response(rng).astype(float), np.repeat(np.arange(3), 100))
    assert [words in sentence for sentence in told] == [True] if words else not told


# --- shares ---


def test_effects_on_shares_are_those_of_a_fractional_logit():
    """A row with the share y is a row with 1 and the weight y, and a row with 0 and the weight 1 - y."""
    draw = calibration.shares(np.random.default_rng(0))
    model = InvariantLinearRegressor(family="binomial", random_state=0).fit(
        draw.X, draw.y, environments=draw.environments
    )
    peer = LogisticRegression(C=np.inf, tol=1e-10, max_iter=1000)
    for e in (0, 5):
        here = draw.environments == e
        X, y = draw.X[here], draw.y[here]
        peer.fit(np.concatenate([X, X]), np.repeat([1, 0], len(X)), sample_weight=np.concatenate([y, 1 - y]))
        np.testing.assert_allclose(model.effects_[e], peer.coef_[0], rtol=0.01)  # apart from the penalty
    p = model.predict(draw.X)
    assert ((p > 0) & (p < 1)).all() and p.mean() == pytest.approx(draw.y.mean(), abs=1e-9)


def test_the_penalty_is_small_for_shares_with_little_noise():
    """One such row says as much as hundreds of rows of 0/1: the penalty for the latter would move effects by many errors."""
    rng = np.random.default_rng(0)
    X, sites = rng.standard_normal((80, 1)), np.repeat(np.arange(4), 20)
    mean = special.expit(np.array([-4.0, -3.0, -2.0, 0.0])[sites] + 0.5 * X[:, 0])
    y = rng.beta(2000 * mean, 2000 * (1 - mean))
    model = InvariantLinearRegressor(family="binomial", random_state=0).fit(X, y, environments=sites)
    assert (np.abs(model.effects_ - 0.5) < 3 * model.effect_errors_).all() and (model.effect_errors_ < 0.1).all()
    assert model.coef_[0] == pytest.approx(0.5, abs=0.02)


def _levels(*means, rows=100, seed=0):
    """Shares with these means, one for each environment, and one feature without an effect."""
    rng = np.random.default_rng(seed)
    sites = np.repeat(np.arange(len(means)), rows)
    mean = np.array(means)[sites]
    return rng.standard_normal((len(sites), 1)), rng.beta(20 * mean, 20 * (1 - mean)), sites


def _told(X, y, sites, **options):
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        InvariantLinearRegressor(random_state=0, **options).fit(X, y, environments=sites)
    return [str(one.message) for one in told if one.category is OutcomeWarning]


def test_shares_of_unequal_levels_are_warned_of_with_what_to_do():
    X, y, sites = _levels(0.03, 0.1, 0.5)
    (said,) = _told(X, y, sites)
    assert said.startswith("y is between 0 and 1, and its mean is 0.024 in some environments and 0.48 in others")
    assert "if it is a share, the same odds ratio moves it 11 times as much in the latter" in said
    assert any("if it is a percentage" in one and "divide it by 100 and use" in one for one in _told(X, 100 * y, sites))
    assert not _told(X, y, sites, family="gaussian") and not _told(X, y, sites, family="binomial")
    parts = [(X[i::2], y[i::2], sites[i::2]) for i in range(2)]
    with pytest.warns(OutcomeWarning, match="if it is a share"):
        InvariantLinearRegressor(random_state=0).fit_parts(lambda: iter(parts))


def test_numbers_that_are_no_shares_of_unequal_levels_are_not_warned_of():
    X, y, sites = _levels(0.05, 0.2, 0.5)
    for other in (40 * y, 300 * y, y - 0.5):  # no value above 50, some above 100, some below 0
        assert not any("is between" in one for one in _told(X, other, sites))
    assert not _told(X, y, np.arange(len(y)) % 3)  # the levels of environments are equal
    assert not _told(*_levels(0.2, 0.4, 0.6, 0.8))  # 0.25 is less than twice 0.16
    assert not _told(*_levels(0.03, *[0.5] * 10))  # one environment of eleven does not decide
    assert _told(*_levels(0.03, *[0.5] * 9))


def test_rows_without_weight_do_not_make_shares_unequal():
    X, y, sites = _levels(0.03, 0.5, 0.5)
    with warnings.catch_warnings():
        warnings.simplefilter("error", OutcomeWarning)
        InvariantLinearRegressor(random_state=0).fit(X, y, environments=sites, sample_weight=(sites > 0).astype(float))


RARE_TRUTH = np.array([0.8, -0.4])


def _rare_rows(rng, family):
    site, X = np.repeat(np.arange(6), 80), rng.standard_normal((480, 2))
    size = rng.integers(5, 51, 480)
    level = np.array([-12.0, -2.0, -1.0, 0.0, 0.0, 1.0])[site]
    if family == "binomial":
        return X, rng.binomial(size, special.expit(level + X @ RARE_TRUTH)) / size, site, size
    return X, rng.poisson(size * np.exp(level - 1 + X @ RARE_TRUTH)) / size, site, size


@pytest.mark.parametrize("family", ["binomial", "poisson"])
def test_an_environment_without_events_does_not_make_effects_vary(family):
    rng, removed, covered = np.random.default_rng(0), [], []
    for _ in range(20):
        X, y, site, size = _rare_rows(rng, family)
        model = InvariantLinearRegressor(family=family, random_state=0, num_orders=2)
        model.fit(X, y, environments=site, sample_weight=size)
        assert (model.effect_errors_[0] > 0.5).all()
        removed.append(len(model.spurious_features_) > 0)
        covered.append(np.abs(model.coef_ - RARE_TRUTH) < 4 * model.coef_se_)
    assert np.mean(removed) <= 0.05
    assert np.mean(covered) > 0.9


# --- the row with the largest influence ------------------------------------------------------------------------------------


@pytest.mark.parametrize("family", ["poisson", "binomial"])
def test_the_influence_of_a_row_is_on_features_also_where_two_of_them_repeat_each_other(family):
    """By brute force: without the row, no effect of the site moves by more of its standard errors than that of the feature
    that is named. Decisions are on the sum and the difference of the first two features, which is not what the row moves."""
    for seed in range(12):
        rng = np.random.default_rng(seed)
        X, site = rng.standard_normal((450, 3)), np.repeat(["a", "b", "c"], 150)
        X[:, 1] = X[:, 0] + 0.1 * X[:, 1]
        X[0] = [3, 3, 0.5]
        eta = 0.5 * X[:, 0]
        y = rng.poisson(np.exp(eta)) if family == "poisson" else rng.random(450) < special.expit(eta)
        y = np.where(np.arange(450) == 0, 0.0, y)
        row = gs.heterogeneity(X, y, site, family=family).row
        fits = [
            InvariantLinearRegressor(family=family, num_steps=100, random_state=0).fit(
                X[on], y[on], environments=site[on]
            )
            for on in (slice(None), np.arange(450) != row.row)
        ]
        (before, _), (after, errors) = [(m.effects_[row.environment], m.effect_errors_[row.environment]) for m in fits]
        moved = np.abs(before - after) / errors
        assert moved[row.feature] > 0.8 * moved.max()  # one step of Newton is not the whole way
        assert row.effect - row.without == pytest.approx((before - after)[row.feature], rel=0.5, abs=0.05)
