"""`GyrostatError`, the exception of the library, the checks of arguments that raise it, and `DivergenceWarning`."""

from __future__ import annotations

import ast
import difflib
import functools
import inspect
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar, get_args

import numpy as np

Function = TypeVar("Function", bound=Callable[..., Any])
Class = TypeVar("Class", bound=type)

LARGEST_SEED = 2**63 - 1
"""The largest seed of a random key: JAX keeps all bits up to this one, and takes no larger number."""

LARGEST_RUN = 2**32 - 1
"""The largest number of a run: JAX folds the last 32 bits of a number into a key, and would take larger ones for small ones."""

LARGEST = 1e70
"""Numbers beyond this, or below its inverse, are refused: squares of products of two of them would be infinite, or zero."""


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
        wanted += f" {'of' if above is None and least is None else 'and'} at most {most:g}"
    try:
        # NumPy would read the text "0.05", the truth value True, dates and complex numbers as numbers.
        x = np.asarray(np.nan if np.asarray(value).dtype.kind in "USbcmM" else value, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        raise GyrostatError(f"{name} must be {wanted}; got {_class_or_value(value)}.") from None
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
    """Return ``value`` as an int within bounds, or raise an error that says which integer ``name`` needs."""
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
    raise GyrostatError(f"{name} must be True or False; got {_class_or_value(value)}.")


def text(name: str, value: Any) -> str:
    """Return ``value`` if it is a text that can be written to a file, or raise an error.

    >>> text("title", 3)
    Traceback (most recent call last):
    gyrostat.errors.GyrostatError: title must be text; got 3.
    """
    if not isinstance(value, str):
        raise GyrostatError(f"{name} must be text; got {_class_or_value(value)}.")
    if not value.isascii() and any("\ud800" <= character <= "\udfff" for character in value):
        raise GyrostatError(f"{name} holds half of a character (a lone surrogate), which no file can: got {value!a}.")
    return value


BOUNDS: Mapping[str, tuple[float, float]] = {
    "alpha": (0, math.inf),
    "at": (0, 2**31 - 2),
    "balance": (0, math.inf),
    "batch_size": (1, 2**31 - 2),
    "bound": (0, math.inf),
    "colour": (0, 1000),
    "columns": (1, MOST_SIDE),
    "count": (0, 2**31 - 2),
    "depth": (1, 1000),
    "dimension": (1, MOST_SIDE),
    "draws": (0, MOST_SIDE),
    "excess": (0, math.inf),
    "init_scale": (0, 1e100),
    "num_steps": (1, 2**31 - 2),
    "rank": (0, MOST_SIDE),
    "rows": (1, MOST_SIDE),
    "runs": (0, 10_000_000),
    "size": (1, MOST_SIDE),
    "spurious_rank": (0, MOST_SIDE),
    "start": (0, 2**31 - 2),
    "step_size": (0, 1e100),
    "steps": (0, 2**31 - 2),
    "tries": (0, 10_000_000),
    "width": (1, MOST_SIDE),
}
"""The least and the most that a parameter of this name can be, wherever it is a number: one word means one thing."""

EXAMPLES = {
    "Algorithm": "HeteroSGD, PooledSGD, ... or an Algorithm",
    "Law": "a Law such as TwoPoint()",
    "Problem": "a Problem(environments, measurements)",
    "TwoPoint": "a TwoPoint()",
}
"""How an error calls what a class of this name asks for; others are called by their names."""


CHECKED_ELSEWHERE = ("UpdateRule",)
"""Classes of arguments whose own checks say more: an optax transformation in place of a rule gets the call around it."""


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
    if isinstance(value, float):
        return True
    return hasattr(value, "dtype") and np.ndim(value) == 0 and _dtype_kind(value) in "iuf"


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


class DeclaredParameter(NamedTuple):
    """A parameter of a function whose annotation says what it may be: one kind, or several."""

    position: int
    name: str
    kinds: tuple[Kind, ...]

    def check(self, value: Any) -> None:
        """Refuse a value that is none of the kinds, out of the bounds of the name, or text that no file can hold."""
        if not any(kind.accepts(value) for kind in self.kinds):
            wanted = " or ".join(kind.words for kind in self.kinds if kind is not KINDS["None"])
            raise GyrostatError(f"{self.name} must be {wanted}; got {_class_or_value(value)}.")
        if isinstance(value, str):
            text(self.name, value)
        if self.name in BOUNDS and type(value) in (int, float):
            self._check_bounds(value)

    def _check_bounds(self, value: float) -> None:
        kind = KINDS["int"] if KINDS["int"] in self.kinds else KINDS["float"]
        least, most = BOUNDS[self.name]
        # A bound that is a whole number is one of a size or a step: a parameter for any number may have the same name.
        applies = isinstance(most, float) or kind is KINDS["int"]
        if applies and not least <= value <= most:
            wanted = f"{kind.words} of at least {least} and at most {most}"
            raise GyrostatError(f"{self.name} must be {wanted}; got {shown(value)}.")


def _kind(written: str, names: Mapping[str, Any]) -> Kind | None:
    """The kind of one part of an annotation, given the names of its module; None if it says more than is checked."""
    word, bracket, inner = written.rstrip("]").partition("[")
    if word == "Sequence" and bracket:
        item = None if inner in KINDS else _kind(inner, names)
        return None if item is None else Kind(f"a list ({item.words} each)", functools.partial(_are_all, item))
    if word in KINDS and (not bracket or word == "Mapping"):
        return KINDS[word]
    options = ast.literal_eval(f"[{inner}]") if word == "Literal" else get_args(names.get(written))
    if options and all(isinstance(option, str) for option in options):
        return Kind(" or ".join(map(repr, options)), lambda value: isinstance(value, str) and value in options)
    found = None if written in CHECKED_ELSEWHERE else names.get(written)
    if found is None and written in EXAMPLES:  # imported for checkers of types only
        import gyrostat

        found = getattr(gyrostat, written)
    is_ours = isinstance(found, type) and found.__module__.startswith("gyrostat.")
    if found is None or not is_ours or getattr(found, "_is_protocol", False):
        return None
    return Kind(EXAMPLES.get(written, f"a {written}"), lambda value: isinstance(value, found))


def _are_all(item: Kind, values: Any) -> bool:
    return isinstance(values, list | tuple) and all(item.accepts(value) for value in values)


def _kinds(annotation: Any, names: Mapping[str, Any]) -> tuple[Kind, ...]:
    """The kinds of an annotation; none if a part of it says more than is checked."""
    written = getattr(annotation, "__forward_arg__", getattr(annotation, "__name__", annotation))
    found = [_kind(part, names) for part in str(written).split(" | ")]
    return tuple(kind for kind in found if kind is not None) if None not in found else ()


@functools.cache
def _declared(function: Callable[..., Any]) -> tuple[DeclaredParameter, ...]:
    """The parameters of a function whose annotations say what they may be."""
    names = getattr(inspect.unwrap(function), "__globals__", {})
    found = []
    for position, parameter in enumerate(_parameters(function).values()):
        kinds = _kinds(parameter.annotation, names)
        if kinds and parameter.kind not in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            kinds = (*kinds, KINDS["None"]) if parameter.default is None else kinds
            found.append(DeclaredParameter(position, parameter.name, kinds))
    return tuple(found)


def check_declared(function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
    """Refuse arguments that contradict the annotations of a function or the bounds of their names.

    >>> def fit(data, *, centred: bool = True): ...
    >>> check_declared(fit, [[1.0]], {"centred": "no"})
    Traceback (most recent call last):
    gyrostat.errors.GyrostatError: centred must be True or False; got 'no'.
    """
    for parameter in _declared(function):
        if parameter.position < len(args):
            parameter.check(args[parameter.position])
        elif parameter.name in kwargs:
            parameter.check(kwargs[parameter.name])


def check_parameters(made: Any) -> None:
    """Refuse attributes of an object that contradict the annotations of its constructor.

    For the beginning of ``fit`` (scikit-learn sets parameters after construction, too) and for the ``__post_init__`` of
    dataclasses.

    >>> from gyrostat.estimators import InvariantLinearRegressor
    >>> check_parameters(InvariantLinearRegressor(adjust="no"))
    Traceback (most recent call last):
    gyrostat.errors.GyrostatError: adjust must be True or False; got 'no'.
    """
    for parameter in _declared(type(made).__init__):
        parameter.check(getattr(made, parameter.name))


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
            f"{name} holds no number above {peak:g}{where}, and squares of these vanish: give it in a smaller unit."
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
            f"{name} must have orthonormal columns; its Gram matrix is off by {gap:.2g}: "
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


def choice(name: str, value: Any, options: Iterable[str]) -> str:
    """Return ``value`` if it is one of ``options``, or raise an error that names the closest ones."""
    options = list(options)
    if isinstance(value, str) and value in options:
        return value
    close = difflib.get_close_matches(str(value)[:100], options, n=3, cutoff=0.4) if isinstance(value, str) else []
    hint = f"did you mean {' or '.join(map(repr, close))}?" if close else f"choose one of {', '.join(options)}."
    raise GyrostatError(f"unknown {name} {shown(value)}: {hint}")
