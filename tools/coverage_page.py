"""Writes docs/coverage.md: every numbered item of the papers with the claims that check it, or why none can be computed.

    python tools/coverage_page.py [PAPER | FILE.py ...]

prints what is wrong with the items (``Paper(items=...)``), and exits with status 1 then. With names or files of papers, it
prints their page and writes nothing.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from gyrostat.experiments import registry
from gyrostat.experiments.declarations import Claim, Experiment, Paper

PAGE = Path(__file__).parents[1] / "docs" / "coverage.md"

ITEM = re.compile(r"(?!Section)(?P<kind>[A-Z][a-z]+(?: [a-z]+)*) (?P<section>(?:[A-Z]|\d+)\.)?(?P<number>\d+)\b")
"""The name of a numbered item: ``Lemma 8``, ``Theorem 3.1``, ``Lemma B.2``; sections need no claims of their own."""

NAMES_AN_ITEM = re.compile(
    r"\b(Figure|Theorem|Lemma|Proposition|Corollary|Definition|Assumption|Remark|Example|Algorithm|Condition)s? [A-Z\d]"
)

NAMES_A_SECTION = re.compile(r"\bsections? \w")

HEAD = """\
# What of each paper is checked

{total} numbered items: {checked} are checked by claims, and {others} have a reason why no computation can decide them.

