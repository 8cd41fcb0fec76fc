"""A check of compiled JAX programs against NumPy, on patterns that some releases compile wrongly.

The pattern is a vmapped matrix-vector product followed by a reduction, with more than 128 KiB of results. On the CPU, XLA
hands it to its YNNPACK backend, which gets the results beyond that size wrong (jax issue 39103). Seen with 3, 5, 6 and 7
columns in float64 (16385 rows and up) and with 3 columns in float32 (32769 rows and up).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from gyrostat.jax_tools.float64 import double

TOLERANCE = {"float64": 1e-10, "float32": 1e-4}
LARGE = {"float64": ((16_385, 3), (20_001, 5)), "float32": ((32_769, 3), (40_001, 3))}
SMALL = (200, 40)
STACK = (512, 12, 12)

WRONG_JAXLIB = {
    "0.9.1": "float32",
    "0.9.2": "float32",
    "0.10.0": "float32",
    "0.10.1": "float32",
    "0.10.2": "float64 and float32",
}
"""Versions of jaxlib that were seen to give wrong sums on the CPU, and in which precision."""

WORKAROUND = "XLA_FLAGS=--xla_cpu_experimental_ynn_fusion_type="

Function = Callable[..., Any]


@dataclass(frozen=True)
class Check:
    """The result for one pattern at one shape: the largest error, relative to the largest value."""

    pattern: str
    dtype: str
    shape: tuple[int, ...]
    error: float

    @property
    def good(self) -> bool:
        """Whether the error is within rounding."""
        return self.error <= TOLERANCE[self.dtype]

    @property
    def name(self) -> str:
        """The pattern, its shape and precision."""
        return f"{self.pattern} at {' x '.join(map(str, self.shape))}, {self.dtype}"


def _loop(M: Any, X: Any) -> Any:
    def add(_: Any, total: Any) -> Any:
        return total + jax.vmap(lambda x: jnp.sum((M @ x) ** 2))(X)

    return jax.lax.fori_loop(0, 3, add, jnp.zeros(X.shape[0], X.dtype))


def _scan(M: Any, X: Any) -> Any:
    def step(X: Any, _: Any) -> Any:
        return X / 2, jax.vmap(lambda x: jnp.sum(M @ x))(X)

    return jax.lax.scan(step, X, None, length=3)[1]


ROWS: dict[str, tuple[Function, Function]] = {
    "vmap of sum(M x)": (lambda M, X: jax.vmap(lambda x: jnp.sum(M @ x))(X), lambda M, X: (X @ M.T).sum(1)),
    "vmap of sum((M x)**2)": (
        lambda M, X: jax.vmap(lambda x: jnp.sum((M @ x) ** 2))(X),
        lambda M, X: ((X @ M.T) ** 2).sum(1),
    ),
    "vmap of max(M x)": (lambda M, X: jax.vmap(lambda x: jnp.max(M @ x))(X), lambda M, X: (X @ M.T).max(1)),
    "vmap of norm(M x)": (
        lambda M, X: jax.vmap(lambda x: jnp.linalg.norm(M @ x))(X),
        lambda M, X: np.linalg.norm(X @ M.T, axis=1),
    ),
    "vmap of x.M x": (lambda M, X: jax.vmap(lambda x: x @ (M @ x))(X), lambda M, X: ((X @ M.T) * X).sum(1)),
    "fori_loop of sum((M x)**2)": (_loop, lambda M, X: 3 * ((X @ M.T) ** 2).sum(1)),
    "scan of sum(M x)": (_scan, lambda M, X: np.stack([(X @ M.T).sum(1) / 2**t for t in range(3)])),
}
"""Patterns over a matrix M and the rows x of X."""

STACKS: dict[str, tuple[Function, Function]] = {
    "vmap of sum((A x)**2)": (
        lambda A, X: jax.vmap(lambda a, x: jnp.sum((a @ x) ** 2))(A, X),
        lambda A, X: (np.einsum("nij,nj->ni", A, X) ** 2).sum(1),
    ),
    "vmap of sum((A A^T)**2)": (
        lambda A, X: jax.vmap(lambda a: jnp.sum((a @ a.T) ** 2))(A),
        lambda A, X: (np.einsum("nij,nkj->nik", A, A) ** 2).sum((1, 2)),
    ),
}
"""Patterns over a stack of matrices A and the rows x of X."""


def check_all() -> list[Check]:
    """Check every pattern at every shape, in both precisions."""
    checks = []
    with double():
        for dtype in TOLERANCE:
            random = np.random.default_rng(0)
            for rows, columns in (*LARGE[dtype], SMALL):
                M = random.standard_normal((columns, columns)).astype(dtype)
                X = random.standard_normal((rows, columns)).astype(dtype)
                checks += [_check(name, pair, M, X) for name, pair in ROWS.items()]
            A, X = (random.standard_normal(shape).astype(dtype) for shape in (STACK, STACK[:2]))
            checks += [_check(name, pair, A, X) for name, pair in STACKS.items()]
    return checks


def _check(pattern: str, pair: tuple[Function, Function], M: np.ndarray, X: np.ndarray) -> Check:
    compiled, plain = pair
    got = np.asarray(jax.jit(compiled)(M, X))
    want = plain(M.astype(np.float64), X.astype(np.float64))
    error = float(np.abs(got - want).max() / np.abs(want).max())
    return Check(pattern, str(X.dtype), X.shape if M.ndim == 2 else M.shape, error)


def judge(checks: list[Check], jaxlib: str | None = None) -> tuple[bool, list[str]]:
    """Whether compiled float64 programs can be trusted, and what to tell the user.

    >>> judge([Check("vmap of sum(M x)", "float64", (16385, 3), 0.1)], "0.10.2")[0]
    False
    """
    jaxlib = version("jaxlib") if jaxlib is None else jaxlib
    sentences = []
    if jaxlib in WRONG_JAXLIB:
        sentences.append(
            f"jaxlib {jaxlib} is known to give wrong {WRONG_JAXLIB[jaxlib]} results on the CPU for a vmapped "
            "matrix-vector product followed by a reduction over many rows (jax issue 39103)."
        )
    wrong = {dtype: [c for c in checks if c.dtype == dtype and not c.good] for dtype in TOLERANCE}
    if wrong["float32"]:
        sentences.append(
            f"WARNING: compiled float32 programs are wrong here ({wrong['float32'][0].name}). "
            f"Gyrostat computes in float64; for float32 programs of your own, set {WORKAROUND}"
        )
    if wrong["float64"]:
        sentences.append(
            f"FAILED: {len(wrong['float64'])} float64 cases differ from NumPy ({wrong['float64'][0].name}): "
            "results cannot be trusted; install another version of jax (0.10.1 is right in float64)."
        )
    else:
        sentences.append("All is well: compiled float64 programs agree with NumPy.")
    return not wrong["float64"], sentences
