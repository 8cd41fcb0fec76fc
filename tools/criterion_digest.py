"""A digest of the criterion of a claim, so that a criterion cannot change without a word."""

from __future__ import annotations

import dis
import hashlib
import json
from collections.abc import Callable, Iterator
from functools import partial
from numbers import Real
from types import CodeType, FunctionType
from typing import Any

from gyrostat.experiments.declarations import Claim

CONSTANTS = ("LOAD_CONST", "LOAD_SMALL_INT", "RETURN_CONST")


def criterion_digest(claim: Claim) -> str:
    """Twelve hexadecimal digits that change with the criterion's sentence and with every number in the code that decides it.

    The code is ``measure`` and the functions of its module that it calls. Names, order and layout do not count, so that code
    can be moved and tidied.

    >>> from gyrostat.experiments.declarations import within
    >>> def claim(bound):
    ...     return Claim(slug="a", statement="S.", criterion="C.", measure=lambda ds: within(0, bound, x=ds.x))
    >>> criterion_digest(claim(0.1)) == criterion_digest(claim(0.2))
    False
    """
    numbers = sorted(set(_numbers(claim.measure, set())))
    return hashlib.sha256(json.dumps([claim.criterion, numbers]).encode()).hexdigest()[:12]


def _numbers(function: Callable[..., Any], seen: set[Any]) -> Iterator[float]:
    """The numbers that a function names, holds from where it was made, or has as defaults."""
    if isinstance(function, partial):
        yield from _flat((function.args, tuple(function.keywords.values())), "", seen)
        function = function.func
    if not isinstance(function, FunctionType) or function in seen:
        return
    seen.add(function)
    home = function.__module__
    yield from _flat(tuple(_constants(function.__code__)), home, seen)
    yield from _flat(tuple(cell.cell_contents for cell in function.__closure__ or ()), home, seen)
    yield from _flat((function.__defaults__ or (), tuple((function.__kwdefaults__ or {}).values())), home, seen)
    names = set(_names(function.__code__))
    yield from _flat(tuple(function.__globals__[name] for name in names if name in function.__globals__), home, seen)


def _flat(value: Any, home: str, seen: set[Any]) -> Iterator[float]:
    """The numbers in nested tuples, and in functions of the module ``home``."""
    if isinstance(value, tuple | list | frozenset):
        for item in value:
            yield from _flat(item, home, seen)
    elif isinstance(value, Real) and not isinstance(value, bool):
        yield float(value)
    elif isinstance(value, partial) or getattr(value, "__module__", None) == home:
        yield from _numbers(value, seen)


def _constants(code: CodeType) -> Iterator[Any]:
    for instruction in dis.get_instructions(code):
        if instruction.opname in CONSTANTS:
            yield from (
                _constants(instruction.argval) if isinstance(instruction.argval, CodeType) else [instruction.argval]
            )


def _names(code: CodeType) -> Iterator[str]:
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names(constant)
