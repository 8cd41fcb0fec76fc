"""Models with factors: Asymmetric against its twin and PyTorch, and the factorisations of all factor models."""

from __future__ import annotations

import numpy as np
import pytest

import gyrostat as gs
import reference
from conftest import orthonormal

N1, N2, K = 5, 4, 3


@pytest.mark.parametrize("width", [None, 1, 3, 7])
def test_shapes_follow_the_target_and_the_width(width):
    k = min(N1, N2) if width is None else width
    assert gs.Asymmetric(width).shapes((N1, N2)) == ((N1, k), (N2, k))
    assert gs.Asymmetric(width).space((N1, N2)).shape == (N1, N2)


@pytest.mark.parametrize("k", [1, 2, 4, 6])
def test_two_factors_of_the_nearest_product(k, x64):
    A = np.random.default_rng(4).standard_normal((N1, N2))
    F, G = (np.asarray(x) for x in gs.Asymmetric(k).factorise(A))
    assert F.shape == (N1, k) and G.shape == (N2, k)
    np.testing.assert_allclose(F @ G.T, reference.truncated(A, k), atol=1e-13)
    np.testing.assert_allclose(F.T @ F, G.T @ G, atol=1e-13)  # balanced


@pytest.mark.parametrize("k", [1, 2, 4, 7])
def test_symmetric_factors_of_the_nearest_product(k, x64):
    """U U^T has no negative eigenvalues, so the nearest product keeps the largest positive ones."""
    Q, values = orthonormal(5, N1, N1), np.array([3.0, -2.0, 1.5, 0.5, -0.1])
    A = (Q * values) @ Q.T
    (U,) = (np.asarray(x) for x in gs.Symmetric(k).factorise(A))
    kept = [3.0, 0.0, 1.5 * (k > 1), 0.5 * (k > 2), 0.0]
    assert U.shape == (N1, k)
    np.testing.assert_allclose(U @ U.T, (Q * kept) @ Q.T, atol=1e-13)
    U, V = (np.asarray(x) for x in gs.SymmetricDifference(k).factorise(A))
    kept[1], kept[4] = -2.0, -0.1 * (k > 1)
    np.testing.assert_allclose(U @ U.T - V @ V.T, (Q * kept) @ Q.T, atol=1e-13)
