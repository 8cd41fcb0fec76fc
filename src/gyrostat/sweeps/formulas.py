"""Settings computed from other settings: ``"= 10 / step_size"`` is evaluated as arithmetic, never as Python code."""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from gyrostat import errors
from gyrostat.errors import GyrostatError

OPERATORS: dict[type, Callable[..., Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: operator.pow,
    ast.USub: operator.neg,
    ast.UAdd: operator.pos,
}


def spaced(low: float, high: float, count: int) -> list[float]:
    """``count`` equally spaced numbers from ``low`` to ``high``, for example the strengths of ``count`` environments."""
    return np.linspace(low, high, errors.integer("count", count, least=1)).tolist()


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
    try:
        return _value(ast.parse(formula[1:].strip(), mode="eval").body, look_up)
    except SyntaxError:
        raise GyrostatError(f"formula {formula!r} is not arithmetic: write it as in '= 10 / step_size'.") from None
    except (ArithmeticError, TypeError, ValueError) as error:
        if isinstance(error, GyrostatError):
            raise
        raise GyrostatError(f"formula {formula!r} has no value here: {error}.") from None


def _value(node: ast.AST, look_up: Callable[[str], Any]) -> Any:
    match node:
        case ast.Constant(value=int() | float() as number):
            return number
        case ast.BinOp(left=left, op=op, right=right) if type(op) in OPERATORS:
            return OPERATORS[type(op)](_value(left, look_up), _value(right, look_up))
        case ast.UnaryOp(op=op, operand=operand) if type(op) in OPERATORS:
            return OPERATORS[type(op)](_value(operand, look_up))
        case ast.Call(func=ast.Name(id=name), args=arguments, keywords=[]):
            function = FUNCTIONS[errors.choice("function in a formula", name, FUNCTIONS)]
            return function(*(_value(argument, look_up) for argument in arguments))
        case ast.Name() | ast.Attribute():
            return look_up(ast.unparse(node))
    raise GyrostatError(f"{ast.unparse(node)!r} is not allowed in a formula: use numbers, settings and + - * / **.")
