"""Find functions that draw random numbers while they are traced: compiled once, they would give the same numbers for ever."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from gyrostat.errors import GyrostatError

TRACES = 20
"""How often a function is traced: a coin that it tosses shows both sides but once in a million times."""


def program_and_constants(function: Callable[..., Any], *arguments: Any) -> tuple[str, list[bytes]]:
    """A traced function as text, and the constants in it."""
    program = jax.make_jaxpr(lambda *given: jax.tree.map(jnp.asarray, function(*given)))(*arguments)
    return str(program.jaxpr), [np.asarray(x).tobytes() for x in program.consts]


@functools.lru_cache(maxsize=1024)
def check_no_frozen_numbers(name: str, function: Callable[..., Any], *arguments: Any) -> None:
    """Refuse a function that gives another program whenever it is traced; ``arguments`` are shapes and types.

    >>> rng = np.random.default_rng(0)
    >>> check_no_frozen_numbers("order", lambda t: rng.integers(2), jax.ShapeDtypeStruct((), int))
    Traceback (most recent call last):
    gyrostat.errors.GyrostatError: order draws random numbers that do not come from its arguments; it is compiled once...
    """
    first = program_and_constants(function, *arguments)
    if any(program_and_constants(function, *arguments) != first for _ in range(TRACES)):
        raise GyrostatError(
            f"{name} draws random numbers that do not come from its arguments; it is compiled once, so they "
            "would never change: draw an array of them beforehand, and use it in the function."
        )
