"""Amplified heterogeneity: the step G_e + kappa (G_e - mean of G), and its theory. test_conformance.py has its steps."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from test_batches import Which

import gyrostat as gs
from conftest import Watch, given_environments
from gyrostat import theory
from gyrostat.measurements.base import Scene
from gyrostat.models.spaces import SymmetricMatrices

KAPPA, ETA, ALPHA = 1.5, 0.02, 0.3
LAW = gs.Finite([-1.0, 3.0, 0.5])


def test_the_gradient_is_the_environment_s_plus_its_amplified_difference_from_the_weighted_mean(x64):
    law = gs.Finite([1.0, 2.0, 3.0], [0.5, 0.2, 0.3])
    scene = Scene(given_environments(4, law), SymmetricMatrices(4), jnp.eye(4))
    batches, plain = gs.batches.OneEnvironment(amplify=KAPPA), gs.batches.OneEnvironment()
    mean = 0.2 + 2 * 0.3

    @jax.jit
    def read(key):
        one = plain.read(Which(), 0, jnp.asarray(0), key, key, scene)[0].gradient  # the same one is chosen
        return *batches.read(Which(), jnp.asarray(0), jnp.asarray(0), key, key, scene), one

    for seed in range(10):
        reading, asked, e = read(jax.random.key(seed))
        e = float(e)
        assert float(reading.gradient) == pytest.approx(e + KAPPA * (e - mean), abs=1e-14)
        assert float(reading.residual_square) == e**2 and int(asked) == 3 == batches.queries(law)
    assert plain.queries(law) == 1


@pytest.mark.parametrize(("order", "reduction"), [("iid", "always"), ("shuffled", "never")])
def test_seeing_the_residual_itself_is_living_in_the_amplified_law(order, reduction):
    """Sigma + kappa (Sigma - mean), written out: -1, 3 and .5 have the mean 5/6."""
    written = gs.Finite([s + KAPPA * (s - 2.5 / 3) for s in (-1.0, 3.0, 0.5)])
    watch = Watch()
    options = {"num_steps": 30, "seeds": 3, "record": [watch.diagnostic], "record_at": 31, "reduction": reduction}

    def path(law, amplify):
        problem = gs.Problem(given_environments(6, law), gs.Identity())
        return gs.run(gs.HeteroSGD(ETA, init_scale=ALPHA, order=order, amplify=amplify), problem, **options).params

    np.testing.assert_allclose(path(LAW, KAPPA), path(written, None), atol=1e-12)
    np.testing.assert_allclose(path(LAW, 0.0), path(LAW, None), atol=1e-13)


@pytest.mark.parametrize(
    ("law", "amplify", "message"),
    [
        (gs.Uniform(), 1.0, "amplify compares .*Uniform is continuous, .*: use a Finite law"),
        (gs.laws.Absent(), 1.0, "amplify compares environments and the law has one only"),
    ],
)
def test_refused_where_the_mean_over_environments_cannot_be_seen(law, amplify, message):
    basis = np.eye(4)
    environments = gs.Environments(basis[:, :1], basis[:, 1 : 1 + law.rank], law)
    with pytest.raises(gs.GyrostatError, match=message):
        gs.run(gs.HeteroSGD(ETA, amplify=amplify), gs.Problem(environments, gs.FreshGaussian(10)), num_steps=2)


def test_bad_values_are_refused():
    with pytest.raises(gs.GyrostatError, match=r"amplify must be a finite number of at least 0; got -1"):
        gs.HeteroSGD(ETA, amplify=-1)
    with pytest.raises(gs.GyrostatError, match="pooled=True mixes"):
        gs.QuadraticNetworkSGD(ETA, pooled=True, amplify=1.0)


# --- theory ---------------------------------------------------------------------------------------


def test_two_points_need_the_critical_spread_over_their_own():
    for M, eta, T in ((1.0, 0.05, 200), (0.5, 0.05, 200), (2.0, 0.02, 1000)):
        options = {"init_scale": 1e-3, "num_steps": T}
        expected = theory.ours.critical_spread(eta, **options) / M - 1
        assert theory.ours.critical_amplification(gs.TwoPoint(spread=M), eta, **options) == pytest.approx(
            expected, rel=1e-6
        )
    assert theory.ours.critical_amplification(gs.TwoPoint(spread=9.0), 0.05, init_scale=1e-3, num_steps=200) == 0.0
    nothing = gs.TwoPoint(mean=1.0, spread=0.0)
    assert theory.ours.critical_amplification(nothing, 0.05, init_scale=1e-3, num_steps=2000) == np.inf


@pytest.mark.parametrize("law", [gs.Finite([-0.5, 1.0, 2.0], [0.2, 0.5, 0.3]), gs.Uniform(mean=1.0, spread=1.5)])
def test_amplified_moments(law):
    changed = theory.ours.amplified(law, KAPPA)
    mean = law.expectation(lambda xi: xi)
    np.testing.assert_allclose(changed.expectation(lambda xi: xi), mean, rtol=1e-12)
    np.testing.assert_allclose(changed.variance, (1 + KAPPA) ** 2 * law.variance, rtol=1e-10)
    limit = theory.ours.amplification_limit(law, 0.1)
    lowest = theory.ours.amplified(law, limit).values.min()
    assert 1 + 0.1 * lowest == pytest.approx(0, abs=1e-12)


def recursion(law: gs.Finite, kappa: float, eta: float, steps: int, runs: int, alpha: float) -> np.ndarray:
    """log |q| after the steps q <- (1 + eta (s' - q^2)) q, s' = s + kappa (s - mean), from q = alpha."""
    s, p = law.values[:, 0, 0], law.weights
    drawn = np.random.default_rng(0).choice(s, size=(steps, runs), p=p)
    q = np.full(runs, alpha)
    for strong in drawn + kappa * (drawn - p @ s):
        q *= 1 + eta * (strong - q * q)
    return np.log(np.abs(q))


def test_the_simulated_recursion_changes_its_mind_at_the_critical_amplification():
    """A quarter less heterogeneity than the critical one: most runs learn the direction; a quarter more: most forget it."""
    law = gs.Finite([0.2, 0.9, 2.1], [0.3, 0.4, 0.3])
    options = {"init_scale": 1e-3, "num_steps": 200}
    critical = 1 + theory.ours.critical_amplification(law, 0.05, **options)
    shares = [
        (2 * recursion(law, factor * critical - 1, 0.05, 200, 2000, 1e-3) < np.log(0.1)).mean()
        for factor in (0.5, 0.75, 1.25)
    ]
    assert shares[0] < 0.1 and shares[1] < 0.5 < shares[2] and shares[2] > 0.6


def test_the_error_law_predicts_an_amplified_run_with_unequal_weights():
    law = gs.Finite([-1.0, 2.0, 1.5], [0.5, 0.25, 0.25])
    problem = gs.Problem(gs.RandomEnvironments(25, rank=2, law=law), gs.FreshGaussian(50_000))
    algorithm = gs.HeteroSGD(0.06, amplify=6.0)
    ds = gs.run(algorithm, problem, num_steps=250, seeds=64, record=["distance"], record_at=1)
    setting = {"dimension": 25, "rank": 2, "step_size": 0.06, "num_samples": 50_000}
    predicted = theory.ours.amplified_error_law(law, 6.0, **setting)
    assert theory.ours.amplified_error_law(law, 0.0, **setting) == pytest.approx(
        theory.ours.error_law(law, **setting), rel=1e-12
    )
    # as for the plain law: second-order terms of a few percent, and the median of 64 runs
    assert float(ds.distance.median()) == pytest.approx(predicted, rel=0.1)
