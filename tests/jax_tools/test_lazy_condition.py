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


RUNS = [
    ([True, False, True], (0, 0, 0)),
    ([False] * 3, (0, 0, 0)),
    ([True] * 3, (0, 0, 0)),
    ([True, False, True], (None, 0, 0)),  # what has no axis is the same for all runs
    ([True, False, True], (0, None, None)),
    ([True, False, True], (None, None, 0)),
]


@pytest.mark.parametrize(("when", "axes"), RUNS)
def test_each_run_is_changed_or_not_as_if_it_were_alone(when, axes, x64):
    arrays = jnp.array(when), jnp.arange(3.0), jnp.arange(6.0).reshape(3, 2)
    given = [x if axis == 0 else x[0] for x, axis in zip(arrays, axes, strict=True)]
    ours = jax.jit(jax.vmap(lambda w, x, y: change_if_needed(w, slow, (x, y)), in_axes=axes))(*given)
    for i in range(3):
        w, x, y = (v[i] if axis == 0 else v for v, axis in zip(given, axes, strict=True))
        wanted = slow((x, y)) if w else (x, y)
        for together, alone, value in zip(ours, change_if_needed(w, slow, (x, y)), wanted, strict=True):
            np.testing.assert_array_equal(together[i], value)
            np.testing.assert_array_equal(alone, value)


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
