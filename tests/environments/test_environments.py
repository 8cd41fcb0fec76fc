"""Environments, given and random, against their formulas, the matrices that made them and SciPy."""

from __future__ import annotations

import jax
import numpy as np
import pytest
from scipy import stats
from scipy.linalg import subspace_angles

import gyrostat as gs
from checks import refuses
from conftest import orthonormal

FAMILY = 1e-3
ROUNDING = 1e-12
S = np.array([[1.0, 0.3], [0.3, -2.0]])
L, R = orthonormal(20, 6, 4), orthonormal(21, 5, 4)


def keys(n: int = 4000, seed: int = 0):
    return jax.random.split(jax.random.key(seed), n)


def drawn(recipe, n: int = 4000, seed: int = 0):
    """Bases of many draws: invariant (n, d, r1) and spurious (n, d, r2)."""
    pick = jax.jit(jax.vmap(lambda k: (lambda p: (p.invariant_basis, p.spurious_basis))(recipe.draw(k))))
    return tuple(np.asarray(x) for x in pick(keys(n, seed)))


# --- given environments -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("right", [L, R], ids=["square", "rectangular"])
def test_targets_of_given_environments(right, x64):
    law, values = gs.Finite([S, -S, 3 * S], [0.5, 0.25, 0.25]), [2.0, -1.0]
    if right is L:
        environments, other = gs.Environments(L[:, :2], L[:, 2:], law, values=values), orthonormal(22, 6, 6)
    else:
        bases = L[:, :2], R[:, :2], L[:, 2:], R[:, 2:]
        environments, other = gs.RectangularEnvironments(*bases, law, values=values), orthonormal(23, 5, 5)
    A_star, B = L[:, :2] @ np.diag(values) @ right[:, :2].T, L[:, 2:] @ S @ right[:, 2:].T
    assert environments.shape == A_star.shape
    np.testing.assert_allclose(environments.invariant, A_star, atol=1e-14)
    np.testing.assert_allclose(environments.target(2 * S), A_star + 2 * B, atol=1e-14)
    np.testing.assert_allclose(environments.mean_target, A_star + B, atol=1e-14)  # .5 - .25 + .75 = 1
    np.testing.assert_allclose(environments.signal_block(A_star + B), np.diag(values), atol=1e-14)
    np.testing.assert_allclose(environments.spurious_block(A_star + B), S, atol=1e-14)
    rotated, left = environments.rotated(orthonormal(22, 6, 6), other), orthonormal(22, 6, 6)
    np.testing.assert_allclose(rotated.target(S), left @ (A_star + B) @ other.T, atol=1e-13)


def test_vector_environments_are_the_diagonal_case(x64):
    law = gs.Finite([[1.0, 2.0], [3.0, -4.0]])
    vectors = gs.VectorEnvironments([0.0, 5.0, 0.0, -1.0], [0, 2], law)
    axes, beta = np.eye(4), np.arange(4.0)
    matrices = gs.Environments(axes[:, [1, 3]], axes[:, [0, 2]], law, values=[5.0, -1.0])
    np.testing.assert_array_equal(np.diag(matrices.target(law.values[1])), vectors.target(law.values[1]))
    np.testing.assert_array_equal(vectors.signal_block(beta), matrices.signal_block(np.diag(beta)))
    np.testing.assert_array_equal(vectors.spurious_block(beta), matrices.spurious_block(np.diag(beta)))


# --- environments from matrices and features ----------------------------------------------------------------------------------


def targets(environments: gs.Environments) -> np.ndarray:
    return np.stack([np.asarray(environments.target(sigma)) for sigma in environments.law.values])


def symmetric(seed: int, rank: int) -> np.ndarray:
    Q = orthonormal(seed, 5, rank)
    return Q @ np.diag(np.random.default_rng(seed).standard_normal(rank)) @ Q.T


@pytest.mark.parametrize("ranks", [(1, 1), (2, 3), (5, 5), (3, 1), (2, 0)], ids=str)
def test_the_targets_are_the_given_matrices(ranks, x64):
    A_star = symmetric(0, ranks[0])
    matrices = [A_star + symmetric(e, ranks[1]) for e in (1, 2, 3)]
    environments = gs.Environments.from_matrices(A_star, matrices, weights=[0.2, 0.3, 0.5])
    assert environments.law.rank == min(3 * ranks[1], 5)
    np.testing.assert_allclose(targets(environments), matrices, atol=ROUNDING)
    np.testing.assert_allclose(environments.invariant, A_star, atol=ROUNDING)
    mean = np.tensordot([0.2, 0.3, 0.5], matrices, axes=1)
    np.testing.assert_allclose(environments.mean_target, mean, atol=ROUNDING)


