"""Methods compared in environments left out, partial pooling for environments of the same kind, and effects in common."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import optimize

import gyrostat as gs
from gyrostat.errors import GyrostatError
from gyrostat.estimators import InvariantLinearRegressor, InvariantLogisticClassifier
from gyrostat.estimators.comparison import leave_one_out
from gyrostat.estimators.comparison.compared_methods import FIXED, OURS, PEERS, REFERENCE, SAME_KIND, Method
from gyrostat.estimators.invariant.common_effects import common_effects, nearest_to_none
from gyrostat.estimators.invariant.effects import Effects, principal_directions
from gyrostat.estimators.invariant.partial_pooling import random_slopes, same_kind_weights
from gyrostat.estimators.invariant.worst_case import both_ends, worst_case_weights
from gyrostat.estimators.linear_predictor import LinearPredictor
from gyrostat.estimators.squared_losses import Risks


def law(rng, count, rows=40, levels=0.0, slopes=0.0, between=0.0):
    """Environments with a mean of features, a level and slopes of their own."""
    found = []
    for _ in range(count):
        means = rng.standard_normal(3)
        X = means + rng.standard_normal((rows, 3))
        coef = np.array([1.0, -0.5, 0.0]) + slopes * rng.standard_normal(3)
        level = levels * rng.standard_normal() + between * means.sum()
        found.append((X, level + X @ coef + rng.standard_normal(rows)))
    return found


def error(weights, tests):
    return np.mean([np.mean((y - weights[0] - X @ weights[1:]) ** 2) for X, y in tests])


# --- the comparison --------------------------------------------------------------------------------------------------------


def constant(value):
    return lambda environments, _: LinearPredictor(np.zeros(1), value)


def test_errors_are_those_of_rows_left_out():
    """Constant predictions 0 and 3, so that every number is known."""
    methods = [Method(REFERENCE, constant(0.0)), Method(OURS, constant(3.0)), Method(SAME_KIND, constant(5.0))]
    rng = np.random.default_rng(0)
    levels = {"a": 0.0, "b": 2.0, "c": 4.0}
    environments = {name: (rng.standard_normal((10, 1)), np.full(10, level)) for name, level in levels.items()}
    with pytest.MonkeyPatch.context() as patch:  # standard units would turn constants into other constants
        patch.setattr(leave_one_out, "fitted", lambda methods, train: {m.name: m.fit(train, 0.0) for m in methods})
        found = leave_one_out.comparison(environments, methods, 0.95, 100, 0)
    assert found.errors.loc[OURS].tolist() == [9.0, 1.0, 1.0]
    row = found.table.loc[OURS]
    assert row["mean"] == pytest.approx(np.sqrt(11 / 3)) and row["worst"] == 3 and row["worst_environment"] == "a"
    assert row["mean_ratio"] == pytest.approx((11 / 3) / (20 / 3)) and row["worst_ratio"] == pytest.approx(9 / 16)
    assert row["worst_low"] == row["worst_high"] == 3 and 1 <= row["mean_low"] < row["mean"] < row["mean_high"] <= 3
    assert found.recommended("worst") == OURS and found.recommended("mean") == OURS  # the other of ours is worse
    assert "unlike these: ours, everywhere. Its mean square error is 0.56 (0.56 to 0.56)" in found.advice[1]


def with_ratios(ratios):
    """A comparison of methods whose errors, relative to least squares, are given by name."""
    table = {f"{e}_ratio": list(ratios.values()) for e in ("mean", "worst")}
    return leave_one_out.MethodComparison(pd.DataFrame(table, index=list(ratios)), pd.DataFrame(), 0.95)


def test_what_is_worse_than_least_squares_is_never_recommended():
    rng = np.random.default_rng(0)
    for ours, other in rng.uniform(0.9, 1.3, (50, 2)):
        found = with_ratios({REFERENCE: 1.0, SAME_KIND: ours, OURS: other})
        for e in ("mean", "worst"):
            assert found.table.loc[found.recommended(e), f"{e}_ratio"] <= 1


@pytest.mark.parametrize(("ridge", "expected"), [(0.9999, REFERENCE), (0.98, "ridge")])
def test_a_gain_of_less_than_one_percent_over_least_squares_recommends_nothing_else(ridge, expected):
    assert with_ratios({REFERENCE: 1.0, "ridge": ridge, SAME_KIND: 1.2}).recommended("mean") == expected


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"environments": None}, "environments is missing"),
        ({"environments": np.repeat([0, 1], 20)}, "at least 3 different labels, got 2"),
        ({"environments": np.arange(39)}, "one label for each of the 40 rows"),
        ({"y": np.ones(40)}, "y is 1 in every row"),
        ({"resamples": 0}, "resamples"),
        ({"method": "all"}, "method"),
    ],
)
def test_bad_input_is_one_sentence(change, sentence):
    rng = np.random.default_rng(0)
    given = {
        "X": rng.standard_normal((40, 2)),
        "y": rng.standard_normal(40),
        "environments": np.repeat([0, 1, 2, 3], 10),
    }
    with pytest.raises((GyrostatError, TypeError), match=sentence):
        gs.estimators.compare_methods(**{**given, **change})


# --- the same kind ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("options", [{"levels": 1.5}, {"levels": 1.5, "slopes": 0.7}], ids=str)
def test_in_new_environments_of_the_law_it_is_as_good_as_the_better_of_least_squares_and_fixed_effects(options):
    errors = []
    for r in range(40):
        rng = np.random.default_rng([7, r])
        train, tests = law(rng, 6, **options), law(rng, 20, **options)
        both = [PEERS[name].fit(train, 0.0) for name in (REFERENCE, FIXED)]
        weights = [np.append(p.intercept, p.coef) for p in both] + [same_kind_weights(Risks.of(train))]
        errors.append([error(w, tests) for w in weights])
    least, fixed, ours = np.mean(errors, axis=0)
    assert ours <= 1.02 * min(least, fixed) and least > 1.02 * fixed  # the goal; and the law is one where it matters


def test_where_levels_follow_features_it_moves_to_least_squares():
    rng = np.random.default_rng(0)
    train, tests = law(rng, 30, between=1.5), law(rng, 40, between=1.5)
    risks = Risks.of(train)
    mixed, ours = error(random_slopes(risks).weights, tests), error(same_kind_weights(risks), tests)
    least = PEERS[REFERENCE].fit(train, 0.0)
    assert mixed > 1.2 * ours and ours < 1.05 * error(np.append(least.intercept, least.coef), tests)


def test_the_level_for_environments_of_the_same_kind_does_not_follow_the_largest_one():
    rng = np.random.default_rng(0)
    labels = np.repeat([0, 1, 2], [2000, 50, 50])
    X = rng.standard_normal((2100, 1))
    y = np.array([0.0, 10.0, 10.0])[labels] + X[:, 0] + rng.standard_normal(2100)
    model = InvariantLinearRegressor(random_state=0).fit(X, y, environments=labels)
    everywhere, same = (model.predict([[0.0]], purpose=p)[0] for p in ("everywhere", "same-kind"))
    assert everywhere == pytest.approx(10 * 100 / 2100, abs=0.1)  # the mean of all rows
    assert 2 < same < 20 / 3  # towards the mean of the three levels


# --- the worst case --------------------------------------------------------------------------------------------------------


def flipping(rng, count, rows=60):
    """Three features: one effect is the same, one is between 0.5 and 1.5 with a sign that is negative in three of ten."""
    X = rng.standard_normal((count, rows, 3))
    effects = np.where(rng.random(count) < 0.3, -1, 1) * rng.uniform(0.5, 1.5, count)
    return [(x, x[:, 0] + s * x[:, 1] + rng.standard_normal(rows)) for x, s in zip(X, effects, strict=True)]


def test_the_ends_of_the_worst_case_are_the_middle_of_effects_and_what_they_have_in_common():
    """Effects 2 and -1 of the second feature, next to no noise: the middle is 0.5, and nothing is in common."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((4, 4000, 2))
    environments = [
        (x, 3 + x @ [1.0, s] + 1e-3 * rng.standard_normal(4000)) for x, s in zip(X, (2, -1, 2, -1), strict=True)
    ]
    minimax, maximin = both_ends(Risks.of(environments))
    np.testing.assert_allclose(minimax, [3, 1, 0.5], atol=0.1)  # 4000 rows: variances of features differ by 0.02
    np.testing.assert_allclose(maximin, [3, 1, 0], atol=0.1)


