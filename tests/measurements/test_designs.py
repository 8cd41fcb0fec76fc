"""Designs as arrays that runs share, the Gram operator, single precision; a design that is revealed query by query."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import gyrostat as gs
import reference
from checks import refuses
from conftest import Notes, given_environments, rectangular_environments
from gyrostat.measurements.base import Demand, Scene
from gyrostat.measurements.dense import DesignGram, DesignRows
from gyrostat.models.spaces import RectangularMatrices, SymmetricMatrices

LAW = gs.Finite([-1.0, 2.0], [0.4, 0.6])
SQUARE, RECTANGLE = given_environments(3, LAW), rectangular_environments(4, 3, LAW)
SPACES = {"symmetric": (SQUARE, SymmetricMatrices(3)), "rectangle": (RECTANGLE, RectangularMatrices(4, 3))}
ALONE, MIXED = Demand(1, False), Demand(1, True)
FIELDS = ("gradient", "residual_square", "response_mean")


def scene_of(kind: str) -> Scene:
    environments, space = SPACES[kind]
    A = reference.gaussian(np.random.default_rng(0), environments.shape)
    return Scene(environments, space, jnp.asarray(A))


def state_of(measurements: gs.measurements.Measurements, scene: Scene, demand: Demand = ALONE, seed: int = 0):
    return measurements.init(jax.random.key(seed), scene.environments, scene.space, demand)


# --- one design for all runs -------------------------------------------------------------------------------------------------


def test_runs_share_the_design_of_a_number(notes: Notes):
    """Three seeds with different starts use the same rows, and these are the rows that ``rows`` returns."""
    measurements = gs.Dense(6, noise=0.3, design=11, operator="rows")
    problem = gs.Problem(RECTANGLE, notes.spy(measurements))
    result = gs.run(gs.GradientDescent(0.01, width=2), problem, num_steps=2, seeds=3, record=["distance"], record_at=2)
    assert len(np.unique(result.distance[:, 0])) == 3
    matrices, noises = map(np.asarray, measurements.rows(RECTANGLE, RectangularMatrices(4, 3)))
    questions = [note for run in notes.read() for note in run]
    assert len(questions) == 3 * 2 * 2
    for note in questions:
        e = int(note["index"])
        np.testing.assert_array_equal(note["rows"], matrices[e])
        np.testing.assert_allclose(note["responses"], matrices[e] @ note["target"].ravel() + noises[e], atol=1e-13)


def test_other_numbers_other_runs_and_other_environments_have_other_designs(x64):
    scene = scene_of("rectangle")
    one, two = (gs.Dense(6, design=number).rows(RECTANGLE, scene.space).matrices for number in (1, 2))
    first, second = (state_of(gs.Dense(6, operator="rows"), scene, seed=seed).matrices for seed in (1, 2))
    for X, other in ((one, two), (first, second), (one[0], one[1])):
        assert np.abs(np.asarray(X - other)).min() > 0


# --- the operator ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", SPACES)
def test_gram_operator_equals_rows(kind, x64):
    scene = scene_of(kind)
    by_rows, by_gram = (gs.Dense(20, noise=0.4, design=5, operator=operator) for operator in ("rows", "gram"))
    rows, gram = state_of(by_rows, scene), state_of(by_gram, scene)
    for e in range(2):
        wanted, _ = by_rows.sense(rows, None, scene, LAW.at(e))
        reading, _ = by_gram.sense(gram, None, scene, LAW.at(e))
        for field in FIELDS:
            np.testing.assert_allclose(getattr(reading, field), getattr(wanted, field), rtol=1e-12, atol=1e-12)
        y = rows.matrices[e] @ scene.space.coordinates(scene.environments.target(LAW.values[e])) + rows.noises[e]
        assert float(wanted.response_mean) == pytest.approx(float(y.mean()), rel=1e-12)


@pytest.mark.parametrize(
    ("m", "demand", "kind"), [(3, ALONE, DesignGram), (2, ALONE, DesignRows), (3, MIXED, DesignRows)]
)
def test_the_cheaper_operator_is_chosen(m, demand, kind, x64):
    """Six coordinates: one product with 6 x 6 numbers against two with m x 6; a mixture draws from the rows."""
    assert isinstance(state_of(gs.Dense(m), scene_of("symmetric"), demand), kind)


@pytest.mark.parametrize("operator", ["rows", "gram"])
def test_single_precision_is_that_of_the_design_only(operator, x64):
    """The error of the reading is of the size of single precision, while everything else stays in double precision."""
    scene = scene_of("rectangle")
    readings = []
    for precision in ("double", "single"):
        measurements = gs.Dense(20, noise=0.4, design=5, operator=operator, precision=precision)
        readings.append(measurements.sense(state_of(measurements, scene), None, scene, LAW.at(0))[0])
    for one, other in zip(readings[0][:2], readings[1][:2], strict=True):  # the gradient and the residual
        assert other.dtype == np.float64
        assert 1e-10 < np.abs(one - other).max() / np.abs(one).max() < 1e-5


@pytest.mark.parametrize("operator", ["rows", "gram"])
def test_single_precision_does_not_end_convergence(operator):
    environments = gs.Environments.diagonal(6, [1.0, 1.0])
    problem = gs.Problem(environments, gs.Dense(200, design=1, operator=operator, precision="single"))
    result = gs.run(gs.GradientDescent(0.2, width=2, start=0.1), problem, num_steps=500, seeds=2, record=["distance"])
    assert (result.distance.isel(step=-1) < 1e-13).all()


def test_single_precision_refuses_designs_that_jax_multiplies_wrongly():
    problem = gs.Problem(gs.Environments.diagonal(3), gs.Dense(32_769, design=1, precision="single"))
    words = ("at most 32768 rows", "got 32769 x 9: use precision='double'")
    refuses(lambda: gs.run(gs.GradientDescent(0.1, width=2), problem, num_steps=1), *words)


# --- a design that is revealed -----------------------------------------------------------------------------------------------


def test_a_revealed_design_answers_each_environment_by_its_own_gram_matrix(x64):
    """Without noise residuals are <B, X^T X B> / m, before and after every direction is known; m rows are m directions."""
    scene, measurements, rng = scene_of("symmetric"), gs.FixedGaussian(4), np.random.default_rng(4)
    state = state_of(measurements, scene, Demand(30, False))
    sense = jax.jit(lambda state, key, A, e: measurements.sense(state, key, scene._replace(product=A), LAW.at(e)))
    products = [jnp.asarray(reference.gaussian(rng, (3, 3))) for _ in range(6)]
    answers = {}
    for t, (i, e) in enumerate([*((i, 0) for i in range(6)), (0, 1), (5, 0), (0, 1)]):
        reading, state = sense(state, jax.random.key(t), products[i], e)
        B = np.asarray(products[i] - SQUARE.target(LAW.values[e]))
        assert float(reading.residual_square) == pytest.approx(np.sum(B * np.asarray(reading.gradient)), rel=1e-11)
        answers.setdefault((i, e), []).append(np.asarray(reading.gradient))
    for first, *again in answers.values():  # repeats get the same answer
        for answer in again:
            np.testing.assert_allclose(answer, first, rtol=1e-9)
    assert np.asarray(state.known).tolist() == [4, 1]
    # Each environment has a design of its own: the same residual has another answer.
    same = gs.Finite([1.0, 1.0])
    scene = scene._replace(environments=given_environments(3, same))
    state = state_of(measurements, scene, Demand(8, False))
    one, state = measurements.sense(state, jax.random.key(1), scene, same.at(0))
    two, state = measurements.sense(state, jax.random.key(2), scene, same.at(1))
    assert not np.allclose(one.gradient, two.gradient)


def test_a_revealed_design_has_noise(x64):
    """At the truth residuals are the noise alone: their mean square is its variance, to five standard errors."""
    scene, m = scene_of("symmetric"), 10_000
    scene = scene._replace(product=jnp.asarray(SQUARE.target(LAW.values[0])))
    measurements = gs.FixedGaussian(m, noise=0.7)
    state = state_of(measurements, scene, Demand(2, False))
    reading, _ = measurements.sense(state, jax.random.key(0), scene, LAW.at(0))
    assert float(reading.residual_square) == pytest.approx(0.49, rel=5 * (2 / m) ** 0.5)
