"""Decompositions one after the other: several LAPACK calls at once, each over many runs, can wait for each other for ever.

XLA's CPU runtime hands independent calls to a pool of as many threads as there are cores. jaxlib splits a batched call over
that same pool and waits, on a thread of the pool, for the pieces (``ParallelBatchMap``). When every thread waits, nobody
works: two decompositions at once are enough on two cores. ``jax.lax.optimization_barrier`` does not order them (the CPU
compiler drops it), nor does ``xla_cpu_multi_thread_eigen`` as an option of one program; a number that the next one needs
does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

import equinox as eqx
import jax
import jax.extend.core as jex
import jax.numpy as jnp
from jaxtyping import Array

Value = TypeVar("Value")

DECOMPOSITIONS = frozenset(
    {
        "cholesky",
        "cholesky_update",
        "eig",
        "eigh",
        "geqp3",
        "geqrf",
        "hessenberg",
        "householder_product",
        "lu",
        "qr",
        "schur",
        "svd",
        "triangular_solve",
        "tridiagonal",
        "tridiagonal_solve",
    }
)
"""The primitives that call LAPACK."""

CALLS = frozenset({"jit", "pjit"})
"""The primitives that are a function and nothing more."""


def after(done: Array | None, x: Array) -> Array:
    """``x``, made only when ``done`` has been, whatever its numbers are: none is above infinity.

    >>> after(jnp.array([jnp.nan, 1.0]), jnp.asarray(3.0)).item()
    3.0
    """
    if done is None or not _is_float(x):
        return x
    number = jnp.ravel(done)[0].astype(x.dtype)
    return jnp.where(number > jnp.inf, number, x)


class Turns:
    """Evaluates functions so that all their decompositions, whoever asks for them, take turns.

    >>> turns = Turns()
    >>> [s.item() for s in turns(lambda: [jnp.linalg.norm(k * jnp.eye(2), 2) for k in (1, 2)])]
    [1.0, 2.0]
    """

    def __init__(self) -> None:
        self.done: Array | None = None

    def __call__(self, function: Callable[[], Value]) -> Value:
        """``function()``, its decompositions after each other and after those of earlier calls."""
        program, shapes, rest = eqx.filter_make_jaxpr(function)()
        made = self._evaluate(program, [])
        return eqx.combine(jax.tree.unflatten(jax.tree.structure(shapes), made), rest)

    def wait(self, tree: Value) -> Value:
        """``tree``, made only when the decompositions of all earlier calls have been."""
        return jax.tree.map(lambda x: after(self.done, x), tree)

    def _evaluate(self, program: Any, inputs: Sequence[Any]) -> Sequence[Any]:
        jaxpr = program.jaxpr
        if not _decompose(jaxpr.eqns):
            return jex.jaxpr_as_fun(program)(*inputs)
        known = dict(zip([*jaxpr.constvars, *jaxpr.invars], [*program.consts, *inputs], strict=True))

        def value(of: Any) -> Any:
            return of.val if isinstance(of, jex.Literal) else known[of]

        for equation in jaxpr.eqns:
            given = [value(x) for x in equation.invars]
            if not _decompose([equation]):
                found = _alone(equation, jaxpr, given)
            elif equation.primitive.name in CALLS:
                found = self._evaluate(equation.params["jaxpr"], given)
            else:
                found = _alone(equation, jaxpr, self.wait(given))
                self.done = next((x for x in found if _is_float(x) and x.size), self.done)
            known |= zip(equation.outvars, found, strict=True)
        return [value(x) for x in jaxpr.outvars]


def _alone(equation: Any, jaxpr: Any, inputs: Sequence[Any]) -> Sequence[Any]:
    """What one equation of a program makes of its inputs."""
    given = {of: x for of, x in zip(equation.invars, inputs, strict=True) if not isinstance(of, jex.Literal)}
    told = jaxpr.debug_info._replace(arg_names=None, result_paths=None)
    program = jex.Jaxpr([], list(given), equation.outvars, [equation], equation.effects, told)
    return jex.jaxpr_as_fun(jex.ClosedJaxpr(program, []))(*given.values())


def _decompose(equations: Sequence[Any]) -> bool:
    return any(
        e.primitive.name in DECOMPOSITIONS or any(_decompose(inner.eqns) for inner in _programs(e)) for e in equations
    )


def _programs(equation: Any) -> Iterator[Any]:
    """The programs inside an equation: a branch, a body, a function."""
    for value in equation.params.values():
        for x in value if isinstance(value, tuple | list) else (value,):
            if isinstance(x, jex.ClosedJaxpr | jex.Jaxpr):
                yield getattr(x, "jaxpr", x)


def _is_float(x: Any) -> bool:
    return jnp.issubdtype(jnp.result_type(x), jnp.floating)
