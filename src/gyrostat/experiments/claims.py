"""Claims: statements that data can decide. :func:`claim` makes a method of an experiment one.

The docstring of the method is the statement, the arguments of :func:`claim` are the intervals that decide it, and the method
returns the measured numbers. The sentence of the criterion, the guard against silent changes and the default figure all read
these intervals, so that a bound stands in one place.
"""

from __future__ import annotations

import hashlib
import inspect
import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from gyrostat import errors
from gyrostat.errors import GyrostatError

if TYPE_CHECKING:
    import xarray as xr

Method = TypeVar("Method", bound=Callable[..., Any])
Verdict = Literal["holds", "fails", "undecided"]
Interval = tuple[float, float]

KINDS = {
    "false as printed": "There is a counterexample to the statement as the paper prints it.",
    "not typical": "The paper shows a run that most runs do not resemble.",
    "not covered": "The conditions of the theorem exclude this setting; the theorem itself may well be right.",
    "depends on the reading": "The text can be read in more than one way; the reason says which readings were tried.",
}
"""The kinds of statements that are expected to fail, and what each means."""


@dataclass(frozen=True)
class Outcome:
    """The result of a claim: the measured numbers by name, and whether the criterion is met (None: the data cannot decide).

    Parameters
    ----------
    measured
        The measured numbers by name.
    holds
        Whether the criterion is met; None where the data cannot decide.
    limits
        The interval that each number is judged by; a number without one is only reported.
    """

    measured: Mapping[str, float]
    holds: bool | None
    limits: Mapping[str, Interval] = field(default_factory=dict)

    def __post_init__(self) -> None:
        errors.check_parameters(self)

    @property
    def verdict(self) -> Verdict:
        """``holds``, ``fails``, or ``undecided`` if the data cannot decide or a number is NaN."""
        if self.holds is None or any(isinstance(v, float) and math.isnan(v) for v in self.measured.values()):
            return "undecided"
        return "holds" if self.holds else "fails"


@dataclass(frozen=True, kw_only=True)
class Claim:
    """A statement of a paper, or one of ours, with the criterion that decides it and the expected verdict.

    Parameters
    ----------
    slug
        The last part of its id.
    statement
        What is claimed, in a sentence.
    criterion
        What decides it, in words.
    measure
        A function of the dataset that returns an :class:`Outcome`.
    digest
        Twelve hexadecimal digits that change with the criterion and with every number that decides it.
    items
        The numbered items of the paper that it checks; None until its experiment says.
    kind
        In which sense it is expected to fail, a key of ``KINDS``; empty for a statement that is expected to hold.
    reason
        Why it is expected to fail.
    names
        What the report calls the measured numbers, where their own names do not say enough; a unit goes in square brackets at
        the end: ``{"wait": "median wait [steps]"}``. Shares are shown in percent without it.
    ours
        Whether the statement is that of whoever wrote the experiment: the paper does not make it. None until its experiment
        says.
    """

    slug: str
    statement: str
    criterion: str
    measure: Callable[..., Outcome]
    digest: str = ""
    items: tuple[str, ...] | None = None
    kind: str = ""
    reason: str = ""
    names: Mapping[str, str] = field(default_factory=dict)
    ours: bool | None = None

    @property
    def expected(self) -> Literal["holds", "fails"]:
        """The verdict that is expected."""
        return "fails" if self.kind else "holds"


