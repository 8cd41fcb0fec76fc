"""Double precision for a block of code, never for the whole process."""

from __future__ import annotations

from contextlib import AbstractContextManager

import jax


def double() -> AbstractContextManager:
    """A context in which JAX computes in float64, whatever the configuration of the process.

    >>> import jax.numpy as jnp
    >>> with double():
    ...     str(jnp.ones(1).dtype)
    'float64'
    """
    if hasattr(jax, "enable_x64"):
        return jax.enable_x64(True)
    from jax.experimental import enable_x64  # type: ignore[attr-defined]  # before jax 0.8

    return enable_x64(True)
