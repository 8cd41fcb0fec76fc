"""Environments from a user's own matrices and features, against the matrices themselves and brute force."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.linalg import subspace_angles

import gyrostat as gs
from conftest import orthonormal

ROUNDING = 1e-12


def symmetric(seed: int, d: int, rank: int) -> np.ndarray:
    Q = orthonormal(seed, d, rank)
    return Q @ np.diag(np.random.default_rng(seed).standard_normal(rank)) @ Q.T


def targets(environments: gs.Environments) -> np.ndarray:
    return np.stack([np.asarray(environments.target(sigma)) for sigma in environments.law.values])


@pytest.mark.parametrize("ranks", [(1, 1), (2, 3), (5, 5), (3, 1)], ids=str)
def test_the_targets_are_the_given_matrices(ranks, x64):
    A_star = symmetric(0, 5, ranks[0])
    given = [A_star + symmetric(e, 5, ranks[1]) for e in (1, 2, 3)]
    environments = gs.Environments.from_matrices(A_star, given, weights=[0.2, 0.3, 0.5])
    assert np.abs(targets(environments) - given).max() < ROUNDING
    assert np.abs(np.asarray(environments.invariant) - A_star).max() < ROUNDING
    assert np.abs(np.asarray(environments.mean_target) - np.tensordot([0.2, 0.3, 0.5], given, axes=1)).max() < ROUNDING


def test_subspaces_are_those_that_made_the_matrices(x64):
    basis = orthonormal(0, 8, 5)
    U, V = basis[:, :2], basis[:, 2:]
    given = [U @ np.diag([3.0, -1.0]) @ U.T + V @ np.diag(s) @ V.T for s in ([1.0, 2.0, 0.0], [-4.0, 0.0, 5.0])]
    environments = gs.Environments.from_matrices(U @ np.diag([3.0, -1.0]) @ U.T, given)
    assert environments.law.rank == 3
    assert subspace_angles(environments.invariant_basis, U).max() < 1e-10
    assert subspace_angles(environments.spurious_basis, V).max() < 1e-10
    assert environments.overlap < ROUNDING
    strengths = {tuple(np.round(s, 9)) for s in np.diagonal(environments.law.values, axis1=1, axis2=2).T}
    assert strengths == {(1.0, -4.0), (2.0, 0.0), (0.0, 5.0)}
    assert environments.law.off_diagonal < ROUNDING


def test_commuting_differences_with_equal_mean_squares_are_diagonal(x64):
    # the principal axes of the sum of squares are not unique here, so only a joint diagonalisation finds these
    V = orthonormal(3, 4, 2)
    given = [np.eye(4) + V @ np.diag(s) @ V.T for s in ([1.0, 2.0], [2.0, 1.0])]
    environments = gs.Environments.from_matrices(np.eye(4), given)
    assert environments.law.off_diagonal == 0
    assert np.abs(targets(environments) - given).max() < ROUNDING


def test_overlap_is_the_cosine_of_the_smallest_angle(x64):
    a, b = np.array([1.0, 0.0, 0.0]), np.array([np.cos(0.3), np.sin(0.3), 0.0])
    A_star = np.outer(a, a)
    environments = gs.Environments.from_matrices(A_star, [A_star + s * np.outer(b, b) for s in (-2.0, 4.0)])
    assert environments.overlap == pytest.approx(np.cos(0.3), abs=ROUNDING)


def test_what_signal_and_spurious_mean_with_overlap():
    a, b = np.array([1.0, 0.0, 0.0]), np.array([0.6, 0.8, 0.0])
    A_star = np.outer(a, a)
    environments = gs.Environments.from_matrices(A_star, [A_star + s * np.outer(b, b) for s in (1.0, 3.0)])
    at_truth = gs.Algorithm(gs.Symmetric(width=1), gs.Given(a[:, None]), gs.Full(), gs.Constant(1e-9))
    end = gs.run(at_truth, gs.Problem(environments, gs.Identity()), num_steps=1).isel(step=0, seed=0)
    assert float(end.signal) == pytest.approx(1.0, abs=1e-12)
    assert float(end.spurious) == pytest.approx((b @ A_star @ b) / 2.0, abs=1e-12)
    assert float(end.distance) == pytest.approx(0.0, abs=1e-12)


def test_equal_matrices_have_no_spurious_part_and_keep_their_number():
    environments = gs.Environments.from_matrices(np.eye(3), [np.eye(3)] * 4)
    assert environments.law.rank == 0 and environments.law.count == 4 and environments.overlap == 0
    gs.run(gs.HeteroSGD(0.05), gs.Problem(environments, gs.Identity()), num_steps=3)


def test_rectangular_targets_are_the_given_matrices(x64):
    left, right = orthonormal(0, 5, 4), orthonormal(1, 4, 4)
    A_star = left[:, :2] @ np.diag([2.0, 1.0]) @ right[:, :2].T
    given = [A_star + left[:, 1:3] @ np.diag(s) @ right[:, 2:].T for s in ([1.0, -2.0], [3.0, 2.0], [0.0, 1.0])]
    environments = gs.RectangularEnvironments.from_matrices(A_star, given)
    assert np.abs(targets(environments) - given).max() < ROUNDING
    assert environments.overlap == pytest.approx(1.0)  # the left bases share a direction


def test_features_give_the_sum_of_their_outer_products(x64):
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((6, 2)), rng.standard_normal((6, 3))
    law = gs.TwoPoint(mean=1.0, spread=2.0, rank=3, independent=True)
    environments = gs.Environments.from_features(a, b, law)
    values, weights = environments.law.nodes()
    assert weights.size == 8
    for sigma, own in zip(values, law.values, strict=True):
        assert np.abs(np.asarray(environments.target(sigma)) - (a @ a.T + b @ own @ b.T)).max() < 1e-11
    cosines = np.cos(subspace_angles(a, b))
    assert environments.overlap == pytest.approx(cosines.max(), abs=1e-12)


def test_dependent_features_lower_the_rank(x64):
    a = np.array([[1.0, 2.0], [0.0, 0.0], [1.0, 2.0]])
    b = np.array([[0.0, 0.0, 1.0], [1.0, -3.0, 0.0], [0.0, 0.0, 0.0]])
    law = gs.Finite(np.stack([np.diag([1.0, 2.0, 3.0]), np.eye(3)]))
    environments = gs.Environments.from_features(a, b, law)
    assert environments.invariant_basis.shape == (3, 1) and environments.law.rank == 2
    for index, own in enumerate(law.values):
        target = environments.target(environments.law.at(index).sigma)
        assert np.abs(np.asarray(target) - (a @ a.T + b @ own @ b.T)).max() < ROUNDING
    gs.run(gs.PooledSGD(0.01), gs.Problem(environments, gs.FreshGaussian(100)), num_steps=2, seeds=2)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: gs.Environments.from_matrices(np.eye(3), []), "at least one target"),
        (lambda: gs.Environments.from_matrices(np.zeros((3, 3)), [np.eye(3)]), "A_star is zero"),
        (lambda: gs.Environments.from_matrices(np.eye(3), [np.eye(3), np.eye(4)]), r"matrices\[1\] has shape \(4, 4\)"),
        (lambda: gs.Environments.from_matrices(np.eye(3), [np.triu(np.ones((3, 3)))]), "symmetrise them"),
        (lambda: gs.Environments.from_matrices(np.ones((2, 3)), [np.ones((2, 3))]), "RectangularEnvironments"),
        (lambda: gs.Environments.from_matrices(np.eye(3), [np.full((3, 3), np.nan)]), r"matrices\[0\] must be finite"),
        (
            lambda: gs.Environments.from_matrices(np.eye(3), [np.eye(3)] * 2, weights=[1.0]),
            "weights must have one entry",
        ),
        (
            lambda: gs.RectangularEnvironments.from_matrices(
                np.eye(2, 3), list(np.random.default_rng(0).standard_normal((3, 2, 3)))
            ),
            "no common left and right",
        ),
        (lambda: gs.Environments.from_features(np.zeros((3, 1))), "no column of zeros"),
        (lambda: gs.Environments.from_features(np.eye(3, 1), np.eye(4, 1), gs.TwoPoint()), "make them equal"),
        (lambda: gs.Environments.from_features(np.eye(3, 1), np.eye(3, 2), gs.TwoPoint()), "give the law rank=2"),
    ],
)
def test_bad_input_is_one_sentence(make, words):
    with pytest.raises(gs.GyrostatError, match=words) as caught:
        make()
    assert "\n" not in str(caught.value) and str(caught.value).endswith(".")
