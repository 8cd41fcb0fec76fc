"""Small products as sums, and the loop with the axis of the runs last: the same numbers in another layout."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import gyrostat as gs
from gyrostat.jax_tools import runs_last_loop, small_products
from gyrostat.jax_tools.small_products import are_small, squared_norm, times

RUNS = 5


def gaussian(*shape: int) -> np.ndarray:
    return np.random.default_rng(len(shape)).normal(size=shape)


@pytest.mark.parametrize("sizes", [(3, 4, 2), (1, 1, 1), (3, 0, 2), (20, 20, 20)])
@pytest.mark.parametrize("batched", [(0, None), (None, 0), (0, 0)])
def test_times_is_the_product_alone_and_over_runs(sizes, batched, x64):
    m, k, n = sizes
    A, B = gaussian(RUNS, m, k), gaussian(RUNS, k, n) + 1
    np.testing.assert_allclose(times(jnp.asarray(A[0]), jnp.asarray(B[0])), A[0] @ B[0], atol=1e-13)
    given = [x if axis == 0 else x[0] for x, axis in zip((A, B), batched, strict=True)]
    wanted = given[0] @ given[1]
    np.testing.assert_allclose(jax.vmap(times, in_axes=batched)(*map(jnp.asarray, given)), wanted, atol=1e-13)


def test_times_can_be_differentiated(x64):
    """In reverse, twice, and over runs; against the product of a library."""
    A, B = jnp.asarray(gaussian(RUNS, 2, 3)), jnp.asarray(gaussian(RUNS, 3, 2))
    for derivative in (jax.grad, jax.hessian):
        found = jax.vmap(derivative(lambda A, B: jnp.sum(times(A, B) ** 3)))(A, B)
        wanted = jax.vmap(derivative(lambda A, B: jnp.sum((A @ B) ** 3)))(A, B)
        np.testing.assert_allclose(found, wanted, rtol=1e-12, atol=1e-12)


def test_arrays_of_numpy_stay_in_double_precision():
    A = gaussian(3, 3)
    assert isinstance(times(A, A), np.ndarray) and times(A, A).dtype == np.float64


@pytest.mark.parametrize("shape", [(), (4,), (3, 2)])
def test_squared_norm_sums_over_one_run_only(shape, x64):
    A = gaussian(RUNS, *shape)
    wanted = (A**2).reshape(RUNS, -1).sum(1)
    np.testing.assert_allclose(jax.vmap(squared_norm)(jnp.asarray(A)), wanted, rtol=1e-13)

    def in_the_loop(A):
        return runs_last_loop.fori_loop(0, 1, lambda t, state: (state[0], squared_norm(state[0])), (A, 0.0))[1]

    found = jax.vmap(in_the_loop)(jnp.asarray(A))
    np.testing.assert_allclose(found, wanted, rtol=1e-13)


def test_the_loop_is_the_ordinary_one(x64):
    """Over runs, with arrays of every number of dimensions, arrays that the body closes over, and arrays that runs share."""
    common, own, vector = gaussian(3, 3), gaussian(RUNS, 3, 2), gaussian(RUNS, 4)

    def run(loop, own, vector):
        def body(t, state):
            U, count, shared = state
            step = times(times(jnp.asarray(common), own), times(U.T, U)) + times(shared, U)
            return U - 0.01 * step * jnp.sum(vector), count + t + 1, shared * 0.9

        return loop(0, 7, body, (own, jnp.zeros((), dtype=int), jnp.asarray(common)))

    wanted = jax.vmap(lambda o, v: run(jax.lax.fori_loop, o, v))(own, vector)
    found = jax.vmap(lambda o, v: run(runs_last_loop.fori_loop, o, v))(own, vector)
    for one, other in zip(found, wanted, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12)
    layouts = str(jax.make_jaxpr(jax.vmap(lambda o, v: run(runs_last_loop.fori_loop, o, v)))(own, vector))
    assert f"f64[3,2,{RUNS}]" in layouts and not runs_last_loop.runs_are_last()


def test_runs_are_last_where_products_are_small(monkeypatch, x64):
    """The layout is chosen by size, and a run does not depend on it."""
    assert are_small((7, 7), (jnp.ones((7, 5)),)) and not are_small((20, 20), (jnp.ones((20, 20)),))
    problem = gs.Problem(gs.Environments.diagonal(9, [1.0, 0.5]), gs.Identity())
    algorithm = gs.GradientDescent(0.1, width=3, start=0.1)
    asked = []
    many = runs_last_loop.fori_loop
    monkeypatch.setattr(runs_last_loop, "fori_loop", lambda *a: asked.append(1) or many(*a))
    runs_last = gs.run(algorithm, problem, num_steps=40, seeds=RUNS, record=["distance"])
    assert asked
    monkeypatch.setattr(small_products, "LARGEST", 0)
    jax.clear_caches()
    asked.clear()
    runs_first = gs.run(algorithm, problem, num_steps=40, seeds=RUNS, record=["distance"])
    assert not asked
    np.testing.assert_allclose(runs_last.distance, runs_first.distance, rtol=1e-12)
