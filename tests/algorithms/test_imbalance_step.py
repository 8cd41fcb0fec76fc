"""The imbalance step: the product is kept, beta and its stable range, when the step is made, and the rate after it."""

from __future__ import annotations

import numpy as np
import pytest

import gyrostat as gs
import reference
from conftest import orthonormal, random_factors
from gyrostat.algorithms.events import automatic_beta, imbalanced, least_above, stable_range

N1, N2, K = 5, 4, 3

RECTANGLE = gs.RectangularEnvironments(orthonormal(0, N1, 2), orthonormal(1, N2, 2), values=[1.0, 0.6])

FACTORISATION = gs.Problem(RECTANGLE, gs.Identity())


@pytest.mark.parametrize("beta", [0.3, 1.0, 2.5])
def test_imbalance_step_keeps_the_product(beta, x64):
    F, G = random_factors(10)
    new_F, new_G = (np.asarray(x) for x in imbalanced((F, G), beta))
    # Rounding of a few sums of K numbers of size at most 10.
    np.testing.assert_allclose(new_F @ new_G.T, F @ G.T, atol=1e-14 * np.abs(F @ G.T).max() * K)
    np.testing.assert_allclose(new_F.T @ new_F, beta**2 * np.eye(K), atol=1e-14 * beta**2)
    twin_F, twin_G = reference.imbalance_step(F, G, beta)
    signs = np.sign(np.sum(twin_F * new_F, axis=0))
    np.testing.assert_allclose(new_F, twin_F * signs, atol=1e-12)
    np.testing.assert_allclose(new_G, twin_G * signs, atol=1e-12)


def test_imbalance_step_fills_a_factor_that_lacks_a_direction(x64):
    F, G = random_factors(11)
    F[:, 1] = F[:, 0]
    new_F, new_G = (np.asarray(x) for x in imbalanced((F, G), 0.7))
    np.testing.assert_allclose(new_F @ new_G.T, F @ G.T, atol=1e-13)
    np.testing.assert_allclose(new_F.T @ new_F, 0.49 * np.eye(K), atol=1e-13)


@pytest.mark.parametrize(("values", "residual", "wanted"), [((1, 0.9, 0.08), 0.07, 0.9), ((1, 0.3, 0.08), 0.05, 0.3)])
def test_the_spare_columns_do_not_choose_beta(values, residual, wanted, x64):
    """With few measurements, the content of superfluous columns is a little above the measured residual."""
    found = automatic_beta(np.diag(np.asarray(values, dtype=float)), np.asarray(residual), np.asarray(0.01))
    assert float(found) == pytest.approx(np.sqrt(wanted), rel=1e-12)


@pytest.mark.parametrize("residual", [0.0, 0.05, 0.15, 0.4, 0.8, 1.9, 50.0])
def test_least_above_by_looking_at_every_value(residual, x64):
    values = np.array([3.0, 1.0, 0.2])
    A = (orthonormal(12, N1, 3) * values) @ orthonormal(13, N2, 3).T  # N2 values: the fourth is zero up to rounding
    wanted = min([v for v in values if v > residual], default=3.0)
    if residual > 0:
        assert float(least_above(A, residual)) == pytest.approx(wanted, rel=1e-12)
    else:  # every value is above zero, also those that are rounding errors
        assert float(least_above(A, residual)) < 1e-14


def late_errors(eta: float, beta: float, sigma: float, steps: int = 400) -> np.ndarray:
    """Errors of plain descent from close to the point that the imbalance step makes of an exact solution."""
    rng = np.random.default_rng(14)
    A, w = orthonormal(15, N1, K), orthonormal(16, N2, 1)
    target = sigma * A[:, :1] @ w.T
    F, G = beta * A, target.T @ A / beta
    F, G = F + 1e-9 * rng.standard_normal(F.shape), G + 1e-9 * rng.standard_normal(G.shape)
    found = []
    for _ in range(steps):
        M = F @ G.T - target
        found.append(np.linalg.norm(M))
        F, G = reference.move("Asymmetric", (F, G), M, eta)
    return np.array(found)


@pytest.mark.parametrize(("eta", "sigma"), [(0.2, 1.0), (0.9, 1.0), (0.3, 2.5)])
def test_stable_range_is_where_small_errors_shrink(eta, sigma):
    """Just inside they shrink, just outside they grow: by 1 - eta (beta^2 + sigma^2 / beta^2) = -1.03 or so per step."""
    for edge, inward in zip(stable_range(eta, sigma), (1, -1), strict=True):
        inside = late_errors(eta, edge * (1 + 0.02 * inward), sigma)
        outside = late_errors(eta, edge * (1 - 0.02 * inward), sigma)
        assert inside[-1] < 0.1 * inside[0]
        assert outside.max() > 10 * outside[0]


