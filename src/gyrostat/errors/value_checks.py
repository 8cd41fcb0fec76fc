"""Checks of single values: each returns the value, or raises a sentence that names the argument."""

from __future__ import annotations

import difflib
import functools
import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from gyrostat.errors.exceptions import GyrostatError
from gyrostat.errors.what_went import instead_of

LARGEST_INTEGER = 2**63 - 1
"""The largest integer of an array, and more than can be counted."""

LARGEST_SEED = LARGEST_INTEGER
"""The largest seed of a random key: JAX keeps all bits up to this one, and takes no larger number."""

LARGEST_RUN = 2**32 - 1
"""The largest number of a run: JAX folds the last 32 bits of a number into a key, and would take larger ones for small ones."""

LARGEST = 1e70
"""Numbers beyond this, or below its inverse, are refused: squares of products of two of them would be infinite, or zero."""


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
        wanted += f" {'of' if above is None and least is None else 'and'} at most {most:g}"
    try:
        # NumPy would read the text "0.05", the truth value True, dates and complex numbers as numbers.
        x = np.asarray(np.nan if np.asarray(value).dtype.kind in "USbcmM" else value, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        raise GyrostatError(f"{name} must be {wanted}; got {class_or_value(value)}.") from None
    good = x.ndim == 0 and bool(np.isfinite(x))
    good = good and bool((above is None or x > above) and (least is None or x >= least) and (most is None or x <= most))
    if not good:
        got = f"an array of shape {x.shape}" if x.ndim else shown(value)
        raise GyrostatError(f"{name} must be {wanted}; got {got}.")
    return x


def count(name: str, value: Any) -> np.ndarray:
    """Return ``value`` as a positive whole number in float64, for numbers of samples up to 1e20 and more.

    >>> float(count("num_samples", 8000))
    8000.0
    """
    x = number(name, value, least=1)
    if not float(x).is_integer():
        raise GyrostatError(f"{name} must be a whole number of at least 1; got {shown(value)}.")
    return x


def integer(
    name: str, value: Any, *, least: int = 0, most: int | None = None, least_because: str = "", most_because: str = ""
) -> int:
    """Return ``value`` as an int within bounds, or raise an error that says which integer ``name`` needs.

    Without ``most``, an integer is still at most 2**63 - 1: arrays hold no larger one, and floats soon none.
    """
    if most is None and isinstance(value, int | float) and value > LARGEST_INTEGER:
        most = LARGEST_INTEGER
    wanted = f"a whole number of at least {least}{least_because}"
    wanted += f" and at most {most}{most_because}" if most is not None else ""
    if isinstance(value, bool) or not isinstance(value, int | np.integer):
        is_whole = isinstance(value, float | np.floating) and np.isfinite(value) and float(value).is_integer()
        if not is_whole:
            raise GyrostatError(f"{name} must be {wanted}; got {shown(value)}.")
    found = int(value)
    if found < least or (most is not None and found > most):
        raise GyrostatError(f"{name} must be {wanted}; got {shown(value)}.")
    return found


MOST_SIDE = 1_000_000
"""The largest dimension, rank or width: a square matrix of this side has 8 terabytes."""


def size(name: str, value: Any, *, least: int = 1, most: int = MOST_SIDE, most_because: str = "") -> int:
    """Return a dimension, rank, width or other side of an array as an int that an array can have.

    >>> size("width", 1e300)
    Traceback (most recent call last):
    gyrostat.errors.GyrostatError: width must be a whole number of at least 1 and at most 1000000; got 1e+300.
    """
    return integer(name, value, least=least, most=most, most_because=most_because)


def flag(name: str, value: Any) -> bool:
    """Return ``value`` if it is true or false, or raise an error: the text "no" would otherwise count as true.

    >>> flag("fit_intercept", "no")
    Traceback (most recent call last):
    gyrostat.errors.GyrostatError: fit_intercept must be True or False; got 'no'.
    """
    if isinstance(value, bool | np.bool_):
        return bool(value)
    raise GyrostatError(f"{name} must be True or False; got {class_or_value(value)}.")


def text(name: str, value: Any) -> str:
    """Return ``value`` if it is a text that can be written to a file, or raise an error.

    >>> text("title", 3)
    Traceback (most recent call last):
    gyrostat.errors.GyrostatError: title must be text; got 3.
    """
    if not isinstance(value, str):
        raise GyrostatError(f"{name} must be text; got {class_or_value(value)}.")
    if not value.isascii() and any("\ud800" <= character <= "\udfff" for character in value):
        raise GyrostatError(
            f"{name} holds half of a character (a lone surrogate), which no file can hold; got {value!a}."
        )
    return value


def array(name: str, value: Any, *, ndim: int | tuple[int, ...]) -> np.ndarray:
    """Return ``value`` as a finite float64 array with one of the given numbers of dimensions."""
    ndims = (ndim,) if isinstance(ndim, int) else ndim
    try:
        kind = np.asarray(value).dtype.kind
        if kind in "US":
            raise GyrostatError(
                f"{name} must be an array of numbers; got text, {shown(value)}: convert it with float()."
            )
        if kind == "c":
            raise GyrostatError(f"{name} must be an array of real numbers; got complex ones: take their .real.")
        x = np.array(value, dtype=np.float64)
    except GyrostatError:
        raise
    except (TypeError, ValueError, OverflowError):
        raise GyrostatError(f"{name} must be an array of numbers; got {type(value).__name__}.") from None
    if x.ndim not in ndims:
        wanted = " or ".join(str(n) for n in ndims)
        raise GyrostatError(f"{name} must have {wanted} dimensions; got shape {x.shape}.")
    if not np.isfinite(x).all():
        bad = int((~np.isfinite(x)).sum())
        raise GyrostatError(f"{name} must be finite; {bad} of its {x.size} entries are NaN or infinite: remove them.")
    return x


def squarable(name: str, values: np.ndarray, columns: Sequence[Any] | None = None, *, power: int = 1) -> None:
    """Refuse an array of finite numbers (rows, ...) if the squares of a column would be infinite, or would all vanish.

    ``columns`` are names for the message, and ``power`` is 2 if products of two numbers are squared. Sums of many squares of
    the largest numbers that pass can still be represented.

    >>> squarable("X", np.array([[1.0, 2.0], [3.0, 1e200]]), ["dose", "age"])
    Traceback (most recent call last):
    gyrostat.errors.GyrostatError: X holds 1e+200 in column age, whose square is too large a number: give it in a larger unit.
    """
    flat = np.abs(values.reshape(len(values), -1))
    peaks = flat.max(axis=0, initial=0.0)
    bad = np.flatnonzero((peaks > LARGEST ** (1 / power)) | ((peaks > 0) & (peaks < LARGEST ** (-1 / power))))
    if bad.size:
        peak, j = peaks[bad[0]], int(bad[0])
        where = f" in column {j if columns is None else columns[j]}" if flat.shape[1] > 1 or columns is not None else ""
        if peak > 1:
            raise GyrostatError(
                f"{name} holds {peak:g}{where}, whose square is too large a number: give it in a larger unit."
            )
        raise GyrostatError(
            f"{name} holds no number above {peak:g}{where}, and their squares vanish: give it in a smaller unit."
        )


def function_of(name: str, value: Any, arguments: str) -> Any:
    """Return ``value`` if it can be called, or raise an error that says of what it must be a function."""
    if not callable(value):
        raise GyrostatError(f"{name} must be a function of {arguments}; got {shown(value)}.")
    return value


def orthonormal(name: str, value: Any, *, tolerance: float = 1e-8) -> np.ndarray:
    """Return ``value`` as a (d, r) array with orthonormal columns."""
    x = array(name, value, ndim=2)
    d, r = x.shape
    if r > d:
        raise GyrostatError(f"{name} has {r} columns in dimension {d}; the rank cannot exceed the dimension.")
    gap = float(np.abs(x.T @ x - np.eye(r)).max()) if r else 0.0
    if gap > tolerance:
        raise GyrostatError(
            f"{name} must have orthonormal columns; its Gram matrix differs from the identity by {gap:.2g}: "
            "pass numpy.linalg.qr(basis)[0], or build it with Environments.from_features."
        )
    return x


def shown(value: Any) -> str:
    """A value as one short line for a message.

    >>> shown(np.eye(2))
    'array([[1., 0.], [0., 1.]])'
    """
    try:
        text = " ".join(repr(value.item() if isinstance(value, np.generic) else value).split())
    except ValueError:  # a whole number of more digits than Python writes
        text = f"a value of type {type(value).__name__}"
    return text if len(text) <= 80 else text[:77] + "..."


def instance(name: str, value: Any, kind: type, wanted: str = "") -> Any:
    """Return ``value`` if it is a ``kind``, or raise an error; a class in place of an object gets the missing brackets.

    >>> import gyrostat as gs
    >>> instance("model", gs.Diagonal, gs.Model)
    Traceback (most recent call last):
    gyrostat.errors.GyrostatError: model must be a Model; got the class Diagonal: make one: gs.Diagonal().
    """
    if isinstance(value, kind):
        return value
    wanted = wanted or f"a {kind.__name__}"
    raise GyrostatError(f"{name} must be {wanted}; got {class_or_value(value)}.")


def class_or_value(value: Any) -> str:
    """A value for a message; a class of ours with the call that was probably meant."""
    if not isinstance(value, type) or value.__module__.partition(".")[0] != "gyrostat":
        return shown(value)
    required = [
        p.name for p in parameters_of(value).values() if p.default is p.empty and p.kind is not p.VAR_POSITIONAL
    ]
    call = f"gs.{value.__name__}({', '.join(f'{name}=...' for name in required)})"
    return f"the class {value.__name__}: make one: {call}"


@functools.cache
def parameters_of(function: Callable[..., Any]) -> Mapping[str, inspect.Parameter]:
    """The parameters of a function or class by name."""
    return inspect.signature(function).parameters


def choice(name: str, value: Any, options: Iterable[str]) -> str:
    """Return ``value`` if it is one of ``options``; or an error that names the closest ones, or what to use instead."""
    options = list(options)
    if isinstance(value, str) and value in options:
        return value
    if sentence := instead_of(f"the {name} {value}"):
        raise GyrostatError(sentence)
    close = difflib.get_close_matches(str(value)[:100], options, n=3, cutoff=0.4) if isinstance(value, str) else []
    hint = f"did you mean {' or '.join(map(repr, close))}?" if close else f"choose one of {', '.join(options)}."
    raise GyrostatError(f"unknown {name} {shown(value)}: {hint}")
