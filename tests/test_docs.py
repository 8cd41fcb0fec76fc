"""What the README and the docs show is what happens."""

from __future__ import annotations

import contextlib
import io
import re
import tomllib
from pathlib import Path

import pytest

from gyrostat.sweeps import read_spec

ROOT = Path(__file__).parents[1]


def blocks(path: str, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", (ROOT / path).read_text(), re.DOTALL)


def run(code: str) -> tuple[str, dict]:
    printed, names = io.StringIO(), {"__name__": "example"}
    with contextlib.redirect_stdout(printed):
        exec(compile(code, "example", "exec"), names)
    return printed.getvalue(), names


@pytest.mark.parametrize("page", ["README.md", "docs/several-environments.md", "docs/completion.md"])
def test_the_page_prints_what_it_says(page):
    (code,), (expected,) = blocks(page, "python"), blocks(page, "text")
    # small batches of floating-point sums differ between machines; two decimals of a median do not
    assert run(code)[0] == expected


@pytest.mark.parametrize("i", range(5))
def test_the_page_on_results_prints_what_it_says(i):
    codes, expected = blocks("docs/how-to-results.md", "python"), blocks("docs/how-to-results.md", "text")
    assert len(codes) == len(expected) == 5 and run(codes[i])[0] == expected[i]


def test_the_skeleton_of_an_algorithm_runs():
    (code,) = blocks("docs/adding-an-algorithm.md", "python")
    assert 0.9 < float(run(code)[0]) < 1.1


def test_the_example_of_a_sweep_prints_what_it_says():
    (code,), (expected,) = blocks("docs/sweeps.md", "python"), blocks("docs/sweeps.md", "text")
    assert run(code)[0] == expected


def test_the_spec_in_the_docs_is_one():
    (text,) = blocks("docs/sweeps.md", "toml")
    made = read_spec(tomllib.loads(text))
    assert made.shape == (13, 25, 2, 2) and [a.name for a in made.axes] == [
        "step_size",
        "spread",
        "order",
        "measurements_kind",
    ]
    made.cell((0, 0, 1, 1))


def test_the_example_of_an_experiment_computes_draws_and_holds():
    (code,) = blocks("docs/adding-an-experiment.md", "python")
    experiment = run(code)[1]["MINE"]
    ds = experiment.compute(seed=3, **experiment.sizes["smoke"])
    assert experiment.draw(ds).panels
    assert [claim.measure(ds).verdict for claim in experiment.claims] == ["holds"]


@pytest.mark.parametrize(
    "page", ["README.md", *(str(p.relative_to(ROOT)) for p in sorted((ROOT / "docs").glob("*.md")))]
)
def test_links_lead_somewhere(page):
    folder = (ROOT / page).parent
    for target in re.findall(r"\]\(([^)#]+)\)", (ROOT / page).read_text()):
        assert target.startswith("http") or (folder / target).exists(), f"{page} links to {target}"
