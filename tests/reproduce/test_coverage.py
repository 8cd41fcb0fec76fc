"""Numbered items of papers: what is wrong with them is told, and docs/coverage.md is what the script writes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

import coverage_page
from coverage_page import page, problems_of
from gyrostat.experiments import Experiment, Paper, claim, registry

PAGE = Path(__file__).parents[2] / "docs" / "coverage.md"


class Toy(Experiment):
    """Toys"""

    def compute(self, run):
        raise NotImplementedError


class Lemma2(Toy):
    """Lemma 2"""

    source = "Toy 2026, Lemma 2"

    @claim("C.", x=(0, 1), items="Lemma 2")
    def a(self, ds):
        """|x| <= 1."""

    @claim("C.", x=(0, 1), items="Lemma 2", fails="not typical")
    def b(self, ds):
        """|x| <= 1.

        R.
        """


class Extra(Toy):
    """Lemma 2 for comparison"""

    source, ours = "Lemma 2 for comparison", True

    @claim("C.", x=(0, 1))
    def c(self, ds):
        """|x| <= 1."""


class Text(Toy):
    """A remark of the text"""

    source = "Toy 2026, section 3"

    @claim("C.", x=(0, 1))
    def d(self, ds):
        """|x| <= 1."""


class Study(Toy):
    """A claim without an item"""

    source = "Beyond Toy 2026"

    @claim("C.", x=(0, 1))
    def e(self, ds):
        """|x| <= 1."""


PAPER = Paper(
    name="toy2026",
    title="Toy (2026)",
    experiments=[Lemma2, Extra, Text],
    unchecked={
        "Lemma 1": "It is about all dimensions at once.",
        "Theorem 3.1": "Open constants.",
        "Remark 3.2": "An opinion.",
        "Theorem 3.3": "Open constants.",
    },
)


def changed(**unchecked):
    reasons = {name.replace("_", " "): reason for name, reason in unchecked.items()}
    return replace(PAPER, unchecked={**PAPER.unchecked, **reasons})


def test_a_complete_list_has_no_problem_and_its_page_shows_everything():
    assert problems_of([PAPER]) == []
    text = page([PAPER])
    assert "5 numbered items: 1 with claims, 4 with a reason instead." in text
    assert "| Lemma 1 | | not by computation | It is about all dimensions at once. |" in text
    assert "| Lemma 2 | `toy2026/lemma2/a` | holds | \\|x\\| <= 1. |\n|  | `toy2026/lemma2/b` | not typical |" in text
    assert "| `toy2026/extra/c` (ours) | holds | Lemma 2 for comparison |" in text and "toy2026/text/d" in text
    assert text.index("| Theorem 3.3") < text.index("| Lemma 1") < text.index("| Remark 3.2")


@pytest.mark.parametrize(
    ("paper", "problem"),
    [
        (changed(Lemma_1=" "), "toy2026: Lemma 1 has no reason."),
        (changed(Lemma_2="R."), "toy2026: Lemma 2 has claims, and a reason why there is none."),
        (changed(Lemma_4="R."), "toy2026: Lemma 3 is missing."),
        (
            replace(PAPER, experiments=[Lemma2, Extra, Text, Study]),
            "toy2026: toy2026/study/e belongs to no item (its experiment is about: Beyond Toy 2026): say items=, or ours=True.",
        ),
    ],
)
def test_what_is_wrong_is_told(paper, problem):
    assert problems_of([paper]) == [problem]


def test_a_paper_without_items_is_left_alone():
    bare = replace(PAPER, experiments=[Text, Study], unchecked={})
    assert problems_of([bare]) == [] and "The numbered items of this paper are not listed." in page([bare])


def test_every_item_of_the_papers_has_a_claim_or_a_reason_and_the_page_is_current(monkeypatch, tmp_path):
    """Strict for a paper as soon as it lists its items. Write the page with: make coverage"""
    monkeypatch.setattr(coverage_page, "PAGE", tmp_path / "coverage.md")
    assert coverage_page.main([]) == 0
    assert PAGE.read_text() == coverage_page.PAGE.read_text()


def test_the_script_prints_the_page_of_one_paper_and_exits_with_what_is_wrong(monkeypatch, capsys):
    monkeypatch.setattr(registry, "find_paper", lambda name: changed(Lemma_1=" "))
    assert coverage_page.main(["xu2024"]) == 1
    printed = capsys.readouterr()
    assert "| Lemma 2 | `toy2026/lemma2/a` |" in printed.out and "Lemma 1 has no reason" in printed.err
