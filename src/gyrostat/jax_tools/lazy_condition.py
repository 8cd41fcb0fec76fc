"""A condition under vmap that computes its branch only if at least one run needs it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool

Tree = TypeVar("Tree")


def change_if_needed(needed: Bool[Array, ""], change: Callable[[Tree], Tree], operand: Tree) -> Tree:
    """``change(operand)`` where ``needed`` is true and ``operand`` elsewhere.

    Under vmap, ``jax.lax.cond`` computes both branches for every run. This function computes the change only if at least
    one run needs it. ``change`` must not close over values of the run: pass them in the operand.

    >>> double = lambda x: 2 * x
    >>> jax.vmap(lambda n, x: change_if_needed(n, double, x))(jnp.array([True, False]), jnp.array([1.0, 1.0])).tolist()
    [2.0, 1.0]
    """

    @jax.custom_batching.custom_vmap
    def choose(needed: Array, operand: Tree) -> Tree:
        return jax.lax.cond(needed, change, lambda x: x, operand)

    @choose.def_vmap
    def _many(size: int, batched: tuple, needed: Array, operand: Tree) -> tuple[Tree, Tree]:
        def spread(x: Array, has_axis: bool) -> Array:
            return x if has_axis else jnp.broadcast_to(x, (size, *jnp.shape(x)))

        mask = spread(needed, batched[0])
        operands = jax.tree.map(spread, operand, batched[1])

        def changed(operand: Tree) -> Tree:
            def pick(new: Array, old: Array) -> Array:
                return jnp.where(mask.reshape(size, *([1] * (new.ndim - 1))), new, old)

            return jax.tree.map(pick, jax.vmap(change)(operand), operand)

        out = jax.lax.cond(jnp.any(needed), changed, lambda x: x, operands)
        return out, jax.tree.map(lambda _: True, operand)

    return choose(needed, operand)
