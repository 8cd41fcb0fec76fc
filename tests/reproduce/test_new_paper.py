"""A paper of someone else: the skeleton that we write, its own test, its wheel, and everything that ours can do."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import gyrostat
from checks import call
from gyrostat.errors import GyrostatError
from gyrostat.experiments import registry
from gyrostat.lab.laboratories import all_presets
from gyrostat.parallel.threads import environment_variables
from gyrostat.reproduce.new_paper import write_paper_skeleton
from gyrostat.reproduce.store import ResultsStore

HOME = Path(gyrostat.__file__).parents[1]
PATIENCE = 300
PREDICTOR = """
from gyrostat.theory import RULES


def rule(setting):
    return setting.step_size - 0.04


RULES["Smith's rule"] = rule
"""
PREDICT = """
import json, sys
from pathlib import Path
from gyrostat.sweeps import read_spec
from gyrostat.sweeps.plots import load_predictions, predict
from gyrostat.lab.laboratories import all_presets
import smith2026

spec = {
    "num_steps": 50,
    "algorithm": {"kind": "HeteroSGD", "step_size": 0.05},
    "environments": {"kind": "RandomEnvironments", "dimension": 5, "rank": 2, "law": {"kind": "TwoPoint", "spread": 6.0}},
    "measurements": {"kind": "Identity"},
    "axes": {"step_size": {"list": [0.03, 0.05]}},
    "success": {"spurious": {"below": 0.1}},
}
predict(read_spec(spec), Path(sys.argv[1]))
margins = {name: margin.values.tolist() for name, margin in load_predictions(Path(sys.argv[1])).items()}
print(json.dumps([margins, [preset.name for preset in all_presets()["environments"]]]))
"""


@pytest.fixture(scope="module", autouse=True)
def programs_are_compiled_once(tmp_path_factory):
    """The processes that this file starts keep their compiled programs for each other."""
    with environment_variables({"GYROSTAT_COMPILE_CACHE": str(tmp_path_factory.mktemp("compiled"))}):
        yield


@pytest.fixture(scope="module")
def skeleton(tmp_path_factory):
    """A skeleton as the command writes it."""
    folder = tmp_path_factory.mktemp("skeleton") / "smith2026"
    write_paper_skeleton("smith2026", folder)
    return folder


def python(*arguments, cwd, path=()):
    """Run Python in a folder with nothing on its path but ours and ``path``."""
    variables = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, (*path, HOME)))}
    done = subprocess.run(
        [sys.executable, *map(str, arguments)], cwd=cwd, env=variables, capture_output=True, text=True, timeout=PATIENCE
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def from_file(skeleton, tmp_path_factory):
    """The results of the skeleton's file, reproduced from another folder."""
    here = tmp_path_factory.mktemp("from_file")
    reference = f"{os.path.relpath(skeleton, here)}/smith2026.py"
    python("-m", "gyrostat", "reproduce", reference, "--size", "smoke", "--out", "out", cwd=here)
    return here / "out"


@pytest.fixture(scope="module")
def site(skeleton, tmp_path_factory):
    """A folder in which a third party's wheel, built without a network, is installed; it has a predictor, too."""
    base = tmp_path_factory.mktemp("wheel")
    source = base / "source"
    shutil.copytree(skeleton, source, ignore=shutil.ignore_patterns("__pycache__"))
    with (source / "smith2026.py").open("a") as module:
        module.write(PREDICTOR)
    offline = ("--no-deps", "--no-build-isolation", "--no-index", "--disable-pip-version-check", "-q")
    python("-m", "pip", "install", *offline, "--target", base / "site", source, cwd=base)
    return base / "site"


def test_it_passes_its_own_test(skeleton):
    assert "3 passed" in python("-m", "pytest", "-p", "no:cacheprovider", cwd=skeleton)


def test_it_is_reproduced_from_its_file(from_file):
    records = {record["id"]: record for record in ResultsStore(from_file).claims()}
    assert list(records) == ["smith2026/fig1/forgets-in-the-median", "smith2026/fig1/forgets-in-every-run"]
    assert [record["verdict"] for record in records.values()] == ["holds", "fails"]
    assert all((from_file / f"figures/smith2026/fig1.{kind}").stat().st_size > 1000 for kind in ("png", "svg"))
    page = (from_file / "pages/smith2026.html").read_text()
    assert "Authors: Title (venue and year)" in page and 'id="smith2026/fig1/forgets-in-every-run"' in page


