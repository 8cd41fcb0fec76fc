"""The contents of a results folder for the report: every declared or stored experiment, with the status of its claims."""

from __future__ import annotations

import shlex
import warnings
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gyrostat.errors import GyrostatError
from gyrostat.experiments import registry
from gyrostat.experiments.declarations import Experiment
from gyrostat.reproduce.claims import is_surprise
from gyrostat.reproduce.store import ClaimRecord, ResultsStore, experiment_of


@dataclass(frozen=True)
class Status:
    """The status of a claim or a figure: ``key`` for scripts and styles, ``mark`` and ``word`` for readers."""

    key: str
    mark: str
    word: str

    @property
    def brief(self) -> str:
        """Mark and word, for a button."""
        return f"{self.mark} {self.word.removeprefix('does ').partition(',')[0]}"


HOLDS = Status("holds", "✓", "holds")
KNOWN = Status("known", "≠", "does not hold, for a known reason")
SURPRISE = Status("surprise", "!", "surprise")
NO_CLAIM = Status("none", "–", "no claim")
FAILED = Status("failed", "×", "could not be computed")
ABSENT = Status("absent", "·", "not run")
OF_CLAIMS = (HOLDS, KNOWN, SURPRISE)
"""From the least to the most remarkable."""
STATUSES = (*OF_CLAIMS, NO_CLAIM, FAILED, ABSENT)


def claim_status(record: ClaimRecord) -> Status:
    """The status of one claim.

    >>> claim_status({"verdict": "fails", "expected": "fails"}).word
    'does not hold, for a known reason'
    >>> claim_status({"verdict": "fails", "expected": "holds"}).word
    'surprise'
    """
    if is_surprise(record):
        return SURPRISE
    return HOLDS if record["verdict"] == "holds" else KNOWN


def figure_status(records: Sequence[ClaimRecord]) -> Status:
    """The status of a figure: that of its most remarkable claim.

    >>> figure_status([{"verdict": "holds", "expected": "holds"}, {"verdict": "fails", "expected": "fails"}]).key
    'known'
    """
    return max(map(claim_status, records), key=OF_CLAIMS.index, default=NO_CLAIM)


@dataclass(frozen=True)
class ReportedExperiment:
    """One experiment: its declaration, how it was run, its claims, its error; None or empty where there is none."""

    name: str
    declared: Experiment | None
    run: dict[str, Any] | None
    records: Sequence[ClaimRecord]
    error: str = ""

    @property
    def paper(self) -> str:
        return self.name.split("/")[0]

    @property
    def figure_name(self) -> str:
        return self.name.split("/")[1]

    @property
    def title(self) -> str:
        return self.declared.title if self.declared else self.stored("title", self.name)

    @property
    def source(self) -> str:
        return self.declared.source if self.declared else self.stored("source", "no longer declared")

    @property
    def summary(self) -> str:
        return self.declared.summary if self.declared else self.stored("summary", "")

    def stored(self, key: str, otherwise: Any) -> Any:
        """What was stored with the data, for a paper that this process does not know."""
        return otherwise if self.run is None else self.run.get(key, otherwise)

    @property
    def reference(self) -> str:
        """What to write after ``gyrostat reproduce``."""
        return shlex.quote(self.stored("reference", self.name))

    @property
    def status(self) -> Status:
        if self.error:
            return FAILED
        return ABSENT if self.run is None else figure_status(self.records)

    @property
    def was_run(self) -> bool:
        """Whether it was run, successfully or not, and so has a section of its own."""
        return self.status is not ABSENT

    @property
    def explanation(self) -> str:
        """Title and status, and the statements that do not hold with their reasons."""
        known = [f"≠ {r['statement']} {r['reason']}" for r in self.records if claim_status(r) is KNOWN]
        return "\n".join([f"{self.title}: {self.status.word}", *known])

    @property
    def tally(self) -> str:
        """How many of its claims hold."""
        if not self.records:
            return self.status.word
        held = Counter(map(claim_status, self.records))[HOLDS]
        return f"{held} of {len(self.records)} hold{'s' if len(self.records) == 1 else ''}"


def gather(store: ResultsStore) -> list[ReportedExperiment]:
    """The experiments of every paper of which the folder has a result or an error, in the order of the papers."""
    finished, records = set(store.finished()), store.claims()
    present = {name.split("/")[0] for name in finished} | set(store.papers_with_errors(registry.paper_names()))
    declared = {paper: _experiments(paper) for paper in registry.paper_names() if paper in present}
    names = [f"{paper}/{name}" for paper, experiments in declared.items() for name in experiments]
    failed = [name for name in names if store.error(name).is_file()]
    known = {name.split("/")[0] for name in [*finished, *failed]}
    names = [name for name in names if name.split("/")[0] in known]
    return [
        ReportedExperiment(
            name,
            declared.get(name.split("/")[0], {}).get(name.split("/")[1]),
            store.run(name) if name in finished else None,
            [record for record in records if experiment_of(record) == name],
            store.error(name).read_text(encoding="utf-8") if name in failed else "",
        )
        for name in dict.fromkeys([*names, *sorted(finished)])
    ]


def _experiments(paper: str) -> Mapping[str, Experiment]:
    """The experiments of a paper; none if it is a plug-in that cannot be imported: its results are shown all the same."""
    try:
        return registry.experiments(paper)
    except GyrostatError as error:
        warnings.warn(str(error), stacklevel=2)
        return {}
