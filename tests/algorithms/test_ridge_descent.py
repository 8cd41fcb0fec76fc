"""RidgeDescent on deep linear networks against PyTorch, on a schedule. test_conformance.py has the printed updates."""

from __future__ import annotations

import numpy as np
import pytest

import gyrostat as gs
from completion_problem import ENVIRONMENTS, OBSERVED, TRUTH
from conftest import Watch

CHAIN = gs.schedules.WarmUp(
    3, 0.02, gs.schedules.Annealing(gs.schedules.Constant(0.1, 0.2), gs.schedules.Constant(0.05, 0.01), at=6)
)
EXPECTED = [(0.02, 0.2)] * 3 + [(0.1, 0.2)] * 3 + [(0.05, 0.01)] * 4
MODEL = gs.DeepLinear(4, 3)


def torch_step(params, eta, ridge):
    """A step of torch on the mean squared error of the observed entries."""
    torch = pytest.importorskip("torch")
    layers = [torch.tensor(W, requires_grad=True) for W in params]
    A = layers[0]
    for W in layers[1:]:
        A = W @ A
    rows, columns = np.array(OBSERVED).T
    (A[rows, columns] - torch.tensor(TRUTH)[rows, columns]).square().mean().backward()
    torch.optim.SGD(layers, lr=eta, weight_decay=ridge).step()
    return tuple(W.detach().numpy() for W in layers)


def test_descent_on_a_schedule_is_weight_decay_of_torch():
    watch = Watch()
    algorithm = gs.RidgeDescent(CHAIN, model=MODEL)
    options = {"num_steps": 10, "record": [watch.diagnostic], "record_at": 11}
    (path,) = gs.run(algorithm, gs.Problem(ENVIRONMENTS, gs.Entries(OBSERVED)), **options).params.values
    shapes = MODEL.shapes((2, 2))
    layers = np.split(path[0], np.cumsum([a * b for a, b in shapes])[:-1])
    params = tuple(x.reshape(s) for x, s in zip(layers, shapes, strict=True))
    for (eta, ridge), recorded in zip(EXPECTED, path[1:], strict=True):
        params = torch_step(params, eta, ridge)
        np.testing.assert_allclose(recorded, np.concatenate([p.ravel() for p in params]), rtol=1e-11, atol=1e-13)