The tables list every numbered item of the papers, the [claims](claims.md) that check it, and what we expect of each claim: that
it holds, or in which sense it fails ([kinds](claims.md#what-a-claim-means)). Claims with "(ours)" are about
statements that the paper does not make. Written by `make coverage`.
"""


def claims_by_id(papers: Sequence[Paper]) -> dict[str, tuple[Experiment, Claim]]:
    """Every claim of the papers by its id ``paper/experiment/slug``, with its experiment."""
    return {
        f"{paper.name}/{experiment.name}/{claim.slug}": (experiment, claim)
        for paper in papers
        for experiment in paper.experiments
        for claim in experiment.claims
    }


def problems_of(papers: Sequence[Paper]) -> list[str]:
    """Sentences about what is wrong with the items of papers; nothing is asked of a paper that lists no items.

    An item needs a claim or a reason, its claims must exist, numbers must have no gap, and every claim must belong to an item,
    unless it is ours (``Claim(ours=True)``) or the source of its experiment is a section of the paper and no item.
    """
    listed = [paper for paper in papers if paper.items]
    known = claims_by_id(papers)
    return [
        problem for paper in listed for problem in (*_wrong_items(paper, known), *_gaps(paper), *_unattached(paper))
    ]


def _wrong_items(paper: Paper, known: dict[str, tuple[Experiment, Claim]]) -> Iterator[str]:
    for item, checked in paper.items.items():
        if not checked or (isinstance(checked, str) and not checked.strip()):
            yield f"{paper.name}: {item} has neither a claim nor a reason."
        elif not isinstance(checked, str):
            yield from (
                f"{paper.name}: {item} names {name!r}, which is not a claim." for name in checked if name not in known
            )


def _gaps(paper: Paper) -> Iterator[str]:
    """Items that seem to be missing: numbers below the largest of their kind and section that no item of the section has."""
    found = [match for match in map(ITEM.match, paper.items) if match]
    used = {(match["section"], int(match["number"])) for match in found}
    for kind, section in dict.fromkeys((match["kind"], match["section"]) for match in found):
        numbers = [int(match["number"]) for match in found if (match["kind"], match["section"]) == (kind, section)]
        for number in range(1, max(numbers)):
            # Kinds may share one counter: Theorem 3.1 may be followed by Remark 3.2.
            if number not in numbers and not (section and (section, number) in used):
                yield f"{paper.name}: {kind} {section or ''}{number} is missing."


def _unattached(paper: Paper) -> Iterator[str]:
    for name, (experiment, claim) in _claims_without_item(paper).items():
        is_of_a_section = NAMES_A_SECTION.search(experiment.source) and not NAMES_AN_ITEM.search(experiment.source)
        if not claim.ours and not is_of_a_section:
            yield (
                f"{paper.name}: {name} belongs to no item (its experiment is about: {experiment.source}): add it to an item, "
                "or give the claim ours=True."
            )


def _claims_without_item(paper: Paper) -> dict[str, tuple[Experiment, Claim]]:
    attached = {name for checked in paper.items.values() if not isinstance(checked, str) for name in checked}
    return {name: both for name, both in claims_by_id([paper]).items() if name not in attached}


def page(papers: Sequence[Paper]) -> str:
    """The page of all papers as Markdown.

    >>> page([Paper(name="a", title="A (2026)", experiments=[], items={"Remark 1": "It is an opinion."})])[-80:]
    '...| Remark 1 | | not by computation | It is an opinion. |\\n'
    """
    known = claims_by_id(papers)
    items = [checked for paper in papers for checked in paper.items.values()]
    reasons = sum(isinstance(checked, str) for checked in items)
    head = HEAD.format(total=len(items), checked=len(items) - reasons, others=reasons)
    return "\n".join([head, *(line for paper in papers for line in _section(paper, known))]) + "\n"


def _section(paper: Paper, known: dict[str, tuple[Experiment, Claim]]) -> list[str]:
    checked = sum(not isinstance(value, str) for value in paper.items.values())
    count = (
        f"{len(paper.items)} numbered items: {checked} with claims, {len(paper.items) - checked} with a reason instead."
    )
    lines = ["", f"## {paper.title}", "", *([f"<{paper.link}>", ""] if paper.link else [])]
    lines.append(count if paper.items else "The numbered items of this paper are not listed.")
    if paper.items:
        lines += ["", "| item | claim | expected | statement, or why there is none |", "|---|---|---|---|"]
        lines += [row for item, value in paper.items.items() for row in _rows(item, value, known)]
    if others := _claims_without_item(paper):
        lines += [
            "",
            "Claims about no numbered item:",
            "",
            "| claim | expected | source | statement |",
            "|---|---|---|---|",
        ]
        lines += [
            f"| {_name(name, claim)} | {_expected(claim)} | {_cell(experiment.source)} | {_cell(claim.statement)} |"
            for name, (experiment, claim) in others.items()
        ]
    return lines


def _rows(item: str, checked: Sequence[str] | str, known: dict[str, tuple[Experiment, Claim]]) -> list[str]:
    if isinstance(checked, str):
        return [f"| {item} | | not by computation | {_cell(checked)} |"]
    claims = [(name, known[name][1]) for name in checked if name in known]
    return [
        f"| {item if i == 0 else ''} | {_name(name, claim)} | {_expected(claim)} | {_cell(claim.statement)} |"
        for i, (name, claim) in enumerate(claims)
    ]


def _name(name: str, claim: Claim) -> str:
    return f"`{name}` (ours)" if claim.ours else f"`{name}`"


def _expected(claim: Claim) -> str:
    return claim.kind or claim.expected


def _cell(text: str) -> str:
    r"""Text for a cell of a Markdown table, where a bar would end the cell, ``<X, A>`` be a tag and ``U* V*`` be emphasis.

    >>> _cell("|<X, A>| <= 1 for U*")
    '\\|&lt;X, A>\\| <= 1 for U\\*'
    """
    return re.sub("<(?=[A-Za-z/!])", "&lt;", text).replace("|", "\\|").replace("*", "\\*")


def main(names: Sequence[str]) -> int:
    """Write the page of the built-in papers, or print that of ``names``; the exit status is 1 if an item is wrong."""
    papers = [registry.find_paper(registry.resolve(name)[0]) for name in names or registry.PAPERS]
    if names:
        print(page(papers), end="")
    else:
        PAGE.write_text(page(papers))
    problems = problems_of(papers)
    for problem in problems:
        print(problem, file=sys.stderr)
    return int(bool(problems))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
