"""Rectangular environments, given and random, and the diagonal truth."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

import gyrostat as gs
from conftest import orthonormal

N1, N2, K = 5, 4, 3


def test_targets_of_rectangular_environments(x64):
    left, right = orthonormal(20, 6, 4), orthonormal(21, 5, 4)
    S = np.array([[1.0, 0.3], [0.3, -2.0]])
    law = gs.Finite([S, -S, 3 * S], [0.5, 0.25, 0.25])
    environments = gs.RectangularEnvironments(
        left[:, :2], right[:, :2], left[:, 2:], right[:, 2:], law, values=[2.0, -1.0]
    )
    A_star = left[:, :2] @ np.diag([2.0, -1.0]) @ right[:, :2].T
    B = left[:, 2:] @ S @ right[:, 2:].T
    assert environments.shape == (6, 5)
    np.testing.assert_allclose(environments.invariant, A_star, atol=1e-14)
    np.testing.assert_allclose(environments.target(S), A_star + B, atol=1e-14)
    np.testing.assert_allclose(environments.mean_target, A_star + B, atol=1e-14)  # .5 - .25 + .75 = 1
    np.testing.assert_allclose(environments.signal_block(A_star + B), np.diag([2.0, -1.0]), atol=1e-14)
    np.testing.assert_allclose(environments.spurious_block(A_star + B), S, atol=1e-14)
    L, R = orthonormal(22, 6, 6), orthonormal(23, 5, 5)
    np.testing.assert_allclose(environments.rotated(L, R).target(S), L @ (A_star + B) @ R.T, atol=1e-13)


def test_random_rectangles_have_orthonormal_bases_of_their_own(x64):
    recipe = gs.RandomRectangular(7, 4, rank=2, law=gs.TwoPoint(rank=1), values=[2.0, 1.0])
    sides = jax.jit(
        jax.vmap(
            lambda k: (
                lambda p: (
                    jnp.concatenate([p.invariant_basis, p.spurious_basis], axis=1),
                    jnp.concatenate([p.right_basis, p.right_spurious_basis], axis=1),
                    p.invariant,
                )
            )(recipe.draw(k))
        )
    )
    L, R, A = (np.asarray(x) for x in sides(jax.random.split(jax.random.key(0), 8)))
    for basis in (L, R):  # spurious directions are orthogonal to invariant ones
        np.testing.assert_allclose(np.swapaxes(basis, 1, 2) @ basis, np.broadcast_to(np.eye(3), (8, 3, 3)), atol=1e-13)
    values = np.linalg.svd(A, compute_uv=False)
    np.testing.assert_allclose(values, np.broadcast_to([2.0, 1.0, 0.0, 0.0], values.shape), atol=1e-13)
    assert len({round(a[0, 0], 9) for a in A}) == 8
    assert recipe.shape == (7, 4)


def test_a_diagonal_truth(x64):
    environments = gs.Environments.diagonal(4, [3.0, -1.0])
    np.testing.assert_array_equal(environments.invariant, np.diag([3.0, -1.0, 0.0, 0.0]))
    assert environments.law.count == 1 and environments.mean_target.shape == (4, 4)
