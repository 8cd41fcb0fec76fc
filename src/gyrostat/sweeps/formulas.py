"""Settings computed from other settings: ``"= 10 / step_size"`` is evaluated as arithmetic, never as Python code.

The text, the numbers and the lists of a formula are bounded, so that a spec from elsewhere cannot fill the memory or compute
for ever.
"""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from gyrostat import errors
from gyrostat.errors import GyrostatError

MOST_CHARACTERS = 500
"""The length of a formula, which also limits how deep it is nested."""

MOST_BITS = 1024
"""The bits of a whole number: those of the largest floating-point number."""

MOST_LISTED = 10_000
"""Numbers in a list."""


def power(base: float, exponent: float) -> float:
    """``base ** exponent``, unless the result is a whole number of too many digits or not real.

    >>> power(2, 10)
    1024
    """
    is_whole = isinstance(base, int) and isinstance(exponent, int)
    if is_whole and abs(base) > 1 and exponent * int(base).bit_length() > 2 * MOST_BITS:
        raise OverflowError("the power is too large")
    value = base**exponent
    if isinstance(value, complex):
        raise ArithmeticError("a root of a negative number is not real")
    return value


OPERATORS: dict[type, Callable[..., Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: power,
    ast.USub: operator.neg,
    ast.UAdd: operator.pos,
}


def spaced(low: float, high: float, count: int) -> list[float]:
    """``count`` equally spaced numbers from ``low`` to ``high``, for example the strengths of ``count`` environments."""
    return np.linspace(low, high, errors.integer("count", count, least=1, most=MOST_LISTED)).tolist()


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "abs": abs,
    "ceil": math.ceil,
    "exp": math.exp,
    "floor": math.floor,
    "log": math.log,
    "max": max,
    "min": min,
    "round": round,
    "spaced": spaced,
    "sqrt": math.sqrt,
}


def is_formula(value: Any) -> bool:
    """Whether a setting is a formula: text that begins with an equals sign."""
    return isinstance(value, str) and value.startswith("=")


def evaluate(formula: str, look_up: Callable[[str], Any]) -> Any:
    """The value of a formula; ``look_up`` returns the value of a setting that the formula names.

    >>> evaluate("= round(10 / algorithm.step_size)", {"algorithm.step_size": 0.05}.get)
    200
    """
    if len(formula) > MOST_CHARACTERS:
        raise GyrostatError(
            f"formula {errors.shown(formula)} has {len(formula)} characters; {MOST_CHARACTERS} are allowed: write it shorter."
        )
    try:
        return _value(ast.parse(formula[1:].strip(), mode="eval").body, look_up)
    except GyrostatError:
        raise
    except (SyntaxError, RecursionError, MemoryError):  # the last two: nested too deeply for Python's parser
        raise GyrostatError(f"formula {formula!r} is not arithmetic: write it as in '= 10 / step_size'.") from None
    except (ArithmeticError, TypeError, ValueError) as error:
        raise GyrostatError(f"formula {formula!r} has no value here: {error}.") from None


def _value(node: ast.AST, look_up: Callable[[str], Any]) -> Any:
    match node:
        case ast.Constant(value=int() | float() as number):
            return _bounded(number)
        case ast.BinOp(left=left, op=op, right=right) if type(op) in OPERATORS:
            return _applied(op, _value(left, look_up), _value(right, look_up))
        case ast.UnaryOp(op=op, operand=operand) if type(op) in OPERATORS:
            return _applied(op, _value(operand, look_up))
        case ast.Call(func=ast.Name(id=name), args=arguments, keywords=[]):
            function = FUNCTIONS[errors.choice("function in a formula", name, FUNCTIONS)]
            return _bounded(function(*(_value(argument, look_up) for argument in arguments)))
        case ast.Name() | ast.Attribute():
            return look_up(ast.unparse(node))
    raise GyrostatError(f"{ast.unparse(node)!r} is not allowed in a formula: use numbers, settings and + - * / **.")


def _applied(op: ast.AST, *operands: Any) -> Any:
    """An operation on numbers; on lists and texts Python's operators would mean something else."""
    for operand in operands:
        if isinstance(operand, bool) or not isinstance(operand, int | float):
            raise TypeError(f"{errors.shown(operand)} is not a number")
    return _bounded(OPERATORS[type(op)](*operands))


def _bounded(value: Any) -> Any:
    if isinstance(value, int) and value.bit_length() > MOST_BITS:
        raise OverflowError("a whole number is too large")
    if isinstance(value, float) and not math.isfinite(value):
        raise OverflowError("a number is infinite or not a number")
    return value
