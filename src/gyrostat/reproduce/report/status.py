"""The words, marks and order of verdicts on the page; a mark and a word beside every colour."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from gyrostat.reproduce.claims import is_surprise
from gyrostat.reproduce.store import ClaimRecord


@dataclass(frozen=True)
class Status:
    """How something came out: ``key`` for programs and styles, ``mark`` and ``word`` for readers."""

    key: str
    mark: str
    word: str

    @property
    def brief(self) -> str:
        """Mark and word, for a button."""
        return f"{self.mark} {self.word.removeprefix('does ').replace('not hold as', 'not as')}"


HOLDS = Status("holds", "✓", "holds")
KNOWN = Status("known", "≠", "does not hold as printed")
SURPRISE = Status("surprise", "!", "surprise")
NO_CLAIM = Status("none", "–", "no claim")
FAILED = Status("failed", "×", "could not be computed")
ABSENT = Status("absent", "·", "not run")
OF_CLAIMS = (HOLDS, KNOWN, SURPRISE)
ALL = (*OF_CLAIMS, NO_CLAIM, FAILED, ABSENT)


def of_claim(record: ClaimRecord) -> Status:
    """The status of one claim.

    >>> of_claim({"verdict": "fails", "expected": "fails"}).word, of_claim({"verdict": "fails", "expected": "holds"}).word
    ('does not hold as printed', 'surprise')
    """
    if is_surprise(record):
        return SURPRISE
    return HOLDS if record["verdict"] == "holds" else KNOWN


def of_figure(records: Sequence[ClaimRecord]) -> Status:
    """The status of a figure: that of its most remarkable claim.

    >>> of_figure([{"verdict": "holds", "expected": "holds"}, {"verdict": "fails", "expected": "fails"}]).key
    'known'
    """
    return max(map(of_claim, records), key=OF_CLAIMS.index, default=NO_CLAIM)