def test_the_subspaces_are_those_that_made_the_matrices(x64):
    # The axes of the sum of squares are not unique here, so only a joint diagonalisation finds these.
    strengths = [[1.0, 2.0, 3.0], [2.0, 1.0, 3.0]]
    basis = orthonormal(0, 8, 5)
    A_star, V = basis[:, :2] @ np.diag([3.0, -1.0]) @ basis[:, :2].T, basis[:, 2:]
    environments = gs.Environments.from_matrices(A_star, [A_star + V @ np.diag(s) @ V.T for s in strengths])
    assert subspace_angles(environments.spurious_basis, V).max() < 1e-10
    assert environments.overlap < ROUNDING and environments.law.off_diagonal == 0
    columns = {tuple(np.round(s, 9)) for s in np.diagonal(environments.law.values, axis1=1, axis2=2).T}
    assert columns == set(zip(*strengths, strict=True))


def test_rectangular_targets_are_the_given_matrices(x64):
    left, right = orthonormal(0, 5, 4), orthonormal(1, 4, 4)
    A_star = left[:, :2] @ np.diag([2.0, 1.0]) @ right[:, :2].T
    matrices = [A_star + left[:, 1:3] @ np.diag(s) @ right[:, 2:].T for s in ([1.0, -2.0], [3.0, 2.0], [0.0, 1.0])]
    environments = gs.RectangularEnvironments.from_matrices(A_star, matrices)
    np.testing.assert_allclose(targets(environments), matrices, atol=ROUNDING)
    assert environments.overlap == pytest.approx(1.0)  # the left bases share a direction


DEPENDENT = np.array([[1.0, 2.0], [0.0, 0.0], [1.0, 2.0]]), np.array([[0, 0, 1.0], [1.0, -3.0, 0], [0, 0, 0]])


@pytest.mark.parametrize(
    ("a", "b", "ranks"),
    [(orthonormal(1, 6, 2) @ S, np.random.default_rng(0).standard_normal((6, 3)), (2, 3)), (*DEPENDENT, (1, 2))],
    ids=["independent", "dependent"],
)
def test_features_give_the_sum_of_their_outer_products(a, b, ranks, x64):
    law = gs.TwoPoint(mean=1.0, spread=2.0, rank=3, independent=True)
    environments = gs.Environments.from_features(a, b, law)
    assert (environments.invariant_basis.shape[1], environments.law.rank) == ranks and environments.law.count == 8
    np.testing.assert_allclose(targets(environments), a @ a.T + b @ law.values @ b.T, atol=1e-11)
    assert environments.overlap == pytest.approx(np.cos(subspace_angles(a, b)).max(), abs=ROUNDING)


from_matrices, from_features = gs.Environments.from_matrices, gs.Environments.from_features
EYE = np.eye(3)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: from_matrices(EYE, []), ["at least one target"]),
        (lambda: from_matrices(0 * EYE, [EYE]), ["A_star is zero"]),
        (lambda: from_matrices(EYE, [EYE, np.eye(4)]), ["matrices[1] has shape (4, 4)"]),
        (lambda: from_matrices(EYE, [np.triu(np.ones((3, 3)))]), ["symmetrise them"]),
        (lambda: from_matrices(np.ones((2, 3)), [np.ones((2, 3))]), ["RectangularEnvironments"]),
        (lambda: from_matrices(EYE, [np.nan * EYE]), ["matrices[0] must be finite"]),
        (lambda: from_matrices(EYE, [EYE] * 2, weights=[1.0]), ["weights must have one entry"]),
        (
            lambda: gs.RectangularEnvironments.from_matrices(
                np.eye(2, 3), np.random.default_rng(0).standard_normal((3, 2, 3))
            ),
            ["no common left and right"],
        ),
        (lambda: from_features(np.zeros((3, 1))), ["no column of zeros"]),
        (lambda: from_features(np.eye(3, 1), np.eye(4, 1), gs.TwoPoint()), ["make them equal"]),
        (lambda: from_features(np.eye(3, 1), np.eye(3, 2), gs.TwoPoint()), ["give the law rank=2"]),
    ],
)
def test_matrices_and_features_that_are_refused(make, words):
    refuses(make, *words)


