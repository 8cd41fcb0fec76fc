"""A check of compiled JAX programs against NumPy, on a pattern that some releases compile wrongly.

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


def rows(M: Any, X: Any) -> Any:
    """``sum(M x)`` for every row x of X: the pattern that is known to be compiled wrongly."""
    return jax.vmap(lambda x: jnp.sum(M @ x))(X)


def stack(A: Any, X: Any) -> Any:
    """``sum((a x)**2)`` for every matrix a of a stack and its row x: a matrix for each run, as the engine has it."""
    return jax.vmap(lambda a, x: jnp.sum((a @ x) ** 2))(A, X)


def check_all() -> list[Check]:
    """Check both patterns, in both precisions."""
    checks = []
    with double():
        for dtype in TOLERANCE:
            random = np.random.default_rng(0)
            for shape in (*LARGE[dtype], SMALL):
                M = random.standard_normal((shape[1], shape[1])).astype(dtype)
                X = random.standard_normal(shape).astype(dtype)
                checks.append(compare("vmap of sum(M x)", rows, (M, X), (_exact(X) @ _exact(M).T).sum(1)))
            A, X = (random.standard_normal(shape).astype(dtype) for shape in (STACK, STACK[:2]))
            products = np.einsum("nij,nj->ni", _exact(A), _exact(X))
            checks.append(compare("vmap of sum((A x)**2)", stack, (A, X), (products**2).sum(1)))
    return checks


def compare(pattern: str, function: Callable[..., Any], arrays: tuple[np.ndarray, ...], exact: np.ndarray) -> Check:
    """The error of the compiled function against the exact values."""
    error = np.abs(np.asarray(jax.jit(function)(*arrays)) - exact).max() / np.abs(exact).max()
    X = arrays[-1]
    return Check(pattern, str(X.dtype), X.shape, float(error))


def _exact(x: np.ndarray) -> np.ndarray:
    return x.astype(np.float64)


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
