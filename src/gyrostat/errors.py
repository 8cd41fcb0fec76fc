"""The exception of the library, and the checks of arguments that raise it: one sentence with the value got and what to do.

The exception is :class:`GyrostatError`, or :class:`UnknownArgument` for a keyword; :class:`DivergenceWarning` is about runs.
A function checks a value where it comes in, ``errors.integer("seed", seed)``, with :func:`number`, :func:`integer`,
:func:`array`, :func:`choice` or :func:`instance`, or all that its annotations declare, by a decorator. A field of an Equinox
module takes its name in the sentence from the class, ``step_size: Leaf = errors.positive()``: :func:`positive`,
:func:`nonnegative`, :func:`count`, and :func:`field` for any other check.
"""

from __future__ import annotations

import ast
import dataclasses
import difflib
import functools
import inspect
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar, get_args

import numpy as np

from gyrostat.what_went import instead_of

__all__ = [
    "DivergenceWarning",
    "GyrostatError",
    "UnknownArgument",
    "count",
    "field",
    "nonnegative",
    "positive",
]


def __dir__() -> list[str]:
    return __all__


Function = TypeVar("Function", bound=Callable[..., Any])
Class = TypeVar("Class", bound=type)


class GyrostatError(ValueError):
    """Bad input. The message names the argument, the value it got and what to do."""


class UnknownArgument(GyrostatError, TypeError):
    """A keyword argument that does not exist; the message names the one that was probably meant."""


class DivergenceWarning(UserWarning):
    """Some runs of a result diverged, and a statistic that skips NaN would silently leave them out.

    The message says how many. :func:`gyrostat.summary` counts them as infinite. Python's warning filters apply:

    >>> import warnings, gyrostat as gs
    >>> problem = gs.Problem(gs.Environments.diagonal(4), gs.Identity())
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore", DivergenceWarning)
    ...     result = gs.run(gs.GradientDescent(9.0), problem, num_steps=50, seeds=2)
    >>> result.attrs["diverged"].split(":")[0]
    '2 of 2 runs (100 %) diverged'
    """


# --- values in messages ------------------------------------------------------------------------------------------------------


def shown(value: Any) -> str:
    """A value as one short line for a message; a class of ours with the call that was probably meant.

    >>> shown(np.eye(2)), shown(3.0)
    ('array([[1., 0.], [0., 1.]])', '3.0')
    """
    if isinstance(value, type) and value.__module__.partition(".")[0] == "gyrostat":
        import gyrostat

        parameters = parameters_of(value).values()
        needed = [p.name for p in parameters if p.default is p.empty and p.kind is not p.VAR_POSITIONAL]
        place = gyrostat.places().get(value.__name__, value.__name__)
        return f"the class {value.__name__}: make one: gs.{place}({', '.join(f'{name}=...' for name in needed)})"
    try:
        line = " ".join(repr(value.item() if isinstance(value, np.generic) else value).split())
    except ValueError:  # a whole number of more digits than Python writes
        line = f"a value of type {type(value).__name__}"
    return line if len(line) <= 80 else line[:77] + "..."


@functools.cache
def parameters_of(function: Callable[..., Any]) -> Mapping[str, inspect.Parameter]:
    """The parameters of a function or class by name."""
    return inspect.signature(function).parameters


# --- numbers -----------------------------------------------------------------------------------------------------------------

LARGEST_INTEGER = LARGEST_SEED = 2**63 - 1
"""The largest integer of an array, and the largest seed of a random key: JAX keeps all bits up to this one."""

LARGEST_RUN = 2**32 - 1
"""The largest number of a run: JAX folds the last 32 bits of a number into a key, and would take larger ones for small ones."""

LARGEST = 1e70
"""Numbers beyond this, or below its inverse, are refused: squares of products of two of them would be infinite, or zero."""

MOST_SIDE = 1_000_000
"""The largest dimension, rank or width: a square matrix of this side has 8 terabytes."""

MOST_STEPS = 2**31 - 2
"""The largest number of steps: the engine counts them in 32 bits, and one beyond the last."""