def test_it_appears_among_claims_and_presets(skeleton, monkeypatch, capsys):
    monkeypatch.setattr(registry, "_given", {})
    monkeypatch.setattr(sys, "path", list(sys.path))
    status, said, _ = call(monkeypatch, capsys, "claims", "--paper", skeleton / "smith2026.py", "--json")
    assert status == 0 and [record["expected"] for record in json.loads(said)] == ["holds", "fails"]
    preset = all_presets()["environments"][-1]
    assert preset.name == "smith2026/fig1" and preset.values["spread"] == 5.0
    del sys.modules["smith2026"]


COMMANDS = """
import json, sys
from typer.testing import CliRunner
from gyrostat.cli import app

done = [CliRunner().invoke(app, words) for words in json.loads(sys.argv[1])]
print(json.dumps([[each.exit_code, each.stdout] for each in done]))
"""


def say_in_one_process(*commands, **where):
    """What commands print, one after the other in one process, since every process takes seconds to start."""
    done = json.loads(python("-c", COMMANDS, json.dumps(commands), **where).splitlines()[-1])
    assert [status for status, _ in done] == [0] * len(commands), done
    return [said for _, said in done]


def test_its_wheel_is_reproduced_by_name(site, from_file, tmp_path):
    """That another process keeps what is finished is tested with the file, below."""
    run = ("reproduce", "smith2026", "--size", "smoke", "--out", "out")
    first, second = say_in_one_process(run, run, cwd=tmp_path, path=[site])
    assert "2 claims, 0 with a verdict that was not expected" in first and "kept from before" not in first
    assert "kept from before" in second
    installed, file = ResultsStore(tmp_path / "out"), ResultsStore(from_file)
    assert installed.load("smith2026/fig1").equals(file.load("smith2026/fig1"))
    assert installed.run("smith2026/fig1")["versions"]["smith2026"] == "0.1.0"
    assert installed.run("smith2026/fig1")["reference"] == "smith2026/fig1"
    (tmp_path / "out/pages/smith2026.html").unlink()
    listed, report = ("claims", "out", "--paper", "smith2026", "--json"), ("report", "out")
    said, _ = say_in_one_process(listed, report, cwd=tmp_path, path=[site])
    assert len(json.loads(said)) == 2
    assert "Its paper is not known here" not in (tmp_path / "out/pages/smith2026.html").read_text()


def test_a_change_of_its_code_is_computed_again(skeleton, from_file, tmp_path):
    shutil.copytree(from_file, tmp_path / "out")
    copy = shutil.copy(skeleton / "smith2026.py", tmp_path)
    run = ("-m", "gyrostat", "reproduce", "smith2026.py", "--size", "smoke", "--out", "out")
    for text, kept in (("", True), ("# a remark\n", True), ("ANOTHER = 1\n", False)):
        with Path(copy).open("a") as module:
            module.write(text)
        said = python(*run, cwd=tmp_path)
        assert ("kept from before" in said) == kept and ("fig1 finished in" in said) != kept


def test_predictors_and_presets_of_the_wheel_are_drawn_like_ours(site, tmp_path):
    margins, presets = json.loads(python("-c", PREDICT, tmp_path, cwd=tmp_path, path=[site]))
    assert list(margins) == ["lyapunov", "exponent", "window", "Smith's rule"]
    assert margins["Smith's rule"] == pytest.approx([-0.01, 0.01])
    assert presets[0] == "xu2024/fig1" and presets[-1] == "smith2026/fig1"


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("Smith 2026", "lower-case letters, digits and '_', as in smith2026; got 'Smith 2026'"),
        ("class", "lower-case letters"),
        ("../up", "lower-case letters"),
        ("xu2024", "there is a paper 'xu2024' already"),
        ("json", "there is a Python module 'json' already"),
    ],
)
def test_names_that_cannot_work_are_refused(monkeypatch, capsys, tmp_path, name, words):
    monkeypatch.chdir(tmp_path)
    status, said, complaint = call(monkeypatch, capsys, "new", "paper", name)
    assert status == 2 and words in complaint and said == "" and not list(tmp_path.iterdir())


def test_nothing_is_overwritten(tmp_path):
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(GyrostatError, match=r"is not empty: choose another one with --out"):
        write_paper_skeleton("smith2026", tmp_path)
