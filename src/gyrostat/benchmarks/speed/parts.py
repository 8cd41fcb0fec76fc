"""The parts that a step of the fresh engine cannot do without, alone in tight loops."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

NAMES = ("product by NumPy", "normals by NumPy", "product by JAX", "normals by JAX")


class Part(NamedTuple):
    """Work that repeats one operation ``calls`` times."""

    work: Callable[[], Any]
    calls: int


def parts(d: int, calls: int = 500) -> dict[str, Part]:
    """A product of two d x d matrices and d (d + 1)/2 normals, by NumPy and by JAX, in double precision."""
    rng = np.random.default_rng(0)
    A = np.linalg.qr(rng.standard_normal((d, d)))[0]  # orthogonal: repeated products neither grow nor vanish
    out, z = np.empty((d, d)), np.empty(d * (d + 1) // 2)

    def products() -> None:
        for _ in range(calls):
            np.matmul(A, A, out=out)

    def normals() -> None:
        for _ in range(calls):
            rng.standard_normal(out=z)

    works = (products, normals, *_jax(A, z.size, calls))
    return {name: Part(work, calls) for name, work in zip(NAMES, works, strict=True)}


def _jax(A: np.ndarray, count: int, calls: int) -> tuple[Callable[[], Any], Callable[[], Any]]:
    import jax
    import jax.numpy as jnp

    from gyrostat.jax_tools.float64 import double

    @jax.jit
    def products(A: jax.Array) -> jax.Array:
        return jax.lax.fori_loop(0, calls, lambda _, x: x @ A, A)

    @jax.jit
    def normals(key: jax.Array) -> jax.Array:
        def add(i: jax.Array, x: jax.Array) -> jax.Array:
            return x + jax.random.normal(jax.random.fold_in(key, i), x.shape, dtype=float)

        return jax.lax.fori_loop(0, calls, add, jnp.zeros(count, dtype=float))

    def under_double(work: Callable[[Any], Any], argument: Callable[[], Any]) -> Callable[[], Any]:
        def call() -> None:
            with double():
                jax.block_until_ready(work(argument()))

        return call

    return under_double(products, lambda: jnp.asarray(A)), under_double(normals, lambda: jax.random.key(0))
