"""Our formulas against closed forms, quadrature, roots, and runs that they were not made for."""

from __future__ import annotations

import itertools
import math

import jax
import numpy as np
import pytest
from scipy import integrate, optimize
from scipy.stats import ks_2samp

import gyrostat as gs
from gyrostat.theory.ours import (
    critical_spread,
    effective_step,
    eliminated_by_lyapunov,
    error_law,
    lyapunov_exponent,
    surrogate,
)
from gyrostat.theory.ours.final_error import between_signals


def test_lyapunov_exponent_of_two_points_is_the_closed_form():
    for eta, M in itertools.product((0.01, 0.05, 0.1), (1.0, 6.0, 9.0)):
        expected = 0.5 * math.log(abs((1 + eta) ** 2 - (eta * M) ** 2))
        assert lyapunov_exponent(gs.TwoPoint(spread=M), eta) == pytest.approx(expected, abs=1e-12)  # rounding only


@pytest.mark.parametrize("spread", [2.0, 9.0])
def test_lyapunov_exponent_of_continuous_laws_is_the_integral(spread):
    eta = 0.05

    def log_factor(s):
        return math.log(abs(1 + eta * s))

    uniform = integrate.quad(log_factor, 1 - spread, 1 + spread)[0] / (2 * spread)
    assert lyapunov_exponent(gs.Uniform(mean=1.0, spread=spread), eta) == pytest.approx(uniform, rel=1e-8)

    def weighted(s):
        return log_factor(s) * math.exp(-0.5 * ((s - 1) / spread) ** 2) / (spread * math.sqrt(2 * math.pi))

    singular = -1 / eta  # log |0|: integrable, but the quadratures must not step on it
    low, high = 1 - 12 * spread, 1 + 12 * spread
    gaussian = integrate.quad(weighted, low, high, points=[singular] if low < singular else None, limit=400)[0]
    # Gauss-Hermite meets the logarithmic singularity, so it is only good to a few parts in a thousand
    assert lyapunov_exponent(gs.Gaussian(mean=1.0, spread=spread), eta) == pytest.approx(gaussian, abs=5e-3)


def test_a_user_s_sampler_agrees_with_the_law_it_samples():
    law = gs.laws.Sampler(lambda key: 1 + 6 * jax.random.rademacher(key, (), dtype=float))
    exact = lyapunov_exponent(gs.TwoPoint(spread=6.0), 0.05)
    # 65,536 draws: three standard errors of log-factors that differ by .59
    assert lyapunov_exponent(law, 0.05) == pytest.approx(exact, abs=3 * 0.3 / 256)


@pytest.mark.parametrize(
    ("eta", "T", "alpha", "mean"), [(0.05, 200, 1e-3, 1.0), (0.02, 500, 1e-4, 0.9), (0.1, 90, 1e-2, 1.5)]
)
def test_critical_spread_is_where_the_lyapunov_rule_changes(eta, T, alpha, mean):
    def margin(M):
        rule = eliminated_by_lyapunov(gs.TwoPoint(mean=mean, spread=M), eta, init_scale=alpha, num_steps=T)
        return rule.value - rule.bound

    root = optimize.brentq(margin, 0.01, 0.99 * (1 + eta * mean) / eta)
    assert critical_spread(eta, init_scale=alpha, num_steps=T, mean=mean) == pytest.approx(root, rel=1e-9)


@pytest.mark.parametrize("beta", [0.0, 0.5, 0.9])
def test_the_effective_step_is_the_growth_with_momentum_for_small_steps(beta):
    """``q_{t+1} = q_t + beta (q_t - q_{t-1}) + eta q_t`` grows by the larger root of ``x^2 - (1 + beta + eta) x + beta``."""
    eta = 1e-6
    root = np.roots([1, -(1 + beta + eta), beta]).max()
    assert root - 1 == pytest.approx(effective_step(eta, beta), rel=1e-4)  # up to a factor 1 + eta / (1 - beta)^2


def test_the_surrogate_predicts_the_full_dynamics_without_noise():
    # Identity measurements, any dimension: the surrogate is then the exact dynamics of r1 = r2 = 1 with U0 = alpha I,
    # and both are two-point chains, so their final values agree as samples of one law
    law, eta, alpha, T = gs.TwoPoint(spread=5.0), 0.05, 1e-2, 120
    problem = gs.Problem(gs.RandomEnvironments(3, law=law), gs.Identity())
    ds = gs.run(
        gs.HeteroSGD(eta, init_scale=alpha), problem, num_steps=T, seeds=1500, seed=5, record=["spurious"], record_at=1
    )
    full = ds.spurious.values[:, -1]
    short = surrogate(law, eta, init_scale=alpha, num_steps=T, runs=1500, seed=9)
    assert ks_2samp(full, short).pvalue > 1e-3
    wrong = surrogate(gs.TwoPoint(spread=5.5), eta, init_scale=alpha, num_steps=T, runs=1500, seed=9)
    assert ks_2samp(full, wrong).pvalue < 1e-3


def test_between_signals_without_randomness_is_an_autoregression():
    samples = between_signals(gs.Finite([0.0]), 0.1, rank=1, runs=20_000, seed=2)
    # k <- .9 k + .1 z has variance .01/(1 - .81); the relative error of 20,000 squares is .01
    assert samples.mean() == pytest.approx(0.01 / 0.19, rel=0.04)


def test_error_law_predicts_a_run_it_was_not_made_for():
    law = gs.Uniform(mean=0.5, spread=15.0)
    problem = gs.Problem(gs.RandomEnvironments(25, rank=2, law=law), gs.FreshGaussian(50_000))
    ds = gs.run(gs.HeteroSGD(0.06), problem, num_steps=250, seeds=64, record=["distance"], record_at=1)
    predicted = error_law(law, dimension=25, rank=2, step_size=0.06, num_samples=50_000)
    # the law neglects second-order terms of a few percent; 64 medians add about as much
    assert float(ds.distance.median()) == pytest.approx(predicted, rel=0.1)
    one, four = (error_law(law, dimension=25, rank=2, step_size=0.06, num_samples=m) for m in (1e8, 4e8))
    assert one / four == pytest.approx(2, rel=1e-4)  # up to the error's own share of the residual
    assert error_law(law, num_samples=1e6, dimension=60, rank=1, step_size=1.5) == math.inf
