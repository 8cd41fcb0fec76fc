"""Measurements: means, exact answers where nothing is random, rank-one samples against Stein's formula."""

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
from gyrostat.models.spaces import SymmetricMatrices, Vectors

LAW = gs.Finite([-1.0, 2.0, 4.0], [0.5, 0.3, 0.2])


def scene_of(environments, seed: int = 0) -> Scene:
    A = reference.gaussian(np.random.default_rng(seed), environments.shape)
    return Scene(environments, Vectors(len(A)) if A.ndim == 1 else SymmetricMatrices(len(A)), jnp.asarray(A))


def mean_reading(question, n: int):
    """Mean and standard error of n independent readings: gradient, and response mean."""
    readings = jax.jit(jax.vmap(lambda k: question(k)[0]))(jax.random.split(jax.random.key(1), n))
    G, y = np.asarray(readings.gradient), np.asarray(readings.response_mean)
    return (G.mean(axis=0), G.std(axis=0) / np.sqrt(n)), (y.mean(), y.std() / np.sqrt(n))


def sensed(measurements, scene, law):
    """``measurements.sense`` as one program: of a state, a key and the number of an environment."""
    return jax.jit(lambda state, key, index: measurements.sense(state, key, scene, law.at(index)))


def test_identity_is_the_residual(x64):
    environments = given_environments(4, LAW)
    scene = scene_of(environments)
    reading, state = gs.Identity().sense((), None, scene, LAW.at(1))
    np.testing.assert_allclose(reading.gradient, scene.product - environments.target(LAW.values[1]), atol=1e-15)
    assert state == () and np.isnan(reading.response_mean)
    assert float(reading.residual_square) == pytest.approx(np.sum(np.asarray(reading.gradient) ** 2), rel=1e-13)
    reading, _ = gs.Identity().mix((), None, scene)
    assert float(reading.residual_square) == pytest.approx(np.sum(np.asarray(reading.gradient) ** 2), rel=1e-13)
    mean = sum(w * np.asarray(environments.target(s)) for w, s in zip(LAW.weights, LAW.values, strict=True))
    np.testing.assert_allclose(reading.gradient, scene.product - mean, atol=1e-14)


def test_zero_residual_without_noise_gives_zero(x64):
    environments = given_environments(3, gs.Finite([2.0]))
    scene = scene_of(environments)._replace(product=jnp.asarray(environments.target(np.full((1, 1), 2.0))))
    fresh = gs.FreshGaussian(5)
    one, mixed = jax.jit(lambda k: (fresh.sense((), k, scene, environments.law.at(0)), fresh.mix((), k, scene)))(
        jax.random.key(0)
    )
    for reading, _ in (one, mixed):
        np.testing.assert_allclose(reading.gradient, np.zeros((3, 3)), atol=1e-14)  # the target is rounded in two ways


@pytest.mark.parametrize(("share", "order"), [(0.0, 2), (1.0, "nuc")])
def test_the_printed_tau_is_a_norm_and_nothing_else_changes(x64, share, order):
    """The readings of Algorithm 4 that the network experiment rejects, for their values and not because of a NaN."""
    from gyrostat.papers.xu2024.thm7_quadratic_network import NormAsMean

    environments = given_environments(3, LAW)
    scene, key = scene_of(environments), jax.random.key(2)
    printed, _ = sensed(NormAsMean(20, truncation=2.0, share=share), scene, LAW)((), key, 0)
    ours, _ = sensed(gs.RankOne(20, truncation=2.0), scene, LAW)((), key, 0)
    norm = np.linalg.norm(np.asarray(environments.target(LAW.values[0])), order)
    assert float(printed.response_mean) == pytest.approx(norm, rel=1e-12) != float(ours.response_mean)
    np.testing.assert_array_equal(printed.gradient, ours.gradient)
    assert float(printed.residual_square) == float(ours.residual_square)


