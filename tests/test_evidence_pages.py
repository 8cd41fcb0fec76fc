"""Pages of evidence: they show what their records hold, and their sentences are true of it."""

from __future__ import annotations

import doctest
import json
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "docs" / "site_tools"))

import evidence_pages  # noqa: E402

import page_records  # noqa: E402


@pytest.mark.parametrize("record", evidence_pages.RECORDS, ids=lambda record: record.stem)
def test_a_page_shows_its_record(record):
    assert evidence_pages.page(record).read_text() == evidence_pages.current(record), (
        f"docs/{record.stem}.md and docs/evidence/{record.name} differ: run make evidence-pages"
    )


def test_every_record_has_a_page_and_says_how_it_was_made():
    marked = {page.stem for page in (ROOT / "docs").glob("*.md") if "\n<!-- evidence: " in page.read_text()}
    assert marked == {record.stem for record in evidence_pages.RECORDS} != set()
    for record in evidence_pages.RECORDS:
        content = json.loads(record.read_text())
        assert re.fullmatch(r'make bench SUITE="[\w-]+"', content["command"]) and content["version"]


@pytest.mark.parametrize(
    ("text", "values", "complaint"),
    [
        ("<!-- evidence: a -->1<!-- end -->", {"b": 1}, "line"),
        ("is <!-- evidence: a -->1<!-- end -->", {"b": 1}, "value: a, b$"),
        ("is <!-- evidence: a -->1<!-- end -->", {"a": 1, "b": 2}, "value: b$"),
        ("is <!-- evidence: a -->1, <!-- evidence: b -->2<!-- end -->", {"a": 1, "b": 2}, "form"),
        ("is <!-- evidence: a -->1", {"a": 1}, "form"),
    ],
)
def test_marks_that_would_not_work_are_refused(text, values, complaint):
    with pytest.raises(ValueError, match=complaint):
        evidence_pages.filled(text, values)


def test_prose_around_marks_stays_and_blocks_are_tables_and_lists():
    values = {"n": 0.123, "t": {"columns": ["x"], "rows": [["1"]]}, "l": ["one", "two"], "w": "none"}
    marks = "So <!-- evidence: n .1% --><!-- end -->, <!-- evidence: w -->old<!-- end -->.\n\n{}\n\nMore.\n"
    page = marks.format("<!-- evidence: t -->\n<!-- end -->\n\n<!-- evidence: l -->\n<!-- end -->")
    made = evidence_pages.filled(page, values)
    assert made.startswith("So <!-- evidence: n .1% -->12.3%<!-- end -->, <!-- evidence: w -->none<!-- end -->.\n")
    assert "-->\n\n| x |\n|---|\n| 1 |\n\n<!--" in made and "\n- one\n- two\n" in made and made.endswith("\n\nMore.\n")
    assert evidence_pages.filled(made, values) == made
    assert doctest.testmod(evidence_pages).failed == 0


def none_reaches_both_goals(values: dict[str, Any]) -> bool:
    columns, methods = values["law-errors"]["columns"], range(3, 8)
    assert columns[2] == "rows of each" and columns[8] == "goal"
    errors = {(row[0], row[1]): [float(row[i]) for i in methods] for row in values["law-errors"]["rows"]}
    pairs = [(errors["levels", n], errors["levels follow features", n]) for n in ("3", "4")]
    return all(max(both) > 1.02 for pair in pairs for both in zip(*pair, strict=True))


SENTENCES: list[tuple[str, str, Callable[[dict[str, Any]], bool]]] = [
    (
        "calibration",
        "Where it does not fit, this happens often",
        lambda v: all(v[name] > 0.5 for name in v if name.startswith("removed-")),
    ),
    (
        "coloured-digits",
        "That alone makes the network ignore the colour",
        lambda v: min(v["diagonal-one-environment"], v["quadratic-one-environment"]) > 0.1,
    ),
    ("coloured-digits", "batches alone do little", lambda v: v["rectified-one-environment"] < 0.05),
    (
        "coloured-digits",
        "On raw pixels amplified steps do not help",
        lambda v: max(v["rectified-on-pictures-amplified"], v["convolutional-amplified"]) < 0,
    ),
    (
        "coloured-digits",
        "Use V-REx or GroupDRO there",
        lambda v: min(v["rectified-on-pictures-V-REx"], v["convolutional-GroupDRO"]) > 0.1,
    ),
    (
        "coloured-digits",
        "The bound is cautious",
        lambda v: all(cell == f"{row[1]} of {row[1]}" for row in v["reports"]["rows"] for cell in row[-2:]),
    ),
    (
        "compare-methods",
        "none of the methods below reaches the goal in both of the laws `levels` and `levels follow features`",
        none_reaches_both_goals,
    ),
    ("compare-methods", "try it on your own table first", lambda v: v["tables-worse"] > 0),
]
"""Words of a page that are true of some numbers only, and what makes them true."""


@pytest.mark.parametrize(("page", "words", "holds"), SENTENCES, ids=[words[:30] for _, words, _ in SENTENCES])
def test_what_a_page_says_is_true_of_its_record(page, words, holds):
    assert words in " ".join((ROOT / "docs" / f"{page}.md").read_text().split())
    assert holds(page_records.values(page))
