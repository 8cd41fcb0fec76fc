"""Adds new claims to tests/papers/criteria.csv, with the digest of their criterion: python tools/record_criteria.py

A criterion that has changed is never overwritten here: it needs a row in the log of docs/claims.md, which this prints.
"""

from __future__ import annotations

import csv
import re
from pathlib import Path

from gyrostat.experiments import registry

ROOT = Path(__file__).parents[1]
RECORDED = ROOT / "tests" / "papers" / "criteria.csv"
LOG = ROOT / "docs" / "claims.md"


def recorded() -> dict[str, str]:
    """The digest that each claim had when it was recorded."""
    return dict(csv.reader(RECORDED.read_text().splitlines())) if RECORDED.exists() else {}


def logged() -> dict[str, list[str]]:
    """The digests of changed criteria in the log, by claim."""
    found: dict[str, list[str]] = {}
    for line in LOG.read_text().splitlines():
        if line.startswith("|") and (row := re.search(r"`(\w+/[\w.-]+/[\w.-]+)`.*`([0-9a-f]{12})`", line)):
            found.setdefault(row[1], []).append(row[2])
    return found


def present() -> dict[str, str]:
    """The digest of every claim of the built-in papers."""
    return {
        f"{paper}/{experiment.name}/{claim.slug}": claim.digest
        for paper in registry.PAPERS
        for experiment in registry.experiments(paper).values()
        for claim in experiment.claims
    }


def unexplained(known: dict[str, str], log: dict[str, list[str]], now: dict[str, str]) -> dict[str, str]:
    """The claims whose criterion is neither as recorded nor as last logged, with what to do."""
    told = {}
    for name, digest in now.items():
        if name not in known:
            told[name] = "is new: run python tools/record_criteria.py"
        elif digest != log.get(name, [known[name]])[-1]:
            told[name] = f"has another criterion: add a row with `{name}` and `{digest}` to the log of docs/claims.md"
    return told


if __name__ == "__main__":
    known, now = recorded(), present()
    rows = {**{name: digest for name, digest in now.items() if name not in known}, **known}
    RECORDED.write_text("".join(f"{name},{rows[name]}\n" for name in sorted(rows)))
    for name, what in unexplained(recorded(), logged(), now).items():
        print(f"{name} {what}")
