"""Small products as sums, also where the axis of the runs is last: the same numbers in another layout."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import gyrostat as gs
from gyrostat.jax_tools import small_products
from gyrostat.jax_tools.small_products import are_small, last_axis, runs_stored_last, squared_norm, times

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
    """Also in the layout of the engine's loop, which has the axis of the runs last in arrays with more than two axes."""
    A = gaussian(RUNS, *shape)
    wanted = (A**2).reshape(RUNS, -1).sum(1)
    np.testing.assert_allclose(jax.vmap(squared_norm)(jnp.asarray(A)), wanted, rtol=1e-13)
    axis = last_axis(A)
    with runs_stored_last():
        moved = jax.vmap(squared_norm, in_axes=axis)(jnp.moveaxis(jnp.asarray(A), 0, axis))
    np.testing.assert_allclose(moved, wanted, rtol=1e-13)


def test_runs_are_last_where_products_are_small(monkeypatch, x64):
    """The layout is chosen by size, and a run does not depend on it."""
    assert are_small((7, 7), (jnp.ones((7, 5)),)) and not are_small((20, 20), (jnp.ones((20, 20)),))
    problem = gs.Problem(gs.Environments.diagonal(9, [1.0, 0.5]), gs.Identity())
    algorithm = gs.GradientDescent(0.1, width=3, start=0.1)
    shapes = set()
    plain = small_products._sum
    monkeypatch.setattr(small_products, "_sum", lambda A, B: shapes.add((*A.shape, B.shape[-1])) or plain(A, B))
    options = {"num_steps": 40, "seeds": RUNS, "record": ["distance"], "reduction": "never"}
    runs_last = gs.run(algorithm, problem, **options)
    assert (9, 3, RUNS, RUNS) in shapes
    monkeypatch.setattr(small_products, "LARGEST", 0)
    jax.clear_caches()
    shapes.clear()
    runs_first = gs.run(algorithm, problem, **options)
    assert not shapes
    np.testing.assert_allclose(runs_last.distance, runs_first.distance, rtol=1e-12)
