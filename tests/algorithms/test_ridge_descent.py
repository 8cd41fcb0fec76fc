"""RidgeDescent on deep linear networks against the printed update and PyTorch, on schedules and environments."""

from __future__ import annotations

import numpy as np
import pytest

import gyrostat as gs
import reference
from completion_problem import ENVIRONMENTS, OBSERVED, TRUTH
from conftest import Watch

CHAIN = gs.WarmUp(3, 0.02, gs.Annealing(gs.Constant(0.1, 0.2), gs.Constant(0.05, 0.01), at=6))

EXPECTED = [(0.02, 0.2)] * 3 + [(0.1, 0.2)] * 3 + [(0.05, 0.01)] * 4


@pytest.mark.parametrize("convention", sorted(reference.CONVENTIONS))
def test_descent_on_a_schedule_is_the_printed_update(convention):
    watch, model = Watch(), gs.DeepLinear(4, 3)
    algorithm = gs.RidgeDescent(CHAIN, model=model, convention=convention)
    problem = gs.Problem(ENVIRONMENTS, gs.Entries(OBSERVED))
    found = gs.run(algorithm, problem, num_steps=10, seeds=2, record=[watch.diagnostic], record_at=11).params.values
    cuts = np.cumsum([a * b for a, b in model.shapes((2, 2))])[:-1]
    for path in found:
        params = tuple(x.reshape(s) for x, s in zip(np.split(path[0], cuts), model.shapes((2, 2)), strict=True))
        for (eta, ridge), recorded in zip(EXPECTED, path[1:], strict=True):
            params = reference.completion_step(params, TRUTH, OBSERVED, eta, ridge, convention)
            np.testing.assert_allclose(recorded, np.concatenate([p.ravel() for p in params]), rtol=1e-11, atol=1e-13)


def test_weight_decay_is_what_torch_does():
    torch = pytest.importorskip("torch")
    watch, model = Watch(), gs.DeepLinear(3, 3)
    problem = gs.Problem(ENVIRONMENTS, gs.Entries(OBSERVED))
    found = gs.run(gs.RidgeDescent(0.1, 0.2, model=model), problem, num_steps=5, record=[watch.diagnostic], record_at=6)
    path = found.params.values[0]
    cuts = np.cumsum([a * b for a, b in model.shapes((2, 2))])[:-1]
    theta = [
        torch.tensor(x.reshape(s), requires_grad=True)
        for x, s in zip(np.split(path[0], cuts), model.shapes((2, 2)), strict=True)
    ]
    optimiser = torch.optim.SGD(theta, lr=0.1, weight_decay=0.2)
    rows, columns = np.array(OBSERVED).T
    y = torch.tensor(TRUTH)[rows, columns]
    for _ in range(5):
        optimiser.zero_grad()
        ((theta[2] @ theta[1] @ theta[0])[rows, columns] - y).square().mean().backward()
        optimiser.step()
    theirs = np.concatenate([p.detach().numpy().ravel() for p in theta])
    np.testing.assert_allclose(path[-1], theirs, rtol=1e-11, atol=1e-13)
