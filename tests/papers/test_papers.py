"""The papers' registry, reproducibility of an experiment, and the small statistics that claims are made of."""

from __future__ import annotations

import math
import re
from pathlib import Path

import numpy as np
import pytest

import paper_checks
import record_criteria
from gyrostat.experiments.registry import PAPERS, experiments, find_paper
from gyrostat.experiments.statistics import crossing, last, median, share_below, slope, wilson
from gyrostat.reproduce.claims import declared_claims


def test_every_paper_has_its_file_of_tests():
    here = Path(__file__).parent
    assert all((here / f"test_{paper}.py").exists() for paper in PAPERS)


def test_the_citation_file_has_the_references_of_the_papers():
    yaml = pytest.importorskip("yaml")
    citation = yaml.safe_load((Path(__file__).parents[2] / "CITATION.cff").read_text())
    assert {"cff-version", "message", "title", "authors"} <= set(citation) and citation["cff-version"] == "1.2.0"
    references = {reference["url"]: reference for reference in citation["references"]}
    papers = [paper for paper in map(find_paper, PAPERS) if paper.link]
    assert set(references) == {paper.link for paper in papers}
    for paper in papers:
        found = references[paper.link]
        families = [author["family-names"] for author in found["authors"]]
        assert paper.title.startswith(", ".join(families) + ": ") and str(found["year"]) in paper.title
        assert found["identifiers"][0]["value"].endswith(paper.link.rsplit("/", 1)[1])
        assert all(author["given-names"] for author in found["authors"])


def test_the_same_seed_gives_the_same_numbers():
    experiment = experiments("xu2024")["fig5"]
    again = experiment.data(seed=20261115, **experiment.settings("smoke"))
    assert again.equals(paper_checks.data("xu2024", "fig5"))
    other = experiment.data(seed=20261116, **experiment.settings("smoke"))
    assert not other.equals(again)


def test_statistics_count_divergence_as_failure():
    import xarray as xr

    values = xr.DataArray([[0.0, 0.05], [0.0, np.nan], [0.0, np.nan]], dims=("seed", "step"))
    assert float(share_below(last(values), 0.1)) == pytest.approx(1 / 3)
    assert float(median(last(values))) == np.inf


def test_crossing_and_slope_and_interval():
    x = np.array([1.0, 2.0, 3.0, 4.0])
    assert crossing(x, np.array([0.0, 0.6, 0.4, 0.8]), 0.5) == pytest.approx(3.25)
    assert math.isnan(crossing(x, np.zeros(4), 0.5))
    assert slope(x, 7 * x**-0.5) == pytest.approx(-0.5)
    from scipy.stats import binomtest

    for k, n in ((0, 20), (7, 50), (50, 50)):
        interval = binomtest(k, n).proportion_ci(method="wilson")
        low, high = wilson(np.array(k), n, z=1.959963984540054)
        assert (float(low), float(high)) == pytest.approx((interval.low, interval.high), abs=1e-9)


def test_no_criterion_changes_without_an_entry_in_the_log():
    told = record_criteria.unexplained(record_criteria.recorded(), record_criteria.logged(), record_criteria.present())
    assert not told, "\n".join(f"{name} {what}" for name, what in told.items())


def test_a_changed_criterion_is_noticed_until_it_is_logged():
    known, now = {"p/f/a": "0" * 12, "p/f/b": "1" * 12}, {"p/f/a": "2" * 12, "p/f/b": "1" * 12, "p/f/c": "3" * 12}
    told = record_criteria.unexplained(known, {}, now)
    assert set(told) == {"p/f/a", "p/f/c"} and "docs/claims.md" in told["p/f/a"] and "new" in told["p/f/c"]
    assert set(record_criteria.unexplained(known, {"p/f/a": ["2" * 12]}, now)) == {"p/f/c"}


CONSTANTS_OF_OURS = {
    "xiong2024/lemmasB/B.1-probability",
    "xiong2024/lemmasB/B.2-rows",
    "xiong2024/lemmasB/B.3-duration",
    "xiong2024/lemmasB/theorem-3.1",
    "xiong2024/lemmasD/4.12",
    "xiong2024/thm4.1/two-sided",
    "xiong2024/thm4.2/exact-prefactor",
    "xiong2024/thm4.1/4.5-signal",
    "xu2024/lemma19/one-constant",
    "wang2023/thm3.1/prop3.1",
}
"""Statements of the papers, checked with a constant of ours that the paper leaves open."""


def test_what_says_that_it_is_ours_is_not_counted_as_a_statement_of_the_paper():
    names = re.compile(r"\bours\b|\(controls?\b|\bgyrostat\b", re.IGNORECASE)
    said = {r["id"] for r in declared_claims() if not r["ours"] and names.search(r["statement"] + r["criterion"])}
    assert said == CONSTANTS_OF_OURS
    studies = [e for paper in PAPERS for e in experiments(paper).values() if re.search(r"(^|; |\()ours\b", e.source)]
    assert len(studies) > 3 and all(claim.ours for study in studies for claim in study.claims)
