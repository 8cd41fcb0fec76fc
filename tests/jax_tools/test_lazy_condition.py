"""The lazy condition: each run gets its own answer, and the change is computed only when a run needs it."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from gyrostat.jax_tools.lazy_condition import change_if_needed


def slow(operand):
    x, y = operand
    return 3 * x + y[0], -y


@pytest.mark.parametrize("when", [[True, False, True], [False] * 3, [True] * 3])
def test_each_run_is_changed_or_not(when, x64):
    x, y = jnp.arange(3.0), jnp.arange(6.0).reshape(3, 2)
    ours = jax.jit(jax.vmap(lambda w, x, y: change_if_needed(w, slow, (x, y))))(jnp.array(when), x, y)
    mask = np.array(when)
    np.testing.assert_array_equal(ours[0], np.where(mask, 3 * x + y[:, 0], x))
    np.testing.assert_array_equal(ours[1], np.where(mask[:, None], -y, y))
    for i in range(3):  # and alone
        alone = change_if_needed(jnp.array(when[i]), slow, (x[i], y[i]))
        np.testing.assert_array_equal(alone[0], ours[0][i])
        np.testing.assert_array_equal(alone[1], ours[1][i])


@pytest.mark.parametrize("axes", [(None, 0, 0), (0, None, None), (None, None, 0)])
def test_with_arrays_that_all_runs_share(axes, x64):
    when, x, y = jnp.array([True, False]), jnp.array([1.0, 2.0]), jnp.array([[3.0, 4.0], [5.0, 6.0]])
    given = [v if a == 0 else v[0] for v, a in zip((when, x, y), axes, strict=True)]
    ours = jax.vmap(lambda w, x, y: change_if_needed(w, slow, (x, y)), in_axes=axes)(*given)
    for i in range(2):
        w, xi, yi = (v[i] if a == 0 else v[0] for v, a in zip((when, x, y), axes, strict=True))
        wanted = slow((xi, yi)) if w else (xi, yi)
        np.testing.assert_array_equal(ours[0][i], wanted[0])
        np.testing.assert_array_equal(ours[1][i], wanted[1])


def test_nothing_is_computed_when_no_run_needs_it():
    calls = []

    def change(x):
        jax.debug.callback(lambda: calls.append(1))
        return 2 * x

    def loop(when, x):
        return jax.lax.fori_loop(0, 4, lambda t, x: change_if_needed(when[t], change, x), x)

    run = jax.jit(jax.vmap(loop))
    for due, wanted in [((), 0), ([(2, 1)], 1), ([(0, 0), (2, 1), (2, 2)], 2)]:  # (step, run)
        when = np.zeros((3, 4), dtype=bool)
        for step, index in due:
            when[index, step] = True
        calls.clear()
        out = jax.block_until_ready(run(jnp.asarray(when), jnp.ones(3)))
        jax.effects_barrier()
        np.testing.assert_array_equal(out, 2.0 ** when.sum(axis=1))
        assert len(calls) == wanted  # steps at which at least one run needed it
    # The test can fail: an ordinary condition computes the change although no run needs it.
    calls.clear()
    plain = jax.vmap(lambda w, x: jax.lax.cond(w, change, lambda x: x, x))
    jax.block_until_ready(jax.jit(plain)(jnp.zeros(3, dtype=bool), jnp.ones(3)))
    jax.effects_barrier()
    assert len(calls) == 1
