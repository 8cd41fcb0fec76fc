"""The suite ``compare-methods``: records of every part, and a page whose words are those of the one in the docs."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from gyrostat.benchmarks import compared_methods_suite as suite
from gyrostat.estimators.comparison.compared_methods import COMPARED, FIXED, OURS, REFERENCE, SAME_KIND, WORST_CASE

DOCS = Path(__file__).parents[2] / "docs" / suite.PAGE


@pytest.fixture(scope="module")
def report():
    """One setting of each part, with the methods that choose nothing."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(suite, "COUNTS", ((4, 40),))
        patch.setattr(suite, "LAWS", {"levels": suite.LAWS["levels"]})
        patch.setattr(suite, "COMBINED", {name: suite.COMBINED[name] for name in ("irm-feu",)})
        patch.setattr(suite, "FLIPPING", {"flips": suite.FLIPPING["flips"]})
        quick = [m for m in COMPARED if m.name in (REFERENCE, FIXED, SAME_KIND, OURS, WORST_CASE)]
        quick = tuple(suite.replace(m, grid=()) for m in quick)
        return suite.run(lambda text: None, suite.ComparisonSizes(3, 1, 1, 20, quick, ()))


def test_every_part_has_records_with_goals(report):
    parts = [r.settings["part"] for r in report.records]
    assert parts == ["law", "table", "combinations", "worst"]
    law, table, combined, worst = report.records
    assert law.goal == table.goal == pytest.approx(1 / 1.02) and worst.goal == 1 and combined.goal is None
    assert law.peer == min(law.settings["errors"][name] for name in (REFERENCE, FIXED))
    assert worst.peer == min(worst.settings["worst"][name] for name in (REFERENCE, FIXED))
    assert combined.settings["combined"] == 1 and combined.ours < 0.1 * combined.settings["errors"][REFERENCE]


def test_laws_are_what_their_names_say():
    rng = np.random.default_rng(0)
    plain = suite.environments_of_law(rng, 3, 4000)
    for X, y in plain:
        design = np.column_stack([np.ones(len(X)), X])
        np.testing.assert_allclose(np.linalg.lstsq(design, y, rcond=None)[0], [0, *suite.SLOPES], atol=0.15)
    follow = suite.environments_of_law(rng, 60, 50, **suite.LAWS["levels follow features"])
    means = np.array([X.mean(axis=0) for X, _ in follow])
    left = np.array([np.mean(y - X @ suite.SLOPES) for X, y in follow])
    np.testing.assert_allclose(np.linalg.lstsq(means, left, rcond=None)[0], [1, 1, -1, 0, 0], atol=0.2)
    assert len({len(y) for _, y in suite.environments_of_law(rng, 20, 40, sizes=(0.5, 8.0))}) == 2


def test_the_page_in_the_docs_has_the_words_and_the_form_of_one_made_now(report):
    made, kept = suite.page(report), DOCS.read_text()
    before, after = suite.INTRODUCTION.split("{verdict}")
    assert kept.startswith(before) and after in kept
    said = re.search(r"in (\d+) of (\d+) simulations and (\d+) of (\d+) tables", kept)
    table = kept.partition("## New environments")[2].partition("## Effects")[0]
    assert said.group(1, 2) == (str(table.count("| met |")), str(table.count("| met |") + table.count("| missed |")))
    titles = [[line for line in text.splitlines() if line.startswith("#")] for text in (made, kept)]
    assert titles[0] == titles[1]
    for _, text in suite.SECTIONS.values():
        assert text in kept
    laws = re.findall(r"^\| ([a-z, ]+) \| \d+ \| \d+ \|", kept, re.MULTILINE)
    assert set(laws) == set(suite.LAWS)
