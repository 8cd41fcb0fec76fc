"""`GyrostatError`, the exception of the library, the checks of arguments that raise it, and `DivergenceWarning`."""

from __future__ import annotations

import difflib
import functools
import inspect
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

import numpy as np

Function = TypeVar("Function", bound=Callable[..., Any])

LARGEST_SEED = 2**63 - 1
"""The largest seed of a random key: JAX keeps all bits up to this one, and takes no larger number."""

LARGEST_RUN = 2**32 - 1
"""The largest number of a run: JAX folds the last 32 bits of a number into a key, and would take larger ones for small ones."""


class GyrostatError(ValueError):
    """Bad input. The message names the argument, the value it got and what to do."""


class UnknownArgument(GyrostatError, TypeError):
    """A keyword argument that does not exist; the message names the one that was probably meant."""


class DivergenceWarning(UserWarning):
    """Some runs of a result diverged, and a statistic that skips NaN would leave them out without a word.

    The message says how many. :func:`gyrostat.summary` counts them as infinite. Python's own tools apply:

    >>> import warnings, gyrostat as gs
    >>> problem = gs.Problem(gs.Environments.diagonal(4), gs.Identity())
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore", DivergenceWarning)
    ...     result = gs.run(gs.GradientDescent(9.0), problem, num_steps=50, seeds=2)
    >>> result.attrs["diverged"].split(":")[0]
    '2 of 2 runs (100 %) diverged'
    """


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
        # NumPy would read the text "0.05" and the truth value True as numbers.
        x = np.asarray(np.nan if np.asarray(value).dtype.kind in "USb" else value, dtype=np.float64)
    except (TypeError, ValueError):
        raise GyrostatError(f"{name} must be {wanted}; got {_class_or_value(value)}.") from None
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
        if np.asarray(value).dtype.kind in "US":
            raise GyrostatError(
                f"{name} must be an array of numbers; got text, {shown(value)}: convert it with float()."
            )
        x = np.array(value, dtype=np.float64)
    except GyrostatError:
        raise
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
    raise GyrostatError(f"{name} must be {wanted}; got {_class_or_value(value)}.")


def _class_or_value(value: Any) -> str:
    """A value for a message; a class of ours with the call that was probably meant."""
    if not isinstance(value, type) or value.__module__.partition(".")[0] != "gyrostat":
        return shown(value)
    required = [p.name for p in _parameters(value).values() if p.default is p.empty and p.kind is not p.VAR_POSITIONAL]
    call = f"gs.{value.__name__}({', '.join(f'{name}=...' for name in required)})"
    return f"the class {value.__name__}: make one: {call}"


MEANT = {
    "alpha": ("init_scale", "start"),
    "batch": ("batch_size", "num_samples"),
    "d": ("dimension",),
    "dim": ("dimension",),
    "epochs": ("num_steps",),
    "eta": ("step_size",),
    "init": ("start", "init_scale"),
    "iterations": ("num_steps",),
    "k": ("width",),
    "learning_rate": ("step_size",),
    "lr": ("step_size",),
    "m": ("num_samples",),
    "max_iter": ("num_steps",),
    "n_samples": ("num_samples",),
    "r": ("rank",),
    "random_state": ("seed",),
    "samples": ("num_samples",),
    "sigma": ("noise", "spread"),
    "std": ("spread", "noise"),
    "steps": ("num_steps",),
    "t": ("num_steps",),
    "weight_decay": ("ridge",),
}
"""Words of other libraries and letters of the papers (in lower case), and the arguments that they stand for here."""


def check_keywords(owner: str, given: Iterable[str], known: Iterable[str]) -> None:
    """Refuse keyword arguments that are not ``known``, and say which one was probably meant.

    >>> check_keywords("HeteroSGD", ["lr"], ["step_size", "order"])
    Traceback (most recent call last):
    gyrostat.errors.UnknownArgument: HeteroSGD has no argument 'lr': did you mean step_size?
    """
    known = list(known)
    for name in given:
        if name in known:
            continue
        close = [word for word in MEANT.get(name.lower(), ()) if word in known][:1]
        close = close or difflib.get_close_matches(name, known, n=1, cutoff=0.5)
        if close:
            raise UnknownArgument(f"{owner} has no argument {name!r}: did you mean {close[0]}?")
        listed = f"it takes {', '.join(known)}" if known else "it takes none"
        raise UnknownArgument(f"{owner} has no argument {name!r}: {listed}.")


@functools.cache
def _parameters(function: Callable[..., Any]) -> Mapping[str, inspect.Parameter]:
    return inspect.signature(function).parameters


def keyword_names(function: Callable[..., Any]) -> list[str] | None:
    """The names that can be given as keywords to a function or class, None if it takes any."""
    parameters = _parameters(function).values()
    if any(p.kind is p.VAR_KEYWORD for p in parameters):
        return None
    return [p.name for p in parameters if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)]


def explains_keywords(function: Function) -> Function:
    """A decorator of public functions: a misspelt keyword argument gets the sentence of :func:`check_keywords`."""
    known = keyword_names(function) or []

    @functools.wraps(function)
    def checked(*args: Any, **kwargs: Any) -> Any:
        check_keywords(f"{function.__name__}()", kwargs, known)
        return function(*args, **kwargs)

    return checked  # type: ignore[return-value]


def choice(name: str, value: Any, options: Iterable[str]) -> str:
    """Return ``value`` if it is one of ``options``, or raise an error that names the closest ones."""
    options = list(options)
    if value in options:
        return value
    close = difflib.get_close_matches(str(value), options, n=3, cutoff=0.4)
    hint = f"did you mean {' or '.join(map(repr, close))}?" if close else f"choose one of {', '.join(options)}."
    raise GyrostatError(f"unknown {name} {value!r}: {hint}")
