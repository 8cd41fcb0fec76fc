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

# A law in which everything counts: three directions, unequal weights, entries off the diagonal.
SIGMAS, WEIGHTS = np.array([np.diag([3.0, -4.0, 0.5]), np.diag([-5.0, 6.0, -6.5])]), np.array([0.3, 0.7])
SIGMAS[0, 0, 1] = SIGMAS[0, 1, 0] = 0.2
UNEQUAL = gs.Finite(SIGMAS, WEIGHTS)
ENTRIES = np.diagonal(SIGMAS, axis1=1, axis2=2)
MEAN = WEIGHTS @ ENTRIES
VARIANCE = WEIGHTS @ (ENTRIES - MEAN) ** 2
M1, M2 = np.abs(ENTRIES).max(), (VARIANCE / (1 + np.abs(MEAN))).min()
ETA, ALPHA, D, R1, R2, DELTA = 0.04, 1e-4, 37, 4, 3, 0.013
SHAPE = {"dimension": D, "rank": R1}


def error_of_theorem2(delta):
    star = (M2 * math.log(D)) ** 1.5 * delta * R2**2 * math.sqrt(R1 + R2)
    return max(star**2 * math.sqrt(R1) * M1**2, star * M1) * math.log(D) ** 2


PRINTED = {
    "constants, (6)": (lambda: constants(UNEQUAL), (M1, M2)),
    "step_window, Theorem 2": (lambda: step_window(UNEQUAL), (24 / M2, 1 / (64 * M1))),
    "informal_window, section 4": (
        lambda: informal_window(UNEQUAL, power=0.2),
        (max(4 * MEAN / (0.8 * VARIANCE)), 1 / (16 * M1)),
    ),
    "informal_window, gamma = .1": (lambda: informal_window(LAW), (4 / (0.9 * 36), 1 / (16 * 7))),
    "isometry_bound, Assumption 3": (
        lambda: isometry_bound(UNEQUAL, **SHAPE),
        1 / ((M2 * math.log(D)) ** 1.5 * R2**2.5 * math.sqrt(R1 + R2)),
    ),
    "theorem2_bound, (9), linear": (lambda: theorem2_bound(UNEQUAL, **SHAPE, delta=1e-6), error_of_theorem2(1e-6)),
    "theorem2_bound, (9), squared": (lambda: theorem2_bound(UNEQUAL, **SHAPE, delta=DELTA), error_of_theorem2(DELTA)),
    "moment_growth, Lemma 7": (
        lambda: moment_growth(UNEQUAL, ETA, 2 / 3, shift=2.0),
        (WEIGHTS @ (1 + ETA * ENTRIES + 2 * ETA) ** (2 / 3)).max(),
    ),
    "calibration_line, (38)": (
        lambda: calibration_line(ETA, ALPHA, 90, bound=M1, delta=1e-3, ranks=R1 + R2),
        np.maximum(ALPHA, 40 * M1 * 1e-3 * math.sqrt(R1 + R2) * calibration(ETA, ALPHA, 90)),
    ),
}


@pytest.mark.parametrize(("ours", "printed"), PRINTED.values(), ids=PRINTED)
def test_the_printed_formula_typed_in_again(ours, printed):
    np.testing.assert_allclose(ours(), printed, rtol=1e-12)


def test_the_printed_conditions():
    spread, scale = {"overlap": 0.1, "delta": DELTA, "init_scale": ALPHA}, math.log(D)
    isometry = 1 / ((M2 * scale) ** 1.5 * R2**2.5 * math.sqrt(R1 + R2))
    wanted = [
        ("Assumption 1(a)", min(R1, R2), ">=", scale**4),
        ("Assumption 1(a)", D, ">=", R1 + R2),
        ("Assumption 1(d)", 0.1, "<", DELTA / 2),
        ("Assumption 2", M1, "<", M2),
        ("Assumption 2, (7)", R2**2 * 0.2, "<=", 1 / M2**1.5),
        ("Assumption 3", DELTA, "<=", isometry),
        ("Theorem 2", ALPHA, "in", (1 / D**4, 1 / D**2)),
        ("Theorem 2", M2, ">", 1536 * M1),  # the window (24 / M2, 1 / (64 M1)) is not empty
        ("Theorem 2", ETA, "in", (24 / M2, 1 / (64 * M1))),
        ("Lemma 7", (WEIGHTS @ (1 + ETA * ENTRIES + 2 * ETA) ** (2 / 3)).max(), "<=", 1.0),
    ]
    found = [*assumptions(UNEQUAL, **SHAPE, **spread), *step_conditions(UNEQUAL, ETA)]
    assert [(c.source, c.relation) for c in found] == [(source, relation) for source, _, relation, _ in wanted]
    for condition, (_, value, _, bound) in zip(found, wanted, strict=True):
        assert condition.value == pytest.approx(value, rel=1e-12), condition.name
        assert condition.bound == pytest.approx(bound, rel=1e-12), condition.name
    unknown = assumptions(UNEQUAL, **SHAPE, **spread | {"delta": None})
    assert [c.source for c in unknown] == [source for source, *_ in wanted[:7] if source[-3:] not in ("(d)", "n 3")]


