"""Deep linear networks: product, pullback, single entries, rank and factorisation."""

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

SHAPE = (3, 4)

MODELS = [gs.DeepLinear(2, 5), gs.DeepLinear(3, 2), gs.DeepLinear(5, 6), gs.DeepLinear(widths=(4, 7, 2, 5, 3))]


@pytest.mark.parametrize("i", range(len(MODELS)))
def test_product_and_pullback_equal_the_twin(i, x64):
    model, G = MODELS[i], np.random.default_rng(9).standard_normal(SHAPE)
    params = random_layers(model, i)
    found, moved = jax.jit(lambda params: (model.product(params), model.pullback(params, G)))(params)
    np.testing.assert_allclose(found, reference.product("DeepLinear", params), rtol=1e-12, atol=1e-12)
    for ours, twin in zip(moved, reference.pullback("DeepLinear", params, G), strict=True):
        np.testing.assert_allclose(ours, twin, rtol=1e-11, atol=1e-11)  # products of five matrices, in another order


@pytest.mark.parametrize("i", range(len(MODELS)))
def test_one_entry_is_an_entry_of_the_product_and_so_is_its_pullback(i, x64):
    model = MODELS[i]
    params = random_layers(model, i)

    @jax.jit
    def seen(row, column):
        layers = tuple(map(jnp.asarray, params))
        pairs = model.entry_pullback(layers, row, column, -1.7)
        return model.entry(layers, row, column), [(pair.matrix, pair.square) for pair in pairs]

    for row, column in itertools.product(range(3), range(4)):
        entry, pairs = seen(row, column)
        np.testing.assert_allclose(entry, reference.product("DeepLinear", params)[row, column], rtol=1e-12)
        G = np.zeros(SHAPE)
        G[row, column] = -1.7
        for (matrix, square), whole in zip(pairs, reference.pullback("DeepLinear", params, G), strict=True):
            np.testing.assert_allclose(matrix, whole, rtol=1e-12, atol=1e-12)
            assert float(square) == pytest.approx(float(np.sum(whole**2)), rel=1e-12)
    assert gs.Asymmetric(2).entry_pullback((jnp.ones((3, 2)), jnp.ones((4, 2))), 0, 0, 1.0) is None


@pytest.mark.parametrize("reduction", ["never", "auto"])
def test_a_run_on_single_entries_that_diverges_is_lost_from_that_step_on(reduction):
    """The layers of the twin exceed 1e8 in the same step, and everything recorded is NaN from that step on."""
    problem = gs.Problem(ENVIRONMENTS, gs.Entries(OBSERVED, batch_size=1))
    algorithm = gs.RidgeDescent(0.9, 0.01, model=gs.DeepLinear(3, 10), start=gs.Orthogonal(1.3))
    record = ["product", "layer_norms", "imbalances"]
    found = gs.run(algorithm, problem, num_steps=60, seeds=6, record=record, record_at=61, reduction=reduction)
    lost = found.diverged.values
    assert np.isfinite(lost).sum() >= 3  # most do
    for seed in np.flatnonzero(np.isfinite(lost)):
        at = int(lost[seed])
        for name in record:
            values = found[name].values[seed]
            assert np.isfinite(values[:at]).all() and np.isnan(values[at:]).all()
        assert found.layer_norms.values[seed, :at].sum(axis=1).max() < 1e16


@pytest.mark.parametrize("i", range(len(MODELS)))
def test_rank_limit_balanced_factors_and_turned_coordinates(i, x64):
    model, rng = MODELS[i], np.random.default_rng(i)
    params = random_layers(model, i)
    A = np.asarray(model.product(params))
    assert model.rank_limit(SHAPE) == np.linalg.matrix_rank(A)
    found = [np.asarray(W) for W in model.factorise(jnp.asarray(A))]
    assert tuple(W.shape for W in found) == model.shapes(SHAPE)
    np.testing.assert_allclose(model.product(found), A, rtol=1e-9, atol=1e-9)  # roots of small values lose digits
    for a, b in itertools.pairwise(found):
        np.testing.assert_allclose(a @ a.T, b.T @ b, rtol=1e-11, atol=1e-11)
    L, R = rng.standard_normal((2, 3)), rng.standard_normal((5, 4))
    np.testing.assert_allclose(model.product(model.rotated(params, L, R)), L @ A @ R.T, rtol=1e-11, atol=1e-11)
    assert model.factor(params).shape[0] == 3 and model.cofactor(params).shape[0] == 4


def test_a_truncated_factorisation_is_the_best_of_its_rank(x64):
    A = np.random.default_rng(0).standard_normal((5, 4))
    s = np.linalg.svd(A, compute_uv=False)
    model = gs.DeepLinear(3, 2)
    gap = A - np.asarray(model.product(model.factorise(jnp.asarray(A))))
    np.testing.assert_allclose(np.linalg.norm(gap), np.sqrt(s[2] ** 2 + s[3] ** 2), rtol=1e-12)  # Eckart and Young
