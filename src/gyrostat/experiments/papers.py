"""A paper: what ``gyrostat reproduce NAME`` runs, and its settings for the laboratory."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from gyrostat import errors
from gyrostat.errors import GyrostatError


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
    ``experiments`` are in the order of the paper.

    Parameters
    ----------
    name
        A short name, under which results are stored.
    title
        The reference: authors, title, venue and year.
    experiments
        The classes of its experiments, in the order of the paper.
    link
        The address of the paper.
    doi
        Its DOI, which begins with ``10.``.
    presets
        Settings for the live laboratory.
    unchecked
        The numbered items of the paper that no claim checks, with the reason why no computation can decide them.

    >>> Paper(name="mine2026", title="Mine (2026)", link="https://doi.org/10.0000/mine", experiments=[]).name
    'mine2026'
    """

    name: str
    title: str
    experiments: Sequence[Any]  # classes, of which it makes the objects
    link: str = ""
    doi: str = ""
    presets: Sequence[LabPreset] = ()
    unchecked: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(
            self, "experiments", [kind() if isinstance(kind, type) else kind for kind in self.experiments]
        )
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

    def checked(self) -> dict[str, list[str]]:
        """The ids of the claims that check each numbered item."""
        claims: dict[str, list[str]] = {}
        for experiment in self.experiments:
            for claim in experiment.claims:
                for item in claim.items or ():
                    claims.setdefault(item, []).append(f"{self.name}/{experiment.name}/{claim.slug}")
        return claims
