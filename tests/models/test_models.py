"""Spaces and models against their NumPy twins, JAX's derivative and the best approximation of a rank."""

from __future__ import annotations

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import gyrostat as gs
import reference
from conftest import orthonormal
from gyrostat.models.spaces import Arrays, RectangularMatrices, SymmetricMatrices, Vectors

SPACES = {
    "Vectors": Vectors,
    "SymmetricMatrices": SymmetricMatrices,
    "RectangularMatrices": lambda d: RectangularMatrices(d, d + 1),
    "Arrays": lambda d: Arrays((d, 2, d + 1)),
}


@pytest.mark.parametrize("d", [1, 4])
@pytest.mark.parametrize("kind", SPACES)
def test_coordinates_are_an_isometry(kind, d, x64):
    space, rng = SPACES[kind](d), np.random.default_rng(d)
    A, B = (np.asarray(space.project(rng.standard_normal(space.shape))) for _ in range(2))
    a, b = (np.asarray(space.coordinates(x)) for x in (A, B))
    assert a.shape == (space.size,)
    np.testing.assert_allclose(a @ b, np.sum(A * B), rtol=1e-12, atol=1e-12)  # an identity: rounding only
    np.testing.assert_allclose(space.element(a), A, rtol=1e-12, atol=1e-12)
    key = jax.random.key(d)
    np.testing.assert_array_equal(space.gaussian(key), space.element(jax.random.normal(key, (space.size,))))


# --- models -------------------------------------------------------------------------------------------------------------------

MODELS = [
    (gs.Symmetric(3), (4, 4)),
    (gs.Symmetric(), (4, 4)),
    (gs.models.SymmetricDifference(1), (4, 4)),
    (gs.Diagonal(), (6,)),
    (gs.Asymmetric(2), (5, 4)),
    (gs.Asymmetric(), (4, 4)),  # measured by all of its entries, although it is square
    (gs.DeepLinear(2, 5), (3, 4)),
    (gs.DeepLinear(5, 6), (3, 4)),
    (gs.DeepLinear(widths=(4, 7, 2, 5, 3)), (3, 4)),
]
SYMMETRIC = (gs.Symmetric, gs.models.SymmetricDifference)
PRINTED = {"Symmetric": 2, "SymmetricDifference": 2, "Diagonal": 2}
"""The true derivative of U U^T has a factor 2, which the models of Xu 2024 leave out by default."""
every_model = pytest.mark.parametrize(("model", "shape"), MODELS, ids=str)


def random_params(model: gs.Model, shape: tuple[int, ...], seed: int = 2) -> tuple[np.ndarray, ...]:
    rng = np.random.default_rng(seed)
    return tuple(rng.standard_normal(side) for side in model.shapes(shape))


@every_model
def test_product_and_pullback_equal_the_twin(model, shape, x64):
    name, params = type(model).__name__, random_params(model, shape)
    G = np.asarray(model.space(shape).project(np.random.default_rng(3).standard_normal(shape)))
    product, moved = jax.jit(lambda params: (model.product(params), model.pullback(params, G)))(params)
    # Products of up to five matrices, in another order.
    np.testing.assert_allclose(product, reference.product(name, params), rtol=1e-11, atol=1e-11)
    derivative = gs.Model.pullback(model, params, G)
    for ours, twin, slope in zip(moved, reference.pullback(name, params, G), derivative, strict=True):
        np.testing.assert_allclose(ours, twin, rtol=1e-11, atol=1e-11)
        np.testing.assert_allclose(PRINTED.get(name, 1) * ours, slope, rtol=1e-11, atol=1e-11)


def test_every_public_model_is_compared():
    public = {n for n in gs.places() if isinstance(gs.public(n), type) and issubclass(gs.public(n), gs.Model)}
    assert public - {"Model"} == {type(model).__name__ for model, _ in MODELS}


@every_model
def test_factors_ranks_spaces_and_turned_coordinates(model, shape, x64):
    params = random_params(model, shape)
    A, factor, cofactor = np.asarray(model.product(params)), model.factor(params), model.cofactor(params)
    assert model.space(shape).size == (10 if isinstance(model, SYMMETRIC) else A.size)
    assert factor.shape[0] == shape[0]
    if cofactor is None:  # all parameters side by side
        assert np.sum(factor**2) == pytest.approx(sum(np.sum(p**2) for p in params), rel=1e-12)
    else:
        assert cofactor.shape[0] == shape[1]
    if len(shape) == 1:
        return
    assert model.rank_limit(shape) == np.linalg.matrix_rank(A)
    rng = np.random.default_rng(4)
    L, R = rng.standard_normal((2, shape[0])), rng.standard_normal((5, shape[1]))
    R = L if cofactor is None else R
    np.testing.assert_allclose(model.product(model.rotated(params, L, R)), L @ A @ R.T, rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize("k", [1, 2, 4, 6])
@pytest.mark.parametrize("kind", [gs.Asymmetric, lambda k: gs.DeepLinear(3, k), lambda k: gs.DeepLinear(5, k)])
def test_balanced_factors_of_the_nearest_product(kind, k, x64):
    A = np.random.default_rng(4).standard_normal((5, 4))
    model = kind(k)
    params = [np.asarray(p) for p in model.factorise(jnp.asarray(A))]
    assert tuple(p.shape for p in params) == model.shapes((5, 4))
    np.testing.assert_allclose(model.product(params), reference.truncated(A, k), atol=1e-12)
    layers = params if isinstance(model, gs.DeepLinear) else [params[1].T, params[0]]
    for before, after in itertools.pairwise(layers):
        np.testing.assert_allclose(before @ before.T, after.T @ after, rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize("k", [1, 2, 4, 7])
def test_symmetric_factors_of_the_nearest_product(k, x64):
    """U U^T has no negative eigenvalues, so the nearest product keeps the largest positive ones."""
    Q, values = orthonormal(5, 5, 5), np.array([3.0, -2.0, 1.5, 0.5, -0.1])
    A = (Q * values) @ Q.T
    (U,) = (np.asarray(x) for x in gs.Symmetric(k).factorise(A))
    kept = [3.0, 0.0, 1.5 * (k > 1), 0.5 * (k > 2), 0.0]
    assert U.shape == (5, k)
    np.testing.assert_allclose(U @ U.T, (Q * kept) @ Q.T, atol=1e-13)
    U, V = (np.asarray(x) for x in gs.models.SymmetricDifference(k).factorise(A))
    kept[1], kept[4] = -2.0, -0.1 * (k > 1)
    np.testing.assert_allclose(U @ U.T - V @ V.T, (Q * kept) @ Q.T, atol=1e-13)
