"""Diagnostics of several environments: known answers, other software, and agreement with the estimator."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import gyrostat as gs
from conftest import orthonormal
from gyrostat.errors import GyrostatError
from gyrostat.estimators import InvariantLinearRegressor
from gyrostat.estimators.invariant.effects import Effects, principal_directions
from gyrostat.estimators.invariant.hypothesis_tests import covariate_shifts, look_like_consequences

SITES = np.repeat(["a", "b", "c", "d", "e"], 200)
STRENGTHS = np.repeat([1.0, -0.6, 0.8, 0.3, -0.2], 200)


def data(seed: int) -> tuple[pd.DataFrame, np.ndarray]:
    """Effects: the same everywhere, sign-changing, varying a little around a mean, and none."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((1000, 4))
    drift = np.repeat([0.7, 0.9, 1.0, 1.1, 1.3], 200)
    y = X[:, 0] + STRENGTHS * X[:, 1] + drift * X[:, 2] + 0.4 * rng.standard_normal(1000)
    return pd.DataFrame(X, columns=["same", "turns", "drifts", "nothing"]), y


def irm(seed: int, scales=(0.2, 1.0, 2.0, 3.0), rows: int = 300) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The example of Arjovsky and others 2019: y = x + noise, the second feature is y + noise, and only scales change."""
    rng = np.random.default_rng(seed)
    scale = np.repeat(scales, rows)
    x = scale * rng.standard_normal(len(scale))
    y = x + scale * rng.standard_normal(len(scale))
    return np.column_stack([x, y + rng.standard_normal(len(scale))]), y, scale


def test_verdicts_on_known_effects():
    words = []
    for seed in range(10):
        X, y = data(seed)
        words.append(gs.heterogeneity(X, y, SITES).features.verdict.values)
    same, turns, drifts, nothing = np.array(words).T
    assert (same == "kept").sum() >= 9 and (turns == "removed").all()
    # A spread of 20 % +- errors in five environments: within 50 %, but five of them do not bound it well.
    assert set(drifts) <= {"kept", "unclear"} and (nothing == "unclear").sum() >= 9


@pytest.mark.parametrize("seed", range(5))
def test_numbers_are_those_of_the_estimator_and_of_a_regression(seed):
    X, y = data(seed)
    found = gs.heterogeneity(X, y, SITES)
    model = InvariantLinearRegressor(random_state=0).fit(X, y, environments=SITES)
    np.testing.assert_allclose(found.features.effect, model.effects_, rtol=1e-12)
    np.testing.assert_allclose(found.features.error, model.effect_errors_, rtol=1e-12)
    assert (
        X.columns[found.features.verdict.values == "removed"].tolist() == X.columns[model.spurious_features_].tolist()
    )
    half = (found.features.high - found.features.low) / 2
    np.testing.assert_allclose(half, stats.norm.ppf(0.975) * found.features.error)


def test_lyapunov_exponents_are_those_of_the_theory():
    """For a two-point effect 0.5 +- M without errors to speak of: E log(1 + eta xi), plain and amplified."""
    rng = np.random.default_rng(0)
    X, site = rng.standard_normal((40_000, 1)), np.repeat([0, 1], 20_000)
    y = np.where(site, 0.2, 0.8) * X[:, 0] + 0.01 * rng.standard_normal(40_000)
    found = gs.heterogeneity(X, y, site, step_size=0.05)
    low, high = found.features.effect_sd.values[:, 0]
    law = gs.TwoPoint(mean=(low + high) / 2, spread=abs(high - low) / 2)
    assert float(found.features.lyapunov[0]) == pytest.approx(gs.theory.ours.lyapunov_exponent(law, 0.05), rel=1e-3)
    amplified = gs.theory.ours.amplified(law, float(found.features.amplification[0]))
    wanted = gs.theory.ours.lyapunov_exponent(amplified, 0.05)
    assert float(found.features.lyapunov_amplified[0]) == pytest.approx(wanted, rel=1e-2)


def test_irm_s_example_is_recognised_and_solved_by_leaving_the_consequence_out():
    hits, left = [], []
    for seed in range(10):
        X, y, scale = irm(seed)
        found = gs.heterogeneity(X, y, scale)
        hits.append(found.features.consequence.values.tolist() == [False, True])
        assert ("IRM's X2 = Y + noise" in " ".join(found.advice)) == found.features.consequence.values.any()
        assert "Covariates shift" in " ".join(found.advice)
        alone = gs.heterogeneity(X[:, :1], y, scale)
        left.append(alone.features.verdict.values[0])
    assert sum(hits) >= 9  # two tests at level 0.01 each
    assert "removed" not in left and left.count("kept") >= 8  # four environments do not always bound a spread


def test_a_consequence_with_a_changing_sign_is_removed_and_not_called_irm_s():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((1000, 2))
    y = X[:, 0] + rng.standard_normal(1000)
    X[:, 1] = STRENGTHS * y + rng.standard_normal(1000)
    found = gs.heterogeneity(X, y, SITES)
    assert found.features.verdict.values[1] == "removed" and not found.features.consequence.values.any()


def test_reasons_why_it_cannot_be_told():
    rng = np.random.default_rng(0)
    X, site = rng.standard_normal((60, 1)), np.repeat([0, 1], 30)
    y = X[:, 0] + rng.standard_normal(60)
    assert "2 environments are too few" in gs.heterogeneity(X, y, site).features.reason.values[0]
    six = np.repeat(range(6), 10)
    assert "too little data" in gs.heterogeneity(X, y, six).features.reason.values[0]
    unseen = gs.heterogeneity(X, rng.standard_normal(60), six).features
    assert unseen.reason.values[0].startswith(
        f"no effect is seen at the level 0.01 (p = {unseen.mean_p.values[0]:.2g})"
    )
    assert gs.heterogeneity(X, y, np.zeros(60)).features.reason.values[0].startswith("one environment")
    X = rng.standard_normal((900, 1))
    y = np.repeat([0.7, 1.0, 1.6], 300) * X[:, 0] + 0.1 * rng.standard_normal(900)
    shown = gs.heterogeneity(X, y, np.repeat(range(3), 300)).features.reason.values[0]
    assert "all have one sign: nothing oscillates" in shown


def test_covariates_that_shift_are_no_change_of_effect():
    rng = np.random.default_rng(0)
    scale = np.repeat([0.5, 1.0, 2.0, 3.0], 200)
    X = np.column_stack([scale * rng.standard_normal(800), rng.standard_normal(800)])
    y = X[:, 0] - X[:, 1] + 0.3 * rng.standard_normal(800)
    found = gs.heterogeneity(X, y, scale, feature_names=["scaled", "plain"])
    assert found.features.verdict.values.tolist() == ["kept", "kept"]
    said = " ".join(found.advice)
    assert "Covariates shift (their means or variances differ between environments): scaled." in said
    assert "No effect was found to differ" in said


def test_shifts_agree_with_scipy():
    rng = np.random.default_rng(0)
    X = np.concatenate(
        [rng.standard_normal((40, 2)), 1.4 * rng.standard_normal((70, 2)) + 0.3, rng.standard_normal((55, 2))]
    )
    rows = [np.arange(40), np.arange(40, 110), np.arange(110, 165)]
    found = covariate_shifts(X, rows)
    for j in range(2):
        groups = [X[mine, j] for mine in rows]
        away = [np.abs(g - np.median(g)) for g in groups]
        assert found.mean[j] == pytest.approx(stats.f_oneway(*groups, equal_var=False).pvalue, rel=1e-9)
        assert found.variance[j] == pytest.approx(stats.f_oneway(*away, equal_var=False).pvalue, rel=1e-9)


def test_consequences_have_their_level():
    """Of 300 consequences with the same slope and noise everywhere, two tests at 0.01 refuse about 2 %."""
    rng = np.random.default_rng(0)
    scale = np.repeat([0.5, 1.0, 2.0], 200)
    y = scale * rng.standard_normal(600)
    X = 0.7 * y[:, None] + rng.standard_normal((600, 300))
    rows = [np.flatnonzero(scale == s) for s in (0.5, 1.0, 2.0)]
    assert 0.94 < look_like_consequences(X, y, rows, 0.01).mean() < 1.0
    assert look_like_consequences(scale[:, None] * X, y, rows, 0.01).mean() < 0.02
    assert look_like_consequences(rng.standard_normal((600, 300)), y, rows, 0.01).mean() < 0.05
    # The same x and y everywhere: causes and consequences look alike, and none is named.
    assert (
        look_like_consequences(
            0.7 * (y / scale)[:, None] + rng.standard_normal((600, 300)), y / scale, rows, 0.01
        ).mean()
        < 0.05
    )


def test_a_spurious_combination_of_features_is_found_as_a_direction():
    V = orthonormal(3, 6, 2)
    for seed in range(10):
        rng = np.random.default_rng(seed)
        X = rng.standard_normal((1000, 6))
        y = X @ V[:, 0] + (STRENGTHS + 0.3) * (X @ V[:, 1]) + 0.3 * rng.standard_normal(1000)
        found = gs.heterogeneity(X, y, SITES).directions
        assert found.sizes["direction"] == 1 and found.verdict.values.tolist() == ["removed"]
        assert abs(found.loading.values[:, 0] @ V[:, 1]) > 0.99


def test_directions_by_chance_are_one_in_a_hundred():
    rng = np.random.default_rng(1)
    counts = []
    for _ in range(200):
        roots = 0.3 * rng.standard_normal((4, 5, 5))
        covariances = roots @ np.swapaxes(roots, 1, 2)
        effects = 1 + (roots @ rng.standard_normal((4, 5, 1)))[..., 0]
        W, varies = principal_directions(Effects(covariances, effects, covariances), 0.01)
        np.testing.assert_allclose(W.T @ W, np.eye(5), atol=1e-12)
        counts.append(varies.any())
    assert np.mean(counts) < 0.05  # binomial(200, 0.01): 10 or more has a chance of 1e-5


def test_the_table_has_a_row_for_everything():
    X, y = data(0)
    found = gs.heterogeneity(X, y, SITES)
    table = found.table()
    assert table.index.tolist() == [*X.columns, *found.directions.direction.values] and "effect in c" in table
    assert "turns" in str(found) and found.advice[0] in str(found)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"feature_names": ["one"]}, "feature_names must name the 4 columns of X; got 1 names"),
        ({"confidence": 1.0}, "confidence must be a finite number above 0 and at most 0.9999; got 1.0"),
    ],
)
def test_bad_input_is_refused(options, message):
    X, y = data(0)
    with pytest.raises(gs.GyrostatError, match=message):
        gs.heterogeneity(X, y, SITES, **options)


@pytest.mark.parametrize("bad", [True, [1], [0.5] * 60, [-1] * 60])
def test_row_numbers_are_one_whole_number_for_each_row(bad):
    X = np.random.default_rng(0).standard_normal((60, 2))
    with pytest.raises(GyrostatError, match="row_numbers must"):
        gs.heterogeneity(X, X[:, 0] + 0.1 * X[:, 1] ** 2, np.repeat(["a", "b", "c"], 20), row_numbers=bad)


@pytest.mark.parametrize(("slopes", "coefficient"), [([-3.0, 2.0, 6.0, 1.0], 0.0), ([1.0, 2.0, 6.0, 4.0], 1.0)])
def test_a_single_feature_is_not_called_a_combination(slopes, coefficient):
    rng = np.random.default_rng(0)
    x, site = rng.standard_normal(400), np.repeat(range(4), 100)
    found = gs.heterogeneity(x[:, None], np.array(slopes)[site] * x + 0.1 * rng.standard_normal(400), site)
    assert found.features.verdict.values.tolist() == ["removed"] and found.directions.sizes["direction"] == 0
    assert found.features.coefficient.values[0] == pytest.approx(coefficient, abs=0.05)
    assert "combination" not in " ".join(found.advice)
    assert found.advice[0].startswith("Predictions by what holds everywhere are constant") == (coefficient == 0)


def _on_weights(X, y, site):
    return [text for text in gs.heterogeneity(X, y, site).advice if "of the weight" in text]


def test_a_feature_of_one_environment_does_not_hide_the_large_environment():
    rng = np.random.default_rng(4)
    site = np.repeat(["s0", "s1", "s2", "s3", "s4"], [2000, 50, 50, 50, 50])
    X = rng.standard_normal((len(site), 3))
    y = X[:, 0] - 0.5 * X[:, 1] + rng.standard_normal(len(site))
    assert _on_weights(X[:, :2], y, site)[0].startswith("s0 has 9")
    X[:, 2] = np.where(site == "s1", X[:, 2], 0.0)  # varies in s1 only, which has all of its weight
    assert _on_weights(X, y, site)[0].startswith("s0 has 9")


def test_differences_that_are_seen_are_not_called_hardly_seen():
    rng = np.random.default_rng(1)
    site = np.repeat(["a", "b"], 300)
    X = rng.standard_normal((600, 1))
    y = np.repeat([1.0, 1.6], 300) * X[:, 0] + 0.5 * rng.standard_normal(600)
    report = gs.heterogeneity(X, y, site)
    assert report.features.differ_p.values[0] < 1e-6
    assert report.features.verdict.values[0] == "unclear"
    assert not _on_weights(X, y, site)
