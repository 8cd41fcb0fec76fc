"""Laws against closed forms, SciPy and Monte Carlo; laws that every run draws."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import gyrostat as gs
from checks import refuses
from gyrostat.environments import Law, RandomLaw
from gyrostat.environments.laws import Environment

FAMILY = 1e-3
S = np.array([[1.0, 0.5], [0.5, 2.0]])
R = np.array([[1.0, 0.4], [0.0, 0.8]])


def draws(law: Law, n: int) -> Environment:
    """Many environments of a law, as arrays."""
    return jax.tree.map(np.asarray, jax.jit(jax.vmap(law.environment))(jax.random.split(jax.random.key(7), n)))


class Arcsine(Law):
    """A law as the page on laws writes it."""

    rank = 1

    def draw(self, key):
        return jnp.cos(jax.random.uniform(key, maxval=np.pi))

    def nodes(self):
        return np.cos((np.arange(100) + 0.5) * np.pi / 100)[:, None, None], np.full(100, 0.01)


SAMPLER = gs.laws.Sampler(lambda key: 1 + 2 * jax.random.normal(key, (2,), dtype=float), rank=2)
SHARED, INDEPENDENT = ({"mean": 0.5, "spread": 3.0, "rank": 2, "independent": each} for each in (False, True))
FINITE = gs.Finite([S, -2 * S, np.eye(2)], [0.5, 0.2, 0.3])
LAWS = {
    "two-point": gs.TwoPoint(**SHARED),
    "two-point, independent": gs.TwoPoint(**INDEPENDENT),
    "finite": FINITE,
    "uniform": gs.Uniform(**SHARED),
    "uniform, independent": gs.Uniform(**INDEPENDENT),
    "gaussian": gs.Gaussian(**SHARED),
    "gaussian, independent": gs.Gaussian(**INDEPENDENT),
    "sampler": SAMPLER,
    "of one's own": Arcsine(),
    "finite in a basis": FINITE.in_basis(R),
    "uniform in a basis": gs.Uniform(**INDEPENDENT).in_basis(R),
}


@pytest.mark.parametrize("name", LAWS)
def test_moments_are_those_of_the_draws(name, x64):
    law, n = LAWS[name], 40_000
    index, sigma = draws(law, n)
    assert (index == -1).all() == (not law.is_finite)
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
        # Five standard errors, over some dozen moments per law; the sampler's own moments are of 2^16 other draws.
        error = samples.std(axis=0) * np.sqrt(1 / n + (2**-16 if law is SAMPLER else 0))
        assert (np.abs(samples.mean(axis=0) - moment) <= 5 * error + 1e-12).all()


def test_closed_forms_of_the_laws(x64):
    two, uniform = gs.TwoPoint(mean=1.0, spread=6.0), gs.Uniform(mean=1.0, spread=3.0, rank=2)
    assert (two.bound, two.second_moment, two.variance.item(), float(two.scatter)) == (7.0, 37.0, 36.0, 36.0)
    assert uniform.bound == 4.0 and float(uniform.scatter) == pytest.approx(6.0, rel=1e-12)
    assert uniform.expectation(lambda x: x**4)[0] == pytest.approx((4.0**5 + 2.0**5) / 5 / 6, rel=1e-12)
    normal = gs.Gaussian(mean=0.0, spread=2.0)
    assert normal.expectation(lambda x: x**6)[0] == pytest.approx(15 * 64, rel=1e-10)
    assert normal.bound == normal.in_basis(np.eye(1)).bound == np.inf and gs.Gaussian(-1.0, 0.0).bound == 1.0
    assert (gs.laws.Absent().rank, gs.laws.Absent().bound) == (0, 0.0)
    assert gs.Finite([S, np.eye(2)]).off_diagonal == 0.5


def test_numbers_diagonals_and_matrices_are_sigmas(x64):
    np.testing.assert_array_equal(gs.Finite([2.0, 3.0], rank=2).values, [2 * np.eye(2), 3 * np.eye(2)])
    np.testing.assert_array_equal(gs.Finite([[2.0, 3.0]]).values, [np.diag([2.0, 3.0])])
    key = jax.random.key(0)
    for one in (1.0, np.ones(2), np.eye(2)):
        law = gs.laws.Sampler(lambda key, one=one: jax.random.normal(key) * one, rank=2)
        np.testing.assert_array_equal(law.environment(key).sigma, jax.random.normal(key) * np.eye(2))


def test_a_law_of_version_02_draws_environments_itself():
    class Old(Arcsine):
        def draw(self, key):
            return Environment(jnp.asarray(-1), super().draw(key)[None, None])

    key = jax.random.key(3)
    assert Old().environment(key).sigma == Arcsine().environment(key).sigma


# --- functions that do not use their key --------------------------------------------------------------------------------------

RNG = np.random.default_rng(0)


@pytest.mark.parametrize(
    "function",
    [
        lambda key: 1 + 6 * RNG.choice([-1.0, 1.0]),  # frozen when it is traced
        lambda key: 7.0,
        lambda key: jnp.where(jax.random.key(3) == jax.random.key(3), 1.0, 2.0),
        lambda key: 0 * len(jax.random.split(key)) + jnp.ones(()),  # draws, and leaves the draw out
    ],
)
def test_a_sampler_must_use_its_key(function):
    refuses(lambda: gs.laws.Sampler(function), "function does not use its key", "jax.random")


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
    assert gs.laws.Sampler(function).nodes()[0].shape == (2**16, 1, 1)


# --- laws that every run draws ------------------------------------------------------------------------------------------------


class RandomSites(RandomLaw):
    """Four sites with strengths and weights of their own in every run."""

    def draw_law(self, key):
        one, two = jax.random.split(key)
        return gs.Finite(1 + 2 * jax.random.normal(one, (4,)), jax.random.dirichlet(two, jnp.ones(4)))


class RandomMean(RandomLaw):
    """A continuous law with a mean of its own in every run."""

    def draw_law(self, key):
        return gs.Uniform(jax.random.normal(key), 0.5)


BASIS = np.eye(6, 1), 2 * np.eye(6, 1, k=-1)
RECIPES = {
    "random": lambda law: gs.RandomEnvironments(6, law=law),
    "rectangular": lambda law: gs.environments.RandomRectangular(6, 5, law=law),
    "given": lambda law: gs.Environments(BASIS[0], BASIS[1] / 2, law),
    "vectors": lambda law: gs.VectorEnvironments([1.0, 0.0, 0.0], [2], law),
    "features": lambda law: gs.environments.FeatureEnvironments(6, 1, law),
    "given features": lambda law: gs.Environments.from_features(*BASIS, law),
}


@pytest.mark.parametrize("kind", RECIPES)
@pytest.mark.parametrize("law", [RandomSites(), RandomMean()], ids=str)
def test_every_seed_has_a_law_of_its_own_and_the_same_seed_the_same(kind, law, x64):
    recipe = RECIPES[kind](law)
    one, same, other = (recipe.draw(jax.random.key(seed)).law for seed in (1, 1, 2))
    assert not isinstance(one, RandomLaw) and one.is_finite == law.is_finite and one.rank == law.rank
    assert one.mean == same.mean != other.mean
    if law.is_finite:  # the weights are those of the run, too
        assert law.count == 4 and not np.allclose(one.weights, other.weights)
        assert float(one.weights.sum()) == pytest.approx(1.0)


def test_a_run_sees_the_law_of_its_seed():
    eta, alpha = 0.1, 1e-3
    strengths = gs.diagnostics.Diagnostic("strengths", lambda view: view.environments.law.values.ravel(), ("site",))
    # U = alpha I becomes alpha (I + eta (A_e - alpha^2 I)), which tells the strength s_e of the environment of the step.
    seen = gs.diagnostics.Diagnostic("seen", lambda view: (view.params[0][1, 1] / alpha - 1) / eta + alpha**2)
    problem = gs.Problem(RECIPES["given"](RandomSites()), gs.Identity())
    algorithm = gs.HeteroSGD(eta, init_scale=alpha)
    options = {"num_steps": 1, "seed": 5, "record": [strengths, seen], "record_at": 2}
    runs, again = gs.run(algorithm, problem, seeds=6, **options), gs.run(algorithm, problem, seeds=[4], **options)
    sites = runs.strengths.values
    assert np.unique(sites[:, 0]).size == 24 and (sites[:, 0] == sites[:, 1]).all()
    assert np.abs(sites[:, 1] - runs.seen.values[:, 1:]).min(axis=1).max() < 1e-9
    np.testing.assert_array_equal(again.strengths[0], runs.strengths[4])


SITES = gs.Problem(gs.RandomEnvironments(12, law=RandomSites()), gs.FreshGaussian(4000))


def test_theory_refuses_a_law_without_moments():
    law = RandomSites()
    refuses(lambda: gs.theory.predict(gs.HeteroSGD(0.05), SITES, num_steps=20), "no predictor covers this run")
    for ask in (
        lambda: gs.theory.ours.lyapunov_exponent(law, 0.05),
        lambda: gs.theory.ours.surrogate(law, 0.05, init_scale=1e-3, num_steps=20),
        lambda: gs.theory.assess(gs.theory.Setting(law), isometry_draws=0),
    ):
        refuses(ask, "RandomSites has no", "every run draws another law")


class Frozen(RandomLaw):
    """The same law in every run."""

    def draw_law(self, key):
        return gs.Finite(RNG.standard_normal(3))


class Unweighted(RandomLaw):
    """Weights that do not sum to one."""

    def draw_law(self, key):
        return gs.Finite([1.0, 2.0], jax.random.uniform(key, (2,)))


class NoLaw(RandomLaw):
    """Strengths without a law around them."""

    def draw_law(self, key):
        return jax.random.normal(key, (3,))


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (Frozen, ["draw_law does not use its key", "jax.random"]),
        (Unweighted, ["weights", "sum to one"]),
        (NoLaw, ["NoLaw.draw_law", "returns a Law"]),
        (lambda: gs.run(gs.HeteroSGD(0.05, order="cyclic"), SITES, num_steps=2), ["weights differ"]),
        (lambda: RandomSites().environment(jax.random.key(0)), ["no environments of its own", "draw_law"]),
    ],
)
def test_random_laws_that_are_refused(make, words):
    refuses(make, *words)
