"""Declarations: experiments (what to compute, draw and claim), claims (statements that data can decide), and papers."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal, SupportsFloat

from gyrostat import errors
from gyrostat.errors import GyrostatError
from gyrostat.figures.coincidences import told_apart
from gyrostat.figures.declarations import Figure

if TYPE_CHECKING:
    import xarray as xr

Verdict = Literal["holds", "fails", "undecided"]
SIZES = ("smoke", "standard", "full")
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
    """

    measured: Mapping[str, float]
    holds: bool | None

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

    ``measure`` reads the data of the experiment. ``expected="fails"`` marks a statement that is known not to hold here;
    ``kind`` then says in which sense (a key of ``KINDS``) and ``reason`` says why. ``names`` are what the report calls the
    measured numbers, with units, where their own names do not say enough. ``ours=True`` marks a statement that the paper does
    not make; reports count these apart from the statements of the paper.

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
        In which sense it fails: ``"false as printed"``, ``"not typical"``, ``"not covered"`` or ``"depends on the
        reading"``.
    reason
        Why it fails.
    names
        What the report calls the measured numbers, where their own names do not say enough; a unit goes in square brackets
        at the end: ``{"wait": "median wait [steps]"}``. Shares are shown in percent without it.
    ours
        Whether the statement is that of whoever wrote the experiment: the paper does not make it.

    >>> Claim(slug="jump", statement="It jumps.", criterion="by step 10", measure=lambda ds: within(0, 10, step=ds.step)).kind
    ''
    """

    slug: str
    statement: str
    criterion: str
    measure: Callable[[xr.Dataset], Outcome]
    expected: Literal["holds", "fails"] = "holds"
    kind: str = ""
    reason: str = ""
    names: Mapping[str, str] = field(default_factory=dict)
    ours: bool = False

    def __post_init__(self) -> None:
        errors.check_parameters(self)
        errors.function_of("measure", self.measure, "the data of the experiment")
        if self.expected == "fails" and not self.reason:
            raise GyrostatError(f"claim {self.slug!r} is expected to fail: say why in reason.")
        if self.expected == "fails" and self.kind not in KINDS:
            raise GyrostatError(
                f"claim {self.slug!r} is expected to fail: its kind must be one of {', '.join(map(repr, KINDS))}; "
                f"got {self.kind!r}."
            )
        if self.expected == "holds" and self.kind:
            raise GyrostatError(f"claim {self.slug!r} is expected to hold: only statements that fail have a kind.")


@dataclass(frozen=True, kw_only=True)
class Experiment:
    """One figure or theory item of a paper.

    ``compute(seed=..., progress=..., **sizes[size])`` returns a labelled Dataset. ``draw`` and the claims only read it, so a
    figure can be drawn again without computing. ``weight`` is the cost, in CPU seconds at the standard size: the most expensive
    experiments start first, and the time left is judged by it. ``make bench SUITE=reproduce`` measures it.

    Parameters
    ----------
    name
        A short name, such as ``fig1``.
    title
        What is seen, in a line.
    source
        Where the paper has it.
    summary
        What was found, in a sentence or two.
    sizes
        The arguments of ``compute`` at the sizes ``smoke``, ``standard`` and ``full``.
    compute
        A function of ``seed``, ``progress`` and the arguments of a size that returns a labelled dataset.
    draw
        A function of the dataset that returns a figure.
    claims
        What is judged.
    weight
        The cost, in CPU seconds at the standard size.
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
        errors.check_parameters(self)
        errors.function_of("compute", self.compute, "seed, progress and the settings of a size")
        errors.function_of("draw", self.draw, "the data")
        if set(self.sizes) != set(SIZES):
            raise GyrostatError(f"experiment {self.name!r} must give settings for the sizes {', '.join(SIZES)}.")
        slugs = [claim.slug for claim in self.claims]
        if len(set(slugs)) < len(slugs):
            raise GyrostatError(f"experiment {self.name!r} has two claims with the same slug: give each claim its own.")

    def figure(self, dataset: xr.Dataset) -> Figure:
        """What ``draw`` declares, with mathematics in its texts; curves that coincide say so, and the note counts the seeds."""
        drawn = told_apart(self.draw(dataset))
        seeds = seeds_text(dataset)
        counts = re.findall(r"\d+", re.sub(r"\(.*?\)", "", seeds))
        if all(re.search(rf"\b{count} (run|seed)s?\b", drawn.note) for count in counts):
            seeds = ""  # said already
        return replace(drawn, mathematics=True, note=f"{drawn.note} {seeds}".strip())


