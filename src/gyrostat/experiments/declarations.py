"""Declarations of experiments (what to compute, draw and claim) and of claims (statements that data can decide)."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, SupportsFloat

from gyrostat.errors import GyrostatError
from gyrostat.figures.declarations import Figure

if TYPE_CHECKING:
    import xarray as xr

Verdict = Literal["holds", "fails", "undecided"]
SIZES = ("smoke", "standard", "full")


@dataclass(frozen=True)
class Outcome:
    """The result of a claim: the measured numbers by name, and whether the criterion is met (None: the data cannot decide)."""

    measured: Mapping[str, float]
    holds: bool | None

    @property
    def verdict(self) -> Verdict:
        """``holds``, ``fails``, or ``undecided`` if the data cannot decide or a number is NaN."""
        if self.holds is None or any(isinstance(v, float) and math.isnan(v) for v in self.measured.values()):
            return "undecided"
        return "holds" if self.holds else "fails"


@dataclass(frozen=True, kw_only=True)
class Claim:
    """A statement of a paper, or one of ours, with the criterion that decides it and the expected verdict.

    ``measure`` reads the data of the experiment. ``expected="fails"`` marks a statement that is known not to hold as printed;
    ``reason`` then says why.
    """

    slug: str
    statement: str
    criterion: str
    measure: Callable[[xr.Dataset], Outcome]
    expected: Literal["holds", "fails"] = "holds"
    reason: str = ""

    def __post_init__(self) -> None:
        if self.expected == "fails" and not self.reason:
            raise GyrostatError(f"claim {self.slug!r} is expected to fail: say why in reason.")


@dataclass(frozen=True, kw_only=True)
class Experiment:
    """One figure or theory item of a paper.

    ``compute(seed=..., progress=..., **sizes[size])`` returns a labelled Dataset. ``draw`` and the claims only read it, so a
    figure can be drawn again without computing. ``weight`` is a rough cost: the most expensive experiments start first.
    """

    name: str
    title: str
    source: str
    summary: str
    sizes: Mapping[str, Mapping[str, Any]]
    compute: Callable[..., xr.Dataset]
    draw: Callable[[xr.Dataset], Figure]
    claims: Sequence[Claim] = field(default_factory=tuple)
    weight: float = 1.0

    def __post_init__(self) -> None:
        if set(self.sizes) != set(SIZES):
            raise GyrostatError(f"experiment {self.name!r} must give settings for the sizes {', '.join(SIZES)}.")
        slugs = [claim.slug for claim in self.claims]
        if len(set(slugs)) < len(slugs):
            raise GyrostatError(f"experiment {self.name!r} has two claims with the same slug: give each claim its own.")


def within(low: float = -math.inf, high: float = math.inf, **measured: SupportsFloat) -> Outcome:
    """An outcome that holds when every measured number lies in [low, high].

    >>> within(0, 1, share=0.5).verdict
    'holds'
    """
    numbers = {name: float(value) for name, value in measured.items()}
    return Outcome(numbers, all(low <= v <= high for v in numbers.values()))


def together(*outcomes: Outcome) -> Outcome:
    """An outcome that holds when all of these do."""
    measured = {name: value for outcome in outcomes for name, value in outcome.measured.items()}
    if any(outcome.verdict == "undecided" for outcome in outcomes):
        return Outcome(measured, None)
    return Outcome(measured, all(outcome.holds for outcome in outcomes))