def test_in_the_worst_of_new_environments_it_is_better_than_least_squares_and_groupdro():
    worst = []
    for r in range(8):
        rng = np.random.default_rng([11, r])
        train, tests = Risks.of(flipping(rng, 6)), Risks.of(flipping(rng, 30))
        weights = (worst_case_weights(train), train.least_worst(), train.least(train.shares))
        worst.append([tests.values(w).max() for w in weights])
    ours, minimax, least = np.mean(worst, axis=0)
    assert ours < minimax < least


def test_chance_in_the_second_moments_of_features_does_not_move_the_minimax_weights():
    """Features are alike everywhere: an environment in which they vary more by chance does not deserve more weight."""
    worst = []
    for r in range(20):
        rng = np.random.default_rng([12, r])
        X = rng.standard_normal((38, 200, 12))
        effects = 1 + 6 * rng.choice([-1.0, 1.0], (38, 2))
        environments = [(x, x[:, :2] @ b + rng.standard_normal(200)) for x, b in zip(X, effects, strict=True)]
        train, tests = Risks.of(environments[:8]), Risks.of(environments[8:])
        worst.append([tests.values(w).max() for w in (both_ends(train)[0], train.least_worst())])
    ours, minimax = np.array(worst).T
    differences = minimax - ours
    assert differences.mean() > 2 * differences.std(ddof=1) / np.sqrt(len(differences))


