"""`ReadableModule`: an Equinox module whose text is the call that makes it, and that explains misspelt arguments."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Mapping
from typing import Any, dataclass_transform

import equinox as eqx
import jax
import numpy as np

from gyrostat import errors

MOST_SHOWN = 16
"""Arrays with more numbers are shown by their shape; the text can then not be evaluated."""


KindOfModules: Any = type(eqx.Module)


class ExplainsArguments(KindOfModules):
    """A metaclass: a misspelt argument, or a value that contradicts its annotation, gets a sentence."""

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        if kwargs:
            known = errors.keyword_names(cls.__init__)
            if known is not None:
                errors.check_keywords(cls.__name__, kwargs, known[1:])
        errors.check_declared(cls.__init__, (cls, *args), kwargs)
        return super().__call__(*args, **kwargs)


# A checker of types has to know which calls make a field with a default, and which one without.
@dataclass_transform(field_specifiers=(eqx.field, errors.field, errors.positive, errors.nonnegative, errors.count))
class ExplainingModule(eqx.Module, metaclass=ExplainsArguments):
    """An Equinox module that explains misspelt and contradictory arguments."""


class ReadableModule(ExplainingModule):
    """A module that prints as the shortest call that makes an equal one.

    >>> from gyrostat import HeteroSGD, Problem, RandomEnvironments, FreshGaussian, TwoPoint
    >>> HeteroSGD(0.05)
    HeteroSGD(0.05)
    >>> problem = Problem(RandomEnvironments(60, law=TwoPoint(spread=6.0)), FreshGaussian(8000))
    >>> problem
    Problem(RandomEnvironments(60, law=TwoPoint(spread=6.0)), FreshGaussian(8000))
    >>> eval(repr(problem)) == problem
    True
    """

    def arguments(self) -> Mapping[str, Any] | None:
        """The arguments of a call that makes an equal object, by name; None if they are not known.

        By default every parameter of the constructor is looked up in the field of its name.
        """
        names = [p.name for p in parameters_of(type(self)) if p.kind is not p.VAR_KEYWORD]
        return {name: getattr(self, name) for name in names} if all(hasattr(self, name) for name in names) else None

    def implied(self) -> Mapping[str, Any]:
        """What parameters whose default is None stand for, by name; an argument that equals it is left out of the text."""
        return {}

    def __repr__(self) -> str:
        arguments = self.arguments()
        if arguments is None:
            parts = [f"{x.name}={text_of(getattr(self, x.name, None))}" for x in dataclasses.fields(self)]
            return f"{type(self).__name__}({', '.join(parts)})"
        implied, parts, by_position = self.implied(), [], True
        for parameter in parameters_of(type(self)):
            value = arguments.get(parameter.name, parameter.default)
            if parameter.kind is parameter.VAR_POSITIONAL:
                parts += map(text_of, value)
            elif parameter.default is parameter.empty and parameter.kind is parameter.POSITIONAL_OR_KEYWORD:
                parts.append(text_of(value) if by_position else f"{parameter.name}={text_of(value)}")
            elif not (is_equal(value, parameter.default) or is_equal(value, implied.get(parameter.name))):
                by_position = False
                parts.append(f"{parameter.name}={text_of(value)}")
        return f"{type(self).__name__}({', '.join(parts)})"


def parameters_of(kind: type) -> list[inspect.Parameter]:
    """The parameters of the constructor of a class."""
    return list(inspect.signature(kind.__init__).parameters.values())[1:]


def is_equal(value: Any, default: Any) -> bool:
    """Whether a value equals a default, so that it need not be said; False for numbers that are traced.

    >>> is_equal(np.asarray(0.5), 0.5), is_equal((), None)
    (True, False)
    """
    if any(isinstance(leaf, jax.core.Tracer) for leaf in jax.tree.leaves(value)):
        return False
    if isinstance(value, np.ndarray | np.generic | jax.Array | int | float):
        return isinstance(default, np.ndarray | int | float) and np.array_equal(value, default)
    return type(value) is type(default) and bool(value == default)


def text_of(value: Any) -> str:
    """A value as Python source: arrays as lists, large arrays by their shape, functions by their names.

    >>> text_of(np.eye(2)), text_of(np.float64(8000)), text_of(np.zeros(1000))
    ('[[1.0, 0.0], [0.0, 1.0]]', '8000', '<1000 numbers>')
    """
    if isinstance(value, np.ndarray | np.generic | jax.Array) and not isinstance(value, jax.core.Tracer):
        array = np.asarray(value)
        if array.size > MOST_SHOWN:
            return f"<{' x '.join(map(str, array.shape))} numbers>"
        return text_of(array.tolist())
    if isinstance(value, list | tuple):
        inside = ", ".join(map(text_of, value))
        return f"[{inside}]" if isinstance(value, list) else f"({inside}{',' if len(value) == 1 else ''})"
    if isinstance(value, float):
        if not np.isfinite(value):
            return f"float({str(value)!r})"
        return f"{value:.0f}" if value.is_integer() and 100 <= abs(value) < 1e15 else repr(value)
    if callable(value) and hasattr(value, "__qualname__") and not isinstance(value, ReadableModule):
        return f"<function {value.__qualname__}>"
    return repr(value)
