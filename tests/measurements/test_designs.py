"""Designs as arrays that runs share, the Gram operator, and the mean square residual of every measurement."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import gyrostat as gs
import reference
from conftest import Notes, given_environments, orthonormal, rectangular_environments
from gyrostat.measurements.base import Demand, Scene
from gyrostat.measurements.dense import DesignGram, DesignRows
from gyrostat.models.spaces import RectangularMatrices, SymmetricMatrices

LAW = gs.Finite([-1.0, 2.0], [0.4, 0.6])
SQUARE, RECTANGLE = given_environments(3, LAW), rectangular_environments(4, 3, LAW)
SPACES = {"symmetric": (SQUARE, SymmetricMatrices(3)), "rectangle": (RECTANGLE, RectangularMatrices(4, 3))}
ALONE, MIXED = Demand(1, False), Demand(1, True)
KEY = 0
"""Of jax.random.key: what is asked here does not depend on it."""


def scene_of(kind: str, seed: int = 0) -> Scene:
    environments, space = SPACES[kind]
    return Scene(environments, space, jnp.asarray(reference.gaussian(np.random.default_rng(seed), environments.shape)))


def matrices_of(kind: str, X: np.ndarray) -> np.ndarray:
    """Measurement matrices from their coordinates."""
    if kind == "symmetric":
        return np.stack([reference.smat(x) for x in X])
    return X.reshape(-1, *RECTANGLE.shape)


def residuals(X: np.ndarray, A: np.ndarray, y: np.ndarray) -> np.ndarray:
    return np.array([np.sum(X_i * A) - y_i for X_i, y_i in zip(X, y, strict=True)])


# --- one design for all runs ----------------------------------------------------------------------


def test_runs_share_the_design_of_a_number(notes: Notes):
    """Three seeds with different starts use the same rows, and these are the rows that ``rows`` returns."""
    measurements = gs.Dense(6, noise=0.3, design=11, operator="rows")
    problem = gs.Problem(RECTANGLE, notes.spy(measurements))
    result = gs.run(gs.GradientDescent(0.01, width=2), problem, num_steps=2, seeds=3, record=["distance"], record_at=2)
    assert len(np.unique(result.distance[:, 0])) == 3
    rows = measurements.rows(RECTANGLE, RectangularMatrices(4, 3))
    assert rows.matrices.shape == (2, 6, 12) and rows.noises.shape == (2, 6)
    questions = [note for run in notes.read() for note in run]
    assert len(questions) == 3 * 2 * 2
    for note in questions:
        e = int(note["index"])
        np.testing.assert_array_equal(note["rows"], rows.matrices[e])
        y = np.asarray(rows.matrices[e]) @ note["target"].ravel() + np.asarray(rows.noises[e])
        np.testing.assert_allclose(note["responses"], y, atol=1e-13)
    assert not np.array_equal(rows.matrices[0], rows.matrices[1])  # each environment has its own


def test_other_numbers_and_no_number_are_other_designs(x64):
    space = RectangularMatrices(4, 3)
    one, two = (np.asarray(gs.Dense(6, design=i).rows(RECTANGLE, space).matrices) for i in (1, 2))
    assert np.abs(one - two).min() > 0
    keys = jax.random.key(1), jax.random.key(2)
    first, second = (gs.Dense(6, operator="rows").init(key, RECTANGLE, space, ALONE).matrices for key in keys)
    assert np.abs(np.asarray(first) - np.asarray(second)).min() > 0


@pytest.mark.parametrize("kind", SPACES)
def test_gram_operator_equals_rows(kind, x64):
    scene = scene_of(kind)
    by_rows, by_gram = (gs.Dense(20, noise=0.4, design=5, operator=operator) for operator in ("rows", "gram"))
    rows = by_rows.init(jax.random.key(KEY), scene.environments, scene.space, ALONE)
    gram = by_gram.init(jax.random.key(KEY), scene.environments, scene.space, ALONE)
    assert isinstance(rows, DesignRows) and isinstance(gram, DesignGram)
    for e in range(2):
        wanted, _ = by_rows.sense(rows, None, scene, LAW.at(e))
        result, _ = by_gram.sense(gram, None, scene, LAW.at(e))
        for field in ("gradient", "residual_square", "response_mean"):
            np.testing.assert_allclose(getattr(result, field), getattr(wanted, field), rtol=1e-12, atol=1e-12)
        # And the rows themselves against sums written out.
        X = matrices_of(kind, np.asarray(rows.matrices[e]))
        A, target = np.asarray(scene.product), np.asarray(scene.environments.target(LAW.values[e]))
        y = residuals(X, target, -np.asarray(rows.noises[e]))
        np.testing.assert_allclose(wanted.gradient, reference.gradient(A, X, y), atol=1e-12)
        assert float(wanted.residual_square) == pytest.approx(np.mean(residuals(X, A, y) ** 2), rel=1e-12)
        assert float(wanted.response_mean) == pytest.approx(y.mean(), rel=1e-12)


@pytest.mark.parametrize(
    ("m", "demand", "kind"), [(3, ALONE, DesignGram), (2, ALONE, DesignRows), (3, MIXED, DesignRows)]
)
def test_the_cheaper_operator_is_chosen(m, demand, kind, x64):
    """Six coordinates: one product with 6 x 6 numbers against two with m x 6; a mixture draws from the rows."""
    state = gs.Dense(m).init(jax.random.key(KEY), SQUARE, SymmetricMatrices(3), demand)
    assert isinstance(state, kind)


# --- single precision -----------------------------------------------------------------------------


@pytest.mark.parametrize("operator", ["rows", "gram"])
def test_single_precision_is_that_of_the_design_only(operator, x64):
    """The error of the reading is of the size of single precision, while everything else stays in double precision."""
    scene = scene_of("rectangle")
    wanted, result = (_first_reading(scene, operator, precision) for precision in ("double", "single"))
    for field in ("gradient", "residual_square"):
        one, other = np.asarray(getattr(wanted, field)), np.asarray(getattr(result, field))
        assert other.dtype == np.float64
        off = np.abs(one - other).max() / np.abs(one).max()
        assert 1e-10 < off < 1e-5, f"{field} is off by {off:.1e}"


def _first_reading(scene, operator, precision):
    measurements = gs.Dense(20, noise=0.4, design=5, operator=operator, precision=precision)
    state = measurements.init(jax.random.key(KEY), scene.environments, scene.space, ALONE)
    return measurements.sense(state, None, scene, LAW.at(0))[0]


@pytest.mark.parametrize("operator", ["rows", "gram"])
def test_single_precision_does_not_end_convergence(operator):
    environments = gs.Environments.diagonal(6, [1.0, 1.0])
    problem = gs.Problem(environments, gs.Dense(200, design=1, operator=operator, precision="single"))
    result = gs.run(gs.GradientDescent(0.2, width=2, start=0.1), problem, num_steps=500, seeds=2, record=["distance"])
    assert (result.distance.isel(step=-1) < 1e-13).all()


def test_single_precision_refuses_designs_that_jax_multiplies_wrongly():
    problem = gs.Problem(gs.Environments.diagonal(3), gs.Dense(32_769, design=1, precision="single"))
    with pytest.raises(gs.GyrostatError, match=r"at most 32768 rows .* got 32769 x 9: use precision='double'"):
        gs.run(gs.GradientDescent(0.1, width=2), problem, num_steps=1)


# --- the mean square residual ---------------------------------------------------------------------


def test_the_residual_is_that_of_the_row_that_gives_the_gradient(x64):
    rng = np.random.default_rng(1)
    X, y, label = rng.standard_normal((9, 4, 3)), rng.standard_normal(9), np.arange(9) % 2
    data, scene = gs.DenseData(X, y, label, batch_size=1), scene_of("rectangle", 2)
    state = data.init(jax.random.key(KEY), RECTANGLE, scene.space, ALONE)
    errors = residuals(X[label == 1], np.asarray(scene.product), y[label == 1])
    gradients = errors[:, None, None] * X[label == 1]
    reading, _ = data.sense(state, jax.random.key(7), scene, LAW.at(1))
    row = np.argmin(np.abs(gradients - np.asarray(reading.gradient)).max(axis=(1, 2)))
    np.testing.assert_allclose(gradients[row], reading.gradient, atol=1e-12)
    np.testing.assert_allclose(reading.residual_square, errors[row] ** 2, rtol=1e-12)


def test_the_residual_of_a_revealed_design_is_the_form_of_its_gram_matrix(x64):
    """Without noise residuals are <B, X^T X B> / m, before and after every direction is known; m rows are m directions."""
    scene, measurements = scene_of("symmetric"), gs.FixedGaussian(4)
    state = measurements.init(jax.random.key(KEY), SQUARE, scene.space, Demand(30, False))
    sense = jax.jit(lambda state, key, A: measurements.sense(state, key, scene._replace(product=A), LAW.at(0)))
    target, rng = np.asarray(SQUARE.target(LAW.values[0])), np.random.default_rng(4)
    for t in range(8):
        A = reference.gaussian(rng, (3, 3))
        reading, state = sense(state, jax.random.key(t), jnp.asarray(A))
        assert float(reading.residual_square) == pytest.approx(
            np.sum((A - target) * np.asarray(reading.gradient)), rel=1e-11
        )
    assert np.asarray(state.known)[0] == 4


def test_square_asymmetric_targets_are_measured_by_all_their_entries(x64):
    """Asymmetric on a square target: rows have n^2 coordinates, not n (n + 1) / 2."""
    environments = gs.Environments(orthonormal(8, 3, 1))
    space = gs.Asymmetric().space(environments.shape)
    rows = gs.Dense(5, design=0).rows(environments, space)
    assert rows.matrices.shape == (1, 5, 9)
    A = rows.matrices[0, 0].reshape(3, 3)
    assert np.abs(np.asarray(A - A.T)).max() > 0.1
