"""The opening of the page: what was run, what came out, and one table of papers and figures."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from gyrostat import __version__
from gyrostat.experiments import registry
from gyrostat.reproduce.report import status
from gyrostat.reproduce.report.contents import Entry
from gyrostat.reproduce.report.markup import Markup, escaped, fill, together
from gyrostat.reproduce.report.status import of_claim
from gyrostat.reproduce.store import ClaimRecord


def overview(entries: Sequence[Entry]) -> Markup:
    """Everything above the figures."""
    records = [record for entry in entries for record in entry.records]
    odd = [record for record in records if of_claim(record) is status.SURPRISE]
    failed = [entry for entry in entries if entry.error]
    return fill(
        "overview",
        tone="odd" if odd or failed else "fine",
        mark="!" if odd or failed else "✓",
        headline=_headline(records, odd, failed),
        surprises=_links([*(record["id"] for record in odd), *(entry.name for entry in failed)]),
        facts=together(fill("fact", name=name, value=value) for name, value in _facts(entries).items()),
        key=_key(entries),
        rows=together(_row(paper, entries) for paper in dict.fromkeys(entry.paper for entry in entries)),
        missing=_missing(entries),
        reasons=_reasons(records),
    )


def _headline(records: Sequence[ClaimRecord], odd: Sequence[ClaimRecord], failed: Sequence[Entry]) -> str:
    if not odd and not failed:
        held = sum(of_claim(record) is status.HOLDS for record in records)
        others = f"{len(records) - held} do not as printed, " if held < len(records) else ""
        return f"No surprise: {held} of {len(records)} statements hold, {others}all as expected."
    parts = [f"{len(odd)} of {len(records)} verdicts {'is' if len(odd) == 1 else 'are'} a surprise"] if odd else []
    parts += [f"{len(failed)} could not be computed"] if failed else []
    return f"{'; '.join(parts)}."


def _links(names: Sequence[str]) -> Markup:
    items = "".join(f'<li><a href="#{escaped(name)}">{escaped(name)}</a></li>' for name in names)
    return Markup(f"<ul>{items}</ul>" if items else "")


def _facts(entries: Sequence[Entry]) -> dict[str, str]:
    runs = [entry.run for entry in entries if entry.run]
    times = sorted(run["time"] for run in runs)

    def all_of(key: str) -> str:
        return ", ".join(sorted({str(run[key]) for run in runs})) or "none"

    return {
        "finished": f"{len(runs)} of {len(entries)} experiments",
        "version": all_of("version") + ("" if all_of("version") == __version__ else f" (page by {__version__})"),
        "seed": all_of("seed"),
        "size": all_of("size"),
        "machine": all_of("machine"),
        "computing": _duration(sum(run["seconds"] for run in runs)),
        "time": _span(times),
    }


def _duration(seconds: float) -> str:
    """
    >>> _duration(59.94), _duration(3725)
    ('59.9 s', '62 min 5 s')
    """
    return f"{seconds:.1f} s" if seconds < 60 else f"{int(seconds) // 60} min {int(seconds) % 60} s"


def _span(times: Sequence[str]) -> str:
    """
    >>> _span(["2026-01-02T03:04:05+00:00", "2026-01-02T04:00:00+00:00"])
    '2026-01-02 03:04:05 to 04:00:00 UTC'
    """
    ends = [time.replace("T", " ").replace("+00:00", "") for time in times]
    if not ends:
        return "never"
    first, last = ends[0], ends[-1].removeprefix(f"{ends[0].split()[0]} ")
    return f"{first} UTC" if first == ends[-1] else f"{first} to {last} UTC"


def _key(entries: Sequence[Entry]) -> Markup:
    """The marks that occur, each with its word and its number of figures."""
    counts = Counter(entry.status for entry in entries)
    marks = [
        Markup(
            f'<span class="{s.key}"><span class="mark" aria-hidden="true">{s.mark}</span> {s.word}</span> {counts[s]}'
        )
        for s in status.ALL
        if counts[s] or s is status.SURPRISE
    ]
    return together(marks, " · ")


def _row(paper: str, entries: Sequence[Entry]) -> Markup:
    cells = together(_cell(entry) for entry in entries if entry.paper == paper)
    return fill("row", paper=paper, title=registry.PAPERS.get(paper, "no longer declared"), cells=cells)


def _cell(entry: Entry) -> Markup:
    counts = Counter(map(of_claim, entry.records))
    known = [f"≠ {r['statement']} {r['reason']}" for r in entry.records if of_claim(r) is status.KNOWN]
    return fill(
        "cell",
        link=_link(entry),
        figure=entry.name.split("/")[1],
        status=entry.status.key,
        mark=entry.status.mark,
        word=entry.status.word,
        explanation="\n".join([f"{entry.title}: {entry.status.word}", *known]),
        count=_tally(counts, entry),
    )


def _link(entry: Entry) -> Markup:
    """To its section, if it has one."""
    return Markup("" if entry.status is status.ABSENT else f'href="#{escaped(entry.name)}"')


def _tally(counts: Counter[Any], entry: Entry) -> str:
    if not entry.records:
        return entry.status.word
    return f"{counts[status.HOLDS]} of {len(entry.records)} hold{'s' if len(entry.records) == 1 else ''}"


def _missing(entries: Sequence[Entry]) -> Markup:
    there = {entry.paper for entry in entries}
    others = [paper for paper in registry.PAPERS if paper not in there]
    return Markup(f'<p class="quiet">Not in this folder: {escaped(", ".join(others))}.</p>' if others else "")


def _reasons(records: Sequence[ClaimRecord]) -> Markup:
    known = [record for record in records if of_claim(record) is status.KNOWN]
    if not known:
        return Markup("")
    rows = together(fill("reason", **{key: r[key] for key in ("id", "statement", "reason")}) for r in known)
    return fill("reasons", count=f"{len(known)} statement{'s' * (len(known) > 1)}", rows=rows)
