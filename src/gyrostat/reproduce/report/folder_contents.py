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
from gyrostat.experiments.experiment import Experiment
from gyrostat.reproduce.claims import by_author, is_surprise, with_authors
from gyrostat.reproduce.store import ClaimRecord, ResultsStore, experiment_of


@dataclass(frozen=True)
class Status:
    """The status of a claim or a figure: ``key`` for scripts and styles, ``mark`` and ``word`` for readers."""

    key: str
    mark: str
    word: str

    @property
    def brief(self) -> str:
        """The word for a button or a short count."""
        return self.word.split(",")[0]

    def counted(self, count: int) -> str:
        """A count with the word.

        >>> FAILS.counted(2), FAILS_UNEXPECTEDLY.counted(1)
        ('2 do not hold here, with a reason', '1 fails unexpectedly')
        """
        plural = self.word.replace("does", "do").replace("fails", "fail").replace("holds", "hold")
        return f"{count} {self.word if count == 1 else plural}"


HOLDS = Status("holds", "✓", "holds")
FAILS = Status("fails", "≠", "does not hold here, with a reason")
UNDECIDED = Status("undecided", "?", "undecided")
FAILS_UNEXPECTEDLY = Status("surprise", "!", "fails unexpectedly")
HOLDS_UNEXPECTEDLY = Status("surprise", "!", "holds unexpectedly")
NO_CLAIM = Status("none", "–", "no claim")
FAILED = Status("failed", "×", "could not be computed")
ABSENT = Status("absent", "·", "not run")
OF_CLAIMS = (HOLDS, HOLDS_UNEXPECTEDLY, FAILS, UNDECIDED, FAILS_UNEXPECTEDLY)
"""What holds first, and then from the least to the most remarkable."""


def claim_status(record: ClaimRecord) -> Status:
    """The status of one claim; its words say what the verdict says, expected or not.

    >>> claim_status({"verdict": "fails", "expected": "fails"}).word
    'does not hold here, with a reason'
    >>> claim_status({"verdict": "fails", "expected": "holds"}).word
    'fails unexpectedly'
    """
    if record["verdict"] == "undecided":
        return UNDECIDED
    if record["verdict"] == "holds":
        return HOLDS_UNEXPECTEDLY if is_surprise(record) else HOLDS
    return FAILS_UNEXPECTEDLY if is_surprise(record) else FAILS


def verdict_text(record: ClaimRecord) -> str:
    """The verdict in words; for a statement that does not hold here, in which sense.

    >>> verdict_text({"verdict": "fails", "expected": "fails", "kind": "not typical"})
    'does not hold here: not typical'
    >>> verdict_text({"verdict": "fails", "expected": "holds"})
    'fails unexpectedly'
    """
    status = claim_status(record)
    return f"{status.brief}: {record['kind']}" if status is FAILS and record.get("kind") else status.word


def tally(records: Sequence[ClaimRecord]) -> list[tuple[Status, int]]:
    """How many claims have each status, without those that none has.

    >>> held, failed = {"verdict": "holds", "expected": "holds"}, {"verdict": "fails", "expected": "fails"}
    >>> [(status.key, count) for status, count in tally([held, failed, held])]
    [('holds', 2), ('fails', 1)]
    """
    counts = Counter(map(claim_status, records))
    return [(status, counts[status]) for status in OF_CLAIMS if counts[status]]


def number_that_hold(records: Sequence[ClaimRecord]) -> int:
    """How many verdicts are ``holds``, expected or not."""
    return sum(record["verdict"] == "holds" for record in records)


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
    def missing(self) -> Status | None:
        """Why there is nothing to count: it failed, was not run, or has no claims. None if there are claims."""
        if self.error:
            return FAILED
        if self.run is None:
            return ABSENT
        return None if self.records else NO_CLAIM

    @property
    def was_run(self) -> bool:
        """Whether it was run, successfully or not, and so has a section of its own."""
        return self.missing is not ABSENT

    @property
    def tallies(self) -> list[tuple[str, str, list[tuple[Status, int]]]]:
        """Of the paper's statements and of ours: whose they are, how many hold (``7/8``), and how many have each status."""
        names = {"the papers": "the paper's", "ours": "ours"}
        return [
            (names[author], f"{number_that_hold(part)}/{len(part)}", tally(part))
            for author, part in by_author(self.records).items()
        ]

    def human_names(self, record: ClaimRecord) -> Mapping[str, str]:
        """What the declared claim calls its measured numbers."""
        claims = self.declared.claims if self.declared else ()
        slug = record["id"].rsplit("/", 1)[1]
        return next((claim.names for claim in claims if claim.slug == slug), {})


def gather(store: ResultsStore) -> list[ReportedExperiment]:
    """The experiments of every paper of which the folder has a result or an error, in the order of the papers."""
    finished = set(store.finished())
    present = {name.split("/")[0] for name in finished} | set(store.papers_with_errors(registry.paper_names()))
    declared = {paper: _experiments(paper) for paper in registry.paper_names() if paper in present}
    records = with_authors(store.claims())
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