def claim(
    criterion: str = "",
    *,
    items: str | None = None,
    each: Mapping[str, Any] | None = None,
    fails: str = "",
    ours: bool | None = None,
    slug: str = "",
    names: Mapping[str, str] | None = None,
    numbers: Mapping[str, Any] | None = None,
    **bounds: Interval | None,
) -> Callable[[Method], Method]:
    """Make a method of an experiment a claim; it stays a method, and its docstring is the statement.

    The method returns a number for each of ``bounds``, in their order. A labelled array with one dimension stands for a number
    for each of its coordinates, and a dictionary for numbers with names of their own. A method that compares measured numbers
    with each other returns an :class:`Outcome` instead; it takes the constants of the comparison from ``numbers``.

    Parameters
    ----------
    criterion
        What decides it, in words; made from the bounds if there is nothing to add to them.
    items
        The numbered items of the paper that it checks, where they are not those of its experiment: ``"Lemma 8; (22)"``.
    each
        Several claims of one method: its further arguments by slug. The statement, the criterion and ``items`` name them in
        braces.
    fails
        In which sense the statement is expected to fail (a key of ``KINDS``); the docstring goes on with the reason after an
        empty line.
    ours
        Whether the paper does not make the statement, where this is not what its experiment says.
    slug
        The last part of its id, where that is not the name of the method with hyphens.
    names
        What the report calls the measured numbers.
    numbers
        Constants that the method takes as keyword arguments.
    bounds
        The least and the largest value of each measured number; None if it is only reported.
    """

    def mark(method: Method) -> Method:
        statement, _, reason = inspect.cleandoc(method.__doc__ or "").partition("\n\n")
        where = f"the claim {method.__name__!r}"
        if not statement:
            raise GyrostatError(f"{where} has no statement: write it as the docstring of the method.")
        if fails and errors.choice(f"fails of {where}", fails, KINDS) and not reason:
            raise GyrostatError(f"{where} is expected to fail: say why after an empty line of its docstring.")
        if reason and not fails:
            raise GyrostatError(f"{where} gives a reason for a failure: say in which sense, as in fails='not covered'.")
        for name, interval in bounds.items():
            if interval is not None and not (isinstance(interval, tuple) and len(interval) == 2):
                raise GyrostatError(f"{name} of {where} must be the least and the largest value; got {interval!r}.")
        constants = dict(numbers or {})
        of_each = [name for name in inspect.signature(method).parameters if name not in constants][2:]
        claims = []
        for one, values in (each or {slug or method.__name__.replace("_", "-"): ()}).items():
            arguments = values if isinstance(values, tuple) else (values,)
            known = dict(zip(of_each, arguments, strict=True))
            words = criterion or in_words(bounds)
            told = [words, fails, list(bounds.items()), constants, [x for x in arguments if isinstance(x, int | float)]]
            claims.append(
                Claim(
                    slug=one,
                    statement=_in_place(statement, known),
                    criterion=_in_place(words, known),
                    measure=partial(_measure, method, bounds, {**constants, **known}),
                    digest=hashlib.sha256(json.dumps(told).encode()).hexdigest()[:12],
                    items=None if items is None else listed(_in_place(items, known)),
                    kind=fails,
                    reason=_in_place(reason, known),
                    names=names or {},
                    ours=ours,
                )
            )
        method.claims = claims  # type: ignore[attr-defined]
        return method

    return mark


def _measure(
    method: Callable[..., Any],
    bounds: Mapping[str, Interval | None],
    arguments: Mapping[str, Any],
    experiment: Any,
    ds: xr.Dataset,
) -> Outcome:
    """What a method measures, and whether each number lies in its interval."""
    values = method(experiment, ds, **arguments)
    if isinstance(values, Outcome):
        return values
    values = values if isinstance(values, tuple) else (values,)
    if len(values) != len(bounds):
        raise GyrostatError(
            f"the claim {method.__name__!r} returns {len(values)} values for the {len(bounds)} names "
            f"({', '.join(bounds)}): return one for each."
        )
    measured: dict[str, float] = {}
    limits: dict[str, Interval] = {}
    for (bound, interval), value in zip(bounds.items(), values, strict=True):
        named = _named(bound, value)
        measured |= named
        limits |= {} if interval is None else dict.fromkeys(named, interval)
    return Outcome(measured, all(low <= measured[name] <= high for name, (low, high) in limits.items()), limits)


def _named(name: str, value: Any) -> dict[str, float]:
    """A value as numbers with names: one number, a labelled array (``name_coordinate``), or a dictionary."""
    if isinstance(value, Mapping):
        return {str(key): _number(x) for key, x in value.items()}
    if getattr(value, "ndim", 0) == 1:
        (dim,) = value.dims
        labels = (f"{x:g}" if isinstance(x, float) else str(x) for x in value[dim].values.tolist())
        return {f"{name}_{label}": float(x) for label, x in zip(labels, value.values, strict=True)}
    return {name: _number(value)}


def _number(value: Any) -> float:
    number = value.item() if hasattr(value, "item") else value
    return number if type(number) is int else float(number)  # counts stay whole


def in_words(bounds: Mapping[str, Interval | None]) -> str:
    """The sentence of a criterion.

    >>> in_words({"share": (0.9, 1), "wait": (-math.inf, 3), "runs": None})
    'share in [0.9, 1]; wait <= 3'
    """
    sentences = []
    for name, interval in bounds.items():
        if interval is not None:
            low, high = interval
            inside = f"in [{low:g}, {high:g}]"
            inside = f"<= {high:g}" if low == -math.inf else f">= {low:g}" if high == math.inf else inside
            sentences.append(f"{name.replace('_', ' ')} {inside}")
    return "; ".join(sentences)


def listed(items: str) -> tuple[str, ...]:
    """``"Lemma 8; (22)"`` as its parts."""
    return tuple(filter(None, (item.strip() for item in items.split(";"))))


def _in_place(text: str, values: Mapping[str, Any]) -> str:
    """A text on one line, with values for names in braces."""
    line = " ".join(text.split())
    return line.format(**values) if values else line
