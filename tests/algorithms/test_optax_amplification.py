"""The optax transformation makes the steps of the PyTorch one, compiled or not."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import gyrostat as gs
from gyrostat.errors import GyrostatError

GRADIENTS = np.random.default_rng(0).standard_normal((30, 2, 3)).astype(np.float32)
ORDER = np.random.default_rng(1).integers(3, size=30)


def trained(gradients=GRADIENTS, order=ORDER):
    """A scan over given gradients for two leaves of parameters."""
    optimizer = gs.rules.amplified_heterogeneity(
        optax.chain(optax.clip(1e3), optax.sgd(0.1)), 3, amplify=4.0, average=0.8
    )
    start = {"a": jnp.zeros(3), "b": jnp.ones(3)}

    def step(carry, given):
        params, state = carry
        (g, e) = given
        updates, state = optimizer.update({"a": g[0], "b": g[1]}, state, params, environment=e)
        return (optax.apply_updates(params, updates), state), None

    (params, state), _ = jax.lax.scan(
        step, (start, optimizer.init(start)), (jnp.asarray(gradients), jnp.asarray(order))
    )
    return params, state


def test_it_is_the_optimiser_of_pytorch():
    torch = pytest.importorskip("torch")
    from gyrostat.torch import AmplifiedHeterogeneity

    params, state = trained()
    leaves = [torch.zeros(3, requires_grad=True), torch.ones(3, requires_grad=True)]
    optimizer = AmplifiedHeterogeneity(torch.optim.SGD(leaves, lr=0.1), range(3), amplify=4.0, average=0.8)
    for g, e in zip(GRADIENTS, ORDER, strict=True):
        for leaf, mine in zip(leaves, g, strict=True):
            leaf.grad = torch.tensor(mine)
        optimizer.step(e)
    for name, leaf in zip("ab", leaves, strict=True):
        np.testing.assert_allclose(params[name], leaf.detach().numpy(), rtol=0, atol=1e-5)  # float32
        np.testing.assert_allclose(state.averaged[name], optimizer._averages[leaf].numpy(), rtol=0, atol=1e-5)


def test_bad_gradients_and_environments_out_of_range_are_skipped_and_counted():
    gradients, order = np.repeat(GRADIENTS, 2, axis=0), np.repeat(ORDER, 2)
    gradients[1::4, 0, 1], order[3::4] = np.nan, 7
    params, state = trained(gradients, order)
    good = [i for i in range(60) if i % 2 == 0]
    expected, undisturbed = trained(gradients[good], order[good])
    jax.tree.map(np.testing.assert_array_equal, (params, state.averaged), (expected, undisturbed.averaged))
    assert int(state.skipped) == 30 and int(state.steps) == 30


def test_refusals():
    optimizer = gs.rules.amplified_heterogeneity(optax.sgd(0.1), 2)
    w = jnp.zeros(2)
    state = optimizer.init(w)
    for call, message in (
        (lambda: optimizer.update(w, state, w), "update needs the environment"),
        (lambda: optimizer.update(w, state, environment=0), "update needs params"),
        (lambda: optimizer.update(w, state, w, environment=2), "environment must be a whole number .* at most 1"),
        (
            lambda: gs.rules.amplified_heterogeneity(optax.sgd(0.1), 1),
            "num_environments must be a whole number of at least 2",
        ),
        (lambda: gs.rules.amplified_heterogeneity(0.1, 2), "inner must be an optax optimiser"),
        (lambda: gs.rules.amplified_heterogeneity(optax.sgd(0.1), 2, average=1.0), "average must be below 1"),
    ):
        with pytest.raises(GyrostatError, match=message):
            call()
