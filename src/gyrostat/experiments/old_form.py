"""The form of papers up to 0.2, in which experiments and claims are calls. It goes with the next version."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, SupportsFloat

from gyrostat import errors
from gyrostat.errors import GyrostatError
from gyrostat.experiments import claims
from gyrostat.experiments.claims import KINDS, Outcome
from gyrostat.experiments.experiment import SIZES, Experiment

if TYPE_CHECKING:
    import xarray as xr

    from gyrostat.figures.declarations import Figure


class DeclaredExperiment(Experiment):
    """What ``Experiment(name=..., title=..., ...)`` makes."""

    _said: tuple[str, str]
    _sizes: Mapping[str, Mapping[str, Any]]

    def __init__(
        self,
        *,
        name: str,
        title: str,
        source: str,
        summary: str,
        sizes: Mapping[str, Mapping[str, Any]],
        compute: Callable[..., xr.Dataset],
        draw: Callable[[xr.Dataset], Figure],
        claims: Sequence[claims.Claim] = (),
        weight: float = 1.0,
    ):
        _warn(
            f"Experiment(name={name!r}, ...) is written as a class now: class Fig1(Experiment) with a docstring, source, "
            "sizes, compute(self, run, ...) and claims"
        )
        errors.function_of("compute", compute, "seed, progress and the settings of a size")
        errors.function_of("draw", draw, "the data")
        if set(sizes) != set(SIZES):
            raise GyrostatError(f"experiment {name!r} must give settings for the sizes {', '.join(SIZES)}.")
        if len({claim.slug for claim in claims}) < len(claims):
            raise GyrostatError(f"experiment {name!r} has two claims with the same slug: give each claim its own.")
        self.__dict__.update(
            name=name,
            source=source,
            weight=weight,
            compute=compute,
            draw=draw,
            claims=list(claims),
            _said=(title, summary),
            _sizes=sizes,
        )

    def _paragraphs(self) -> tuple[str, str]:  # type: ignore[override]
        return self._said

    def _filled(self, text: str) -> str:
        return text

    def settings(self, size: str) -> dict[str, Any]:
        """The settings at a size."""
        return dict(self._sizes[errors.choice("size", size, SIZES)])

    def data(self, *, seed: int, progress: Any = None, **settings: Any) -> xr.Dataset:
        """The data of a seed."""
        return self.compute(seed=seed, progress=progress, **settings)


@errors.explains_keywords
def Claim(  # the name of a class up to 0.2
    *,
    slug: str,
    statement: str,
    criterion: str,
    measure: Callable[[xr.Dataset], Outcome],
    expected: str = "holds",
    kind: str = "",
    reason: str = "",
    names: Mapping[str, str] | None = None,
    ours: bool = False,
) -> claims.Claim:
    """A claim as it was declared up to 0.2.

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
    expected
        ``"holds"`` or ``"fails"``.
    kind
        In which sense it fails, a key of ``KINDS``.
    reason
        Why it fails.
    names
        What the report calls the measured numbers.
    ours
        Whether the paper does not make the statement.
    """
    _warn(
        f"Claim(slug={slug!r}, ...) is written as a method now: @claim(criterion, number=(least, largest)) above a method "
        "of the experiment, whose docstring is the statement"
    )
    errors.function_of("measure", measure, "the data of the experiment")
    if expected == "fails" and not reason:
        raise GyrostatError(f"claim {slug!r} is expected to fail: say why in reason.")
    if expected == "fails" and kind not in KINDS:
        raise GyrostatError(
            f"claim {slug!r} is expected to fail: its kind must be one of {', '.join(map(repr, KINDS))}; got {kind!r}."
        )
    if expected == "holds" and kind:
        raise GyrostatError(f"claim {slug!r} is expected to hold: only statements that fail have a kind.")
    return claims.Claim(
        slug=slug,
        statement=statement,
        criterion=criterion,
        measure=measure,
        items=(),
        kind=kind,
        reason=reason,
        names=names or {},
        ours=ours,
    )


def _warn(sentence: str) -> None:
    warnings.warn(
        f"{sentence}; see docs/adding-an-experiment.md. The old form goes in the next version.",
        DeprecationWarning,
        stacklevel=3,
    )


@errors.explains_keywords
def within(low: float = -math.inf, high: float = math.inf, **measured: SupportsFloat) -> Outcome:
    """An outcome that holds when every measured number lies in [low, high].

    Parameters
    ----------
    low
        The least value.
    high
        The largest value.
    measured
        The numbers by name.

    >>> within(0, 1, share=0.5).verdict
    'holds'
    """
    numbers = {name: float(value) for name, value in measured.items()}
    return Outcome(numbers, all(low <= x <= high for x in numbers.values()), dict.fromkeys(numbers, (low, high)))


@errors.explains_keywords
def together(*outcomes: Outcome) -> Outcome:
    """An outcome that holds when all of these do.

    Parameters
    ----------
    outcomes
        The outcomes that must all hold.
    """
    measured = {name: value for outcome in outcomes for name, value in outcome.measured.items()}
    limits = {name: interval for outcome in outcomes for name, interval in outcome.limits.items()}
    if any(outcome.verdict == "undecided" for outcome in outcomes):
        return Outcome(measured, None, limits)
    return Outcome(measured, all(outcome.holds for outcome in outcomes), limits)
