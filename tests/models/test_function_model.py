"""Models from functions: runs equal those of built-in models and of PyTorch, arrays of any shape."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest

import gyrostat as gs
from checks import refuses
from conftest import given_environments, rectangular_environments

FACTORS = gs.Model.from_function(lambda F, G: F @ G.T, [(4, 3), (3, 3)])
SQUARE = gs.Model.from_function(lambda U: U @ U.T, lambda shape: [shape], symmetric=True, factor=lambda U: U)
SQUARES = gs.Model.from_function(lambda u, v: u * u - v * v, lambda shape: [shape, shape])


# A measurement sees a model only through its space and its product: test_conformance.py runs the spaces with the other
# measurements, and the tensors below meet every measurement.
@pytest.mark.parametrize(
    ("ours", "built_in", "environments", "seen"),
    [
        (SQUARE, gs.Symmetric(gradient_factor=2.0), given_environments(), gs.FreshGaussian(30)),
        (FACTORS, gs.Asymmetric(), rectangular_environments(), gs.FixedGaussian(30)),
        (
            SQUARES,
            gs.Diagonal(gradient_factor=2.0),
            gs.VectorEnvironments([1.0, 0.0], [1], gs.TwoPoint()),
            gs.Dense(30, noise=0.1),
        ),
    ],
    ids=["symmetric", "rectangular", "vector"],
)
def test_a_run_equals_that_of_the_built_in_model(ours, built_in, environments, seen):
    record, rule = ["signal", "spurious", "distance"], gs.rules.Momentum(0.5)
    one, other = (
        gs.run(
            gs.HeteroSGD(0.02, init_scale=0.3, model=model, rule=rule),
            gs.Problem(environments, seen),
            num_steps=15,
            seeds=2,
            record=record,
            record_at=4,
        )
        for model in (ours, built_in)
    )
    for name in record:
        np.testing.assert_allclose(one[name], other[name], rtol=1e-11, atol=1e-12)


def tensor(*vectors: np.ndarray) -> np.ndarray:
    return np.einsum("i,j,k->ijk", *vectors)


E = [np.eye(n) for n in (3, 4, 5)]
SIGNAL, OTHER = tensor(E[0][0], E[1][0], E[2][0]), tensor(E[0][1], E[1][1], E[2][1])
CP = gs.Model.from_function(lambda A, B, C: jnp.einsum("ir,jr,kr->ijk", A, B, C), lambda shape: [(n, 2) for n in shape])


ROWS = np.random.default_rng(1).standard_normal((20, 3, 4, 5))
RESPONSES, LABELS = np.random.default_rng(2).standard_normal(20), np.arange(20) % 2


@pytest.mark.parametrize(
    "seen",
    [
        lambda side: gs.FreshGaussian(30),
        lambda side: gs.FixedGaussian(30),
        lambda side: gs.Dense(30, noise=0.1),
        lambda side: gs.Identity(),
        lambda side: gs.DenseData(ROWS.reshape(20, *side), RESPONSES, LABELS),
    ],
    ids=["FreshGaussian", "FixedGaussian", "Dense", "Identity", "DenseData"],
)
def test_a_tensor_is_measured_as_its_coordinates_are(seen):
    """A tensor of rank two from one step: the gradient is that of the flat vector of its entries, measured in the same way."""
    flat = gs.Model.from_function(lambda *factors: jnp.ravel(CP.product(factors)), [(3, 2), (4, 2), (5, 2)])
    options = {"num_steps": 10, "seeds": 2, "record": ["signal", "spurious", "distance"], "record_at": 3}
    runs = []
    for model, side in ((CP, (3, 4, 5)), (flat, (60,))):
        invariant, other = SIGNAL.reshape(side), OTHER.reshape(side)
        environments = gs.environments.ArrayEnvironments(invariant, [5 * other, -3 * other])
        algorithm = gs.HeteroSGD(0.02, model=model, start=gs.starts.ScaledGaussian(0.5))
        runs.append(gs.run(algorithm, gs.Problem(environments, seen(side)), **options))
    for name in options["record"]:
        np.testing.assert_allclose(runs[0][name], runs[1][name], rtol=1e-10, atol=1e-12)
    assert float(np.ptp(runs[0].distance.values, axis=1).min()) > 1e-4


def test_signal_and_spurious_of_arrays_are_coordinates(x64):
    environments = gs.environments.ArrayEnvironments(2 * SIGNAL, [5 * OTHER, -3 * OTHER], [0.75, 0.25])
    np.testing.assert_allclose(environments.invariant, 2 * SIGNAL, atol=1e-14)
    np.testing.assert_allclose(environments.mean_target, 2 * SIGNAL + 3 * OTHER, atol=1e-14)
    A = 0.5 * SIGNAL - 1.5 * OTHER + tensor(E[0][2], E[1][2], E[2][2])
    view = gs.diagnostics.Snapshot(environments, gs.Model.from_function(lambda A: A, [A.shape]), (A,), A.shape)
    found = {name: float(gs.diagnostics.DIAGNOSTICS[name].value(view)) for name in ("signal", "spurious", "distance")}
    assert found == pytest.approx({"signal": 0.25, "spurious": 0.5, "distance": np.sqrt(1.5**2 + 1.5**2 + 1)})


def test_what_looks_at_a_factor_needs_one():
    def run(model, environments, **options):
        return gs.run(gs.HeteroSGD(0.05, model=model), gs.Problem(environments, gs.Identity()), num_steps=2, **options)

    assert "error" not in run(FACTORS, rectangular_environments())  # the default record leaves it out
    words = ("has no factor, which error and other diagnostics of factors look at", "full_loss")
    refuses(lambda: run(FACTORS, rectangular_environments(), record=["error"]), *words)
    assert "error" in run(SQUARE, given_environments())


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: gs.Model.from_function(3, [(2,)]), "product must be a function of the parameters; got 3"),
        (lambda: gs.Model.from_function(jnp.sin, []), "shapes must list the shape of every parameter"),
        (lambda: gs.Model.from_function(jnp.sin, (5, 2)), r"such as \[\(5, 2\)\] for one matrix"),
        (lambda: gs.Model.from_function(jnp.sin, [(2.5,)]), "shapes must be a whole number of at least 1; got 2.5"),
        (
            lambda: gs.Model.from_function(jnp.sin, [(4,)]).space((3,)),
            "arrays of shape .4,., and the target has shape .3,.",
        ),
        (
            lambda: gs.Model.from_function(lambda F, G: F @ G, [(4, 3), (4, 3)]).space((4, 4)),
            "product fails on parameters",
        ),
        (lambda: gs.Model.from_function(np.sin, [(4,)]).space((4,)), "use jax.numpy instead of numpy"),
        (
            lambda: gs.Model.from_function(jnp.sin, [(4,)], symmetric=True).space((4,)),
            "needs a product that is a square",
        ),
        (lambda: gs.Model.from_function(jnp.sign, [(4,)], factor=1), "factor must be a function"),
        (lambda: gs.environments.ArrayEnvironments(np.zeros((2, 2))), "invariant is zero"),
        (lambda: gs.environments.ArrayEnvironments(SIGNAL, [OTHER[0]]), "must list an array of shape|must have"),
        (lambda: gs.environments.ArrayEnvironments(SIGNAL, weights=[1.0]), "leave weights out"),
    ],
)
def test_what_is_refused(make, words):
    with pytest.raises(gs.GyrostatError, match=words):
        make()