ARRAYS = np.array([[0.1, 0.7], [0.3, 0.1]])


@pytest.mark.parametrize(
    "made",
    [
        gs.Environments(np.eye(4, 1), np.eye(4, 1, k=-1), gs.TwoPoint(1 / 3, 0.1)),
        from_features(np.eye(3, 1), np.array([[0, 0], [1.0, 0], [1.0, 1.0]]), gs.Uniform(rank=2)),
        gs.environments.ArrayEnvironments(ARRAYS, [0.3 * ARRAYS, ARRAYS.T], [0.2, 0.8]),
        gs.environments.ArrayEnvironments([0.1, 0.7]),
    ],
    ids=["digits", "features", "arrays", "one array"],
)
def test_the_text_says_all_digits_that_were_given(made):
    assert eval(repr(made), {name: gs.public(name) for name in gs.places()}) == made


# --- random environments ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("r1", "r2", "overlap"), [(1, 1, 0.3), (2, 3, 0.1), (3, 2, 0.7), (2, 2, 0.0), (1, 1, 1.0)])
def test_overlap_is_every_principal_cosine(r1, r2, overlap, x64):
    U, V = drawn(gs.RandomEnvironments(7, r1, gs.TwoPoint(rank=r2), overlap=overlap), 20)
    for basis in (U, V):
        np.testing.assert_allclose(basis.mT @ basis - np.eye(basis.shape[2]), 0, atol=1e-12)
    np.testing.assert_allclose(np.linalg.svd(U.mT @ V, compute_uv=False), overlap, atol=1e-12)


def test_placements_are_uniform(x64):
    d, (U, V) = 6, drawn(gs.RandomEnvironments(6, 1, gs.TwoPoint(), placement="random"))
    _, tilted = drawn(gs.RandomEnvironments(6, 1, gs.TwoPoint(), overlap=0.4), seed=1)
    beta = stats.beta(0.5, (d - 1) / 2)  # the squared coordinate of a uniform unit vector
    squares = [np.einsum("ndi,ndi->n", U, V) ** 2, U[:, 2, 0] ** 2, (tilted[:, :, 0] @ orthonormal(3, d, 1)[:, 0]) ** 2]
    assert min(stats.kstest(x, beta.cdf).pvalue for x in squares) > FAMILY / len(squares)
    # The check can fail: squared coordinates of a Gaussian vector, not normalised.
    wrong = np.random.default_rng(0).standard_normal(4000) ** 2 / d
    assert stats.kstest(wrong, beta.cdf).pvalue < 1e-6


def test_random_rectangles_have_orthonormal_bases_and_the_given_values(x64):
    recipe = gs.environments.RandomRectangular(7, 4, rank=2, law=gs.TwoPoint(rank=1), values=[2.0, 1.0])
    environments, other = (recipe.draw(key) for key in keys(2))
    for bases in (
        (environments.invariant_basis, environments.spurious_basis),
        (environments.right_basis, environments.right_spurious_basis),
    ):
        basis = np.hstack(bases)  # spurious directions are orthogonal to invariant ones
        np.testing.assert_allclose(basis.T @ basis, np.eye(3), atol=1e-13)
    np.testing.assert_allclose(np.linalg.svd(environments.invariant)[1], [2.0, 1.0, 0.0, 0.0], atol=1e-13)
    assert not np.allclose(environments.invariant, other.invariant)
    square = gs.RandomEnvironments(6, 3, values=[2.0, 0.5, -1.0]).draw(jax.random.key(1))
    np.testing.assert_allclose(np.linalg.eigvalsh(square.invariant), [-1, 0, 0, 0, 0.5, 2], atol=1e-12)


def test_feature_environments_reproduce_the_sum_of_features(x64):
    d, law = 8, gs.Finite([[1.0, -2.0], [4.0, 0.5]])
    key = jax.random.key(3)
    environments = gs.environments.FeatureEnvironments(d, 3, law).draw(key)
    one, two = jax.random.split(key)
    a, b = (np.asarray(jax.random.normal(k, (d, r), dtype=float)) / np.sqrt(d) for k, r in ((one, 3), (two, 2)))
    wanted = [a @ a.T + b @ sigma @ b.T for sigma in law.values]
    np.testing.assert_allclose(targets(environments), wanted, atol=1e-12)
    np.testing.assert_allclose(environments.invariant_basis.T @ environments.invariant_basis, np.eye(3), atol=1e-12)
