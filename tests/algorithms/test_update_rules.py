"""Update rules: preconditioned steps, and the squared norm of parameters after steps on single entries."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import gyrostat as gs
from conftest import random_layers
from gyrostat.measurements.base import EntryGradient, Reading

SHAPE = (3, 4)


def test_preconditioning_survives_the_floor_of_rounding():
    """Superfluous columns vanish and leave a singular Gram matrix: without a floor these runs diverge near step 800."""
    problem = gs.Problem(gs.Environments.diagonal(6, [1.0, 1.0]), gs.Dense(100, design=1))
    prec = gs.PrecGD(0.2, width=4, start=0.05)
    result = gs.run(prec, problem, num_steps=2000, seeds=4, record=["distance"], record_at=2)
    assert np.isinf(result.diverged).all() and float(result.distance.isel(step=-1).max()) < 1e-12


@pytest.mark.parametrize("rule", [gs.rules.GradientStep(0.7), gs.rules.RidgeStep("weight_decay")])
def test_the_squared_norm_is_followed_exactly_on_single_entries(rule, x64):
    """300 steps on single entries by outer products: the parameters are those of the dense gradient, and so is their norm."""
    model, rng = gs.DeepLinear(3, 6), np.random.default_rng(2)
    params = dense = tuple(0.5 * W for W in random_layers(model, 1))
    square = sum(np.sum(W * W) for W in params)
    target = jnp.asarray(rng.standard_normal(SHAPE))

    @jax.jit
    def step(square, params, dense, i, j):
        value = model.product(params)[i, j]
        whole = Reading(jnp.zeros(SHAPE).at[i, j].set(value - target[i, j]), jnp.asarray(0.0))
        single = whole._replace(entry=EntryGradient(i, j, value - target[i, j], value))
        assert rule.squared_norm(square, model, params, whole, 0.05, 0.1) is None
        after = (rule(model, p, seen, 0.05, 0.1) for p, seen in ((params, single), (dense, whole)))
        return rule.squared_norm(square, model, params, single, 0.05, 0.1), *after

    for _ in range(300):
        square, params, dense = step(square, params, dense, *(int(rng.integers(n)) for n in SHAPE))
    for a, b in zip(params, dense, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-12)
    assert float(square) == pytest.approx(sum(float(np.sum(np.square(W))) for W in params), rel=1e-12)
