"""LAPACK calls one at a time: several batched calls at once can block each other forever on a CPU.

XLA's CPU runtime hands independent calls to a pool with one thread per core. jaxlib splits a batched LAPACK call over that
same pool and waits, on a thread of the pool, for the pieces (``ParallelBatchMap``). When every thread waits, none is left to
work: two decompositions at once are enough on two cores. Neither ``jax.lax.optimization_barrier`` (which the CPU compiler
drops) nor the option ``xla_cpu_multi_thread_eigen`` of one program orders the calls. A data dependency does: here each call
depends on a number from the result of the call before it.
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
"""The primitives that only call a function."""


def after(earlier: Array | None, x: Array) -> Array:
    """``x``, but available only after ``earlier`` has been computed.

    >>> after(jnp.array([jnp.nan, 1.0]), jnp.asarray(3.0)).item()
    3.0
    """
    if earlier is None or not _is_float(x):
        return x
    number = jnp.ravel(earlier)[0].astype(x.dtype)
    return jnp.where(number > jnp.inf, number, x)  # no number is above infinity, which the compiler does not use


def in_sequence(function: Callable[[], Value]) -> Value:
    """``function()``, with its decompositions, however deep inside, one at a time.

    >>> [s.item() for s in in_sequence(lambda: [jnp.linalg.norm(k * jnp.eye(2), 2) for k in (1, 2)])]
    [1.0, 2.0]
    """
    program, shapes, not_arrays = eqx.filter_make_jaxpr(function)()
    arrays, _ = _evaluate(program, [], None)
    return eqx.combine(jax.tree.unflatten(jax.tree.structure(shapes), arrays), not_arrays)


def _evaluate(program: Any, inputs: Sequence[Any], latest: Array | None) -> tuple[Sequence[Any], Array | None]:
    """The outputs of a program, and a result of its last decomposition, given one of the decomposition before it."""
    jaxpr = program.jaxpr
    if not _has_decompositions(jaxpr.eqns):
        return jex.jaxpr_as_fun(program)(*inputs), latest
    values = dict(zip([*jaxpr.constvars, *jaxpr.invars], [*program.consts, *inputs], strict=True))

    def value(variable: Any) -> Any:
        return variable.val if isinstance(variable, jex.Literal) else values[variable]

    for equation in jaxpr.eqns:
        arguments = [value(x) for x in equation.invars]
        if not _has_decompositions([equation]):
            outputs = _evaluate_equation(equation, jaxpr, arguments)
        elif equation.primitive.name in CALLS:
            outputs, latest = _evaluate(equation.params["jaxpr"], arguments, latest)
        else:
            outputs = _evaluate_equation(equation, jaxpr, [after(latest, x) for x in arguments])
            latest = next((x for x in outputs if _is_float(x) and x.size), latest)
        values |= zip(equation.outvars, outputs, strict=True)
    return [value(x) for x in jaxpr.outvars], latest


def _evaluate_equation(equation: Any, jaxpr: Any, inputs: Sequence[Any]) -> Sequence[Any]:
    """The outputs of one equation of a program."""
    # A program of one equation: how a primitive is bound to its parameters differs between the releases of JAX.
    arguments = {v: x for v, x in zip(equation.invars, inputs, strict=True) if not isinstance(v, jex.Literal)}
    debug_info = jaxpr.debug_info._replace(arg_names=None, result_paths=None)
    program = jex.Jaxpr([], list(arguments), equation.outvars, [equation], equation.effects, debug_info)
    return jex.jaxpr_as_fun(jex.ClosedJaxpr(program, []))(*arguments.values())


def _has_decompositions(equations: Sequence[Any]) -> bool:
    return any(
        e.primitive.name in DECOMPOSITIONS or any(_has_decompositions(inner.eqns) for inner in _inner_programs(e))
        for e in equations
    )


def _inner_programs(equation: Any) -> Iterator[Any]:
    """The programs inside an equation: branches, loop bodies, called functions."""
    for value in equation.params.values():
        for x in value if isinstance(value, tuple | list) else (value,):
            if isinstance(x, jex.ClosedJaxpr | jex.Jaxpr):
                yield getattr(x, "jaxpr", x)


def _is_float(x: Any) -> bool:
    return jnp.issubdtype(jnp.result_type(x), jnp.floating)
