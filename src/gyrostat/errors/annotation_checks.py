"""Checks of arguments against the annotations of a function and the bounds of their names."""

from __future__ import annotations

import ast
import functools
import inspect
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, get_args

import numpy as np

from gyrostat.errors.exceptions import GyrostatError
from gyrostat.errors.value_checks import MOST_SIDE, class_or_value, parameters_of, shown, text

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
            raise GyrostatError(f"{self.name} must be {wanted}; got {class_or_value(value)}.")
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
    for position, parameter in enumerate(parameters_of(function).values()):
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
