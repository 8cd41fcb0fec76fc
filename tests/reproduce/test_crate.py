"""Crates of results folders and sweeps against their profiles, and the references in CITATION.cff."""

from __future__ import annotations

import io
import json
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from rich.console import Console

from checks import call
from crate_checks import OpenedCrate
from gyrostat.errors import GyrostatError
from gyrostat.experiments import registry
from gyrostat.parallel.whole_files import write_whole
from gyrostat.reproduce.runner import reproduce
from gyrostat.reproduce.store import ResultsStore

pytest.importorskip("rocrate", reason="needs the extra crate")
from gyrostat.reproduce.crate import export_results

ROOT = Path(__file__).parents[2]
FAKE = ROOT / "tests/tools/fake2024.py"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A real figure and a paper in a file, with two seeds, and one failure."""
    out = tmp_path_factory.mktemp("crate") / "results of two"
    quiet = Console(file=io.StringIO())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(registry, "_given", {})
        patch.setattr(sys, "path", list(sys.path))
        reproduce(["xu2024/prop1", f"{FAKE}/fig1"], size="smoke", out=out, jobs=1, console=quiet)
        reproduce([f"{FAKE}/figX"], size="smoke", seed=3, out=out, jobs=1, console=quiet)
    write_whole(ResultsStore(out).error("fake2024/fig2"), "Traceback\nRuntimeError: too late")
    return out


@pytest.fixture(scope="module")
def crate(folder, tmp_path_factory):
    path = tmp_path_factory.mktemp("crates") / "deep" / "crate.zip"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(registry, "_given", {})
        patch.setattr(sys, "path", list(sys.path))
        return export_results(
            folder, path, papers=[str(FAKE)], author="A. Person", licence="https://spdx.org/licenses/MIT"
        )


def test_it_meets_the_profiles(crate):
    assert OpenedCrate(crate).problems() == []
    assert [path.name for path in crate.parent.iterdir()] == ["crate.zip"]


VALIDATOR = ROOT / ".venv/validator/bin/python"
NOT_MET = {
    "The Application SHOULD have a url",  # packages are named by package URLs
    "The SoftwareApplication id SHOULD be an absolute URI",  # it is one, but the validator wants http
    "The `publisher` property of a `Root Data Entity` SHOULD be an `Organization`",  # not ours to say
    "The author SHOULD have an organizational affiliation.",
    "The author SHOULD have a Contextual Entity which specifies the organizational `affiliation`.",
}


def rewritten(crate, path, changed):
    """A copy of a crate with other metadata."""
    with zipfile.ZipFile(crate) as old, zipfile.ZipFile(path, "w") as new:
        for name in old.namelist():
            content = old.read(name)
            new.writestr(name, changed(content) if name == "ro-crate-metadata.json" else content)
    return path


@pytest.mark.skipif(
    not (VALIDATOR.parent / "rocrate-validator").exists(), reason="make test installs rocrate-validator"
)
def test_the_official_validator_accepts_it(crate, sweep_crate, tmp_path):
    """Both kinds meet every requirement of Workflow Run Crate; a crate whose run is not one of the workflow does not."""
    wrong = rewritten(crate, tmp_path / "wrong.zip", lambda text: text.replace(b'"ComputationalWorkflow"', b'"Thing"'))
    context = Path(__import__("rocrate").__file__).parent / "data/ro-crate.jsonld"
    command = [VALIDATOR, ROOT / "tests/tools/official_validator.py", context, crate, sweep_crate, wrong]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    ours, of_sweep, of_wrong = (
        {(severity, text) for severity, _, text in found} for found in json.loads(done.stdout).values()
    )
    assert {text for _, text in ours} <= NOT_MET
    assert "REQUIRED" not in {severity for severity, _ in of_sweep}
    assert ("REQUIRED", "The Main Workflow must have types File, SoftwareSourceCode, ComputationalWorkflow") in of_wrong


def test_rocrate_reads_it(crate):
    from rocrate.rocrate import ROCrate

    read = ROCrate(crate)
    assert read.mainEntity.id == "reproduce.sh" and read.root_dataset["license"].id == "https://spdx.org/licenses/MIT"
    assert {action["agent"]["name"] for action in read.get_by_type("CreateAction")} == {"A. Person"}


def test_it_says_what_was_run_and_what_came_out(crate, folder):
    found = OpenedCrate(crate)
    actions = {action["@id"]: action for action in found.of_type("CreateAction")}
    assert set(actions) == {
        "#run-smoke-0",
        "#run-smoke-3",
        "#experiment-xu2024/prop1",
        "#experiment-fake2024/fig1",
        "#experiment-fake2024/figX",
        "#failed-fake2024-fig2",
    }
    one = actions["#experiment-fake2024/fig1"]
    assert {entity["name"]: entity["value"] for entity in found.linked(one, "object")}["steps"] == 5
    assert [e["@id"] for e in found.linked(one, "result")] == [
        "results.zarr/fake2024/fig1/",
        "figures/fake2024/fig1.png",
        "figures/fake2024/fig1.svg",
    ]
    assert actions["#failed-fake2024-fig2"]["error"] == "RuntimeError: too late"
    script = found.archive.read("reproduce.sh").decode()
    assert "gyrostat reproduce papers/fake2024/fake2024.py/figX --size smoke --seed 3 --out results" in script
    assert found.archive.read("papers/fake2024/fake2024.py") == FAKE.read_bytes()
    assert f"numpy=={__import__('numpy').__version__}" in found.archive.read("requirements.txt").decode()
    assert [entity["@id"] for entity in found.linked(found.root, "citation")] == ["https://arxiv.org/abs/2403.01420"]
    assert json.loads(found.archive.read("environment.json"))["xu2024/prop1"]["settings"]
    assert str(ROOT).encode() not in found.archive.read("ro-crate-metadata.json")


def test_its_data_are_those_of_the_folder(crate, folder, tmp_path):
    with zipfile.ZipFile(crate) as archive:
        archive.extractall(tmp_path)
    ours, theirs = ResultsStore(folder), ResultsStore(tmp_path)
    assert theirs.finished() == ours.finished() and theirs.claims() == ours.claims()
    assert all(theirs.load(name).identical(ours.load(name)) for name in ours.finished())


@pytest.mark.parametrize("damage", ["claims.json", "results.zarr/zarr.json", "action", "profile"])
def test_a_damaged_crate_is_found(crate, tmp_path, damage):
    """The checks themselves can fail."""
    with zipfile.ZipFile(crate) as old, zipfile.ZipFile(tmp_path / "crate.zip", "w") as new:
        for name in old.namelist():
            content = old.read(name)
            if name == "ro-crate-metadata.json" and damage == "action":
                content = content.replace(b'"endTime"', b'"endtime"', 1).replace(b'"endtime"', b'"endTime"', 1)
                graph = json.loads(content)
                graph["@graph"] = [e for e in graph["@graph"] if not e["@id"].startswith("#run-")]
                content = json.dumps(graph).encode()
            if name == "ro-crate-metadata.json" and damage == "profile":
                content = content.replace(b"wfrun/workflow/0.5", b"wfrun/workflow/9.9")
            new.writestr(name, content + b" " if name == damage else content)
    try:
        assert OpenedCrate(tmp_path / "crate.zip").problems()
    except KeyError:  # a link that leads nowhere
        assert damage == "action"


@pytest.fixture(scope="module")
def sweep_folder(tmp_path_factory):
    from gyrostat.sweeps import run_sweep

    spec = {
        "title": "Two cells",
        "num_steps": 5,
        "seeds": 2,
        "algorithm": {"kind": "HeteroSGD", "step_size": 0.05},
        "environments": {"kind": "RandomEnvironments", "dimension": 3, "law": {"kind": "TwoPoint", "spread": 6.0}},
        "measurements": {"kind": "Identity"},
        "axes": {"step_size": {"list": [0.03, 0.05]}},
        "success": {"spurious": {"below": 0.1}},
    }
    out = tmp_path_factory.mktemp("sweeps") / "sweep"
    run_sweep(spec, out=out, jobs=1, console=Console(file=io.StringIO()))
    return out


@pytest.fixture(scope="module")
def sweep_crate(sweep_folder):
    from gyrostat.sweeps.crate import export_sweep

    return export_sweep(sweep_folder, sweep_folder.parent / "crate.zip")


def test_the_command_writes_both_kinds(folder, sweep_folder, tmp_path, monkeypatch, capsys):
    status, said, _ = call(monkeypatch, capsys, "export", folder, "--crate", tmp_path / "results.zip")
    assert status == 0 and "Written to" in said and OpenedCrate(tmp_path / "results.zip").problems() == []
    arguments = (sweep_folder, tmp_path / "cells.csv", "--crate", tmp_path / "sweep.zip")
    status, _, complaint = call(monkeypatch, capsys, "export", *arguments)
    assert status == 0 and (tmp_path / "cells.csv").is_file(), complaint
    found = OpenedCrate(tmp_path / "sweep.zip")
    assert found.problems() == [] and found.root["name"] == "Two cells"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("export", "results"), "there is nothing to write: give --crate FILE.zip"),
        (("export", "results", "all.nc"), "is a results folder: write it with --crate FILE.zip"),
        (("export", "results", "--crate", "c.tar"), "a name that ends in .zip; got 'c.tar'"),
        (("export", "empty", "--crate", "c.zip"), "'empty' holds no finished experiment"),
        (("export", "nowhere", "--crate", "c.zip"), "'nowhere' holds no sweep"),
    ],
)
def test_bad_usage_is_one_sentence(folder, tmp_path, monkeypatch, capsys, arguments, words):
    shutil.copytree(folder, tmp_path / "results")
    (tmp_path / "empty" / "results.zarr").mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    status, said, complaint = call(monkeypatch, capsys, *arguments)
    assert status == 2 and words in complaint and said == "" and complaint.count("\n") == 1


def test_without_rocrate_it_says_what_to_install(folder, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "rocrate.rocrate", None)
    with pytest.raises(GyrostatError, match=r"install it with pip install 'gyrostat\[crate\]'"):
        export_results(folder, tmp_path / "c.zip")


def test_the_citation_file_has_the_references_of_the_papers():
    yaml = pytest.importorskip("yaml")
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert {"cff-version", "message", "title", "authors"} <= set(citation) and citation["cff-version"] == "1.2.0"
    references = {reference["url"]: reference for reference in citation["references"]}
    papers = [registry.find_paper(name) for name in registry.PAPERS]
    assert set(references) == {paper.link for paper in papers}
    for paper in papers:
        found = references[paper.link]
        families = [author["family-names"] for author in found["authors"]]
        assert paper.title.startswith(", ".join(families) + ": ") and str(found["year"]) in paper.title
        assert found["identifiers"][0]["value"].endswith(paper.link.rsplit("/", 1)[1])
        assert all(author["given-names"] for author in found["authors"])