def test_second_moments_that_differ_are_used():
    rng = np.random.default_rng(0)
    sizes = (0.3, 3.0, 1.0, 1.0)
    X = [size * rng.standard_normal((2000, 1)) for size in sizes]
    environments = [(x, b * x[:, 0] + 0.1 * rng.standard_normal(2000)) for x, b in zip(X, (1.0, 2, 1, 1), strict=True)]
    minimax, _ = both_ends(Risks.of(environments))
    # 9 (2 - w)^2 = (w - 1)^2 at w = 7 / 4: the environment in which the feature varies most, and the next
    np.testing.assert_allclose(minimax[1], 1.75, atol=0.05)


def test_the_estimator_predicts_for_the_worst_case_in_units_of_the_data():
    rng = np.random.default_rng(0)
    environments = flipping(rng, 6, rows=200)
    X, y = (np.concatenate([e[i] for e in environments]) for i in (0, 1))
    X, y, labels = 5 + 100 * X, 7 + 10 * y, np.repeat(np.arange(6), 200)
    model = InvariantLinearRegressor(random_state=0).fit(X, y, environments=labels)
    coef, intercept = model.coefficients("worst-case")
    np.testing.assert_allclose(model.predict(X, purpose="worst-case"), X @ coef + intercept)
    theirs = worst_case_weights(Risks.of([(X[labels == e], y[labels == e]) for e in range(6)]))
    np.testing.assert_allclose(coef, theirs[1:], atol=2e-3)  # effects near 0.1, in units that do not change the answer


def test_the_classifier_removes_nothing_for_environments_of_the_same_kind():
    rng = np.random.default_rng(0)
    X, site = rng.standard_normal((1600, 2)), np.repeat(np.arange(4), 400)
    eta = X[:, 0] + np.array([1.5, -1.0, 2.0, 0.5])[site] * X[:, 1]
    y = (rng.random(1600) < 1 / (1 + np.exp(-eta))).astype(int)
    model = InvariantLogisticClassifier(directions="features", random_state=0).fit(X, y, environments=site)
    assert model.coef_[0, 1] == 0 and 0.2 < model.same_kind_coef_[0, 1] < 1.5
    assert model.predict_proba(X, purpose="same-kind").shape == (1600, 2)
    assert (model.predict(X, purpose="same-kind") == y).mean() > (model.predict(X) == y).mean()


# --- effects in common -----------------------------------------------------------------------------------------------------


def test_the_mixture_nearest_to_none_is_that_of_a_general_optimiser():
    rng = np.random.default_rng(0)
    for shift in (0.0, 1.0, 3.0):
        points = rng.standard_normal((5, 3)) + shift
        found = nearest_to_none(points)
        assert found.min() >= 0 and found.sum() == pytest.approx(1)
        sums = {"type": "eq", "fun": lambda w: w.sum() - 1}
        other = optimize.minimize(
            lambda w, P=points: np.sum((w @ P) ** 2),
            np.full(5, 0.2),
            bounds=[(0, 1)] * 5,
            constraints=sums,
            method="SLSQP",
            options={"ftol": 1e-14, "maxiter": 500},
        )
        assert np.sum((found @ points) ** 2) <= other.fun + 1e-6


def irm(rng, rows=500):
    """A cause x, the response, and a consequence; only sizes differ, as in the example of Arjovsky and others."""
    environments = []
    for scale in (0.2, 2.0, 5.0):
        x = scale * rng.standard_normal((rows, 2))
        y = x.sum(axis=1) + scale * rng.standard_normal(rows)
        environments.append((np.column_stack([x, y + rng.standard_normal(rows)]), y))
    X, y = (np.concatenate([e[i] for e in environments]) for i in (0, 1))
    return X, y, np.repeat(np.arange(3), rows)


@pytest.mark.parametrize("rotated", [False, True])
def test_combinations_come_near_the_causal_weights_where_features_do_not(rotated):
    rng = np.random.default_rng(0)
    X, y, labels = irm(rng)
    Q = np.linalg.qr(rng.standard_normal((3, 3)))[0] if rotated else np.eye(3)
    auto, features = (
        InvariantLinearRegressor(directions=d, random_state=0).fit(X @ Q, y, environments=labels)
        for d in ("auto", "features")
    )
    away = [np.sum((Q @ m.coef_ - [1, 1, 0]) ** 2) for m in (auto, features)]
    assert auto.combined_ and not features.combined_
    assert rotated or (features.status_ == "nothing invariant" and not features.coef_.any())
    assert away[0] < 0.05 and away[1] > 0.5
    assert np.isfinite(auto.coef_se_).all()


