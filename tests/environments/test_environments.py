"""Environments and laws against closed forms, SciPy and Monte Carlo."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

import gyrostat as gs
from checks import refuses
from conftest import orthonormal
from gyrostat.environments import Congruent

N = 4000
FAMILY = 1e-3


def keys(n: int = N, seed: int = 0):
    return jax.random.split(jax.random.key(seed), n)


def drawn(recipe, n: int = N, seed: int = 0):
    """Bases of many draws: invariant (n, d, r1) and spurious (n, d, r2)."""
    pick = jax.jit(jax.vmap(lambda k: (lambda p: (p.invariant_basis, p.spurious_basis))(recipe.draw(k))))
    return tuple(np.asarray(x) for x in pick(keys(n, seed)))


def test_targets_of_given_environments(x64):
    basis = orthonormal(0, 6, 4)
    U, V = basis[:, :2], basis[:, 2:]
    S = np.array([[1.0, 0.3], [0.3, -2.0]])
    environments = gs.Environments(U, V, gs.Finite([S, -S, 3 * S], [0.5, 0.25, 0.25]), values=[2.0, -1.0])
    A_star = U @ np.diag([2.0, -1.0]) @ U.T
    np.testing.assert_allclose(environments.invariant, A_star, atol=1e-14)
    np.testing.assert_allclose(environments.target(S), A_star + V @ S @ V.T, atol=1e-14)
    np.testing.assert_allclose(environments.mean_target, A_star + V @ S @ V.T, atol=1e-14)  # .5 - .25 + .75 = 1
    np.testing.assert_allclose(environments.signal_block(A_star), np.diag([2.0, -1.0]), atol=1e-14)


def test_vector_environments_are_the_diagonal_case(x64):
    law = gs.Finite([[1.0, 2.0], [3.0, -4.0]])
    vectors = gs.VectorEnvironments([0.0, 5.0, 0.0, -1.0], [0, 2], law)
    identity = np.eye(4)
    matrices = gs.Environments(identity[:, [1, 3]], identity[:, [0, 2]], law, values=[5.0, -1.0])
    assert vectors.shape == (4,)
    for e in range(2):
        sigma = law.at(e).sigma
        np.testing.assert_array_equal(np.diag(matrices.target(sigma)), vectors.target(sigma))
    beta = np.arange(4.0)
    wide = matrices.signal_block(np.diag(beta))
    np.testing.assert_array_equal(vectors.signal_block(beta), wide)


@pytest.mark.parametrize(("r1", "r2", "overlap"), [(1, 1, 0.3), (2, 3, 0.1), (3, 2, 0.7), (2, 2, 0.0), (1, 1, 1.0)])
def test_overlap_is_every_principal_cosine(r1, r2, overlap, x64):
    recipe = gs.RandomEnvironments(7, r1, gs.TwoPoint(rank=r2), overlap=overlap)
    U, V = drawn(recipe, 20)
    for u, v in zip(U, V, strict=True):
        np.testing.assert_allclose(u.T @ u, np.eye(r1), atol=1e-12)
        np.testing.assert_allclose(v.T @ v, np.eye(r2), atol=1e-12)
        np.testing.assert_allclose(np.linalg.svd(u.T @ v, compute_uv=False), overlap, atol=1e-12)


def test_placements_are_uniform(x64):
    d = 6
    beta = stats.beta(0.5, (d - 1) / 2)  # the squared coordinate of a uniform unit vector
    random = drawn(gs.RandomEnvironments(d, 1, gs.TwoPoint(), placement="random"))
    orthogonal = drawn(gs.RandomEnvironments(d, 1, gs.TwoPoint(), overlap=0.4), seed=1)
    fixed = orthonormal(3, d, 1)
    p = [
        stats.kstest(np.einsum("ndi,ndi->n", *random) ** 2, beta.cdf).pvalue,
        stats.kstest(random[0][:, 2, 0] ** 2, beta.cdf).pvalue,
        stats.kstest((orthogonal[0][:, :, 0] @ fixed[:, 0]) ** 2, beta.cdf).pvalue,
        stats.kstest((orthogonal[1][:, :, 0] @ fixed[:, 0]) ** 2, beta.cdf).pvalue,
    ]
    assert min(p) > FAMILY / len(p)
    # The check can fail: squared coordinates of a Gaussian vector, not normalised.
    wrong = np.random.default_rng(0).standard_normal(N) ** 2 / d
    assert stats.kstest(wrong, beta.cdf).pvalue < 1e-6


def test_spectrum_of_the_recipe(x64):
    environments = gs.RandomEnvironments(6, 3, values=[2.0, 0.5, -1.0]).draw(jax.random.key(1))
    found = np.sort(np.linalg.eigvalsh(environments.invariant))
    np.testing.assert_allclose(found, [-1, 0, 0, 0, 0.5, 2], atol=1e-12)
    assert environments.spurious_basis.shape == (6, 0)


def test_feature_environments_reproduce_the_sum_of_features(x64):
    d, law = 8, gs.Finite([[1.0, -2.0], [4.0, 0.5]])
    key = jax.random.key(3)
    environments = gs.FeatureEnvironments(d, 3, law).draw(key)
    one, two = jax.random.split(key)
    a, b = (np.asarray(jax.random.normal(k, (d, r), dtype=float)) / np.sqrt(d) for k, r in ((one, 3), (two, 2)))
    np.testing.assert_allclose(environments.invariant, sum(np.outer(x, x) for x in a.T), atol=1e-12)
    for e in range(2):
        wanted = sum(s * np.outer(x, x) for s, x in zip(np.diag(law.values[e]), b.T, strict=True))
        np.testing.assert_allclose(environments.spurious(environments.law.at(e).sigma), wanted, atol=1e-12)
    np.testing.assert_allclose(environments.invariant_basis.T @ environments.invariant_basis, np.eye(3), atol=1e-12)


def test_law_of_features(x64):
    d, r = 5, 2
    recipe = gs.FeatureEnvironments(d, r, gs.TwoPoint())
    trace = np.asarray(jax.jit(jax.vmap(lambda k: recipe.draw(k).invariant_values.sum()))(keys()))
    assert stats.kstest(trace * d, stats.chi2(d * r).cdf).pvalue > FAMILY


# --- laws -----------------------------------------------------------------------------------------

S = np.array([[1.0, 0.5], [0.5, 2.0]])
R = np.array([[1.0, 0.4], [0.0, 0.8]])


def _sampler(key):
    return 1 + 2 * jax.random.normal(key, (2,), dtype=float)


LAWS = {
    "two-point": gs.TwoPoint(mean=0.5, spread=3.0, rank=2),
    "two-point, independent": gs.TwoPoint(mean=0.5, spread=3.0, rank=2, independent=True),
    "finite": gs.Finite([S, -2 * S, np.eye(2)], [0.5, 0.2, 0.3]),
    "uniform": gs.Uniform(mean=0.5, spread=3.0, rank=2),
    "uniform, independent": gs.Uniform(mean=0.5, spread=3.0, rank=2, independent=True),
    "gaussian": gs.Gaussian(mean=0.5, spread=3.0, rank=2),
    "gaussian, independent": gs.Gaussian(mean=0.5, spread=3.0, rank=2, independent=True),
    "sampler": gs.Sampler(_sampler, rank=2),
    "congruent": Congruent(gs.Finite([S, -2 * S, np.eye(2)], [0.5, 0.2, 0.3]), R),
    "congruent uniform": Congruent(gs.Uniform(mean=0.5, spread=3.0, rank=2), R),
    "congruent uniform, independent": Congruent(gs.Uniform(mean=0.5, spread=3.0, rank=2, independent=True), R),
}


@pytest.mark.parametrize("name", LAWS)
def test_moments_are_those_of_the_draws(name, x64):
    law, n = LAWS[name], 40_000
    sigma = np.asarray(jax.jit(jax.vmap(lambda k: law.draw(k).sigma))(keys(n, seed=7)))
    np.testing.assert_array_equal(sigma, np.swapaxes(sigma, 1, 2))
    diagonal = np.diagonal(sigma, axis1=1, axis2=2)
    gap = sigma - np.asarray(law.mean)
    pairs = [
        (sigma, law.mean),
        ((diagonal - diagonal.mean(axis=0)) ** 2, law.variance),
        (np.sum(sigma**2, axis=(1, 2)), law.second_moment),
        (np.sum(gap**2, axis=(1, 2)), law.scatter),
        (np.cos(diagonal), law.expectation(np.cos)),
    ]
    for samples, moment in pairs:
        # Five standard errors, over some dozen moments per law; the sampler's own moments are of 2^16 other
        # draws.
        error = samples.std(axis=0) * np.sqrt(1 / n + (2**-16 if name == "sampler" else 0))
        assert (np.abs(samples.mean(axis=0) - moment) <= 5 * error + 1e-12).all()


def test_closed_forms_of_the_laws(x64):
    two = gs.TwoPoint(mean=1.0, spread=6.0)
    assert (two.bound, two.second_moment, two.variance.item(), float(two.scatter)) == (7.0, 37.0, 36.0, 36.0)
    uniform = gs.Uniform(mean=1.0, spread=3.0, rank=2)
    np.testing.assert_allclose(uniform.variance, 3.0, rtol=1e-12)
    assert uniform.bound == 4.0 and float(uniform.scatter) == pytest.approx(6.0, rel=1e-12)
    assert uniform.expectation(lambda x: x**4)[0] == pytest.approx((4.0**5 + 2.0**5) / 5 / 6, rel=1e-12)
    normal = gs.Gaussian(mean=0.0, spread=2.0)
    assert normal.expectation(lambda x: x**6)[0] == pytest.approx(15 * 64, rel=1e-10)
    assert normal.bound == np.inf and gs.Gaussian(mean=-1.0, spread=0.0).bound == 1.0
    assert gs.Absent().rank == 0 and gs.Absent().bound == 0.0
    assert gs.Finite([S, np.eye(2)]).off_diagonal == 0.5
    assert gs.TwoPoint(rank=3, independent=True).count == 8


@pytest.mark.parametrize(
    ("name", "distribution"),
    [
        ("uniform", stats.uniform(-2.5, 6.0)),
        ("gaussian", stats.norm(0.5, 3.0)),
        ("sampler", stats.norm(1.0, 2.0)),
    ],
)
def test_continuous_laws_have_their_distribution(name, distribution, x64):
    law = LAWS[name]
    x = np.asarray(jax.jit(jax.vmap(lambda k: law.draw(k).sigma[0, 0]))(keys()))
    assert stats.kstest(x, distribution.cdf).pvalue > FAMILY / 3
    assert int(law.draw(jax.random.key(0)).index) == -1


def test_frequencies_of_a_finite_law_are_its_weights(x64):
    weights = np.array([0.5, 0.0, 0.2, 0.3])
    law = gs.Finite([1.0, 2.0, 3.0, 4.0], weights)
    index = np.asarray(jax.jit(jax.vmap(lambda k: law.draw(k).index))(keys(20_000)))
    counts = np.bincount(index, minlength=4)
    assert counts[1] == 0
    assert stats.chisquare(counts[weights > 0], 20_000 * weights[weights > 0]).pvalue > FAMILY
    assert stats.chisquare(counts[weights > 0], np.full(3, 20_000 / 3)).pvalue < 1e-6  # equal weights are refuted


def test_shapes_that_a_finite_law_takes():
    np.testing.assert_array_equal(gs.Finite([2.0, 3.0], rank=2).values, [2 * np.eye(2), 3 * np.eye(2)])
    np.testing.assert_array_equal(gs.Finite([[2.0, 3.0]]).values, [np.diag([2.0, 3.0])])
    np.testing.assert_array_equal(gs.Finite([S]).values, [S])


def test_sampler_takes_numbers_diagonals_and_matrices(x64):
    z = jax.random.normal(jax.random.key(0))
    for shape in ((), (2,), (2, 2)):
        one = np.eye(2) if shape == (2, 2) else np.ones(shape)
        law = gs.Sampler(lambda k, one=one: jax.random.normal(k) * one, rank=2)
        np.testing.assert_array_equal(law.draw(jax.random.key(0)).sigma, z * np.eye(2))


# --- samplers that are not random -------------------------------------------------------------------

RNG = np.random.default_rng(0)


@pytest.mark.parametrize(
    "function",
    [
        lambda key: 1 + 6 * RNG.choice([-1.0, 1.0]),  # frozen when it is traced
        lambda key: 7.0,
        lambda key: jnp.ones(()),
        lambda key: jnp.where(jax.random.key(3) == jax.random.key(3), 1.0, 2.0),
    ],
)
def test_a_sampler_must_use_its_key(function):
    refuses(lambda: gs.Sampler(function), "function does not use its key", "jax.random")


@pytest.mark.parametrize(
    "function",
    [
        lambda key: jax.random.normal(key) + RNG.normal(),
        lambda key: jax.random.normal(key) * jnp.asarray(RNG.choice([-1.0, 1.0])),
    ],
)
def test_a_sampler_must_not_draw_from_elsewhere_as_well(function):
    refuses(lambda: gs.Sampler(function), "do not come from its key")


@pytest.mark.parametrize(
    "function",
    [
        lambda key: jnp.where(jax.random.uniform(key) < 1e-9, 100.0, 1.0),  # nearly constant is random all the same
        lambda key: jax.lax.cond(jax.random.bernoulli(key), lambda: 1.0, lambda: 2.0),
        lambda key: jax.jit(jax.random.normal)(key),
        lambda key: jax.random.choice(key, np.array([-5.0, 7.0])),
    ],
)
def test_random_samplers_are_taken(function):
    law = gs.Sampler(function)
    assert law.nodes()[0].shape == (2**16, 1, 1)
