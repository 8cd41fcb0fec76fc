"""Keywords that do not exist get the one that was probably meant; decorators that check all arguments of a call."""

from __future__ import annotations

import difflib
import functools
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from gyrostat.errors.annotation_checks import check_declared
from gyrostat.errors.exceptions import GyrostatError, UnknownArgument
from gyrostat.errors.value_checks import parameters_of

Function = TypeVar("Function", bound=Callable[..., Any])
Class = TypeVar("Class", bound=type)

MEANT = {
    "alpha": ("init_scale", "start"),
    "b1": ("beta1",),
    "b2": ("beta2",),
    "batch": ("batch_size", "num_samples"),
    "d": ("dimension",),
    "dim": ("dimension",),
    "epochs": ("num_steps",),
    "eps": ("epsilon",),
    "eta": ("step_size",),
    "init": ("start", "init_scale"),
    "iterations": ("num_steps",),
    "k": ("width",),
    "learning_rate": ("step_size",),
    "lr": ("step_size",),
    "m": ("num_samples",),
    "max_iter": ("num_steps",),
    "momentum": ("beta", "rule"),
    "n_samples": ("num_samples",),
    "optimiser": ("rule",),
    "optimizer": ("rule",),
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
        close = close or difflib.get_close_matches(name, known, n=1, cutoff=0.65)
        if close:
            raise UnknownArgument(f"{owner} has no argument {name!r}: did you mean {close[0]}?")
        listed = f"it takes {', '.join(known)}" if known else "it takes none"
        raise UnknownArgument(f"{owner} has no argument {name!r}: {listed}.")


def keyword_names(function: Callable[..., Any]) -> list[str] | None:
    """The names that can be given as keywords to a function or class, None if it takes any."""
    parameters = parameters_of(function).values()
    if any(p.kind is p.VAR_KEYWORD for p in parameters):
        return None
    return [p.name for p in parameters if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)]


def explains_keywords(function: Function) -> Function:
    """A decorator of public functions: misspelt keywords and values that contradict annotations get a sentence.

    The sentences are those of :func:`check_keywords` and :func:`check_declared`.
    """
    known = keyword_names(function)

    @functools.wraps(function)
    def checked(*args: Any, **kwargs: Any) -> Any:
        if known is not None:
            check_keywords(f"{function.__name__}()", kwargs, known)
        check_declared(function, args, kwargs)
        return function(*args, **kwargs)

    return checked  # type: ignore[return-value]


def explains_formula(function: Function) -> Function:
    """A decorator of formulas: :func:`explains_keywords`, and a sentence for numbers and shapes that have no value in it.

    >>> @explains_formula
    ... def rate(step_size: float) -> float:
    ...     return 1 / (1 - step_size)
    >>> rate(1.0)
    Traceback (most recent call last):
    gyrostat.errors.GyrostatError: rate() has no value for these arguments (float division by zero): check them.
    """

    @functools.wraps(function)
    def evaluated(*args: Any, **kwargs: Any) -> Any:
        try:
            return function(*args, **kwargs)
        except GyrostatError:
            raise
        except (ArithmeticError, IndexError, TypeError, ValueError, MemoryError) as error:
            reason = " ".join(str(error).split())[:120] or type(error).__name__
            raise GyrostatError(
                f"{function.__name__}() has no value for these arguments ({reason}): check them."
            ) from error

    return explains_keywords(evaluated)  # type: ignore[return-value]


def checks_fields(kind: Class) -> Class:
    """A decorator of named tuples that users make: the constructor checks what the annotations of the fields declare."""
    make: Callable[..., Any] = kind.__new__

    @functools.wraps(make)
    def checked(cls: type, *args: Any, **kwargs: Any) -> Any:
        check_keywords(kind.__name__, kwargs, kind._fields)  # type: ignore[attr-defined]
        check_declared(make, (cls, *args), kwargs)
        return make(cls, *args, **kwargs)

    kind.__new__ = checked  # type: ignore[assignment, method-assign]
    return kind
