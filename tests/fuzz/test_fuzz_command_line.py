"""Commands with hostile options, files and names: a sentence and exit status 2, or success; never a traceback."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fuzz_tally import FULL, Tally, cases
from gyrostat import cli
from gyrostat.cli.explained_errors import explained
from gyrostat.errors import GyrostatError
from hostile import NAMES

TEXTS = [
    "",
    "-1",
    "0",
    "1e30",
    "1e300",
    "nan",
    "inf",
    "-inf",
    "1_0",
    "1000000000000",
    "9" * 400,
    "x",
    "a,a",
    ",",
    "..",
    "\x00",
    "\ud800",
    *NAMES,
]
CHECK = (
    "law",
    "mean",
    "spread",
    "values",
    "weights",
    "dimension",
    "rank",
    "spurious-rank",
    "overlap",
    "step-size",
    "init-scale",
    "num-steps",
    "num-samples",
)
SPEC = """
num_steps = 3
seeds = 2
algorithm = {kind = "HeteroSGD", step_size = 0.05}
environments = {kind = "RandomEnvironments", dimension = 4, law = {kind = "TwoPoint"}}
measurements = {kind = "FreshGaussian", num_samples = 100}
axes.spread = [1.0, 2.0]
success.spurious = {below = 0.1}
"""


def asked(*arguments: str) -> None:
    """Run a command in this process; a refusal becomes one of our errors, and what should not happen a RuntimeError."""
    try:
        cli.app([a.replace("\x00", "\\0") for a in arguments], standalone_mode=False, prog_name="gyrostat")
    except (cli.typer.Exit, SystemExit):
        return
    except GyrostatError:
        raise
    except Exception as error:
        if type(error).__module__.partition(".")[0] in ("click", "typer"):  # bad usage, in click's words
            raise GyrostatError("Bad usage.") from error
        sentence = explained(error)
        if "fault of gyrostat" in sentence:
            raise RuntimeError(f"{type(error).__name__}: {error}") from error
        raise GyrostatError(sentence) from error


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "spec.toml").write_text(SPEC)
    (tmp_path / "latin.toml").write_bytes(b'title = "caf\xe9"')
    (tmp_path / "list.json").write_text("[]")
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "claims.json").write_text("[]")
    (tmp_path / "folder" / "sweep.json").write_text("[]")
    return tmp_path


def test_options_of_check(place: Path, tally: Tally):
    @cases(small=10, full=250)
    @given(st.sampled_from(CHECK), st.sampled_from(TEXTS))
    def spoil(option: str, text: str) -> None:
        arguments = ["check", "--num-steps", "5", f"--{option}", text]
        tally.attempt(
            " ".join(arguments[3:])[:90],
            lambda: asked(*arguments),
            is_bad=text in ("nan", "x", "") and option not in ("values", "weights"),
        )

    spoil()
    tally.check()


PATHS = ["nowhere", "folder", "list.json", "latin.toml", "spec.toml", ".", "", "x" * 300, *NAMES]
COMMANDS = (
    ("sweep", "?", "--out", "o", "--no-code", "--seeds", "0"),
    ("sweep", "latin.toml", "--out", "?"),
    ("sweep", "spec.toml", "--out", "o", "--scheduler", "?"),
    ("sweep", "spec.toml", "--seeds", "0", "--set", "?"),
    ("plot", "?"),
    ("report", "?"),
    ("report", "folder", "--paper", "?"),
    ("claims", "?"),
    ("claims", "folder", "--paper", "?"),
    ("compare", "?", "folder"),
    ("reproduce", "?", "--size", "smoke", "--jobs", "0"),
    ("new", "paper", "?", "--out", "new"),
    ("predict", "?", "list.json"),
    ("predict", "list.json", "?"),
    ("impute", "?", "--out", "o.csv"),
    ("fit", "?", "--target", "y", "--environment", "e"),
    ("compare-methods", "?", "--target", "y", "--environment", "e"),
    ("lab", "--state", "?", "--host", ""),
    ("lab", "--host", "?", "--state", "lab=nowhere"),
    ("lab", "--csv", "?", "--state", "x=1"),
)


def test_files_folders_and_names_as_arguments(place: Path, tally: Tally):
    @cases(small=25, full=500)
    @given(st.sampled_from(COMMANDS), st.sampled_from(PATHS))
    def spoil(command: tuple[str, ...], text: str) -> None:
        arguments = [text if part == "?" else part for part in command]
        is_bad = command[0] not in ("new", "claims", "report", "plot", "compare") and "reproduce" not in command
        tally.attempt(f"{' '.join(command)} with {text[:40]!r}", lambda: asked(*arguments), is_bad=is_bad)
        shutil.rmtree(place / "new", ignore_errors=True)

    spoil()
    tally.check()


@pytest.mark.parametrize(
    "arguments",
    [("sweep", "latin.toml"), ("claims", "[/red]"), ("sweep", "\x1b[31m.toml"), ("predict", "list.json", "x")],
)
def test_a_process_ends_with_status_two_and_one_line(place: Path, arguments: tuple[str, ...]):
    if not FULL and arguments[0] != "sweep":
        pytest.skip("make fuzz runs all of them")
    start = [sys.executable, "-c", "from gyrostat.cli import main; main()", *arguments]
    found = subprocess.run(start, capture_output=True, text=True, timeout=120, cwd=place)
    assert found.returncode == 2 and found.stderr.count("\n") == 1 and found.stderr.startswith("gyrostat: ")
    assert "Traceback" not in found.stderr and "\x1b" not in found.stderr
    assert json.dumps(found.stderr)
