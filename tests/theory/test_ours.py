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
from checks import refuses
from gyrostat.theory.ours import (
    amplification_limit,
    amplified,
    amplified_error_law,
    critical_amplification,
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
    refuses(lambda: effective_step(eta, 1.0), "beta", "below 1")


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


@pytest.mark.parametrize(
    ("values", "alpha", "T", "m"), [([2.5, -3.5], 0.03, 60, 3), ([2.0], 0.8, 3, 1), ([-1.0], 0.7, 3, 1)]
)
def test_the_surrogate_is_its_three_equations_also_with_noise(values, alpha, T, m):
    eta, runs, rng = 0.15, 4000, np.random.default_rng(3)
    r, v, w = np.full(runs, alpha), np.full(runs, alpha), np.zeros(runs)
    for _ in range(T):
        s, q2 = rng.choice(values, runs), v**2 + w**2
        noise = np.hypot(1 - r**2, s - q2) / math.sqrt(2 * m) * rng.standard_normal(runs)
        r, v, w = (
            (1 + eta * (1 - r**2 - w**2)) * r,
            (1 + eta * (s - q2)) * v,
            (1 + eta * (s - q2 - r**2)) * w + eta * noise * r,
        )
    options = {"init_scale": alpha, "num_steps": T, "runs": runs, "seed": 1}
    final = {k: surrogate(gs.Finite(values), eta, num_samples=k, **options) for k in (m, 2 * m)}
    assert ks_2samp(v**2 + w**2, final[m]).pvalue > 1e-3
    assert ks_2samp(v**2 + w**2, final[2 * m]).pvalue < 1e-3  # the noise counts


# --- amplified heterogeneity ---------------------------------------------------------------------------

SIGMAS, WEIGHTS = (
    np.array([[[1.0, 0.5], [0.5, 0.5]], [[-2.0, 0.1], [0.1, 2.0]], [[3.0, 0.0], [0.0, -1.0]]]),
    [0.2, 0.5, 0.3],
)
THREE = gs.Finite(SIGMAS, WEIGHTS)


def amplified_entries(kappa):
    """Growth of the diagonal of ``Sigma + kappa (Sigma - E Sigma)``, by its definition."""
    return np.array([np.diag(S + kappa * (S - np.einsum("n,nij->ij", WEIGHTS, SIGMAS))) for S in SIGMAS])


def test_the_amplified_law_has_the_mean_and_more_of_the_rest():
    law = amplified(THREE, 1.7)
    mean = np.einsum("n,nij->ij", WEIGHTS, SIGMAS)
    np.testing.assert_allclose(law.values - mean, 2.7 * (SIGMAS - mean), atol=1e-12)
    np.testing.assert_allclose(law.weights, WEIGHTS, rtol=1e-12)
    smooth = amplified(gs.Uniform(mean=0.5, spread=3.0), 2.0)
    moments = [smooth.expectation(lambda xi, p=p: xi**p).item() for p in (1, 2)]
    assert moments == pytest.approx([0.5, 0.5**2 + 3**2 * 3.0], rel=1e-9)  # the variance is (1 + kappa)^2 spread^2 / 3


def test_the_amplification_limit_is_the_root_of_the_least_factor():
    eta = 0.04
    root = optimize.brentq(lambda kappa: (1 + eta * amplified_entries(kappa)).min(), 0, 100)
    assert amplification_limit(THREE, eta) == pytest.approx(root, rel=1e-10)
    assert amplification_limit(gs.Finite([2.0]), eta) == math.inf  # nothing to amplify
    assert amplification_limit(gs.Finite([0.5, -0.5]), eta) == pytest.approx(1 / (eta * 0.5) - 1, rel=1e-12)
    assert amplification_limit(gs.TwoPoint(spread=30.0), eta) == 0  # a factor is negative at once


@pytest.mark.parametrize("threshold", [0.1, 0.4])
def test_the_critical_amplification_is_the_root_of_the_exponent(threshold):
    eta, alpha, T = 0.1, 1e-3, 150

    def margin(kappa):
        exponents = np.array(WEIGHTS) @ np.log(1 + eta * amplified_entries(kappa))
        return exponents.max() * T - math.log(math.sqrt(threshold) / alpha)

    root = optimize.brentq(margin, 0, 0.999 * amplification_limit(THREE, eta))
    options = {"init_scale": alpha, "num_steps": T, "threshold": threshold}
    assert critical_amplification(THREE, eta, **options) == pytest.approx(root, rel=1e-7)
    law = gs.TwoPoint(spread=2.0)
    closed = critical_spread(eta, **options) / 2 - 1
    assert critical_amplification(law, eta, **options) == pytest.approx(closed, rel=1e-7)
    assert critical_amplification(gs.TwoPoint(spread=9.0), eta, **options) == 0  # eliminated as it is
    for never in (gs.Finite([2.0]), gs.Finite([0.0, 5.0], [0.01, 0.99])):  # the other one still grows at the limit
        assert critical_amplification(never, eta, **options) == math.inf


# --- the error that is left ------------------------------------------------------------------------------


def test_between_signals_is_an_autoregression_with_random_factors():
    """``E k^2 = eta^2 / (1 - E (1 + eta (xi - 1))^2)``, summed over the r1 r2 entries."""
    eta, sigmas = 0.1, np.array([[2.0, -1.0], [-2.0, 1.5]])
    law = gs.Finite([np.diag(s) for s in sigmas], [0.4, 0.6])
    squares = np.array([0.4, 0.6]) @ (1 + eta * (sigmas - 1)) ** 2
    samples = between_signals(law, eta, rank=3, runs=20_000, seed=2)
    # 10 / eta steps leave a part of exp(-4) of the start; a standard error is 1 % of the mean
    assert samples.mean() == pytest.approx(3 * np.sum(eta**2 / (1 - squares)), rel=0.04)


def test_the_error_across_and_within_the_signal_by_simulating_noisy_descent():
    """``U <- U - eta (U U^T - A_star + s W) U`` with symmetric Gaussian W, from the solution."""
    d, r, eta, s, runs = 7, 2, 0.2, 1e-4, 400
    rng, target = np.random.default_rng(4), np.diag([1.0, 1.0, 0, 0, 0, 0, 0])
    U = np.broadcast_to(target, (runs, d, d))
    for _ in range(60):
        W = rng.standard_normal((runs, d, d)) / 2
        W = W + W.transpose(0, 2, 1)  # N(0, 1/2) off the diagonal, and N(0, 1) on it
        U = U - eta * (U @ U.transpose(0, 2, 1) - target + s * W) @ U
    distance = np.linalg.norm(U @ U.transpose(0, 2, 1) - target, axis=(1, 2))
    law, m = gs.Finite([3.0, -3.0]), (3 / s) ** 2  # of size 3, so that each step kicks by s
    no_spurious_part = law_without_the_third_term(law, dimension=d + 1, rank=r, eta=eta, m=m)
    assert math.sqrt(np.mean(distance**2)) == pytest.approx(no_spurious_part, rel=0.02)


def law_without_the_third_term(law, *, dimension, rank, eta, m):
    return error_law(law, dimension=dimension, rank=rank, step_size=eta, num_samples=m, runs=0)


@pytest.mark.parametrize("d", [3, 50])
def test_the_error_counts_itself(d):
    """``error^2 = (S + error^2) b / m`` is solved by ``S b / (m - b)``, and has no solution for m below b."""
    eta, r = 0.3, 3
    b = eta / (2 - eta) * max(d - r - 1, 0) * r + eta / (1 - eta) * r * (r + 1) / 2
    law = gs.TwoPoint(spread=2.0)  # S = 1 + 4
    for m in (1.5 * b, 40 * b):
        error = law_without_the_third_term(law, dimension=d, rank=r, eta=eta, m=m)
        assert error == pytest.approx(math.sqrt(5 * b / (m - b)), rel=1e-12)
    assert law_without_the_third_term(law, dimension=d, rank=r, eta=eta, m=0.9 * b) == math.inf
    assert law_without_the_third_term(law, dimension=d, rank=r, eta=1.0, m=1e9) == math.inf  # 1 / (1 - eta)


def test_the_amplified_error_law_is_that_of_weighted_batches():
    """c_ej is the weight of the batch of j in a step on e: 1 + kappa (1 - w_e) for j = e, -kappa w_j for the others."""
    kappa, eta, d, r, m, w = 1.5, 0.1, 30, 2, 4000, np.array(WEIGHTS)
    c = np.array([[(1 + kappa * (1 - w[e])) if j == e else -kappa * w[j] for j in range(3)] for e in range(3)])
    S = sum(w[e] * c[e, j] ** 2 * np.sum(SIGMAS[j] ** 2) for e in range(3) for j in range(3))
    C = sum(w[e] * c[e, j] ** 2 for e in range(3) for j in range(3))
    b = eta / (2 - eta) * (d - r - 2) * r + eta / (1 - eta) * r * (r + 1) / 2
    options = {"dimension": d, "rank": r, "step_size": eta}
    error = amplified_error_law(THREE, kappa, **options, num_samples=m, runs=0)
    assert error == pytest.approx(math.sqrt(S * b / m / (1 - C * b / m)), rel=1e-12)
    assert amplified_error_law(THREE, kappa, **options, num_samples=0.9 * C * b, runs=0) == math.inf
    more = amplified_error_law(THREE, kappa, **options, num_samples=m)
    X = between_signals(amplified(THREE, kappa), eta, rank=r)
    assert more == pytest.approx(math.sqrt(S * (b + np.median(X)) / m / (1 - C * (b + np.median(X)) / m)), rel=1e-9)


def test_error_law_predicts_a_run_it_was_not_made_for():
    law = gs.Uniform(mean=0.5, spread=15.0)
    problem = gs.Problem(gs.RandomEnvironments(25, rank=2, law=law), gs.FreshGaussian(50_000))
    ds = gs.run(gs.HeteroSGD(0.06), problem, num_steps=250, seeds=64, record=["distance"], record_at=1)
    predicted = error_law(law, dimension=25, rank=2, step_size=0.06, num_samples=50_000)
    # the law neglects second-order terms of a few percent; 64 medians add about as much
    assert float(ds.distance.median()) == pytest.approx(predicted, rel=0.1)
