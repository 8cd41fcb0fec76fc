"""The imbalance step: the product is kept, beta and its stable range, when the step is made, and the rate after it."""

from __future__ import annotations

import numpy as np
import pytest

import gyrostat as gs
from conftest import orthonormal, random_factors
from gyrostat.algorithms.events import automatic_beta, imbalanced, stable_range

N1, N2, K = 5, 4, 3

RECTANGLE = gs.RectangularEnvironments(orthonormal(0, N1, 2), orthonormal(1, N2, 2), values=[1.0, 0.6])

FACTORISATION = gs.Problem(RECTANGLE, gs.Identity())


def test_imbalance_step_fills_a_factor_that_lacks_a_direction(x64):
    F, G = random_factors(11)
    F[:, 1] = F[:, 0]
    new_F, new_G = (np.asarray(x) for x in imbalanced((F, G), 0.7))
    np.testing.assert_allclose(new_F @ new_G.T, F @ G.T, atol=1e-13)
    np.testing.assert_allclose(new_F.T @ new_F, 0.49 * np.eye(K), atol=1e-13)


@pytest.mark.parametrize(("values", "residual", "wanted"), [((1, 0.9, 0.08), 0.07, 0.9), ((1, 0.3, 0.08), 0.05, 0.3)])
def test_the_spare_columns_do_not_choose_beta(values, residual, wanted, x64):
    """With few measurements, the content of superfluous columns is a little above the measured residual."""
    beta = automatic_beta(np.diag(np.asarray(values, dtype=float)), np.asarray(residual), np.asarray(0.01))
    assert float(beta) == pytest.approx(np.sqrt(wanted), rel=1e-12)


def late_errors(eta: float, beta: float, sigma: float, steps: int = 400) -> np.ndarray:
    """Errors of plain descent from close to the point that the imbalance step makes of an exact solution."""
    rng = np.random.default_rng(14)
    A, w = orthonormal(15, N1, K), orthonormal(16, N2, 1)
    target = sigma * A[:, :1] @ w.T
    F, G = beta * A, target.T @ A / beta
    F, G = F + 1e-9 * rng.standard_normal(F.shape), G + 1e-9 * rng.standard_normal(G.shape)
    norms = []
    for _ in range(steps):
        M = F @ G.T - target
        norms.append(np.linalg.norm(M))
        F, G = F - eta * M @ G, G - eta * M.T @ F
    return np.array(norms)


@pytest.mark.parametrize(("eta", "sigma"), [(0.9, 1.0), (0.3, 2.5)])
def test_stable_range_is_where_small_errors_shrink(eta, sigma):
    """Just inside they shrink, just outside they grow: by 1 - eta (beta^2 + sigma^2 / beta^2) = -1.03 or so per step."""
    for edge, inward in zip(stable_range(eta, sigma), (1, -1), strict=True):
        inside = late_errors(eta, edge * (1 + 0.02 * inward), sigma)
        outside = late_errors(eta, edge * (1 - 0.02 * inward), sigma)
        assert inside[-1] < 0.1 * inside[0]
        assert outside.max() > 10 * outside[0]


def events(step: gs.events.ImbalanceStep) -> gs.GradientDescent:
    return gs.GradientDescent(0.1, width=K, start=0.5, events=[step])


TRIGGERED = {"num_steps": 90, "record": ["left_factor", "right_factor"], "record_at": 91, "reduction": "never"}


def test_imbalance_step_by_its_trigger():
    """After the first step whose residual is small enough; the result says when it was, and with which beta."""
    result = gs.run(events(gs.events.ImbalanceStep(below=0.6)), FACTORISATION, seeds=6, **TRIGGERED)
    truth = np.asarray(RECTANGLE.invariant)
    for s in range(6):
        F, G = result.left_factor.values[s], result.right_factor.values[s]
        residuals = np.linalg.norm(F @ np.swapaxes(G, 1, 2) - truth, axis=(1, 2))
        first = np.flatnonzero(residuals[:-1] <= 0.6 * residuals[0])[0]
        assert int(result.imbalance_step[s]) == first + 1
        np.testing.assert_allclose(
            F[first + 1].T @ F[first + 1], result.imbalance_beta.values[s] ** 2 * np.eye(K), atol=1e-12
        )
    assert "notes" not in result.attrs and len(set(result.imbalance_step.values.tolist())) > 1


def test_a_grid_notes_steps_that_were_not_made_also_where_only_some_settings_have_one():
    def build(steps):
        events = [gs.events.ImbalanceStep(below=1e-9)] if steps else []
        return gs.GradientDescent(0.1, width=K, start=0.5, events=events), FACTORISATION

    result = gs.run_grid(build, {"steps": [False, True]}, num_steps=3, seeds=2, record=["distance"], record_at=2)
    assert "2 of 2 runs" in result.attrs["notes"]
    assert np.isinf(result.imbalance_step).all() and np.isnan(result.imbalance_beta).all()
