"""The seeded bugs apply to the present source, and the rule by which one counts as noticed (``make mutation`` runs them)."""

from __future__ import annotations

import ast
import re
from dataclasses import replace

import pytest

import generated_mutants
import mutation_suite
from gyrostat.experiments.registry import PAPERS, experiments
from mutation_suite import SEEDS, Trial, page, trial, with_summary
from mutations import MUTATIONS, Mutation


@pytest.mark.parametrize("mutation", MUTATIONS, ids=[m.name for m in MUTATIONS])
def test_a_bug_applies_once_and_leaves_code_that_can_be_read(mutation):
    source = (mutation_suite.PACKAGE / mutation.file).read_text()
    ast.parse(mutation.apply(source))
    assert ast.dump(ast.parse(mutation.apply(source))) != ast.dump(ast.parse(source))
    with pytest.raises(ValueError, match="occurs 2 times"):
        mutation.apply(source + mutation.old)


def test_generated_mutants_are_changes_of_one_place_each():
    mutants = generated_mutants.mutants()
    assert len({m.name for m in mutants}) == len(mutants) > 10 * generated_mutants.SAMPLE
    assert {m.sentence for m in mutants} == {"operator", "dropped term", "comparison", "constant", "flag"}
    for mutant in mutants[::50]:
        source = (mutation_suite.PACKAGE / mutant.file).read_text()
        assert ast.dump(ast.parse(mutant.apply(source))) != ast.dump(ast.parse(source))
        with pytest.raises(ValueError, match="has changed"):
            mutant.apply("x" + source)


def test_a_mutant_is_tried_where_its_function_is_called():
    mutant = replace(generated_mutants.mutants()[0], file="a.py", function=3)
    calls = {
        "p/one": {"calls": ["a.py:3"], "seconds": 1.0},
        "p/two": {"calls": ["a.py:9"], "seconds": 0.1},
        "tests/t.py::t": {"calls": ["a.py:3"], "seconds": 0.1},
    }

    def ask(asked, name, seed):
        is_mutant = asked is mutant
        if "::" in name:
            return {"surprises": [name] if is_mutant else []}
        assert name == "p/one"
        return {"surprises": ["slug"] if is_mutant else [], "raised": "", "numbers": "b" if is_mutant else "a"}

    verdict = generated_mutants.verdict(mutant, ask, calls)
    assert (verdict.claim, verdict.test, verdict.changed) == ("`p/one/slug`", "tests/t.py::t", True)
    unnoticed = generated_mutants.verdict(mutant, lambda *asked: ask(None, *asked[1:]), calls)
    assert (unnoticed.claim, unnoticed.test, unnoticed.changed) == ("", "", False)


def test_the_table_is_one():
    names = [m.name for m in MUTATIONS]
    known = {f"{paper}/{name}" for paper in PAPERS for name in experiments(paper)}
    assert len(set(names)) == len(names) >= 40
    assert all((m.tries or m.test) and set(m.tries) <= known and m.sentence.endswith(".") for m in MUTATIONS)
    for file, _, name in (m.test.partition("::") for m in MUTATIONS if m.test):
        assert f"\ndef {name}(" in (mutation_suite.ROOT / file).read_text()
    rooms = {m.file.split("/")[0] for m in MUTATIONS}
    assert rooms == {"measurements", "algorithms", "models", "environments", "engine", "diagnostics", "theory"}


def test_the_page_is_of_this_table():
    listed = re.findall(r"^\| `([\w-]+)` \| `([\w/.]+)` \|", mutation_suite.PAGE.read_text(), re.MULTILINE)
    assert listed == [(m.name, m.file) for m in MUTATIONS], "run make mutation"
    begin, end = mutation_suite.MARKS
    kept = mutation_suite.SUMMARY.read_text().split(begin)[1].split(end)[0].strip()
    assert kept in mutation_suite.PAGE.read_text()


BUG = Mutation("bug", "a.py", "x", "y", "A bug.", ("p/one", "p/two"))


def asking(found, raised=None):
    """Answers from a table of surprises: (bug, experiment, seed) -> slugs."""

    def ask(mutation, name, seed):
        return {"surprises": found.get((mutation.name, name, seed), []), "raised": (raised or {}).get(name, "")}

    return ask


FIRST, SECOND = SEEDS


@pytest.mark.parametrize(
    ("found", "killer", "tried"),
    [
        ({}, "", ("p/one", "p/two")),
        ({("bug", "p/one", s): ["a", "b"] for s in SEEDS}, "`p/one/a`", ("p/one",)),
        ({("bug", "p/two", s): ["b"] for s in SEEDS}, "`p/two/b`", ("p/one", "p/two")),
        # one seed only, or another claim at the other seed: chance
        ({("bug", "p/one", FIRST): ["a"]}, "", ("p/one", "p/two")),
        ({("bug", "p/one", FIRST): ["a"], ("bug", "p/one", SECOND): ["b"]}, "", ("p/one", "p/two")),
        # without the bug it surprises as well
        (
            {("bug", "p/one", s): ["a"] for s in SEEDS} | {("unchanged", "p/one", SECOND): ["a"]},
            "",
            ("p/one", "p/two"),
        ),
    ],
)
def test_a_bug_is_killed_by_one_claim_at_both_seeds(found, killer, tried):
    assert trial(BUG, asking(found)) == Trial(BUG, killer, tried)


def test_an_error_kills_and_more_experiments_are_tried_on_survivors():
    assert trial(BUG, asking({}, {"p/two": "ValueError: no"})).killer == "`p/two` raises ValueError: no"
    found = {("bug", "p/three", s): ["c"] for s in SEEDS}
    assert trial(BUG, asking(found), more=["p/one", "p/three"]).tried == ("p/one", "p/two", "p/three")


@pytest.mark.parametrize(
    ("found", "killer"),
    [
        ({("bug", "tests/a.py::b", FIRST): ["fails"]}, "`tests/a.py::b`"),
        ({}, ""),
        (
            {(name, "tests/a.py::b", FIRST): ["fails"] for name in ("bug", "unchanged")},
            "",
        ),  # it fails without the bug too
        ({("bug", "p/two", s): ["b"] for s in SEEDS}, "`p/two/b`"),  # a claim comes first
    ],
)
def test_a_bug_that_no_claim_notices_is_killed_by_its_test(found, killer):
    assert trial(replace(BUG, test="tests/a.py::b"), asking(found)).killer == killer


def test_the_page_names_survivors_and_what_was_not_run():
    trials = [
        Trial(BUG, "", BUG.tries),
        Trial(BUG, "`p/one/a`", ("p/one",)),
        Trial(BUG, "`t.py::b`", ("t.py::b",)),
        Trial(BUG),
    ]
    assert "2 of 3 seeded bugs (67%) are noticed: 1 by a claim at smoke size, 1 by a test." in page(trials)
    assert "1 more have not been run." in page(trials)
    assert "| **survives** |" in page(trials) and "| not run |" in page(trials)
    begin, end = mutation_suite.MARKS
    text = with_summary(f"before\n{begin}\nold\n{end}\nafter\n", trials)
    assert "old" not in text and "- `bug`: A bug." in text and text.startswith("before") and text.endswith("after\n")
