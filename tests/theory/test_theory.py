"""Theory as code against closed forms, quadrature, brute force and simulation."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy import integrate, optimize

import gyrostat as gs
from gyrostat import theory
from gyrostat.errors import GyrostatError
from gyrostat.theory.final_error import between_signals


def test_lyapunov_exponent_of_two_points_is_the_closed_form():
    for eta, M in itertools.product((0.01, 0.05, 0.1), (1.0, 6.0, 9.0)):
        expected = 0.5 * math.log(abs((1 + eta) ** 2 - (eta * M) ** 2))
        # an identity: rounding only
        assert theory.lyapunov_exponent(gs.TwoPoint(spread=M), eta) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("spread", [2.0, 9.0])
def test_lyapunov_exponent_of_continuous_laws_is_the_integral(spread):
    eta = 0.05

    def log_factor(s):
        return math.log(abs(1 + eta * s))

    uniform = integrate.quad(log_factor, 1 - spread, 1 + spread)[0] / (2 * spread)
    assert theory.lyapunov_exponent(gs.Uniform(mean=1.0, spread=spread), eta) == pytest.approx(uniform, rel=1e-8)

    def weighted(s):
        return log_factor(s) * math.exp(-0.5 * ((s - 1) / spread) ** 2) / (spread * math.sqrt(2 * math.pi))

    singular = -1 / eta  # log |0|: integrable, but the quadratures must not step on it
    low, high = 1 - 12 * spread, 1 + 12 * spread
    gaussian = integrate.quad(weighted, low, high, points=[singular] if low < singular else None, limit=400)[0]
    # Gauss-Hermite meets the logarithmic singularity, so it is only good to a few parts in a thousand
    assert theory.lyapunov_exponent(gs.Gaussian(mean=1.0, spread=spread), eta) == pytest.approx(gaussian, abs=5e-3)


def test_a_user_s_sampler_agrees_with_the_law_it_samples():
    import jax

    law = gs.Sampler(lambda key: 1 + 6 * jax.random.rademacher(key, (), dtype=float))
    exact = theory.lyapunov_exponent(gs.TwoPoint(spread=6.0), 0.05)
    # 65,536 draws: three standard errors of log-factors that differ by .59
    assert theory.lyapunov_exponent(law, 0.05) == pytest.approx(exact, abs=3 * 0.3 / 256)


def test_critical_spread_is_where_the_lyapunov_rule_changes():
    for eta, T, alpha, mean in ((0.05, 200, 1e-3, 1.0), (0.02, 500, 1e-4, 0.9), (0.1, 90, 1e-2, 1.5)):

        def margin(M, eta=eta, T=T, alpha=alpha, mean=mean):
            rule = theory.eliminated_by_lyapunov(gs.TwoPoint(mean=mean, spread=M), eta, init_scale=alpha, num_steps=T)
            return rule.value - rule.bound

        root = optimize.brentq(margin, 0.01, 0.99 * (1 + eta * mean) / eta)
        predicted = theory.critical_spread(eta, init_scale=alpha, num_steps=T, mean=mean)
        assert predicted == pytest.approx(root, rel=1e-9)


@pytest.mark.parametrize("power", [1.0, 0.1, 2 / 3])
def test_exact_moments_by_enumerating_all_sequences(power):
    eta, M, T = 0.05, 7.0, 9
    found = theory.exact_moments(gs.TwoPoint(spread=M), eta, power, T)
    factors = np.abs([1 + eta * (1 - M), 1 + eta * (1 + M)])
    for t in range(T + 1):
        products = [math.prod(choice) ** power for choice in itertools.product(factors, repeat=t)]
        assert found[t] == pytest.approx(np.mean(products), rel=1e-12)


def test_moment_growth_is_one_step_of_the_exact_moments():
    law = gs.TwoPoint(spread=7.0)
    assert theory.moment_growth(law, 0.05, 0.1) == pytest.approx(theory.exact_moments(law, 0.05, 0.1, 1)[1], rel=1e-12)


def test_the_surrogate_predicts_the_full_dynamics_without_noise():
    # Identity measurements, any dimension: the surrogate is then the exact dynamics of r1 = r2 = 1 with U0 = alpha I,
    # and both are two-point chains, so their final values agree as samples of one law
    law, eta, alpha, T = gs.TwoPoint(spread=5.0), 0.05, 1e-2, 120
    problem = gs.Problem(gs.RandomEnvironments(3, law=law), gs.Identity())
    ds = gs.run(
        gs.HeteroSGD(eta, init_scale=alpha), problem, num_steps=T, seeds=1500, seed=5, record=["spurious"], record_at=1
    )
    full = ds.spurious.values[:, -1]
    short = theory.surrogate(law, eta, init_scale=alpha, num_steps=T, runs=1500, seed=9)
    from scipy.stats import ks_2samp

    assert ks_2samp(full, short).pvalue > 1e-3
    wrong = theory.surrogate(gs.TwoPoint(spread=5.5), eta, init_scale=alpha, num_steps=T, runs=1500, seed=9)
    assert ks_2samp(full, wrong).pvalue < 1e-3


def test_calibration_is_the_logistic_curve_for_small_steps():
    eta, alpha, T = 1e-4, 1e-2, 60_000
    R = theory.calibration(eta, alpha, T)
    grown = alpha**2 * np.exp(2 * eta * np.arange(T + 1))
    # Euler's method: the error is of order eta
    np.testing.assert_allclose(R, np.sqrt(grown / (1 - alpha**2 + grown)), rtol=5 * eta * math.log(1 / alpha))


def test_envelope_ends_with_phase_one_and_brackets_the_middle():
    middle, upper, lower = theory.envelope(0.05, 1e-3)
    assert 1 / 3 - 0.05 < middle[-1] < 1 / 3 and middle[-2] <= 1 / 3 - 0.05
    assert (lower[1:] < middle[1:]).all() and (middle[1:] < upper[1:]).all()
    np.testing.assert_allclose(middle, theory.calibration(0.05, 1e-3, len(middle) - 1), rtol=1e-14)


def test_controller_without_randomness_is_a_geometric_sequence():
    line = np.full(21, 0.01)
    found = theory.controller(gs.Finite([3.0]), 0.1, line=line, violation=0.01, runs=3)
    np.testing.assert_allclose(found.peak, 1.5**20, rtol=1e-12)
    assert found.barrier == pytest.approx(1000.0)
    shrinking = theory.controller(gs.Finite([-5.0]), 0.1, line=line, violation=0.01, runs=3)
    np.testing.assert_allclose(shrinking.peak, 1.0)


def test_heterogeneity_and_the_literal_window():
    assert theory.heterogeneity(gs.TwoPoint(mean=-2.0, spread=6.0)) == (8.0, 12.0)

    def width(M):
        low, high = theory.step_window(gs.TwoPoint(spread=M))
        return high - low

    # M^2/2 = 1536 (1 + M)
    assert optimize.brentq(width, 100, 1e5) == pytest.approx(1536 + math.sqrt(1536**2 + 2 * 1536), rel=1e-6)


def test_step_conditions_hold_inside_the_window_and_only_there():
    law = gs.TwoPoint(spread=4000.0)
    low, high = theory.step_window(law)
    assert all(c.holds for c in theory.step_conditions(law, math.sqrt(low * high)))
    assert not any(c.holds for c in theory.step_conditions(gs.TwoPoint(spread=6.0), 0.05))


def test_supermartingale_region_at_the_paper_s_step_size():
    holds = [M for M in np.arange(1.0, 23.0, 0.1) if theory.step_conditions(gs.TwoPoint(spread=M), 0.05)[2].holds]
    assert 18.2 < min(holds) < 18.6


def test_assumptions_name_what_fails():
    good = {"dimension": 100, "rank": 1, "overlap": 0.0, "delta": 1e-6, "init_scale": 1e-5}
    verdicts = {c.name: c.holds for c in theory.assumptions(gs.TwoPoint(spread=6.0), **good)}
    assert all(verdicts[n] for n in ("isometry", "start", "overlap of the subspaces", "diagonal dominance"))
    worse = {**good, "overlap": 0.1, "delta": 0.3, "init_scale": 1e-3}
    law = gs.Finite([[[1.0, 1.0], [1.0, 1.0]], [[-1.0, 1.0], [1.0, 9.0]]])
    verdicts = {c.name: c.holds for c in theory.assumptions(law, **worse)}
    assert not any(verdicts[n] for n in ("isometry", "start", "diagonal dominance"))
    assert verdicts["overlap of the subspaces"]  # .1 < .3/2


def test_theorem2_bound_by_hand():
    # M1 = 7, M2 = 18, r1 = r2 = 1, d = 100
    log = math.log(100)
    star = (18 * log) ** 1.5 * 1e-3 * math.sqrt(2)
    expected = max(star**2 * 49, star * 7) * log**2
    law = gs.TwoPoint(spread=6.0)
    assert theory.theorem2_bound(law, dimension=100, rank=1, delta=1e-3) == pytest.approx(expected, rel=1e-12)


def test_pooled_gap_is_the_least_distance_of_the_joint_path():
    for r1, r2 in ((1, 1), (2, 3), (5, 1)):
        x = np.linspace(0, 1, 200_001)
        assert theory.pooled_gap(r1, r2) == pytest.approx(np.sqrt((1 - x) ** 2 * r1 + x**2 * r2).min(), rel=1e-9)


def test_overlap_constant_is_the_smallest_that_works():
    rng = np.random.default_rng(0)
    overlaps = np.abs(rng.standard_normal(4000)) / math.sqrt(50)
    d, r1, r2 = 50, 2, 1
    C = theory.overlap_constant(overlaps, dimension=d, rank=r1, spurious_rank=r2)
    t = np.sort(overlaps)[:3920] * math.sqrt(d / 3)
    above = np.array([(overlaps >= s * math.sqrt(3 / d) * (1 - 1e-12)).mean() for s in t])

    def bound(C):
        return 4 * np.exp(-d / C) + 2 * np.exp(-3 * t**2 / C)

    assert (above <= bound(C) + 1e-9).all()
    assert (above > bound(0.99 * C)).any()


def test_edge_overlap_is_that_of_large_random_subspaces():
    rng = np.random.default_rng(1)
    d, r = 600, 60
    found = [
        np.linalg.norm(np.linalg.qr(rng.standard_normal((d, r)))[0].T @ np.linalg.qr(rng.standard_normal((d, r)))[0], 2)
        for _ in range(10)
    ]
    # fluctuations at the edge are of order r^(-2/3)
    assert np.mean(found) == pytest.approx(theory.edge_overlap(d, r, r), rel=0.05)


def test_between_signals_without_randomness_is_an_autoregression():
    found = between_signals(gs.Finite([0.0]), 0.1, rank=1, runs=20_000, seed=2)
    # k <- .9 k + .1 z has variance .01/(1 - .81); the relative error of 20,000 squares is .01
    assert found.mean() == pytest.approx(0.01 / 0.19, rel=0.04)


def test_error_law_predicts_a_run_it_was_not_made_for():
    law = gs.Uniform(mean=0.5, spread=15.0)
    problem = gs.Problem(gs.RandomEnvironments(25, rank=2, law=law), gs.FreshGaussian(50_000))
    ds = gs.run(gs.HeteroSGD(0.06), problem, num_steps=250, seeds=64, record=["distance", "spurious"], record_at=1)
    predicted = theory.error_law(law, dimension=25, rank=2, step_size=0.06, num_samples=50_000)
    # the law neglects second-order terms of a few percent; 64 medians add about as much
    assert float(ds.distance.median()) == pytest.approx(predicted, rel=0.1)


def test_error_law_scales_as_it_says():
    law = gs.TwoPoint(spread=10.0)
    base = {"dimension": 60, "rank": 1, "step_size": 0.05}
    one, four = (theory.error_law(law, num_samples=m, **base) for m in (1e6, 4e6))
    assert one / four == pytest.approx(2, rel=1e-4)  # up to the error's own share of the residual, 1e-5 here
    assert theory.error_law(law, num_samples=1e6, dimension=60, rank=1, step_size=1.5) == math.inf


def test_condition_relations():
    assert theory.Condition("a", "b", 1.0, "in", (0.0, 2.0)).holds
    assert not theory.Condition("a", "b", 2.0, "in", (0.0, 2.0)).holds
    assert theory.Condition("a", "b", 2.0, ">=", 2.0).holds
    assert not theory.Condition("a", "b", 2.0, ">", 2.0).holds
    assert theory.Condition("a", "b", 2.0, "<=", 2.0).holds
    assert not theory.Condition("a", "b", float("nan"), "<=", 2.0).holds


def test_assessment_tells_the_two_sides_of_the_transition_apart():
    def look(spread):
        setting = theory.Setting(gs.TwoPoint(spread=spread), dimension=30, num_samples=2400)
        return theory.assess(setting, isometry_draws=2, runs=800).prediction

    forgets, learns = look(8.0), look(1.0)
    assert forgets.lyapunov and forgets.eliminated > 0.9
    assert not learns.lyapunov and learns.eliminated < 0.05
    assert forgets.critical_spread == learns.critical_spread == pytest.approx(4.16, abs=0.01)
    assert forgets.pooled_gap == pytest.approx(math.sqrt(0.5))


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"dimension": 1}, "dimension"),
        ({"rank": 101}, "rank"),
        ({"overlap": 1.5}, "overlap"),
        ({"step_size": 0.0}, "step_size"),
        ({"init_scale": float("nan")}, "init_scale"),
        ({"num_steps": 0}, "num_steps"),
        ({"num_samples": -3}, "num_samples"),
    ],
)
def test_bad_settings_name_the_argument(change, word):
    with pytest.raises(GyrostatError, match=word):
        theory.Setting(gs.TwoPoint(spread=6.0), **change)


# --- after a jump (Wang 2023) ---------------------------------------------------------------------


@pytest.mark.parametrize("depth", [3, 4, 5])
def test_the_turning_rate_is_what_a_step_does_to_the_second_singular_value(depth):
    """Balanced layers of rank nearly 1; a step on each entry, without ridge, written out."""
    eta, small = 1e-3, 3e-7
    rng = np.random.default_rng(depth)
    turns = [np.linalg.qr(rng.standard_normal((2, 2)))[0] for _ in range(depth + 1)]
    layers = [turns[k + 1] @ np.diag([1.3, small]) @ turns[k].T for k in range(depth)]
    truth, observed = np.array([[1.0, 9.0], [0.3, -0.7]]), [(0, 0), (1, 0), (1, 1)]

    def product(layers):
        return np.linalg.multi_dot(layers[::-1])

    def logarithm(layers):
        """log s2, through determinants: an SVD of the product knows nothing below 1e-16."""
        large = np.linalg.svd(product(layers), compute_uv=False)[0]
        return sum(np.log(abs(np.linalg.det(W))) for W in layers) - np.log(large)

    A, found = product(layers), []
    for i, j in observed:
        G = np.zeros((2, 2))
        G[i, j] = 2 * (A[i, j] - truth[i, j])
        moved = []
        for k, W in enumerate(layers):
            before = np.linalg.multi_dot([*layers[:k][::-1], np.eye(2)]) if k else np.eye(2)
            after = np.linalg.multi_dot([*layers[k + 1 :][::-1], np.eye(2)]) if k + 1 < depth else np.eye(2)
            moved.append(W - eta * after.T @ G @ before.T)
        found.append(logarithm(layers) - logarithm(moved))
    wanted = theory.turning_rate(A, truth, observed, step_size=eta, depth=depth).item()
    assert np.mean(found) == pytest.approx(wanted, rel=0.03)  # the next order is about 1e-2 of this one
    assert wanted > 5e-8
