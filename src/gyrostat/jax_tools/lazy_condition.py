"""A condition that stays cheap when many runs share one program."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool

Tree = TypeVar("Tree")


def rarely(when: Bool[Array, ""], change: Callable[[Tree], Tree], operand: Tree) -> Tree:
    """``change(operand)`` where ``when`` is true and ``operand`` elsewhere.

    Under vmap an ordinary condition computes both branches for every run; this one computes the change only when at
    least one run needs it. ``change`` must not close over values of the run: pass them in the operand.

    >>> double = lambda x: 2 * x
    >>> jax.vmap(lambda w, x: rarely(w, double, x))(jnp.array([True, False]), jnp.array([1.0, 1.0])).tolist()
    [2.0, 1.0]
    """

    @jax.custom_batching.custom_vmap
    def choose(when: Array, operand: Tree) -> Tree:
        return jax.lax.cond(when, change, lambda x: x, operand)

    @choose.def_vmap
    def _many(size: int, batched: tuple, when: Array, operand: Tree) -> tuple[Tree, Tree]:
        def spread(x: Array, has_axis: bool) -> Array:
            return x if has_axis else jnp.broadcast_to(x, (size, *jnp.shape(x)))

        wanted = spread(when, batched[0])
        everything = jax.tree.map(spread, operand, batched[1])

        def changed(operand: Tree) -> Tree:
            def pick(new: Array, old: Array) -> Array:
                return jnp.where(wanted.reshape(size, *([1] * (new.ndim - 1))), new, old)

            return jax.tree.map(pick, jax.vmap(change)(operand), operand)

        out = jax.lax.cond(jnp.any(when), changed, lambda x: x, everything)
        return out, jax.tree.map(lambda _: True, operand)

    return choose(when, operand)
