"""Models from functions: runs equal those of built-in models and of PyTorch, arrays of any shape."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest

import gyrostat as gs
from conftest import given_environments, rectangular_environments

PAIRS = {
    "symmetric": (
        gs.Model.from_function(lambda U: U @ U.T, lambda shape: [shape], symmetric=True, factor=lambda U: U),
        gs.Symmetric(gradient_factor=2.0),
        given_environments(),
    ),
    "rectangular": (
        gs.Model.from_function(lambda F, G: F @ G.T, [(4, 3), (3, 3)]),
        gs.Asymmetric(),
        rectangular_environments(),
    ),
    "vector": (
        gs.Model.from_function(lambda u, v: u * u - v * v, lambda shape: [shape, shape]),
        gs.Diagonal(gradient_factor=2.0),
        gs.VectorEnvironments([1.0, -0.5, 0.0], [2], gs.TwoPoint(spread=3.0)),
    ),
}
SEEN = {
    "FreshGaussian": gs.FreshGaussian(30),
    "FixedGaussian": gs.FixedGaussian(30),
    "Dense": gs.Dense(30, noise=0.1),
    "Identity": gs.Identity(),
}


# A measurement sees a model only through its space and its product: test_conformance.py runs the spaces with the other
# measurements, and the tensors below meet every measurement.
@pytest.mark.parametrize(
    ("name", "seen"), [("symmetric", "FreshGaussian"), ("rectangular", "FixedGaussian"), ("vector", "Dense")]
)
def test_a_run_equals_that_of_the_built_in_model(name, seen):
    *models, environments = PAIRS[name]
    runs = [
        gs.run(
            gs.HeteroSGD(0.02, init_scale=0.3, model=model, rule=gs.rules.Momentum(0.5)),
            gs.Problem(environments, SEEN[seen]),
            num_steps=15,
            seeds=2,
            record=["signal", "spurious", "distance"],
            record_at=4,
        )
        for model in models
    ]
    for ours, twin in zip(*(run.data_vars.values() for run in runs), strict=True):
        np.testing.assert_allclose(ours, twin, rtol=1e-11, atol=1e-12)


def tensor(*vectors: np.ndarray) -> np.ndarray:
    return np.einsum("i,j,k->ijk", *vectors)


E = [np.eye(n) for n in (3, 4, 5)]
SIGNAL, OTHER = tensor(E[0][0], E[1][0], E[2][0]), tensor(E[0][1], E[1][1], E[2][1])
CP = gs.Model.from_function(lambda A, B, C: jnp.einsum("ir,jr,kr->ijk", A, B, C), lambda shape: [(n, 2) for n in shape])


@pytest.mark.parametrize("seen", [*SEEN, "DenseData"])
def test_a_tensor_is_measured_as_its_coordinates_are(seen, x64):
    """A tensor of rank two from one step: the gradient is that of the flat vector of its entries, measured in the same way."""
    rng = np.random.default_rng(1)
    flat = gs.Model.from_function(
        lambda A, B, C: jnp.ravel(jnp.einsum("ir,jr,kr->ijk", A, B, C)), [(3, 2), (4, 2), (5, 2)]
    )
    environments = gs.environments.ArrayEnvironments(SIGNAL, [5 * OTHER, -3 * OTHER])
    vectors = gs.environments.ArrayEnvironments(SIGNAL.ravel(), [5 * OTHER.ravel(), -3 * OTHER.ravel()])
    X, y = rng.standard_normal((20, 3, 4, 5)), rng.standard_normal(20)
    sensed = [SEEN.get(seen) or gs.DenseData(x, y, np.arange(20) % 2) for x in (X, X.reshape(20, -1))]
    start = gs.starts.ScaledGaussian(0.5)
    options = {"num_steps": 10, "seeds": 2, "record": ["signal", "spurious", "distance"], "record_at": 3}
    found, wanted = (
        gs.run(gs.HeteroSGD(0.02, model=model, start=start), gs.Problem(where, how), **options)
        for model, where, how in zip((CP, flat), (environments, vectors), sensed, strict=True)
    )
    for name in wanted.data_vars:
        np.testing.assert_allclose(found[name], wanted[name], rtol=1e-10, atol=1e-12)
    assert float(np.ptp(found.distance.values, axis=1).min()) > 1e-4


def test_signal_and_spurious_of_arrays_are_coordinates(x64):
    environments = gs.environments.ArrayEnvironments(2 * SIGNAL, [5 * OTHER, -3 * OTHER], [0.75, 0.25])
    np.testing.assert_allclose(environments.invariant, 2 * SIGNAL, atol=1e-14)
    np.testing.assert_allclose(environments.mean_target, 2 * SIGNAL + 3 * OTHER, atol=1e-14)
    A = 0.5 * SIGNAL - 1.5 * OTHER + tensor(E[0][2], E[1][2], E[2][2])
    view = gs.diagnostics.Snapshot(environments, gs.Model.from_function(lambda A: A, [A.shape]), (A,), A.shape)
    found = {name: float(gs.diagnostics.DIAGNOSTICS[name].value(view)) for name in ("signal", "spurious", "distance")}
    assert found == pytest.approx({"signal": 0.25, "spurious": 0.5, "distance": np.sqrt(1.5**2 + 1.5**2 + 1)})


def test_a_network_on_given_data_takes_the_steps_of_torch():
    """Two layers, tanh, squares; one environment per step in a given order; gradients by PyTorch's autograd."""
    torch = pytest.importorskip("torch")
    rng = np.random.default_rng(2)
    X, y, labels = rng.standard_normal((12, 3)), rng.standard_normal(12), np.arange(12) % 3 // 2
    W0, a0 = rng.standard_normal((3, 5)), rng.standard_normal(5)
    network = gs.Model.from_function(lambda W, a: jnp.tanh(X @ W) @ a, [(3, 5), (5,)])
    problem = gs.Problem(gs.Observed((12,), 2), gs.DenseData(np.eye(12), y, labels))
    algorithm = gs.HeteroSGD(
        0.1, model=network, start=gs.starts.Given(W0, a0), order=[0, 0, 1], rule=gs.rules.Momentum(0.7)
    )
    show = gs.diagnostics.Diagnostic(
        "params", lambda view: jnp.concatenate([p.ravel() for p in view.params]), ("entry",)
    )
    found = gs.run(algorithm, problem, num_steps=30, record=[show], record_at=31).params.values[0]
    W, a = (torch.tensor(p, requires_grad=True) for p in (W0, a0))
    optimiser = torch.optim.SGD([W, a], lr=0.1, momentum=0.7)
    for t in range(30):
        rows = torch.tensor(labels == [0, 0, 1][t % 3])
        optimiser.zero_grad()
        error = torch.tanh(torch.tensor(X)[rows] @ W) @ a - torch.tensor(y)[rows]
        (error**2).mean().div(2).backward()
        optimiser.step()
        now = np.concatenate([p.detach().numpy().ravel() for p in (W, a)])
        np.testing.assert_allclose(found[t + 1], now, rtol=0, atol=1e-12)


def test_what_looks_at_a_factor_needs_one():
    problem = gs.Problem(rectangular_environments(), gs.Identity())
    algorithm = gs.HeteroSGD(0.05, model=PAIRS["rectangular"][0])
    assert "error" not in gs.run(algorithm, problem, num_steps=2)  # the default record leaves it out
    with pytest.raises(gs.GyrostatError, match="has no factor, which error and other diagnostics of factors look at"):
        gs.run(algorithm, problem, num_steps=2, record=["error"])
    with_factor = gs.HeteroSGD(0.05, model=PAIRS["symmetric"][0])
    assert "error" in gs.run(with_factor, gs.Problem(given_environments(), gs.Identity()), num_steps=2)


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