def number(
    name: str, value: Any, *, above: float | None = None, least: float | None = None, most: float | None = None
) -> np.ndarray:
    """Return ``value`` as a float64 scalar, or raise an error that says which number ``name`` needs.

    >>> float(number("step_size", 0.05, above=0))
    0.05
    """
    try:
        # NumPy would read the text "0.05", the truth value True, dates and complex numbers as numbers.
        x = np.asarray(np.nan if np.asarray(value).dtype.kind in "USbcmM" else value, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        x = np.asarray(np.nan)
    good = x.ndim == 0 and bool(np.isfinite(x))
    good = good and bool((above is None or x > above) and (least is None or x >= least) and (most is None or x <= most))
    if not good:
        bounds = "" if above is None else f" above {above:g}"
        bounds += "" if least is None else f" of at least {least:g}"
        bounds += "" if most is None else f" {'and' if bounds else 'of'} at most {most:g}"
        got = f"an array of shape {x.shape}" if x.ndim else shown(value)
        raise GyrostatError(f"{name} must be a finite number{bounds}; got {got}.")
    return x


def whole(name: str, value: Any) -> np.ndarray:
    """Return ``value`` as a positive whole number in float64, for numbers of samples up to 1e20 and more.

    >>> float(whole("num_samples", 8000))
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
    is_whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
    is_whole = is_whole or (isinstance(value, float | np.floating) and float(value).is_integer())
    if not is_whole or int(value) < least or (most is not None and int(value) > most):
        limit = "" if most is None else f" and at most {most}{most_because}"
        raise GyrostatError(
            f"{name} must be a whole number of at least {least}{least_because}{limit}; got {shown(value)}."
        )
    return int(value)


def size(name: str, value: Any, *, least: int = 1) -> int:
    """Return a dimension, rank, width or other side of an array as an int that an array can have.

    >>> size("width", 1e300)
    Traceback (most recent call last):
    gyrostat.errors.GyrostatError: width must be a whole number of at least 1 and at most 1000000; got 1e+300.
    """
    return integer(name, value, least=least, most=MOST_SIDE)


# --- arrays ------------------------------------------------------------------------------------------------------------------


def array(name: str, value: Any, *, ndim: int | tuple[int, ...]) -> np.ndarray:
    """Return ``value`` as a finite float64 array with one of the given numbers of dimensions."""
    ndims = (ndim,) if isinstance(ndim, int) else ndim
    try:
        kind = np.asarray(value).dtype.kind
        x = np.array(np.nan if kind in "USc" else value, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        raise GyrostatError(f"{name} must be an array of numbers; got {type(value).__name__}.") from None
    if kind in "US":
        raise GyrostatError(f"{name} must be an array of numbers; got text, {shown(value)}: convert it with float().")
    if kind == "c":
        raise GyrostatError(f"{name} must be an array of real numbers; got complex ones: take their .real.")
    if x.ndim not in ndims:
        raise GyrostatError(f"{name} must have {' or '.join(map(str, ndims))} dimensions; got shape {x.shape}.")
    if bad := int((~np.isfinite(x)).sum()):
        raise GyrostatError(f"{name} must be finite; {bad} of its {x.size} entries are NaN or infinite: remove them.")
    return x


def orthonormal(name: str, value: Any) -> np.ndarray:
    """Return ``value`` as a (d, r) array with orthonormal columns."""
    x = array(name, value, ndim=2)
    d, r = x.shape
    if r > d:
        raise GyrostatError(f"{name} has {r} columns in dimension {d}; the rank cannot exceed the dimension.")
    gap = float(np.abs(x.T @ x - np.eye(r)).max(initial=0.0))
    if gap > 1e-8:
        raise GyrostatError(
            f"{name} must have orthonormal columns; its Gram matrix differs from the identity by {gap:.2g}: "
            "pass numpy.linalg.qr(basis)[0], or build it with Environments.from_features."
        )
    return x


# --- other values ------------------------------------------------------------------------------------------------------------


def flag(name: str, value: Any) -> bool:
    """Return ``value`` if it is true or false, or raise an error: the text "no" would otherwise count as true.

    >>> flag("fit_intercept", "no")
    Traceback (most recent call last):
    gyrostat.errors.GyrostatError: fit_intercept must be True or False; got 'no'.
    """
    return bool(_required(name, value, isinstance(value, bool | np.bool_), "True or False"))


def text(name: str, value: Any) -> str:
    """Return ``value`` if it is a text that can be written to a file, or raise an error.

    >>> text("title", 3)
    Traceback (most recent call last):
    gyrostat.errors.GyrostatError: title must be text; got 3.
    """
    _required(name, value, isinstance(value, str), "text")
    if not value.isascii() and any("\ud800" <= character <= "\udfff" for character in value):
        raise GyrostatError(
            f"{name} holds half of a character (a lone surrogate), which no file can hold; got {value!a}."
        )
    return value


def function_of(name: str, value: Any, arguments: str) -> Any:
    """Return ``value`` if it can be called, or raise an error that says of what it must be a function."""
    return _required(name, value, callable(value), f"a function of {arguments}")


def instance(name: str, value: Any, kind: type, wanted: str = "") -> Any:
    """Return ``value`` if it is a ``kind``, or raise an error; a class in place of an object gets the missing brackets.

    >>> import gyrostat as gs
    >>> instance("model", gs.Diagonal, gs.Model)
    Traceback (most recent call last):
    gyrostat.errors.GyrostatError: model must be a Model; got the class Diagonal: make one: gs.Diagonal().
    """
    return _required(name, value, isinstance(value, kind), wanted or f"a {kind.__name__}")


def _required(name: str, value: Any, is_good: bool, wanted: str) -> Any:
    if not is_good:
        raise GyrostatError(f"{name} must be {wanted}; got {shown(value)}.")
    return value


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


# --- fields of Equinox modules -----------------------------------------------------------------------------------------------


def field(
    *,
    check: Callable[..., Any],
    name: str = "",
    static: bool = False,
    default: Any = dataclasses.MISSING,
    **bounds: Any,
) -> Any:
    """A field of an Equinox module whose value is that of ``check(name, value, **bounds)``.

    Parameters
    ----------
    check
        A function that takes the name and the value, and returns the value or raises a :class:`GyrostatError`; those of this
        file, such as ``errors.integer``, take bounds.
    name
        What the sentence calls the field, if not by its name.
    static
        Whether the value is a part of the compiled program, as in ``equinox.field``.
    default
        The value of a field that is left out.
    bounds
        Further arguments of ``check``.

    >>> import equinox as eqx
    >>> class Sampled(eqx.Module):
    ...     width: int = field(check=integer, least=1, static=True, default=2)
    >>> Sampled(0)
    Traceback (most recent call last):
    gyrostat.errors.GyrostatError: width must be a whole number of at least 1; got 0.
    """
    import equinox

    def convert(value: Any) -> Any:
        return check(name or made.name, value, **bounds)  # the class names its fields when it is made

    made = equinox.field(converter=convert, static=static, default=default)
    return made


def positive(*, name: str = "", default: Any = dataclasses.MISSING) -> Any:
    """A field for a number above zero.

    Parameters
    ----------
    name, default
        As in :func:`field`.

    >>> import equinox as eqx
    >>> class Step(eqx.Module):
    ...     step_size: float = positive()
    >>> Step(-0.5)
    Traceback (most recent call last):
    gyrostat.errors.GyrostatError: step_size must be a finite number above 0; got -0.5.
    """
    return field(check=number, name=name, default=default, above=0)


def nonnegative(*, name: str = "", default: Any = dataclasses.MISSING) -> Any:
    """A field for a number of at least zero.

    Parameters
    ----------
    name, default
        As in :func:`field`.
    """
    return field(check=number, name=name, default=default, least=0)


def count(*, name: str = "", default: Any = dataclasses.MISSING) -> Any:
    """A field for a positive whole number, of any size, as a float64.

    Parameters
    ----------
    name, default
        As in :func:`field`.
    """
    return field(check=whole, name=name, default=default)


# --- calls: keywords ---------------------------------------------------------------------------------------------------------

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
        if name not in known:
            close = [word for word in MEANT.get(name.lower(), ()) if word in known]
            close = close or difflib.get_close_matches(name, known, n=1, cutoff=0.65)
            hint = f"did you mean {close[0]}?" if close else f"it takes {', '.join(known) or 'none'}."
            raise UnknownArgument(f"{owner} has no argument {name!r}: {hint}")


def keyword_names(function: Callable[..., Any]) -> list[str] | None:
    """The names that can be given as keywords to a function or class, None if it takes any."""
    parameters = parameters_of(function).values()
    if any(p.kind is p.VAR_KEYWORD for p in parameters):
        return None
    return [p.name for p in parameters if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)]


# --- calls: annotations ------------------------------------------------------------------------------------------------------

BOUNDS: Mapping[str, tuple[float, float]] = {
    **dict.fromkeys(("at", "count", "start", "steps"), (0, MOST_STEPS)),
    **dict.fromkeys(("batch_size", "num_steps"), (1, MOST_STEPS)),
    **dict.fromkeys(("columns", "dimension", "rows", "size", "width"), (1, MOST_SIDE)),
    **dict.fromkeys(("draws", "rank", "spurious_rank"), (0, MOST_SIDE)),
    **dict.fromkeys(("runs", "tries"), (0, 10_000_000)),
    **dict.fromkeys(("alpha", "balance", "bound", "excess"), (0, math.inf)),
    **dict.fromkeys(("init_scale", "step_size"), (0, 1e100)),
    "colour": (0, 1000),
    "depth": (1, 1000),
}
"""The least and the most that a parameter of a function can be, by its name: one word means one thing."""


class Kind(NamedTuple):
    """What a part of an annotation accepts, and how an error calls it."""

    words: str
    accepts: Callable[[Any], bool]


def _is_whole(value: Any) -> bool:
    """Whether a value is a whole number; 3.0 is, and so are those of NumPy and JAX."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return isinstance(value, int) or value.is_integer()
    return np.ndim(value) == 0 and _dtype_kind(value) in "iu"


def _is_real(value: Any) -> bool:
    """Whether a value is a number, but not a whole one that no float holds. NaN is one where no bounds are given.

    A formula of NaN is NaN, which is how figures and claims say that there is nothing to show or to decide.
    """
    if isinstance(value, int):
        return not isinstance(value, bool) and value.bit_length() < 1024
    return isinstance(value, float) or (np.ndim(value) == 0 and _dtype_kind(value) in "iuf")


def _is_numeric(value: Any) -> bool:
    """Whether a value is an array of numbers, or can be made one."""
    try:
        return _dtype_kind(value if hasattr(value, "dtype") else np.asarray(value)) in "iufb"
    except (TypeError, ValueError):
        return False


def _dtype_kind(value: Any) -> str:
    return str(getattr(getattr(value, "dtype", None), "kind", "") or "-")


KINDS: Mapping[str, Kind] = {
    "bool": Kind("True or False", lambda value: isinstance(value, bool | np.bool_)),
    "int": Kind("a whole number", _is_whole),
    "float": Kind("a number", _is_real),
    "str": Kind("text", lambda value: isinstance(value, str)),
    "None": Kind("None", lambda value: value is None),
    "np.ndarray": Kind("an array of numbers", _is_numeric),
    "ArrayLike": Kind("an array of numbers", _is_numeric),
    "Mapping": Kind("a dictionary", lambda value: isinstance(value, Mapping)),
}
"""The annotations that are checked, besides classes of gyrostat, sequences of them, and literal words."""

EXAMPLES = {
    "Algorithm": "HeteroSGD, PooledSGD, ... or an Algorithm",
    "Law": "a Law such as TwoPoint()",
    "Problem": "a Problem(environments, measurements)",
    "TwoPoint": "a TwoPoint()",
}
"""How an error calls what a class of this name asks for; others are called by their names."""

CHECKED_ELSEWHERE = ("UpdateRule",)
"""Classes of arguments whose own checks say more: an optax transformation in place of a rule gets the call around it."""


def _kind(written: str, names: Mapping[str, Any]) -> Kind | None:
    """The kind of one part of an annotation, given the names of its module; None if it says more than is checked."""
    word, bracket, inner = written.rstrip("]").partition("[")
    if word == "Sequence" and bracket:
        item = None if inner in KINDS else _kind(inner, names)
        return item and Kind(
            f"a list ({item.words} each)",
            lambda values: isinstance(values, list | tuple) and all(map(item.accepts, values)),
        )
    if word in KINDS and (not bracket or word == "Mapping"):
        return KINDS[word]
    options = ast.literal_eval(f"[{inner}]") if word == "Literal" else get_args(names.get(written))
    if options and all(isinstance(option, str) for option in options):
        return Kind(" or ".join(map(repr, options)), lambda value: isinstance(value, str) and value in options)
    kind = None if written in CHECKED_ELSEWHERE else names.get(written)
    if kind is None and written in EXAMPLES:  # imported for checkers of types only
        import gyrostat

        kind = getattr(gyrostat.laws if written == "Law" else gyrostat, written)
    is_ours = isinstance(kind, type) and kind.__module__.startswith("gyrostat.")
    if kind is None or not is_ours or getattr(kind, "_is_protocol", False):
        return None
    return Kind(EXAMPLES.get(written, f"a {written}"), lambda value: isinstance(value, kind))


@functools.cache
def _declared(function: Callable[..., Any]) -> tuple[list[str], dict[str, tuple[Kind, ...]]]:
    """The names that positions of a call stand for, and the kinds of the parameters whose annotations say what they may be."""
    names, kinds = getattr(inspect.unwrap(function), "__globals__", {}), {}
    parameters = [p for p in parameters_of(function).values() if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
    for p in parameters:
        annotation = getattr(p.annotation, "__forward_arg__", getattr(p.annotation, "__name__", p.annotation))
        parts = [_kind(part, names) for part in str(annotation).split(" | ")]
        known = tuple(kind for kind in parts if kind is not None)
        if len(known) == len(parts):
            kinds[p.name] = (*known, KINDS["None"]) if p.default is None else known
    return [p.name for p in parameters if p.kind is not p.KEYWORD_ONLY], kinds


def check_declared(function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
    """Refuse arguments that contradict the annotations of a function or the bounds of their names.

    >>> def fit(data, *, centred: bool = True): ...
    >>> check_declared(fit, [[1.0]], {"centred": "no"})
    Traceback (most recent call last):
    gyrostat.errors.GyrostatError: centred must be True or False; got 'no'.
    """
    positions, kinds_by_name = _declared(function)
    for name, value in [*zip(positions, args, strict=False), *kwargs.items()]:
        if kinds := kinds_by_name.get(name):
            words = " or ".join(kind.words for kind in kinds if kind is not KINDS["None"])
            _required(name, value, any(kind.accepts(value) for kind in kinds), words)
            if isinstance(value, str):
                text(name, value)
            if name in BOUNDS and type(value) in (int, float):
                _check_bounds(name, value, is_whole=KINDS["int"] in kinds)


def _check_bounds(name: str, value: float, *, is_whole: bool) -> None:
    least, most = BOUNDS[name]
    # A bound that is a whole number is one of a size or a step: a parameter for any number may have the same name.
    if is_whole or isinstance(most, float):
        words = KINDS["int" if is_whole else "float"].words
        _required(name, value, least <= value <= most, f"{words} of at least {least} and at most {most}")


def check_parameters(made: Any) -> None:
    """Refuse attributes of an object that contradict the annotations of its constructor.

    For the beginning of ``fit`` (scikit-learn sets parameters after construction, too) and for the ``__post_init__`` of
    dataclasses.

    >>> from gyrostat.estimators import InvariantLinearRegressor
    >>> check_parameters(InvariantLinearRegressor(adjust="no"))
    Traceback (most recent call last):
    gyrostat.errors.GyrostatError: adjust must be True or False; got 'no'.
    """
    make = type(made).__init__
    check_declared(make, (), {name: getattr(made, name) for name in _declared(make)[1]})


# --- decorators --------------------------------------------------------------------------------------------------------------


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