def test_a_law_that_stays_has_no_window_and_every_off_diagonal():
    still = gs.Finite([-2.0])
    assert step_window(still) == (math.inf, 1 / 128) and informal_window(still) == (math.inf, 1 / 32)
    (dominance,) = (c for c in assumptions(still, **SHAPE, overlap=0, delta=None, init_scale=1e-4) if "(7)" in c.source)
    assert dominance.bound == math.inf
    assert step_window(gs.Finite([0.0]))[1] == informal_window(gs.Finite([0.0]))[1] == math.inf
    small = gs.TwoPoint(mean=0.0, spread=0.5)  # M1 = .5, M2 = .25
    assert step_window(small) == (96, 1 / 32) and informal_window(small) == (0, 1 / 8)
    (dominance,) = (c for c in assumptions(small, **SHAPE, overlap=0, delta=None, init_scale=1e-4) if "(7)" in c.source)
    assert dominance.bound == 8


def test_the_literal_window_opens_at_a_spread_above_three_thousand():
    root = optimize.brentq(lambda M: np.ptp(step_window(gs.TwoPoint(spread=M))) * np.sign(M - 3073), 100, 1e5)
    assert root == pytest.approx(1536 + math.sqrt(1536**2 + 2 * 1536), rel=1e-4)  # M^2/2 = 1536 (1 + M)
    law = gs.TwoPoint(spread=4000.0)
    assert all(c.holds for c in step_conditions(law, math.sqrt(math.prod(step_window(law)))))
    assert not any(c.holds for c in step_conditions(LAW, 0.05))


def test_the_supermartingale_region_at_the_step_size_of_the_paper():
    holds = [M for M in np.arange(1.0, 23.0, 0.1) if step_conditions(gs.TwoPoint(spread=M), 0.05)[2].holds]
    assert 18.2 < min(holds) < 18.6


def test_pooled_gap_is_the_least_distance_of_the_joint_path():
    for r1, r2 in ((1, 1), (2, 3), (5, 1)):
        x = np.linspace(0, 1, 200_001)
        assert pooled_gap(r1, r2) == pytest.approx(np.sqrt((1 - x) ** 2 * r1 + x**2 * r2).min(), rel=1e-9)


@pytest.mark.parametrize("d", [6, 50])
def test_overlap_constant_is_the_smallest_that_works(d):
    rng = np.random.default_rng(0)
    overlaps = np.abs(rng.standard_normal(4000)) / math.sqrt(d)
    C = overlap_constant(overlaps, dimension=d, rank=2, spurious_rank=1)
    t = np.sort(overlaps)[:3920] * math.sqrt(d / 3)
    above = np.array([(overlaps >= s * math.sqrt(3 / d) * (1 - 1e-12)).mean() for s in t])

    def bound(C):
        return 4 * np.exp(-d / C) + 2 * np.exp(-3 * t**2 / C)

    assert (above <= bound(C) + 1e-9).all() and (above > bound(0.9999 * C)).any()


def test_edge_overlap_is_that_of_large_random_subspaces():
    rng, d, ranks = np.random.default_rng(1), 300, (20, 90)
    overlaps = []
    for _ in range(10):
        U, V = (np.linalg.qr(rng.standard_normal((d, r)))[0] for r in ranks)
        overlaps.append(np.linalg.norm(U.T @ V, 2))
    assert np.mean(overlaps) == pytest.approx(edge_overlap(d, *ranks), rel=0.03)  # fluctuations are of order d^(-2/3)


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
    assert moments.shape == (10,)
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
    drift, up, low = eta / 32 / math.log(1 / alpha), alpha, alpha
    for t in range(length + 1):  # (31); the upper sequence drives both
        assert (upper[t], lower[t]) == pytest.approx((up, low), rel=1e-12)
        up, low = (1 - eta * up**2 + eta) * up + drift * up, (1 - eta * low**2 + eta) * low - drift * up


def test_controller_of_two_directions_is_definition_4_step_by_step():
    law, eta = gs.Finite([np.diag([3.0, -1.0])]), 0.1
    line = np.linspace(0.01, 0.05, 21)
    q, peak = np.full(2, line[0]), 1.0
    for L in line[1:]:
        q = np.maximum((1 + eta * np.array([3.0, -1.0]) + 2 * eta) * q, L)
        peak = max(peak, max(q / L))
    simulated = controller(law, eta, line=line, violation=0.04, runs=2)
    np.testing.assert_allclose(simulated.peak, peak, rtol=1e-12)
    assert simulated.barrier == pytest.approx((2 / 0.04) ** 1.5, rel=1e-12)  # (39)


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
