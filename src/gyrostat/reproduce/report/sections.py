"""A section per figure: the plot, and beside it what was claimed, measured and found."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from gyrostat.reproduce.claims import measured_text
from gyrostat.reproduce.report.contents import Entry, figure_of
from gyrostat.reproduce.report.figure import figure_block, lone_picture
from gyrostat.reproduce.report.markup import Markup, escaped, fill, together
from gyrostat.reproduce.report.status import FAILED, NO_CLAIM, SURPRISE, of_claim
from gyrostat.reproduce.store import ClaimRecord, ResultsStore


def section(store: ResultsStore, entry: Entry) -> Markup:
    """All about one experiment."""
    declared, run = entry.declared, entry.run
    source = declared.source if declared else "no longer declared"
    claims = [_claim(record, source) for record in entry.records]
    return fill(
        "section",
        name=entry.name,
        paper=entry.paper,
        title=entry.title,
        source=source,
        seconds=f" · {run['seconds']:.1f} s" if run else "",
        summary=declared.summary if declared else "",
        figure=_figure(store, entry),
        claims=_trouble(entry) if entry.error else together(claims or [NO_CLAIM.word]),
        again=_again(entry, store.folder) if run else Markup(""),
    )


def _figure(store: ResultsStore, entry: Entry) -> Markup:
    base = store.figure(entry.name)
    if entry.error:
        return Markup('<p class="quiet">There is no figure.</p>')
    figure, why = figure_of(store, entry)
    return lone_picture(base, entry.title, why) if figure is None else figure_block(entry.name, figure, base)


def _trouble(entry: Entry) -> Markup:
    return fill(
        "trouble", mark=FAILED.mark, word=FAILED.word, last=entry.error.strip().splitlines()[-1], details=entry.error
    )


def _claim(record: ClaimRecord, source: str) -> Markup:
    status = of_claim(record)
    word = f"surprise: {record['verdict']}, expected: {record['expected']}" if status is SURPRISE else status.word
    more = {"Runs": record["seeds"] or "", "Why not": record["reason"], "Source": source}
    facts = [fill("fact", name=name, value=value) for name, value in more.items() if value]
    return fill(
        "claim",
        id=record["id"],
        status=status.key,
        mark=status.mark,
        word=word,
        statement=record["statement"],
        criterion=record["criterion"],
        measured=measured_text(record),
        more=together(facts),
    )


def _again(entry: Entry, folder: Path) -> Markup:
    run = entry.run or {}
    options = f"--size {run['size']} --seed {run['seed']} --out {shlex.quote(str(folder))} --fresh"
    facts = [fill("fact", name=name, value=_said(value)) for name, value in run["settings"].items()]
    command = f"gyrostat reproduce {entry.name} {options}"
    return fill("again", settings=together(facts), command=command, words=_unbroken(command))


def _unbroken(command: str) -> Markup:
    """A command whose lines end between words only, not within ``--seed``."""
    return together((Markup(f"<span>{escaped(word)}</span>") for word in command.split(" ")), " ")


def _said(value: Any) -> str:
    """A setting as a reader writes it.

    >>> _said({"rank": [1, 2.0], "spread": 8.0})
    'rank 1, 2; spread 8'
    """
    if isinstance(value, Mapping):
        return "; ".join(f"{key} {_said(inner)}" for key, inner in value.items())
    if isinstance(value, list | tuple):
        return ", ".join(map(_said, value))
    return f"{value:g}" if isinstance(value, float) else str(value)