def test_given_data_batches(x64):
    rng = np.random.default_rng(8)
    environments = given_environments(3, gs.Finite([1.0, 2.0], [0.25, 0.75]))
    scene = scene_of(environments)
    X = rng.standard_normal((10, 3, 3))  # not symmetric: only the symmetric part is seen by symmetric products
    y, label = rng.standard_normal(10), np.array([1, 0, 0, 1, 1, 0, 1, 1, 1, 1])
    data = gs.DenseData(X, y, label)
    state = data.init(jax.random.key(0), environments, scene.space, Demand(1, False))
    A = np.asarray(scene.product)
    symmetric = (X + np.swapaxes(X, 1, 2)) / 2
    exact = [reference.gradient(A, symmetric[label == e], y[label == e]) for e in range(2)]
    for e in range(2):
        reading, _ = data.sense(state, jax.random.key(0), scene, environments.law.at(e))
        np.testing.assert_allclose(reading.gradient, exact[e], rtol=1e-12)
        assert float(reading.response_mean) == pytest.approx(y[label == e].mean(), rel=1e-12)
    small = gs.DenseData(X, y, label, batch_size=2)
    (mean, error), _ = mean_reading(lambda k: small.sense(state, k, scene, environments.law.at(1)), 20_000)
    assert (np.abs(mean - exact[1]) < 5 * error).all()
    (mean, error), _ = mean_reading(lambda k: small.mix(state, k, scene), 20_000)
    assert (np.abs(mean - 0.25 * exact[0] - 0.75 * exact[1]) < 5 * error).all()  # weights of the law, not of the rows


def test_dense_mixture_of_fixed_rows_is_unbiased_for_its_rows(x64):
    environments = given_environments(3, gs.Finite([1.0, -2.0]))
    scene = scene_of(environments)
    measurements = gs.Dense(4, noise=0.2)
    state = measurements.init(jax.random.key(5), environments, scene.space, Demand(1, True))
    wanted = np.mean(
        [measurements.sense(state, None, scene, environments.law.at(e))[0].gradient for e in range(2)], axis=0
    )
    (mean, error), _ = mean_reading(lambda k: measurements.mix(state, k, scene), 20_000)
    assert (np.abs(mean - wanted) < 5 * error).all()


def test_environments_of_a_fixed_design_are_independent(x64):
    """Each environment has its own design: the same query gets different answers, and repeats of it the same answer."""
    environments = given_environments(3, gs.Finite([1.0, 1.0]))
    scene = scene_of(environments)
    measurements = gs.FixedGaussian(6, noise=0.3)
    state = measurements.init(jax.random.key(0), environments, scene.space, Demand(8, False))
    answers, ask = [], sensed(measurements, scene, environments.law)
    for t, e in enumerate([0, 1, 0, 1]):
        reading, state = ask(state, jax.random.key(t), e)
        answers.append(np.asarray(reading.gradient))
    np.testing.assert_allclose(answers[2], answers[0], rtol=1e-12)
    np.testing.assert_allclose(answers[3], answers[1], rtol=1e-12)
    assert not np.allclose(answers[0], answers[1])
    assert np.asarray(state.known).tolist() == [1, 1]


# --- data that know nothing of the truth ------------------------------------------------------------

DATA = gs.DenseData(np.stack([np.eye(4)] * 2), [1.0, 2.0], [0, 1])


@pytest.mark.parametrize(
    "recipe", [gs.RandomEnvironments(4, law=gs.TwoPoint()), gs.environments.FeatureEnvironments(4, 1, gs.TwoPoint())]
)
def test_given_responses_are_refused_with_a_random_truth(recipe):
    refuses(lambda: gs.Problem(recipe, DATA), "DenseData", "another truth for every seed", "Observed")


def test_an_unknown_truth_cannot_be_measured():
    refuses(lambda: gs.Problem(gs.Observed((4, 4), 2), gs.FreshGaussian(9)), "FreshGaussian", "Observed", "DenseData")
    gs.Problem(gs.Observed((4, 4), 2), DATA)
