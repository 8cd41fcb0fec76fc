"""A loop that keeps many runs beside each other in memory.

``vmap`` puts the axis of the runs first, so that the numbers of one small matrix lie beside each other and the same
number of two runs far apart: a processor that can take four or eight numbers at once then gets no use of it. Here the
runs' axis is last while the loop goes on, and :func:`gyrostat.jax_tools.small_products.times` makes use of that.
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

_LAST: ContextVar[bool] = ContextVar("runs are last", default=False)


def are_last() -> bool:
    """Whether the step that is being written now has the runs' axis last."""
    return _LAST.get()


@contextmanager
def _last() -> Iterator[None]:
    token = _LAST.set(True)
    try:
        yield
    finally:
        _LAST.reset(token)


def fori_loop(
    lower: Int[Array, ""], upper: Int[Array, ""], body: Callable[[Int[Array, ""], State], State], state: State
) -> State:
    """``jax.lax.fori_loop`` that, under vmap, has the axis of the runs last in arrays of two or more dimensions.

    >>> double = lambda t, x: 2 * x
    >>> jax.vmap(lambda x: fori_loop(0, 3, double, x))(jnp.ones((2, 1, 1))).tolist()
    [[[8.0]], [[8.0]]]
    """
    lower, upper, state = jax.tree.map(jnp.asarray, (lower, upper, state))
    # What the body takes from around it becomes an argument, because a rule for vmap may not close over values of a run.
    step = eqx.filter_closure_convert(body, lower, state)
    around, static = eqx.partition(step, eqx.is_array)

    def one(t: Array, around: Any, state: Any) -> Any:
        return eqx.combine(around, static)(t, state)

    @jax.custom_batching.custom_vmap
    def go(lower: Array, upper: Array, around: Any, state: Any) -> Any:
        return jax.lax.fori_loop(lower, upper, lambda t, s: one(t, around, s), state)

    @go.def_vmap
    def _many(size: int, batched: Any, lower: Array, upper: Array, around: Any, state: Any) -> tuple[Any, Any]:
        spread = jax.tree.map(lambda x, b: x if b else jnp.broadcast_to(x, (size, *x.shape)), state, batched[3])
        axes = jax.tree.map(_axis, spread)
        taken = jax.tree.map(lambda x, b: _axis(x) if b else None, around, batched[2])

        beside = jax.vmap(one, in_axes=(None, taken, axes), out_axes=axes)
        around = jax.tree.map(lambda x, b: _moved(x) if b else x, around, batched[2])
        with _last():
            state = jax.lax.fori_loop(lower, upper, lambda t, s: beside(t, around, s), jax.tree.map(_moved, spread))
        return jax.tree.map(_back, state, axes), jax.tree.map(lambda _: True, state)

    return go(lower, upper, around, state)


def _axis(x: Array) -> int:
    return -1 if x.ndim > 2 else 0


def _moved(x: Array) -> Array:
    return jnp.moveaxis(x, 0, _axis(x))


def _back(x: Array, axis: int) -> Array:
    return jnp.moveaxis(x, axis, 0)
