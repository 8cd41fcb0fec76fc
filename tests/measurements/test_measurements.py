"""Measurements: exact answers where nothing is random, means of batches of given rows, responses without a known truth."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import gyrostat as gs
import reference
from checks import refuses
from conftest import given_environments
from gyrostat.measurements.base import Demand, Scene
from gyrostat.models.spaces import SymmetricMatrices

LAW = gs.Finite([-1.0, 2.0, 4.0], [0.5, 0.3, 0.2])


def scene_of(environments) -> Scene:
    d = len(environments.invariant)
    return Scene(environments, SymmetricMatrices(d), jnp.asarray(reference.gaussian(np.random.default_rng(0), (d, d))))


def test_identity_is_the_residual_and_its_square(x64):
    environments = given_environments(4, LAW)
    scene = scene_of(environments)
    targets = [np.asarray(environments.target(sigma)) for sigma in LAW.values]
    one, mixed = gs.Identity().sense((), None, scene, LAW.at(1)), gs.Identity().mix((), None, scene)
    for (reading, _), target in ((one, targets[1]), (mixed, np.tensordot(LAW.weights, targets, axes=1))):
        np.testing.assert_allclose(reading.gradient, scene.product - target, atol=1e-14)
        assert float(reading.residual_square) == pytest.approx(float(np.sum((scene.product - target) ** 2)), rel=1e-13)
        assert np.isnan(reading.response_mean)


def test_zero_residual_without_noise_gives_zero(x64):
    environments = given_environments(3, gs.Finite([2.0]))
    scene = scene_of(environments)._replace(product=jnp.asarray(environments.target(np.full((1, 1), 2.0))))
    fresh, key = gs.FreshGaussian(5), jax.random.key(0)
    for reading, _ in (fresh.sense((), key, scene, environments.law.at(0)), fresh.mix((), key, scene)):
        np.testing.assert_allclose(reading.gradient, np.zeros((3, 3)), atol=1e-14)  # the target is rounded in two ways


@pytest.mark.parametrize(("share", "order"), [(0.0, 2), (1.0, "nuc")])
def test_the_printed_tau_is_a_norm_and_nothing_else_changes(x64, share, order):
    """The readings of Algorithm 4 that the network experiment rejects, for their values and not because of a NaN."""
    from gyrostat.papers.xu2024.thm7_quadratic_network import NormAsMean

    environments = given_environments(3, LAW)
    printed, ours = (
        measurements.sense((), jax.random.key(2), scene_of(environments), LAW.at(0))[0]
        for measurements in (NormAsMean(20, truncation=2.0, share=share), gs.RankOne(20, truncation=2.0))
    )
    norm = np.linalg.norm(np.asarray(environments.target(LAW.values[0])), order)
    assert float(printed.response_mean) == pytest.approx(norm, rel=1e-12) != float(ours.response_mean)
    np.testing.assert_array_equal(printed.gradient, ours.gradient)
    assert float(printed.residual_square) == float(ours.residual_square)


# --- batches of rows ---------------------------------------------------------------------------------------------------------


def is_mean_of(question, wanted: np.ndarray) -> bool:
    """Whether the mean gradient of 20,000 batches is this one, to five standard errors."""
    readings = jax.jit(jax.vmap(lambda key: question(key)[0]))(jax.random.split(jax.random.key(1), 20_000))
    G = np.asarray(readings.gradient)
    return bool((np.abs(G.mean(axis=0) - wanted) < 5 * G.std(axis=0) / np.sqrt(len(G))).all())


def test_batches_of_given_rows(x64):
    rng = np.random.default_rng(8)
    scene = scene_of(given_environments(3, gs.Finite([1.0, 2.0], [0.25, 0.75])))
    at = scene.environments.law.at
    X = rng.standard_normal((10, 3, 3))  # not symmetric: only the symmetric part is seen by symmetric products
    y, label = rng.standard_normal(10), np.array([1, 0, 0, 1, 1, 0, 1, 1, 1, 1])
    data, small = gs.DenseData(X, y, label), gs.DenseData(X, y, label, batch_size=2)
    state = data.init(jax.random.key(0), scene.environments, scene.space, Demand(1, False))
    A, symmetric = np.asarray(scene.product), (X + np.swapaxes(X, 1, 2)) / 2
    exact = [reference.gradient(A, symmetric[label == e], y[label == e]) for e in range(2)]
    for e in range(2):
        reading, _ = data.sense(state, None, scene, at(e))
        np.testing.assert_allclose(reading.gradient, exact[e], rtol=1e-12)
        assert float(reading.response_mean) == pytest.approx(y[label == e].mean(), rel=1e-12)
    assert is_mean_of(lambda key: small.sense(state, key, scene, at(1)), exact[1])
    # The weights of the law, not of the rows.
    assert is_mean_of(lambda key: small.mix(state, key, scene), 0.25 * exact[0] + 0.75 * exact[1])


def test_a_mixture_of_a_design_is_unbiased_for_its_rows(x64):
    scene = scene_of(given_environments(3, gs.Finite([1.0, -2.0])))
    measurements = gs.Dense(4, noise=0.2)
    state = measurements.init(jax.random.key(5), scene.environments, scene.space, Demand(1, True))
    each = [measurements.sense(state, None, scene, scene.environments.law.at(e))[0].gradient for e in range(2)]
    assert is_mean_of(lambda key: measurements.mix(state, key, scene), np.mean(each, axis=0))


# --- data that know nothing of the truth -------------------------------------------------------------------------------------

DATA = gs.DenseData(np.stack([np.eye(4)] * 2), [1.0, 2.0], [0, 1])


def test_given_responses_need_one_truth_and_an_unknown_truth_needs_responses():
    recipe = gs.RandomEnvironments(4, law=gs.TwoPoint())
    refuses(lambda: gs.Problem(recipe, DATA), "DenseData", "another truth for every seed", "Observed")
    refuses(lambda: gs.Problem(gs.Observed((4, 4), 2), gs.FreshGaussian(9)), "FreshGaussian", "Observed", "DenseData")
    gs.Problem(gs.Observed((4, 4), 2), DATA)
