"""Numbered items of papers: what is wrong with a list is told, and docs/coverage.md is what the script writes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

import coverage_page
from coverage_page import page, problems_of
from gyrostat.experiments import registry
from gyrostat.experiments.declarations import Claim, Experiment, Paper, within

PAGE = Path(__file__).parents[2] / "docs" / "coverage.md"


def claim(slug, **options):
    return Claim(slug=slug, statement="|x| <= 1.", criterion="C.", measure=lambda ds: within(0, 1, x=ds.x), **options)


def experiment(name, source, *claims):
    sizes = {"smoke": {}, "standard": {}, "full": {}}
    words = {"title": "T", "source": source, "summary": "S."}
    return Experiment(name=name, **words, sizes=sizes, compute=lambda **_: None, draw=lambda ds: None, claims=claims)


PAPER = Paper(
    name="toy2026",
    title="Toy (2026)",
    experiments=[
        experiment(
            "lemma2", "Toy 2026, Lemma 2", claim("a"), claim("b", expected="fails", kind="not typical", reason="R.")
        ),
        experiment("extra", "Lemma 2 for comparison", claim("c", ours=True)),
        experiment("text", "Toy 2026, section 3", claim("d")),
    ],
    items={
        "Lemma 1": "It is about all dimensions at once.",
        "Lemma 2": ("toy2026/lemma2/a", "toy2026/lemma2/b"),
        "Theorem 3.1": "Open constants.",
        "Remark 3.2": "An opinion.",
        "Theorem 3.3": "Open constants.",
    },
)


def changed(**items):
    return replace(PAPER, items={**PAPER.items, **{name.replace("_", " "): value for name, value in items.items()}})


def test_a_complete_list_has_no_problem_and_its_page_shows_everything():
    assert problems_of([PAPER]) == []
    text = page([PAPER])
    assert "5 numbered items: 1 with claims, 4 with a reason instead." in text
    assert "| Lemma 1 | | not by computation | It is about all dimensions at once. |" in text
    assert "| Lemma 2 | `toy2026/lemma2/a` | holds | \\|x\\| <= 1. |\n|  | `toy2026/lemma2/b` | not typical |" in text
    assert "| `toy2026/extra/c` (ours) | holds | Lemma 2 for comparison |" in text and "toy2026/text/d" in text


@pytest.mark.parametrize(
    ("paper", "problem"),
    [
        (changed(Lemma_1=""), "toy2026: Lemma 1 has neither a claim nor a reason."),
        (changed(Lemma_1=()), "toy2026: Lemma 1 has neither a claim nor a reason."),
        (changed(Lemma_1=("toy2026/lemma2/z",)), "toy2026: Lemma 1 names 'toy2026/lemma2/z', which is not a claim."),
        (changed(Lemma_4="R."), "toy2026: Lemma 3 is missing."),
        (
            changed(Lemma_2=("toy2026/lemma2/a",)),
            "toy2026: toy2026/lemma2/b belongs to no item (its experiment is about: Toy 2026, Lemma 2): add it to an item, "
            "or give the claim ours=True.",
        ),
        (
            replace(PAPER, experiments=[*PAPER.experiments, experiment("study", "Beyond Toy 2026", claim("e"))]),
            "toy2026: toy2026/study/e belongs to no item (its experiment is about: Beyond Toy 2026): add it to an item, "
            "or give the claim ours=True.",
        ),
    ],
)
def test_what_is_wrong_is_told(paper, problem):
    assert problems_of([paper]) == [problem]


def test_a_paper_without_items_is_left_alone():
    assert problems_of([replace(PAPER, items={})]) == []
    assert "The numbered items of this paper are not listed." in page([replace(PAPER, items={})])


def test_every_item_of_the_papers_has_a_claim_or_a_reason_and_the_page_is_current(monkeypatch, tmp_path):
    """Strict for a paper as soon as it lists its items. Write the page with: make coverage"""
    monkeypatch.setattr(coverage_page, "PAGE", tmp_path / "coverage.md")
    assert coverage_page.main([]) == 0
    assert PAGE.read_text() == coverage_page.PAGE.read_text()


def test_the_script_prints_the_page_of_one_paper_and_exits_with_what_is_wrong(monkeypatch, capsys):
    monkeypatch.setattr(registry, "find_paper", lambda name: changed(Lemma_1=""))
    assert coverage_page.main(["xu2024"]) == 1
    printed = capsys.readouterr()
    assert "| Lemma 2 | `toy2026/lemma2/a` |" in printed.out and "Lemma 1 has neither" in printed.err
