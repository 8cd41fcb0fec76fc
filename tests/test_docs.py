"""What the README and the docs show is what happens."""

from __future__ import annotations

import contextlib
import io
import re
import tomllib
import warnings
from pathlib import Path

import pytest
from rich.console import Console

from gyrostat.sweeps import read_spec

pytestmark = pytest.mark.usefixtures("optimised")

ROOT = Path(__file__).parents[1]


def blocks(path: str, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", (ROOT / path).read_text(), re.DOTALL)


def run(code: str) -> tuple[str, dict]:
    printed, names = io.StringIO(), {"__name__": "example"}
    with contextlib.redirect_stdout(printed):
        exec(compile(code, "example", "exec", dont_inherit=True), names)
    return printed.getvalue(), names


@pytest.mark.parametrize(
    "page", ["README.md", "docs/several-environments.md", "docs/completion.md", "docs/how-to-devices.md"]
)
def test_the_page_prints_what_it_says(page):
    (code,), (expected,) = blocks(page, "python"), blocks(page, "text")
    # small batches of floating-point sums differ between machines; two decimals of a median do not
    assert run(code)[0] == expected


@pytest.mark.parametrize("page", ["docs/how-to-optimisers.md", "docs/how-to-models.md"])
def test_every_block_of_the_page_prints_what_the_next_one_says(page):
    """The blocks of a page are one program; each text block is what the block before it prints."""
    with own_diagnostics_are_removed(), divergence_is_an_error():
        printed, names = [], {"__name__": "example"}
        for code in blocks(page, "python"):
            out = io.StringIO()
            with contextlib.redirect_stdout(out):
                exec(compile(code, page, "exec", dont_inherit=True), names)
            printed.append(out.getvalue())
    assert printed == blocks(page, "text")


@contextlib.contextmanager
def own_diagnostics_are_removed():
    """Diagnostics that a page registers do not stay."""
    import gyrostat as gs

    before = dict(gs.diagnostics.DIAGNOSTICS)
    try:
        yield
    finally:
        for name in set(gs.diagnostics.DIAGNOSTICS) - set(before):
            del gs.diagnostics.DIAGNOSTICS[name]


@contextlib.contextmanager
def divergence_is_an_error():
    """No page shows runs that diverge without saying so."""
    import gyrostat as gs

    with warnings.catch_warnings():
        warnings.simplefilter("error", gs.errors.DivergenceWarning)
        yield


@pytest.fixture(scope="module")
def results_of_a_figure(tmp_path_factory):
    """A folder in which `gyrostat reproduce xu2024/fig1 --size smoke --out results` was run."""
    from gyrostat.reproduce.runner import reproduce

    folder = tmp_path_factory.mktemp("figure")
    reproduce(["xu2024/fig1"], size="smoke", out=folder / "results", jobs=1, console=Console(quiet=True))
    return folder


TWELVE = (ROOT / "docs/how-to-twelve-tasks.md").read_text().split("\n## ")[1:]


@pytest.mark.parametrize("task", TWELVE, ids=[task.partition("\n")[0] for task in TWELVE])
def test_twelve_tasks(task, results_of_a_figure, monkeypatch):
    """A block of at most fifteen lines prints what the page says, and a bad input gets the sentence on the page."""
    (code,), (expected,) = (re.findall(rf"```{kind}\n(.*?)```", task, re.DOTALL) for kind in ("python", "text"))
    ((bad, sentence),) = re.findall(r"A mistake: `(.*)`\n\n> (.*)\n", task)
    monkeypatch.chdir(results_of_a_figure)
    with own_diagnostics_are_removed(), divergence_is_an_error():
        printed, names = run(code)
        assert printed == expected and len(code.strip().splitlines()) <= 15
        with pytest.raises(names["gs"].GyrostatError if "gs" in names else ValueError) as caught:
            eval(bad, names)
        assert str(caught.value) == sentence


YOUR_DATA = "docs/how-to-your-data.md"


@pytest.mark.parametrize("number", range(len(blocks(YOUR_DATA, "python"))))
def test_how_to_with_your_data(number, results_of_a_figure, monkeypatch):
    code, expected = blocks(YOUR_DATA, "python")[number], blocks(YOUR_DATA, "text")[number]
    monkeypatch.chdir(results_of_a_figure)
    assert run(code)[0] == expected and len(code.strip().splitlines()) <= 15


@pytest.mark.parametrize("i", range(4))
def test_the_page_on_results_prints_what_it_says(i):
    codes, expected = blocks("docs/how-to-results.md", "python"), blocks("docs/how-to-results.md", "text")
    assert len(codes) == len(expected) == 4 and run(codes[i])[0] == expected[i]


def test_the_skeletons_of_an_algorithm_and_of_a_measurement_run():
    algorithm, measurement = blocks("docs/adding-an-algorithm.md", "python")
    assert all(0.9 < float(signal) < 1.1 for signal in run(algorithm)[0].split())
    assert run(measurement)[0] == "NoisyResidual(noise=0.1) 1.0\n"


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
    experiment = run(code)[1]["Forgetting"]()
    ds = experiment.data(seed=3, **experiment.settings("smoke"))
    assert experiment.figure(ds).panels
    assert [claim.measure(ds).verdict for claim in experiment.claims] == ["holds"]


def test_a_paper_of_your_own(tmp_path):
    """The page's paper gives what it says, is one that the laboratory can show, and its commands exist."""
    from gyrostat import TwoPoint, cli
    from gyrostat.lab.laboratories import lab_of
    from gyrostat.theory import RULES, Setting

    page = "docs/how-to-your-paper.md"
    paper_code, rule_code, compare_code = blocks(page, "python")
    paper = run(paper_code)[1]["PAPER"]
    (experiment,), (preset,) = paper.experiments, paper.presets
    ds = experiment.data(seed=3, **experiment.settings("smoke"))
    assert experiment.draw(ds).panels and [claim.measure(ds).verdict for claim in experiment.claims] == ["holds"]
    assert lab_of(preset.lab).read(preset.values)["spread"] == 8.0
    run(rule_code)
    assert RULES.pop("Smith's rule")(Setting(TwoPoint())) == pytest.approx(5.0)
    assert run(compare_code)[0] == blocks(page, "text")[0]
    commands = {command.callback.__name__ for command in cli.app.registered_commands}
    assert set(re.findall(r"^gyrostat (\w+)", "".join(blocks(page, "sh")), re.MULTILINE)) <= commands
    assert all("project" in tomllib.loads(text) for text in blocks(page, "toml"))


@pytest.mark.parametrize(
    "page", ["README.md", *(str(p.relative_to(ROOT)) for p in sorted((ROOT / "docs").glob("*.md")))]
)
def test_links_lead_somewhere(page):
    folder = (ROOT / page).parent
    for target in re.findall(r"\]\(([^)#]+)\)", (ROOT / page).read_text()):
        assert target.startswith("http") or (folder / target).exists(), f"{page} links to {target}"