@dataclass(frozen=True, kw_only=True)
class LabPreset:
    """A setting of a paper's figure that the live laboratory offers among those of the built-in papers.

    ``lab`` names the laboratory (``environments``, ``factors`` or ``completion``), ``name`` the figure and ``values`` the
    controls that differ from their defaults; the names of controls are those in the address of the page. ``title`` is shown
    in the list, and ``note`` says what differs from the figure.

    Parameters
    ----------
    lab
        The laboratory: ``environments``, ``factors`` or ``completion``.
    name
        The figure.
    title
        What the list shows.
    values
        The controls that differ from their defaults.
    note
        What differs from the figure.

    >>> LabPreset(lab="environments", name="fig1", title="M = 6 forgets", values={"spread": 6.0}).values
    {'spread': 6.0}
    """

    lab: str
    name: str
    title: str
    values: Mapping[str, Any]
    note: str = ""

    def __post_init__(self) -> None:
        errors.check_parameters(self)


@dataclass(frozen=True, kw_only=True)
class Paper:
    """A paper: what ``gyrostat reproduce NAME`` runs.

    ``name`` is short, since results, figures and claims are stored under it. ``title`` is the reference as a reader expects it
    (authors: title, venue and year), ``link`` the address of the paper, and ``doi`` its DOI, which begins with ``10.``.
    ``experiments`` are in the order of the paper. ``presets`` are settings for the live laboratory. ``items`` are the numbered
    items of the paper: the ids of the claims about each (``mine2026/fig1/slug``), or a sentence that says why it cannot be
    checked by computation.

    Parameters
    ----------
    name
        A short name, under which results are stored.
    title
        The reference: authors, title, venue and year.
    experiments
        In the order of the paper.
    link
        The address of the paper.
    doi
        Its DOI, which begins with ``10.``.
    presets
        Settings for the live laboratory.
    items
        The numbered items of the paper: ids of claims, or why none can be computed.

    >>> Paper(name="mine2026", title="Mine (2026)", link="https://doi.org/10.0000/mine", experiments=[]).name
    'mine2026'
    """

    name: str
    title: str
    experiments: Sequence[Experiment]
    link: str = ""
    doi: str = ""
    presets: Sequence[LabPreset] = ()
    items: Mapping[str, Sequence[str] | str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        errors.check_parameters(self)
        for what, name in [("paper", self.name), *(("experiment", e.name) for e in self.experiments)]:
            # Names are folders and parts of addresses.
            if not re.fullmatch(r"[A-Za-z0-9][\w.-]*", name, re.ASCII):
                raise GyrostatError(
                    f"the name of a {what} must be letters, digits, '_', '-' or '.', as in fig1; got {name!r}."
                )
        names = [experiment.name for experiment in self.experiments]
        if len(set(names)) < len(names):
            twice = next(name for name in names if names.count(name) > 1)
            raise GyrostatError(f"paper {self.name!r} has two experiments named {twice!r}: give each its own name.")
        if self.link and not self.link.startswith(("https://", "http://")):
            raise GyrostatError(f"the link of paper {self.name!r} must be a web address; got {self.link!r}.")
        if self.doi and not self.doi.startswith("10."):
            raise GyrostatError(
                f"the doi of paper {self.name!r} must begin with '10.', without an address; got {self.doi!r}."
            )


def seeds_text(dataset: xr.Dataset) -> str:
    """How many seeds are behind the data: the sizes of the dimensions ``seed`` and ``seed_...``, or the attribute ``runs``.

    >>> import xarray as xr
    >>> seeds_text(xr.Dataset({"loss": (("seed", "step"), [[1.0, 0.5]] * 3)})), seeds_text(xr.Dataset())
    ('3 seeds.', '')
    """
    sizes = {
        str(dim).removeprefix("seed").strip("_"): n for dim, n in dataset.sizes.items() if str(dim).startswith("seed")
    }
    if not sizes and "runs" in dataset.attrs:
        sizes = {"": int(dataset.attrs["runs"])}
    if len(set(sizes.values())) == 1:
        count = next(iter(sizes.values()))
        return f"{count} seed{'s' if count > 1 else ''}."
    parts = [f"{n} ({name})" if name else str(n) for name, n in sizes.items()]
    return f"Seeds: {', '.join(parts)}." if parts else ""


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
    return Outcome(numbers, all(low <= v <= high for v in numbers.values()))


@errors.explains_keywords
def together(*outcomes: Outcome) -> Outcome:
    """An outcome that holds when all of these do.

    Parameters
    ----------
    outcomes
        The outcomes that must all hold.
    """
    measured = {name: value for outcome in outcomes for name, value in outcome.measured.items()}
    if any(outcome.verdict == "undecided" for outcome in outcomes):
        return Outcome(measured, None)
    return Outcome(measured, all(outcome.holds for outcome in outcomes))
