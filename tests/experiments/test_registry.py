"""Papers of others: files, modules, entry points, names that clash, and the files that a digest covers."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

import pytest

from gyrostat.errors import GyrostatError
from gyrostat.experiments import LabPreset, Paper, registry
from gyrostat.experiments.paper_files import code_files
from gyrostat.stores.fingerprint import fingerprint

SOURCE = """
from gyrostat.experiments import Paper
{imports}
PAPER = Paper(name={name!r}, title="A title", experiments=[])
OTHER = Paper(name="other2026", title="Another title", experiments=[])
NUMBER = 3
"""


@pytest.fixture(autouse=True)
def clean(monkeypatch):
    """Forget what a test imports."""
    monkeypatch.setattr(registry, "_given", {})
    monkeypatch.setattr(sys, "path", list(sys.path))
    before = set(sys.modules)
    yield
    for name in set(sys.modules) - before:
        del sys.modules[name]


def write(path: Path, name: str = "mine2026", imports: str = "") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(SOURCE.format(name=name, imports=imports))
    return path


def install(folder: Path, points: dict[str, str], name: str = "their-papers") -> None:
    """What pip leaves behind: the metadata of a distribution with entry points."""
    info = folder / f"{name.replace('-', '_')}-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    lines = [f"{point} = {value}" for point, value in points.items()]
    (info / "entry_points.txt").write_text("[gyrostat.papers]\n" + "\n".join(lines) + "\n")
    sys.path.insert(0, str(folder))
    importlib.invalidate_caches()


def test_references_to_files_and_modules(tmp_path, monkeypatch):
    path = write(tmp_path / "one" / "mine.py")
    assert registry.resolve(f"{path}/fig1") == ("mine2026", "fig1")
    assert registry.resolve(f"{path}:OTHER") == ("other2026", "")
    assert registry.resolve("mine:PAPER/fig2") == ("mine2026", "fig2")  # the same object: not a second paper
    monkeypatch.chdir(path.parent)
    assert registry.resolve("mine.py") == ("mine2026", "") and registry.resolve("./mine.py")[0] == "mine2026"
    assert registry.reference_to("mine2026") == "./mine.py" and registry.reference_to("xu2024") == "xu2024"
    assert registry.paper_names()[-2:] == ["mine2026", "other2026"]
    assert registry.find_paper("mine2026").title == "A title"


def test_a_file_of_a_package_is_imported_as_such(tmp_path):
    write(tmp_path / "study" / "__init__.py", imports="from .numbers_of_study import SEVEN")
    (tmp_path / "study" / "numbers_of_study.py").write_text("SEVEN = 7\n")
    assert registry.resolve(str(tmp_path / "study" / "__init__.py")) == ("mine2026", "")
    assert sys.modules["study"].SEVEN == 7


@pytest.mark.parametrize(
    ("reference", "words"),
    [
        ("nowhere.py", "there is no file .*nowhere.py"),
        ("./folder", r"'./folder' is a folder: give the Python file of the paper, as in folder/folder.py"),
        ("no_such_module:PAPER", r"no_such_module cannot be imported \(ModuleNotFoundError"),
        ("mine.py:MISSING", "has no MISSING: write MISSING = Paper"),
        ("mine.py:NUMBER", "NUMBER of .*mine.py must be a Paper; got 3"),
        ("broken.py", r"broken.py cannot be imported \(ZeroDivisionError: division by zero\)"),
        ("json.py", r"json.py is hidden by another module 'json'.*rename json.py"),
        ("taken.py", r"two papers are named 'xu2024' \(gyrostat.papers.xu2024:PAPER and .*taken.py:PAPER\): rename"),
    ],
)
def test_what_is_no_paper_is_refused_in_one_sentence(tmp_path, monkeypatch, reference, words):
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "mine.py")
    write(tmp_path / "json.py")
    (tmp_path / "folder").mkdir()
    write(tmp_path / "taken.py", name="xu2024")
    (tmp_path / "broken.py").write_text("1 / 0\n")
    with pytest.raises(GyrostatError, match=words):
        registry.resolve(reference)


def test_two_files_with_one_name_are_refused(tmp_path):
    registry.resolve(str(write(tmp_path / "a" / "first.py")))
    with pytest.raises(GyrostatError, match="two papers are named 'mine2026'"):
        registry.resolve(str(write(tmp_path / "b" / "second.py")))


def test_modules_of_one_name_beside_two_papers_are_not_mixed_up(tmp_path):
    for folder, number in (("a", 1), ("b", 2)):
        write(tmp_path / folder / f"paper_{folder}.py", name=folder, imports="from shared_settings import N")
        (tmp_path / folder / "shared_settings.py").write_text(f"N = {number}\n")
    registry.resolve(str(tmp_path / "a" / "paper_a.py"))
    with pytest.raises(GyrostatError, match=r"shared_settings.py is hidden by another module"):
        registry.resolve(str(tmp_path / "b" / "paper_b.py"))


def test_installed_papers_are_found(tmp_path):
    write(tmp_path / "their_module.py", name="theirs2026")
    install(tmp_path, {"theirs2026": "their_module:PAPER", "wrong2026": "their_module:PAPER"})
    assert registry.paper_names()[:5] == ["xu2024", "xiong2024", "wang2023", "studies", "theirs2026"]
    assert registry.find_paper("theirs2026").name == "theirs2026"
    assert registry.add_paper(str(tmp_path / "their_module.py")) == "theirs2026"  # its source, given as a file
    with pytest.raises(
        GyrostatError, match=r"'wrong2026' of gyrostat.papers .* named 'theirs2026': give both one name"
    ):
        registry.find_paper("wrong2026")


def test_an_installed_paper_cannot_take_the_name_of_ours(tmp_path):
    write(tmp_path / "thief.py", name="xu2024")
    install(tmp_path, {"xu2024": "thief:PAPER"})
    with pytest.raises(GyrostatError, match=r"two papers are named 'xu2024' .*thief:PAPER"):
        registry.experiments("xu2024")
    assert registry.experiments("wang2023")


def test_a_broken_plug_in_breaks_nothing_but_itself(tmp_path):
    from gyrostat.reproduce.claims import declared_claims

    (tmp_path / "broken_plug_in.py").write_text("import no_such_library\n")
    install(tmp_path, {"broken2026": "broken_plug_in:PAPER"})
    with pytest.warns(UserWarning, match="broken_plug_in cannot be imported"):
        assert any(record["id"].startswith("xu2024/") for record in declared_claims())
    with pytest.raises(GyrostatError, match="no_such_library"):
        declared_claims("broken2026")


@pytest.mark.parametrize("name", ["", "a/b", "../up", "white space", ".hidden"])
def test_names_that_are_no_folders_are_refused(name):
    with pytest.raises(GyrostatError, match="the name of a paper must be letters"):
        Paper(name=name, title="t", experiments=[])


def test_links_are_web_addresses():
    with pytest.raises(GyrostatError, match="must be a web address; got 'javascript:alert"):
        Paper(name="a", title="t", experiments=[], link="javascript:alert(1)")
    assert all(
        registry.find_paper(name).link.startswith("https://arxiv.org/abs/") for name in list(registry.PAPERS)[:3]
    )


def digest(path: Path) -> dict[str, str]:
    return fingerprint({}, files=code_files(f"{path}:PAPER"))


def test_the_digest_covers_a_file_and_what_it_imports_beside_it(tmp_path):
    path = write(tmp_path / "alone.py", imports="def later():\n    import helper_of_alone, numpy\n")
    helper, other = tmp_path / "helper_of_alone.py", tmp_path / "unrelated.py"
    helper.write_text("import deeper_of_alone\n")
    (tmp_path / "deeper_of_alone").mkdir()
    deeper = tmp_path / "deeper_of_alone" / "__init__.py"
    deeper.write_text("")
    other.write_text("")
    first = digest(path)
    for file, counts in ((other, False), (helper, True), (deeper, True), (path, True)):
        file.write_text(file.read_text() + "ANOTHER = 1\n")
        assert (digest(path) != first) == counts
        first = digest(path)


def test_the_digest_covers_a_package_with_its_data(tmp_path):
    path = write(tmp_path / "whole" / "__init__.py")
    (tmp_path / "whole" / "table.csv").write_text("1")
    (tmp_path / "whole" / "__pycache__").mkdir()
    assert [f.name for f in code_files(f"{path}:PAPER")] == ["__init__.py", "table.csv"]
    first = digest(path)
    (tmp_path / "whole" / "table.csv").write_text("2")
    assert digest(path) != first


def test_the_digest_does_not_depend_on_the_folder(tmp_path):
    one, two = (write(tmp_path / folder / "moved" / "__init__.py") for folder in ("a", "b"))
    first = digest(one)
    del sys.modules["moved"]
    sys.path.remove(str(tmp_path / "a"))
    assert digest(two) == first


def test_the_digest_of_an_installed_module_leaves_other_distributions_out(tmp_path):
    write(tmp_path / "single.py", imports="import partner_of_single, stranger_of_single")
    for name in ("partner_of_single", "stranger_of_single"):
        (tmp_path / f"{name}.py").write_text("")
    install(tmp_path, {"mine2026": "single:PAPER"})
    record = tmp_path / "their_papers-1.0.dist-info" / "RECORD"
    record.write_text("single.py,sha256=x,1\npartner_of_single.py,,\ntheir_papers-1.0.dist-info/METADATA,,\n")
    assert [f.name for f in code_files("single:PAPER")] == ["partner_of_single.py", "single.py"]


def test_presets_are_plain_declarations():
    preset = LabPreset(lab="factors", name="fig1", title="t", values={"rank": 3})
    assert Paper(name="a", title="t", experiments=[], presets=[preset]).presets[0].values == {"rank": 3}
