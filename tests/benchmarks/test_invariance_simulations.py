"""Simulations have the moments they declare, and measures see what they name.

Statistics of ROWS rows have errors of about 1 / sqrt(ROWS) = .007; bands are five of them or more.
"""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression

from benchmarks.invariance import simulations
from benchmarks.invariance.simulations import (
    SIMULATIONS,
    Draw,
    LinearPredictor,
    causal,
    distance,
    non_causal,
    unseen,
    wrong_class,
)

ROWS = 20_000
NAMES = {s.name: s for s in SIMULATIONS}


def slopes(X, y):
    """Least squares with an intercept, and the standard deviation of what is left."""
    fit = LinearRegression().fit(X, y)
    return fit.coef_, float(np.std(y - fit.predict(X)))


def draw(name: str, seed: int = 0, rows: int = ROWS) -> Draw:
    return NAMES[name].draw(np.random.default_rng(seed), rows)


def unscrambled(found: Draw):
    return [(X @ found.scramble.T, y) for X, y in found.train]


@pytest.mark.parametrize("name", list(NAMES))
def test_every_simulation_is_seeded_and_well_formed(name):
    first, again, other = (draw(name, seed, 60) for seed in (1, 1, 2))
    d = len(first.truth)
    assert len(first.train) >= 2 and {X.shape for X, _ in first.train} == {(60, d)} == {(60, len(first.scramble))}
    assert all(np.array_equal(a[0], b[0]) for a, b in zip(first.train, again.train, strict=True))
    assert not np.array_equal(first.train[0][0], other.train[0][0])
    np.testing.assert_allclose(first.scramble @ first.scramble.T, np.eye(d), atol=1e-12)
    is_scrambled = name[-2:] in ("1s", "2s", "3s", "os", "es") and name != "flips"
    assert np.array_equal(first.scramble, np.eye(d)) != is_scrambled


@pytest.mark.parametrize(("name", "noise"), [("diagonal", 1.0), ("flips", 0.5), ("one-sign", 0.5)])
def test_effects_in_every_environment_are_the_truth_and_what_varies(name, noise):
    found = draw(name)
    effects = []
    for X, y in [*found.train, *found.tests]:
        coef, left = slopes(X, y)
        assert left == pytest.approx(noise, rel=0.05)
        fixed = np.delete(np.arange(len(coef)), [3, 4])
        np.testing.assert_allclose(coef[fixed], found.truth[fixed], atol=0.06)
        wanted = np.eye(len(coef)) if name == "diagonal" else simulations._chain(len(coef))
        np.testing.assert_allclose(np.cov(X.T), wanted, atol=0.06)
        effects.append(coef[3:5])
    effects = np.array(effects)
    if name == "diagonal":
        np.testing.assert_allclose(np.abs(effects - 1), 6, atol=0.06)
    else:
        assert ((np.abs(effects) > 0.45) & (np.abs(effects) < 1.55)).all()
        both = [set(np.sign(e)) == {-1.0, 1.0} for e in effects[: simulations.NUM_TRAIN].T]
        assert all(both) if name == "flips" else (effects > 0).all()


def test_flipping_effects_are_negative_in_a_quarter_of_environments():
    signs = []
    for seed in range(60):
        found = draw("flips", seed, 50)
        # the rule of both signs does not touch test environments
        signs += [np.sign(slopes(X, y)[0][3:5]) for X, y in found.tests]
    share = np.mean(np.array(signs) < 0)
    assert abs(share - simulations.FLIP_SHARE) < 4 * np.sqrt(0.25 * 0.75 / 480)


@pytest.mark.parametrize("name", ["example-1", "example-1s"])
def test_example_1_has_causes_of_growing_scale_and_shuffled_consequences(name):
    found = draw(name)
    for (X, y), scale in zip(unscrambled(found), simulations.UNIT_TEST_SCALES, strict=True):
        np.testing.assert_allclose(X[:, :5].std(axis=0), scale, rtol=0.04)
        coef, left = slopes(X[:, :5], y)
        np.testing.assert_allclose(coef, found.truth[:5], atol=0.12)  # noise sqrt 5 times that of one feature
        assert left == pytest.approx(scale * np.sqrt(5), rel=0.04)
        assert slopes(X, y)[1] < left  # consequences tell of the response
    for X, y in found.tests:
        Z = X @ found.scramble.T
        np.testing.assert_allclose(np.corrcoef(Z[:, 5:].T, y)[-1, :-1], 0, atol=0.04)
        np.testing.assert_allclose(slopes(Z[:, :5], y)[0], found.truth[:5], atol=0.12)


def test_example_2_has_its_shares_of_cows_and_backgrounds():
    found = draw("example-2")
    for (X, y), (usual, cows) in zip(found.train, simulations.COWS, strict=True):
        animal, background = np.sign(X[:, :5].sum(axis=1)), np.sign(X[:, 5:].sum(axis=1))
        assert np.array_equal(y, animal)
        assert np.mean(animal > 0) == pytest.approx(cows, abs=0.02)
        assert np.mean(animal == background) == pytest.approx(usual, abs=0.01)
        np.testing.assert_allclose(X[animal > 0][:, :5].mean(axis=0), 0.01, rtol=0.02)
        np.testing.assert_allclose(X[background < 0][:, 5:].std(axis=0), np.sqrt(0.1), rtol=0.04)
    X, y = found.tests[0]
    usual, cows = simulations.COWS[0]
    grass = cows * usual + (1 - cows) * (1 - usual)  # shuffled: the background agrees by chance only
    agree = cows * grass + (1 - cows) * (1 - grass)
    assert np.mean(np.sign(X[:, 5:].sum(axis=1)) == y) == pytest.approx(agree, abs=0.02)


