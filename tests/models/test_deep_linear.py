"""Deep linear networks: single entries, and runs on them."""

from __future__ import annotations

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import gyrostat as gs
import reference
from completion_problem import ENVIRONMENTS, OBSERVED
from conftest import random_layers

MODELS = [gs.DeepLinear(2, 5), gs.DeepLinear(3, 2), gs.DeepLinear(5, 6), gs.DeepLinear(widths=(4, 7, 2, 5, 3))]


@pytest.mark.parametrize("model", MODELS, ids=str)
def test_one_entry_is_an_entry_of_the_product_and_so_is_its_pullback(model, x64):
    params = random_layers(model, 1)

    @jax.jit
    def seen(row, column):
        layers = tuple(map(jnp.asarray, params))
        pairs = model.entry_pullback(layers, row, column, -1.7)
        return model.entry(layers, row, column), [(pair.matrix, pair.square) for pair in pairs]

    for row, column in itertools.product(range(3), range(4)):
        entry, pairs = seen(row, column)
        np.testing.assert_allclose(entry, reference.product("DeepLinear", params)[row, column], rtol=1e-12)
        G = np.zeros((3, 4))
        G[row, column] = -1.7
        for (matrix, square), whole in zip(pairs, reference.pullback("DeepLinear", params, G), strict=True):
            np.testing.assert_allclose(matrix, whole, rtol=1e-12, atol=1e-12)
            assert float(square) == pytest.approx(float(np.sum(whole**2)), rel=1e-12)


@pytest.mark.parametrize("reduction", ["never", "auto"])
def test_a_run_on_single_entries_that_diverges_is_lost_from_that_step_on(reduction):
    """The layers of the twin exceed 1e8 in the same step, and everything recorded is NaN from that step on."""
    problem = gs.Problem(ENVIRONMENTS, gs.Entries(OBSERVED, batch_size=1))
    algorithm = gs.RidgeDescent(0.9, 0.01, model=gs.DeepLinear(3, 10), start=gs.starts.Orthogonal(1.3))
    record = ["product", "layer_norms", "imbalances"]
    runs = gs.run(algorithm, problem, num_steps=60, seeds=6, record=record, record_at=61, reduction=reduction)
    lost = runs.diverged.values
    assert np.isfinite(lost).sum() >= 3  # most do
    for seed in np.flatnonzero(np.isfinite(lost)):
        at = int(lost[seed])
        for name in record:
            values = runs[name].values[seed]
            assert np.isfinite(values[:at]).all() and np.isnan(values[at:]).all()
        assert runs.layer_norms.values[seed, :at].sum(axis=1).max() < 1e16
