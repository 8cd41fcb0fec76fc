"""The formulas of Xu 2024 against numerical optima, enumeration, simulation, and the printed formulas typed in again."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy import integrate, optimize

import gyrostat as gs
from gyrostat.theory.xu2024 import (
    assumptions,
    calibration,
    calibration_line,
    constants,
    controller,
    edge_overlap,
    envelope,
    exact_moments,
    informal_window,
    isometry_bound,
    moment_growth,
    overlap_constant,
    phase_one_length,
    pooled_gap,
    step_conditions,
    step_window,
    theorem2_bound,
    truncation_radius,
)

LAW = gs.TwoPoint(spread=6.0)  # M1 = 7, M2 = 36 / 2 = 18


def test_the_printed_formulas_by_hand():
    assert constants(gs.TwoPoint(mean=-2.0, spread=6.0)) == (8.0, 12.0)
    assert informal_window(LAW, power=0.2) == pytest.approx((4 / (0.8 * 36), 1 / (16 * 7)), rel=1e-12)
    log = math.log(100)
    star = (18 * log) ** 1.5 * 1e-3 * math.sqrt(2)
    bound = max(star**2 * 49, star * 7) * log**2
    assert theorem2_bound(LAW, dimension=100, rank=1, delta=1e-3) == pytest.approx(bound, rel=1e-12)
    two = gs.TwoPoint(spread=6.0, rank=2)
    wanted = 1 / ((18 * log) ** 1.5 * 2**2.5 * math.sqrt(5))
    assert isometry_bound(two, dimension=100, rank=3) == pytest.approx(wanted, rel=1e-12)
    R = calibration(0.05, 1e-3, 30)
    line = calibration_line(0.05, 1e-3, 30, bound=7.0, delta=0.01, ranks=2)
    assert line == pytest.approx([max(1e-3, 40 * 7 * 0.01 * math.sqrt(2) * r) for r in R], rel=1e-12)


def test_the_literal_window_opens_at_a_spread_above_three_thousand():
    root = optimize.brentq(lambda M: np.ptp(step_window(gs.TwoPoint(spread=M))) * np.sign(M - 3073), 100, 1e5)
    assert root == pytest.approx(1536 + math.sqrt(1536**2 + 2 * 1536), rel=1e-4)  # M^2/2 = 1536 (1 + M)
    law = gs.TwoPoint(spread=4000.0)
    assert all(c.holds for c in step_conditions(law, math.sqrt(math.prod(step_window(law)))))
    assert not any(c.holds for c in step_conditions(LAW, 0.05))


def test_the_supermartingale_region_at_the_step_size_of_the_paper():
    holds = [M for M in np.arange(1.0, 23.0, 0.1) if step_conditions(gs.TwoPoint(spread=M), 0.05)[2].holds]
    assert 18.2 < min(holds) < 18.6


def test_assumptions_name_what_fails():
    good = {"dimension": 100, "rank": 1, "overlap": 0.0, "delta": 1e-6, "init_scale": 1e-5}
    verdicts = {c.name: c.holds for c in assumptions(LAW, **good)}
    assert all(verdicts[n] for n in ("isometry", "start", "overlap of the subspaces", "diagonal dominance"))
    law = gs.Finite([[[1.0, 1.0], [1.0, 1.0]], [[-1.0, 1.0], [1.0, 9.0]]])
    verdicts = {c.name: c.holds for c in assumptions(law, **{**good, "overlap": 0.1, "delta": 0.3, "init_scale": 1e-3})}
    assert not any(verdicts[n] for n in ("isometry", "start", "diagonal dominance"))
    assert verdicts["overlap of the subspaces"]  # .1 < .3/2


def test_pooled_gap_is_the_least_distance_of_the_joint_path():
    for r1, r2 in ((1, 1), (2, 3), (5, 1)):
        x = np.linspace(0, 1, 200_001)
        assert pooled_gap(r1, r2) == pytest.approx(np.sqrt((1 - x) ** 2 * r1 + x**2 * r2).min(), rel=1e-9)


def test_overlap_constant_is_the_smallest_that_works():
    rng = np.random.default_rng(0)
    overlaps, d = np.abs(rng.standard_normal(4000)) / math.sqrt(50), 50
    C = overlap_constant(overlaps, dimension=d, rank=2, spurious_rank=1)
    t = np.sort(overlaps)[:3920] * math.sqrt(d / 3)
    above = np.array([(overlaps >= s * math.sqrt(3 / d) * (1 - 1e-12)).mean() for s in t])

    def bound(C):
        return 4 * np.exp(-d / C) + 2 * np.exp(-3 * t**2 / C)

    assert (above <= bound(C) + 1e-9).all() and (above > bound(0.99 * C)).any()


def test_edge_overlap_is_that_of_large_random_subspaces():
    rng, d, r = np.random.default_rng(1), 600, 60
    bases = [np.linalg.qr(rng.standard_normal((d, r)))[0] for _ in range(20)]
    overlaps = [np.linalg.norm(U.T @ V, 2) for U, V in zip(bases[:10], bases[10:], strict=True)]
    assert np.mean(overlaps) == pytest.approx(edge_overlap(d, r, r), rel=0.05)  # fluctuations are of order r^(-2/3)


@pytest.mark.parametrize("delta", [0.01, 0.3])
def test_truncation_at_the_radius_takes_delta_from_the_mean(delta):
    root = math.sqrt(truncation_radius(delta))
    tail = integrate.quad(lambda z: z**4 * math.exp(-z * z / 2) / math.sqrt(2 * math.pi), root, np.inf)[0]
    assert 2 * tail == pytest.approx(delta, rel=1e-6)


# --- oscillation and the sequences of the proof ------------------------------------------------------


@pytest.mark.parametrize("power", [1.0, 0.1, 2 / 3])
def test_exact_moments_by_enumerating_all_sequences(power):
    eta, M = 0.05, 7.0
    moments = exact_moments(gs.TwoPoint(spread=M), eta, power, 9)
    factors = np.abs([1 + eta * (1 - M), 1 + eta * (1 + M)])
    for t, moment in enumerate(moments):
        products = [math.prod(choice) ** power for choice in itertools.product(factors, repeat=t)]
        assert moment == pytest.approx(np.mean(products), rel=1e-12)
    assert moment_growth(gs.TwoPoint(spread=M), eta, power) == pytest.approx(moments[1], rel=1e-12)


def test_moment_growth_of_a_continuous_law_is_the_integral():
    law, eta = gs.Uniform(mean=1.0, spread=9.0), 0.05
    integral = integrate.quad(lambda s: (1 + eta * (s + 2)) ** (2 / 3) / 18, -8, 10)[0]
    assert moment_growth(law, eta, 2 / 3, shift=2.0) == pytest.approx(integral, rel=1e-10)


def test_calibration_is_the_logistic_curve_for_small_steps():
    eta, alpha, T = 1e-4, 1e-2, 60_000
    grown = alpha**2 * np.exp(2 * eta * np.arange(T + 1))
    # Euler's method: the error is of order eta
    exact = np.sqrt(grown / (1 - alpha**2 + grown))
    np.testing.assert_allclose(calibration(eta, alpha, T), exact, rtol=5 * eta * math.log(1 / alpha))


def test_envelope_ends_with_phase_one_and_brackets_the_middle():
    eta, alpha = 0.05, 1e-3
    middle, upper, lower = envelope(eta, alpha)
    length = phase_one_length(eta, alpha)
    R = calibration(eta, alpha, 1000)
    assert length == np.argmax(1 / 3 - eta < R) and R[length] < 1 / 3
    np.testing.assert_allclose(middle, R[: length + 1], rtol=1e-14)
    # (31): at first, where R is small, the sequences are geometric
    drift = eta / (32 * math.log(1 / alpha))
    np.testing.assert_allclose([upper[9], lower[9]], alpha * (1 + eta + np.array([drift, -drift])) ** 9, rtol=1e-4)


def test_controller_is_the_recursion_of_its_definition():
    line = np.full(21, 0.01)
    grown = controller(gs.Finite([3.0]), 0.1, line=line, violation=0.01, runs=3)
    np.testing.assert_allclose(grown.peak, 1.5**20, rtol=1e-12)
    assert grown.barrier == pytest.approx(1000.0)
    shrinking = controller(gs.Finite([-5.0]), 0.1, line=line, violation=0.01, runs=3)
    np.testing.assert_allclose(shrinking.peak, 1.0)
    # One step from the line: the peak is the larger factor in half of the runs, and the line itself in the others.
    once = controller(gs.TwoPoint(spread=9.0), 0.1, line=line[:2], violation=0.01, runs=4000).peak
    assert set(np.round(once, 12)) == {1.0, 2.2} and abs((once > 1).mean() - 0.5) < 0.03  # 4 standard errors
