"""Writes docs/coverage.md: every numbered item of the papers with the claims that check it, or why none can be computed.

    python tools/coverage_page.py [PAPER | FILE.py ...]

reads the items that claims name (``items=``) and the reasons of ``Paper(unchecked=...)``, prints what is wrong with them, and
exits with status 1 then. With names or files of papers, it
prints their page and writes nothing.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from gyrostat.experiments import registry
from gyrostat.experiments.claims import Claim
from gyrostat.experiments.experiment import Experiment
from gyrostat.experiments.papers import Paper

PAGE = Path(__file__).parents[1] / "docs" / "coverage.md"

ITEM = re.compile(r"(?!Section)(?P<kind>[A-Z][a-z]+(?: [a-z]+)*) (?P<section>(?:[A-Z]|\d+)\.)?(?P<number>\d+)\b")
"""The name of a numbered item: ``Lemma 8``, ``Theorem 3.1``, ``Lemma B.2``; sections need no claims of their own."""

KINDS = (
    *(
        "Table",
        "Figure",
        "Definition",
        "Assumption",
        "Condition",
        "Theorem",
        "Proposition",
        "Corollary",
        "Lemma",
        "Fact",
    ),
    *("Remark", "Example", "Algorithm", "Section", "Formula", "("),
)
"""The kinds of numbered items, in the order of the page."""

NAMES_AN_ITEM = re.compile(
    r"\b(Figure|Theorem|Lemma|Proposition|Corollary|Definition|Assumption|Remark|Example|Algorithm|Condition)s? [A-Z\d]"
)

NAMES_A_SECTION = re.compile(r"\bsections? \w")

HEAD = """\
# What of each paper is checked

{total} numbered items: {checked} are checked by claims, and {others} have a reason why no computation can decide them.

The tables list the theorems, lemmas, propositions, corollaries, remarks, examples, figures and algorithms of the papers, and
those equations that state something by themselves. Equations that define something, and steps inside the proof of an item that
has claims, are left out, and listed below the table. Beside each item are the [claims](claims.md) that check it, and what we
expect of each claim: that it holds, or in which sense it fails ([kinds](claims.md#what-a-claim-means)). Claims with "(ours)"
are about statements that the paper does not make. Written by `make coverage`.
"""


def claims_by_id(papers: Sequence[Paper]) -> dict[str, tuple[Experiment, Claim]]:
    """Every claim of the papers by its id ``paper/experiment/slug``, with its experiment."""
    return {
        f"{paper.name}/{experiment.name}/{claim.slug}": (experiment, claim)
        for paper in papers
        for experiment in paper.experiments
        for claim in experiment.claims
    }


def items_of(paper: Paper) -> dict[str, list[str] | str]:
    """The numbered items in the order of their kinds and numbers: the ids of the claims about each, or why there is none."""
    items = {**paper.checked(), **paper.unchecked}
    return {item: items[item] for item in sorted(items, key=place)}


def place(item: str) -> tuple[int, list[tuple[int, str]], str]:
    """Where an item stands on the page: kinds in the order of KINDS, and numbers as numbers.

    >>> sorted(["(10)", "Lemma 10", "(9)", "Lemma B.2", "Theorem 2"], key=place)
    ['Theorem 2', 'Lemma 10', 'Lemma B.2', '(9)', '(10)']
    """
    kind = next((i for i, word in enumerate(KINDS) if item.startswith(word)), len(KINDS))
    parts = re.findall(r"\d+|\b[A-Z](?=[.\d])", item)
    # Sections of an appendix, which are letters, come after those of the text.
    return kind, [(int(part), "") if part.isdigit() else (1000, part) for part in parts], item


def problems_of(papers: Sequence[Paper]) -> list[str]:
    """Sentences about what is wrong with the items of papers; nothing is asked of a paper that names no items.

    An item has claims or a reason and not both, numbers must have no gap, and every claim must name an item, unless it is ours
    or the source of its experiment is a section of the paper and no item.
    """
    problems = []
    for paper in papers:
        if items_of(paper):
            twice = sorted(paper.checked().keys() & paper.unchecked.keys())
            problems += [f"{paper.name}: {item} has claims, and a reason why there is none." for item in twice]
            problems += [
                f"{paper.name}: {item} has no reason." for item, why in paper.unchecked.items() if not why.strip()
            ]
            problems += [*_gaps(paper), *_unattached(paper)]
    return problems


def _gaps(paper: Paper) -> Iterator[str]:
    """Items that seem to be missing: numbers below the largest of their kind and section that no item of the section has."""
    found = [match for match in map(ITEM.match, items_of(paper)) if match]
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
                f"{paper.name}: {name} belongs to no item (its experiment is about: {experiment.source}): say items=, "
                "or ours=True."
            )


def _claims_without_item(paper: Paper) -> dict[str, tuple[Experiment, Claim]]:
    return {name: both for name, both in claims_by_id([paper]).items() if not both[1].items}


def page(papers: Sequence[Paper]) -> str:
    """The page of all papers as Markdown.

    >>> text = page([Paper(name="a", title="A (2026)", experiments=[], unchecked={"Remark 1": "It is an opinion."})])
    >>> print(text[text.index("| Remark") :])
    | Remark 1 | | not by computation | It is an opinion. |
    <BLANKLINE>
    Equations left out: none.
    <BLANKLINE>
    """
    known = claims_by_id(papers)
    items = [checked for paper in papers for checked in items_of(paper).values()]
    reasons = sum(isinstance(checked, str) for checked in items)
    head = HEAD.format(total=len(items), checked=len(items) - reasons, others=reasons)
    return "\n".join([head, *(line for paper in papers for line in _section(paper, known))]) + "\n"


def _section(paper: Paper, known: dict[str, tuple[Experiment, Claim]]) -> list[str]:
    items = items_of(paper)
    checked = sum(not isinstance(value, str) for value in items.values())
    count = f"{len(items)} numbered items: {checked} with claims, {len(items) - checked} with a reason instead."
    lines = ["", f"## {paper.title}", "", *([f"<{paper.link}>", ""] if paper.link else [])]
    lines.append(count if items else "The numbered items of this paper are not listed.")
    if items:
        lines += ["", "| item | claim | expected | statement, or why there is none |", "|---|---|---|---|"]
        lines += [row for item, value in items.items() for row in _rows(item, value, known)]
        lines += ["", f"Equations left out: {', '.join(left_out(items)) or 'none'}."]
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


def left_out(items: Iterable[str]) -> list[str]:
    """The equations that no item names, up to the last that one names, section by section.

    >>> left_out(["(2)", "(4) to (6)", "(D.2)", "Lemma 1"])
    ['(1)', '(3)', '(D.1)']
    """
    named: dict[str, set[int]] = {}
    for item in items:
        labels = [(section or "", int(number)) for section, number in re.findall(r"\(([A-Z]\.|\d+\.)?(\d+)\)", item)]
        if " to (" in item:
            (section, first), (_, last) = labels[-2:]
            labels += [(section, number) for number in range(first, last)]
        for section, number in labels:
            named.setdefault(section, set()).add(number)
    return [
        f"({section}{number})"
        for section, numbers in sorted(named.items())
        for number in range(1, max(numbers))
        if number not in numbers
    ]


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
