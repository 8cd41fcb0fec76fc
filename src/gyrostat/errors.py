"""`GyrostatError`, the exception of the library, and the checks of arguments that raise it."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import Any

import numpy as np


class GyrostatError(ValueError):
    """Bad input. The message names the argument, the value it got and what to do."""


def number(
    name: str, value: Any, *, above: float | None = None, least: float | None = None, most: float | None = None
) -> np.ndarray:
    """Return ``value`` as a float64 scalar, or raise an error that says which number ``name`` needs.

    >>> float(number("step_size", 0.05, above=0))
    0.05
    """
    wanted = "a finite number"
    if above is not None:
        wanted += f" above {above:g}"
    if least is not None:
        wanted += f" of at least {least:g}"
    if most is not None:
        wanted += f" of at most {most:g}"
    try:
        x = np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError):
        raise GyrostatError(f"{name} must be {wanted}; got {value!r}.") from None
    good = x.ndim == 0 and bool(np.isfinite(x))
    good = good and bool((above is None or x > above) and (least is None or x >= least) and (most is None or x <= most))
    if not good:
        shown = f"an array of shape {x.shape}" if x.ndim else f"{value!r}"
        raise GyrostatError(f"{name} must be {wanted}; got {shown}.")
    return x


def count(name: str, value: Any) -> np.ndarray:
    """Return ``value`` as a positive whole number in float64, for numbers of samples up to 1e20 and more.

    >>> float(count("num_samples", 8000))
    8000.0
    """
    x = number(name, value, least=1)
    if not float(x).is_integer():
        raise GyrostatError(f"{name} must be a whole number of at least 1; got {value!r}.")
    return x


def integer(
    name: str, value: Any, *, least: int = 0, most: int | None = None, least_because: str = "", most_because: str = ""
) -> int:
    """Return ``value`` as an int within bounds, or raise an error that says which integer ``name`` needs."""
    wanted = f"a whole number of at least {least}{least_because}"
    wanted += f" and at most {most}{most_because}" if most is not None else ""
    if isinstance(value, bool) or not isinstance(value, int | np.integer):
        is_whole = isinstance(value, float | np.floating) and np.isfinite(value) and float(value).is_integer()
        if not is_whole:
            raise GyrostatError(f"{name} must be {wanted}; got {value!r}.")
    value = int(value)
    if value < least or (most is not None and value > most):
        raise GyrostatError(f"{name} must be {wanted}; got {value}.")
    return value


def array(name: str, value: Any, *, ndim: int | tuple[int, ...]) -> np.ndarray:
    """Return ``value`` as a finite float64 array with one of the given numbers of dimensions."""
    ndims = (ndim,) if isinstance(ndim, int) else ndim
    try:
        x = np.array(value, dtype=np.float64)
    except (TypeError, ValueError):
        raise GyrostatError(f"{name} must be an array of numbers; got {type(value).__name__}.") from None
    if x.ndim not in ndims:
        wanted = " or ".join(str(n) for n in ndims)
        raise GyrostatError(f"{name} must have {wanted} dimensions; got shape {x.shape}.")
    if not np.isfinite(x).all():
        bad = int((~np.isfinite(x)).sum())
        raise GyrostatError(f"{name} must be finite; {bad} of its {x.size} entries are NaN or infinite: remove them.")
    return x


def orthonormal(name: str, value: Any, *, tolerance: float = 1e-8) -> np.ndarray:
    """Return ``value`` as a (d, r) array with orthonormal columns."""
    x = array(name, value, ndim=2)
    d, r = x.shape
    if r > d:
        raise GyrostatError(f"{name} has {r} columns in dimension {d}; the rank cannot exceed the dimension.")
    gap = float(np.abs(x.T @ x - np.eye(r)).max()) if r else 0.0
    if gap > tolerance:
        raise GyrostatError(
            f"{name} must have orthonormal columns; its Gram matrix is off by {gap:.2g}: "
            "pass numpy.linalg.qr(basis)[0], or build it with Environments.from_features."
        )
    return x


def shown(value: Any) -> str:
    """A value as one short line for a message.

    >>> shown(np.eye(2))
    'array([[1., 0.], [0., 1.]])'
    """
    text = " ".join(repr(value).split())
    return text if len(text) <= 80 else text[:77] + "..."


def choice(name: str, value: Any, options: Iterable[str]) -> str:
    """Return ``value`` if it is one of ``options``, or raise an error that names the closest ones."""
    options = list(options)
    if value in options:
        return value
    close = difflib.get_close_matches(str(value), options, n=3, cutoff=0.4)
    hint = f"did you mean {' or '.join(map(repr, close))}?" if close else f"choose one of {', '.join(options)}."
    raise GyrostatError(f"unknown {name} {value!r}: {hint}")