def test_example_3_has_a_small_common_margin_and_large_margins_of_their_own():
    found = draw("example-3")
    shortcuts = []
    for X, y in found.train:
        means = X[y > 0].mean(axis=0)
        np.testing.assert_allclose(means, -X[y < 0].mean(axis=0), atol=0.01)
        np.testing.assert_allclose(means[:5], 0.1, atol=0.01)
        np.testing.assert_allclose(X[y > 0].std(axis=0), 0.1, rtol=0.05)
        shortcuts.append(means[5:])
    assert np.abs(np.subtract(shortcuts[0], shortcuts[1])).max() > 0.3
    wrong = wrong_class(LinearPredictor(found.truth, 0.0), found)
    assert wrong == pytest.approx(0.0127, abs=0.004)  # five features one standard deviation off: Phi(-sqrt 5)


@pytest.mark.parametrize("name", ["irm-fou", "irm-fos", "irm-feu", "irm-fes"])
def test_irm_observed_has_its_weights_and_noises(name):
    found = draw(name)
    for (X, y), e in zip(unscrambled(found), simulations.IRM_SCALES, strict=True):
        s, t = (1.0, e) if name[5] == "o" else (e, 1.0)
        np.testing.assert_allclose(np.cov(X[:, :5].T), 2 * e**2 * np.eye(5), atol=0.1 * e**2)
        coef, left = slopes(X[:, :5], y)
        np.testing.assert_allclose(coef, 1, atol=6 * np.sqrt(5) * s / (np.sqrt(2) * e) / np.sqrt(ROWS))
        assert left == pytest.approx(np.sqrt(5) * s, rel=0.04)
        np.testing.assert_allclose((X[:, 5:] - X[:, :5]).std(axis=0), np.hypot(s, t), rtol=0.04)


@pytest.mark.parametrize("name", ["irm-pou", "irm-pes"])
def test_irm_hidden_has_a_common_cause_that_scales_with_the_environment(name):
    environments = unscrambled(draw(name))
    shapes = [np.cov(X[:, :5].T) / e**2 for (X, _), e in zip(environments, simulations.IRM_SCALES, strict=True)]
    for shape in shapes[1:]:
        np.testing.assert_allclose(shape, shapes[0], atol=0.1)
    assert np.abs(shapes[0] - 2 * np.eye(5)).max() > 0.3  # not the observed law
    X, y = environments[2]
    assert np.abs(slopes(X[:, :5], y)[0] - 1).max() > 0.02  # confounded: regression on causes is off


def test_eills_has_its_equations():
    (X, y), (X2, y2) = draw("eills").train
    for features, response in ((X, y), (X2, y2)):
        coef, left = slopes(features[:, :3], response)
        np.testing.assert_allclose(coef, simulations.EILLS_TRUTH[:3], atol=0.05)
        assert left == pytest.approx(1, rel=0.04)
        left_of_8 = features[:, 7] - 0.5 * features[:, 6] + response - features[:, 9]
        assert (left_of_8.mean(), left_of_8.std()) == pytest.approx((0, 1), abs=0.05)
        assert np.corrcoef(features[:, 11], response)[0, 1] == pytest.approx(0, abs=0.04)
    assert (X[:, 3].var(), X2[:, 3].var()) == pytest.approx((1, 2), rel=0.15)  # u and u^2 - 1
    assert np.std(X[:, 6] - 0.5 * X[:, 2] - y) == pytest.approx(1, rel=0.04)
    assert np.std(X2[:, 6] - 4 * X2[:, 2] - np.tanh(y2)) == pytest.approx(1, rel=0.04)


def test_measures_are_zero_at_the_truth_and_see_what_they_name():
    rotation = draw("irm-fos", rows=50).scramble
    truth = np.append(np.ones(5), np.zeros(5))
    found = Draw([], [(np.eye(10), truth)], truth, rotation)
    assert distance(LinearPredictor(rotation.T @ truth, 0.0), found) == pytest.approx(0, abs=1e-20)
    off = LinearPredictor(rotation.T @ np.append(np.full(5, 1.5), np.full(5, 2.0)), 0.0)
    assert (causal(off, found), non_causal(off, found)) == pytest.approx((0.25, 4.0))
    assert distance(off, found) == pytest.approx(5 * 0.25 + 5 * 4)
    assert unseen(LinearPredictor(np.zeros(10), 0.5), found) == pytest.approx(0.25)
    labelled = Draw([], [(np.array([[1.0], [2.0], [-1.0]]), np.array([1.0, -1.0, -1.0]))], np.ones(1), np.eye(1))
    assert wrong_class(LinearPredictor(np.ones(1), 0.0), labelled) == pytest.approx(1 / 3)
