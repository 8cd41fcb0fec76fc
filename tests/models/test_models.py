"""Spaces, models and starts against closed forms, PyTorch's autograd and finite differences."""

from __future__ import annotations

import jax
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gyrostat as gs
import reference
from gyrostat.jax_tools.float64 import double
from gyrostat.models.spaces import RectangularMatrices, SymmetricMatrices, Vectors

MODELS = {"Symmetric": 1, "SymmetricDifference": 2, "Diagonal": 2}
SPACES = {
    "Vectors": Vectors,
    "SymmetricMatrices": SymmetricMatrices,
    "RectangularMatrices": lambda d: RectangularMatrices(d, d + 1),
}


def random_params(model: str, rng: np.random.Generator, d: int = 4) -> tuple[np.ndarray, ...]:
    shape = (d,) if model == "Diagonal" else (d, 3)
    return tuple(rng.standard_normal(shape) for _ in range(MODELS[model]))


@settings(max_examples=25, deadline=None)  # JAX dispatches op by op here, a few milliseconds each
@given(d=st.integers(1, 6), seed=st.integers(0, 2**32 - 1), kind=st.sampled_from(sorted(SPACES)))
def test_coordinates_are_an_isometry(d, seed, kind):
    space, rng = SPACES[kind](d), np.random.default_rng(seed)
    with double():
        A, B = (np.asarray(space.project(rng.standard_normal(space.shape))) for _ in range(2))
        a, b = (np.asarray(space.coordinates(x)) for x in (A, B))
        assert a.shape == (space.size,)
        np.testing.assert_allclose(a @ b, np.sum(A * B), rtol=1e-12, atol=1e-12)  # an identity: rounding only
        np.testing.assert_allclose(space.element(a), A, rtol=1e-12, atol=1e-12)


def test_projection_is_the_nearest_symmetric_matrix():
    space, rng = SymmetricMatrices(3), np.random.default_rng(1)
    B = rng.standard_normal((3, 3))
    nearest = np.linalg.norm(B - space.project(B))
    for _ in range(20):
        S = rng.standard_normal((3, 3))
        assert np.linalg.norm(B - (S + S.T) / 2) >= nearest


def test_standard_gaussian_of_symmetric_matrices(x64):
    n, space = 20_000, SymmetricMatrices(3)
    X = np.asarray(jax.vmap(space.gaussian)(jax.random.split(jax.random.key(0), n)))
    assert (np.swapaxes(X, 1, 2) == X).all()
    wanted = np.where(np.eye(3) == 1, 1.0, 0.5)
    # The variance of a sample variance is 2 v^2 / n; five standard deviations over six entries.
    assert (np.abs(X.var(axis=0) - wanted) < 5 * wanted * np.sqrt(2 / n)).all()
    assert (np.abs(X.mean(axis=0)) < 5 / np.sqrt(n)).all()


@pytest.mark.parametrize("model", MODELS)
def test_product_and_pullback_equal_the_twin(model, x64):
    rng = np.random.default_rng(2)
    params, chosen = random_params(model, rng), getattr(gs, model)()
    A = reference.product(model, params)
    np.testing.assert_allclose(chosen.product(params), A, rtol=1e-12, atol=1e-12)
    G = reference.gaussian(rng, A.shape)
    for ours, twin in zip(chosen.pullback(params, G), reference.pullback(model, params, G), strict=True):
        np.testing.assert_allclose(ours, twin, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("model", MODELS)
def test_factor_is_all_parameters_side_by_side(model, x64):
    params = random_params(model, np.random.default_rng(5))
    factor = np.asarray(getattr(gs, model)().factor(params))
    assert factor.shape[0] == 4
    assert np.sum(factor**2) == pytest.approx(sum(np.sum(p**2) for p in params), rel=1e-12)


def test_width_and_starts(x64):
    key = jax.random.key(0)
    (U,) = gs.ScaledIdentity(0.5)(gs.Symmetric(width=2), (4, 4), key)
    np.testing.assert_array_equal(U, 0.5 * np.eye(4, 2))
    u, v = gs.ScaledIdentity(0.5)(gs.Diagonal(), (3,), key)
    np.testing.assert_array_equal([u, v], np.full((2, 3), 0.5))
    U, V = gs.ScaledGaussian(0.5)(gs.SymmetricDifference(), (60, 60), key)
    assert not np.array_equal(U, V)
    n = 2 * 3600
    spread = np.std([U, V])
    assert abs(spread - 0.5) < 5 * 0.5 / np.sqrt(2 * n)  # five standard errors of a standard deviation
