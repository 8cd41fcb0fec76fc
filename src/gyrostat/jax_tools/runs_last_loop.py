"""A loop that stores the axis of the runs last, so that small matrices of many runs use vector instructions.

``vmap`` puts the axis of the runs first. The entries of one small matrix are then neighbours in memory, and the same entry of
two runs is far apart, so instructions that process four or eight numbers at once are of no use. While this loop runs, the
axis of the runs is last; :func:`gyrostat.jax_tools.small_products.times` relies on it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Int

State = TypeVar("State")

_RUNS_ARE_LAST: ContextVar[bool] = ContextVar("runs are last", default=False)


def runs_are_last() -> bool:
    """Whether the code that is being traced has the axis of the runs last."""
    return _RUNS_ARE_LAST.get()


@contextmanager
def _with_runs_last() -> Iterator[None]:
    token = _RUNS_ARE_LAST.set(True)
    try:
        yield
    finally:
        _RUNS_ARE_LAST.reset(token)


def fori_loop(
    lower: Int[Array, ""], upper: Int[Array, ""], body: Callable[[Int[Array, ""], State], State], state: State
) -> State:
    """``jax.lax.fori_loop`` that, under vmap, stores the axis of the runs last in arrays of two or more dimensions.

    >>> double = lambda t, x: 2 * x
    >>> jax.vmap(lambda x: fori_loop(0, 3, double, x))(jnp.ones((2, 1, 1))).tolist()
    [[[8.0]], [[8.0]]]
    """
    lower, upper, state = jax.tree.map(jnp.asarray, (lower, upper, state))
    # Arrays that the body closes over become arguments, because a rule for vmap may not close over values of a run.
    step = eqx.filter_closure_convert(body, lower, state)
    closure, static = eqx.partition(step, eqx.is_array)

    def one(t: Array, closure: Any, state: Any) -> Any:
        return eqx.combine(closure, static)(t, state)

    @jax.custom_batching.custom_vmap
    def loop(lower: Array, upper: Array, closure: Any, state: Any) -> Any:
        return jax.lax.fori_loop(lower, upper, lambda t, s: one(t, closure, s), state)

    @loop.def_vmap
    def _many(size: int, batched: Any, lower: Array, upper: Array, closure: Any, state: Any) -> tuple[Any, Any]:
        spread = jax.tree.map(lambda x, b: x if b else jnp.broadcast_to(x, (size, *x.shape)), state, batched[3])
        axes = jax.tree.map(_axis, spread)
        closure_axes = jax.tree.map(lambda x, b: _axis(x) if b else None, closure, batched[2])

        all_runs = jax.vmap(one, in_axes=(None, closure_axes, axes), out_axes=axes)
        closure = jax.tree.map(lambda x, b: _runs_last(x) if b else x, closure, batched[2])
        with _with_runs_last():
            state = jax.lax.fori_loop(
                lower, upper, lambda t, s: all_runs(t, closure, s), jax.tree.map(_runs_last, spread)
            )
        return jax.tree.map(_runs_first, state, axes), jax.tree.map(lambda _: True, state)

    return loop(lower, upper, closure, state)


def _axis(x: Array) -> int:
    return -1 if x.ndim > 2 else 0


def _runs_last(x: Array) -> Array:
    return jnp.moveaxis(x, 0, _axis(x))


def _runs_first(x: Array, axis: int) -> Array:
    return jnp.moveaxis(x, axis, 0)
