"""The command line: exit statuses, one-sentence errors, quick help."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
import zarr

from checks import call
from gyrostat import __version__, cli
from gyrostat.errors import GyrostatError
from gyrostat.experiments import registry
from gyrostat.reproduce.store import ResultsStore

COMMANDS = (
    "reproduce",
    "report",
    "claims",
    "compare",
    "new",
    "lab",
    "check",
    "sweep",
    "plot",
    "fit",
    "predict",
    "compare-methods",
    "impute",
    "doctor",
)


@pytest.fixture
def folder(tmp_path):
    shared = {
        "statement": "s",
        "criterion": "c",
        "reason": "",
        "seeds": 1,
        "seconds": 0.1,
        "measured": {"x": 1.0},
    }
    for name, verdict in (("xu2024/fig1", "holds"), ("xu2024/fig2", "fails"), ("other/fig1", "undecided")):
        ResultsStore(tmp_path).put_claims(
            name, [{"id": f"{name}/a", **shared, "verdict": verdict, "expected": "holds"}]
        )
    return tmp_path


def test_version_and_help(monkeypatch, capsys):
    assert call(monkeypatch, capsys, "--version") == (0, f"gyrostat {__version__}\n", "")
    for command in ((), *((name,) for name in COMMANDS)):
        status, said, _ = call(monkeypatch, capsys, *command, "--help")
        assert status == 0 and "Usage: gyrostat" in said


def test_every_command_is_listed_and_has_a_file_of_its_own():
    assert [command.callback.__name__ for command in cli.app.registered_commands] == [
        name.replace("-", "_") for name in COMMANDS
    ]
    assert [command.callback.__module__ for command in cli.app.registered_commands] == [
        f"gyrostat.cli.{name.replace('-', '_')}" for name in COMMANDS
    ]


def test_help_is_quick():
    slow = ("numpy", "jax", "xarray", "matplotlib", "pandas", "sklearn")
    code = f"import sys, gyrostat.cli; print([name for name in {slow} if name in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("reproduce", "xu2042"), "gyrostat: unknown paper or figure 'xu2042': did you mean 'xu2024'"),
        (("reproduce", "--jobs", "-1"), "gyrostat: jobs must be a whole number of at least 1; got -1."),
        (("reproduce", "--jobs", "0"), "gyrostat: jobs must be a whole number of at least 1; got 0."),
        (("reproduce", "--seed", "-3"), "gyrostat: seed must be a whole number of at least 0; got -3."),
        (("reproduce", "--seed", "one"), "--seed"),
        (("reproduce", "--size", "huge"), "--size"),
        (("reproduce", "--colour"), "No such option"),
        (("reproduce", "./nowhere.py/fig1"), "there is no file"),
        (("reproduce", "no_such_module:PAPER"), "cannot be imported (ModuleNotFoundError"),
        (("new", "paper", "xu2024"), "there is a paper 'xu2024' already"),
        (("compare", "nowhere", "nowhere"), "'nowhere' holds no claims.json"),
        (("report", "--paper", "nowhere.py"), "there is no file"),
        (("claims", "--paper", "xu2042"), "gyrostat: unknown paper 'xu2042': did you mean 'xu2024'"),
        (("claims", "--surprises"), "need a results folder"),
        (("claims", "nowhere"), "'nowhere' holds no claims.json"),
        (("nonsense",), "No such command"),
        (("export", "results", "a.nc"), "gyrostat: gyrostat export is gone: gs.load_results(DIR)"),
        (("export", "results", "--crate", "a.zip"), "gyrostat: gyrostat export --crate is gone: pack the folder"),
        (("verify", "--help"), "gyrostat: gyrostat verify is gone: run the command that wrote the folder again"),
        (("bench",), "gyrostat: gyrostat bench is gone: run make bench"),
        (("compare", "a", "b", "--paper", "c.py"), "gyrostat: gyrostat compare --paper is gone: leave it out"),
        (("reproduce", "xu2024", "--seeds=1:20"), "gyrostat: gyrostat reproduce --seeds is gone: run gyrostat"),
        (("claims", "--coverage"), "gyrostat: gyrostat claims --coverage is gone: docs/coverage.md"),
        (("reproduce", "xu2024/diagonal"), "gyrostat: the paper or figure xu2024/diagonal is gone: use the setting of"),
    ],
)
def test_bad_usage_is_one_sentence_and_status_two(monkeypatch, capsys, tmp_path, arguments, words):
    monkeypatch.chdir(tmp_path)
    status, said, complaint = call(monkeypatch, capsys, *arguments)
    assert status == 2 and words in complaint and said == ""
    assert "Traceback" not in complaint and not list(tmp_path.iterdir())


def test_unwritable_folder(monkeypatch, capsys, tmp_path):
    (tmp_path / "file").touch()
    paper = next(iter(registry.PAPERS))
    status, _, complaint = call(monkeypatch, capsys, "reproduce", paper, "--size", "smoke", "--out", tmp_path / "file")
    assert status == 2 and complaint.count("\n") == 1 and "cannot write results to" in complaint


def test_claims_of_a_folder(monkeypatch, capsys, folder):
    def ids(*filters):
        status, said, _ = call(monkeypatch, capsys, "claims", folder, "--json", *filters)
        assert status == 0
        return [record["id"] for record in json.loads(said)]

    assert ids() == ["other/fig1/a", "xu2024/fig1/a", "xu2024/fig2/a"]
    assert ids("--paper", "xu2024") == ["xu2024/fig1/a", "xu2024/fig2/a"]
    assert ids("--verdict", "fails") == ["xu2024/fig2/a"]
    assert ids("--surprises") == ["other/fig1/a", "xu2024/fig2/a"]
    assert ids("--paper", "xu2024", "--verdict", "undecided") == []
    status, said, _ = call(monkeypatch, capsys, "claims", folder)
    assert status == 0 and "xu2024/fig2/a" in said and said.count("SURPRISE") == 2
    assert "No claims." in call(monkeypatch, capsys, "claims", folder, "--paper", "xu2024", "--verdict", "undecided")[1]


def test_declared_statements(monkeypatch, capsys):
    status, said, _ = call(monkeypatch, capsys, "claims", "--paper", "xu2024", "--json")
    records = json.loads(said)
    assert status == 0 and records and all(r["id"].startswith("xu2024/") and r["statement"] for r in records)
    status, said, _ = call(monkeypatch, capsys, "claims")
    assert status == 0 and "Statements" in said


def test_every_error_is_one_sentence(monkeypatch, capsys):
    def raises(error):
        def command(**_):
            raise error

        return command

    monkeypatch.setattr(cli, "app", raises(GyrostatError("rank must be 1.")))
    assert call(monkeypatch, capsys) == (2, "", "gyrostat: rank must be 1.\n")
    monkeypatch.setattr(cli, "app", raises(KeyboardInterrupt()))
    assert call(monkeypatch, capsys)[0] == 130
    full = OSError(28, "No space left on device", "results/claims.json")
    unreadable = UnicodeDecodeError("utf-8", b"\xff", 0, 1, "invalid start byte")
    for error, words in [
        (full, "'results/claims.json' cannot be used (No space left on device): the disk is full"),
        (unreadable, "UTF-8"),
        (MemoryError(), "memory"),
        (RecursionError("deep"), "nested too deeply"),
        (OverflowError("int too large"), "too large"),
        (zarr.errors.ContainsArrayError("a", "b"), "stored results cannot be read"),
        (ValueError("a\nfault"), "(ValueError: a fault): this is a fault of gyrostat"),
    ]:
        monkeypatch.setattr(cli, "app", raises(error))
        status, said, complaint = call(monkeypatch, capsys)
        assert (status, said) == (2, "") and words in complaint and complaint.count("\n") == 1
        assert complaint.startswith("gyrostat: ") and complaint.endswith(".\n")
    monkeypatch.setenv("GYROSTAT_TRACEBACK", "1")
    with pytest.raises(ValueError, match="fault"):
        cli.main()


def test_a_command_begins_before_numpy_has_read_the_number_of_threads():
    """Otherwise `reproduce` sets the threads of BLAS too late: it takes longer, and last bits depend on the machine."""
    code = (
        "import sys; from gyrostat.cli import refuse_what_went; "
        "refuse_what_went('reproduce', 'xu2024', '--size=smoke', '--seed', '1'); print('numpy' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