def events(step: gs.ImbalanceStep) -> gs.GradientDescent:
    return gs.GradientDescent(0.1, width=K, start=0.5, events=[step])


TRIGGERED = {"num_steps": 90, "record": ["left_factor", "right_factor"], "record_at": 91, "reduction": "never"}


def test_imbalance_step_at_a_given_step():
    start = gs.Given(*random_factors(17))
    with_step, without = (
        gs.run(
            gs.GradientDescent(0.05, width=K, start=start, events=chosen),
            FACTORISATION,
            num_steps=9,
            record=["left_factor", "right_factor"],
            record_at=10,
        )
        for chosen in ([gs.ImbalanceStep(at=5, beta=1.25)], [])
    )
    assert with_step.imbalance_step.values.tolist() == [6] and with_step.imbalance_beta.values.tolist() == [1.25]
    assert "imbalance_step" not in without and "notes" not in with_step.attrs
    F, G = with_step.left_factor.values[0], with_step.right_factor.values[0]
    plain_F, plain_G = without.left_factor.values[0], without.right_factor.values[0]
    # Another program: rounding of ten steps.
    np.testing.assert_allclose(F[:6], plain_F[:6], atol=1e-12)
    assert np.abs(F[6] - plain_F[6]).max() > 0.1
    np.testing.assert_allclose(F[6] @ G[6].T, plain_F[6] @ plain_G[6].T, atol=1e-12)
    np.testing.assert_allclose(F[6].T @ F[6], 1.25**2 * np.eye(K), atol=1e-13)
    assert np.abs(F[7].T @ F[7] - 1.25**2 * np.eye(K)).max() > 1e-6  # once, not from then on


@pytest.mark.parametrize("below", [0.6, 1e-9])
def test_imbalance_step_by_its_trigger(below):
    """The first step whose residual is small enough, with the smallest value above the residual as beta squared."""
    found = gs.run(events(gs.ImbalanceStep(below=below)), FACTORISATION, seeds=6, **TRIGGERED)
    truth = np.asarray(RECTANGLE.invariant)
    for s in range(6):
        F, G = found.left_factor.values[s], found.right_factor.values[s]
        residuals = np.linalg.norm(F @ np.swapaxes(G, 1, 2) - truth, axis=(1, 2))
        due = np.flatnonzero(residuals[:-1] <= below * residuals[0])
        step = float(found.imbalance_step[s])
        assert step == (due[0] + 1 if due.size else np.inf)
        if due.size:
            fired = int(step)
            values = np.linalg.svd(F[fired] @ G[fired].T, compute_uv=False)
            above = values[values > residuals[due[0]]]
            beta = np.sqrt(above.min() if above.size else values[0])
            assert float(found.imbalance_beta[s]) == pytest.approx(beta, rel=1e-10)
            np.testing.assert_allclose(F[fired].T @ F[fired], beta**2 * np.eye(K), atol=1e-12)
    never = int(np.isinf(found.imbalance_step.values).sum())
    assert never == (0 if below == 0.6 else 6)
    if never:
        assert "6 of 6 runs" in found.attrs["notes"] and np.isnan(found.imbalance_beta.values).all()
    else:
        assert "notes" not in found.attrs and len(set(found.imbalance_step.values.tolist())) > 1


def test_a_grid_notes_steps_that_were_not_made_also_where_only_some_settings_have_one():
    def build(steps):
        events = [gs.ImbalanceStep(below=1e-9)] if steps else []
        return gs.GradientDescent(0.1, width=K, start=0.5, events=events), FACTORISATION

    found = gs.run_grid(build, {"steps": [False, True]}, num_steps=3, seeds=2, record=["distance"], record_at=2)
    assert "2 of 2 runs" in found.attrs["notes"]
    assert np.isinf(found.imbalance_step).all() and np.isnan(found.imbalance_beta).all()


def test_imbalance_step_makes_the_late_rate_that_of_its_beta():
    """Xiong 2024, Theorem 5.1, sharp: the part of G that must vanish shrinks by 1 - eta beta^2 per step."""
    eta, beta, steps = 0.1, 1.3, 240
    algorithm = gs.GradientDescent(eta, width=K, start=0.5, events=[gs.ImbalanceStep(at=60, beta=beta)])
    problem = gs.Problem(gs.RectangularEnvironments(np.eye(N1, 1), np.eye(N2, 1), values=[2.5]), gs.Identity())
    found = gs.run(algorithm, problem, num_steps=steps, seeds=3, record=["distance"], record_at=steps + 1)
    window = slice(70, 140)
    for distance in found.distance.values:
        slope = np.polyfit(np.arange(steps + 1)[window], np.log(distance[window]), 1)[0]
        # F's columns outside the signal keep beta up to the error squared: one per cent from step 70 on.
        assert slope == pytest.approx(np.log(1 - eta * beta**2), rel=0.01)