def test_correlated_features_get_back_the_coefficients_that_removal_would_spoil():
    rng = np.random.default_rng(0)
    root = np.linalg.cholesky(0.7 ** np.abs(np.subtract.outer(np.arange(3), np.arange(3))))
    X, labels = rng.standard_normal((3000, 3)) @ root.T, np.repeat(np.arange(6), 500)
    y = (
        X[:, 0]
        + np.array([1.4, -0.5, 1.2, 1.0, -0.4, 0.9])[labels] * X[:, 1]
        - X[:, 2]
        + 0.5 * rng.standard_normal(3000)
    )
    auto, features = (
        InvariantLinearRegressor(directions=d, random_state=0).fit(X, y, environments=labels)
        for d in ("auto", "features")
    )
    assert auto.combined_
    away = [np.sum((m.coef_ - [1, 0, -1]) ** 2) for m in (auto, features)]
    assert away[0] < 0.05 and away[0] < 0.3 * away[1]


def test_two_environments_are_not_combined():
    rng = np.random.default_rng(0)
    X, y, labels = irm(rng)
    two = labels > 0
    model = InvariantLinearRegressor(random_state=0).fit(X[two], y[two], environments=labels[two])
    assert not model.combined_


def shortcuts(rng, environments, rows=400):
    """Aubin's Example 3: a small margin along two features, and a large one along another direction in each environment."""
    y = np.tile([1.0, -1.0], rows // 2)
    X = [
        np.multiply.outer(y, np.append([0.1, 0.1], s)) + 0.1 * rng.standard_normal((rows, 4))
        for s in rng.standard_normal((environments, 2))
    ]
    return np.concatenate(X), np.tile(y, environments), np.repeat(np.arange(environments), rows)


def test_principal_directions_are_removed_where_there_are_environments_to_test_them():
    """Two directions vary: ten environments determine and test them, three only determine them."""
    found = {}
    for count in (3, 10):
        X, y, labels = shortcuts(np.random.default_rng(2), count)
        for directions in ("auto", "principal", "features"):
            model = InvariantLinearRegressor(directions=directions, family="gaussian", random_state=0)
            found[count, directions] = model.fit(X, y, environments=labels)
    auto, principal, features = (found[10, d].coef_ for d in ("auto", "principal", "features"))
    assert found[10, "auto"].combined_ and not np.allclose(auto, features)
    np.testing.assert_allclose(auto, principal)
    assert np.abs(auto[2:]).max() < 0.1 * np.abs(auto[:2]).min()  # the shortcuts have next to no weight
    assert not np.allclose(found[3, "auto"].coef_, found[3, "principal"].coef_)


@pytest.mark.parametrize("jitter", [0.0, 1e-5, 1e-9])
def test_a_property_of_environments_keeps_its_effect_for_environments_of_the_same_kind(jitter):
    rng = np.random.default_rng(0)
    environments = []
    for z in rng.standard_normal(30):
        x = rng.standard_normal((60, 2)) * [1.0, jitter] + [0.0, z]
        environments.append((x, x[:, 0] + 2 * z + rng.standard_normal(60)))
    found = same_kind_weights(Risks.of(environments))
    design = np.concatenate([np.column_stack([np.ones(60), X]) for X, _ in environments])
    y = np.concatenate([y for _, y in environments])
    np.testing.assert_allclose(found, np.linalg.lstsq(design, y, rcond=None)[0], atol=0.01)  # no levels of their own


def test_what_is_common_to_equal_effects_has_the_error_of_all_environments_together():
    errors = np.array([1.0, 2.0, 2.0])
    covariances = errors[:, None, None] ** 2 * np.eye(2)
    found = common_effects(Effects(covariances, np.tile([3.0, 1.0], (3, 1)), covariances), np.diag([1.0, 4.0]), 0.01)
    np.testing.assert_allclose(found.coef, [3.0, 1.0])
    np.testing.assert_allclose(found.weights, errors**-2 / np.sum(errors**-2), rtol=1e-4)
    np.testing.assert_allclose(found.covariance, np.eye(2) / np.sum(errors**-2), rtol=1e-4)


def test_one_feature_varies_if_the_test_of_its_effects_says_so():
    effects, errors = np.array([[0.0], [1.0], [5.0]]), np.array([0.01, 0.01, 10.0])  # a noisy environment hides nothing
    covariances = (errors**2)[:, None, None]
    measured = Effects(covariances, effects, covariances)
    assert measured.differ(0.01).all() and principal_directions(measured, 0.01)[1].all()
    assert abs(common_effects(measured, np.ones((1, 1)), 0.01).coef[0]) < 0.2  # near the effect that is nearest to none
