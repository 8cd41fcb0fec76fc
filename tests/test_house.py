"""The house: rooms and nothing loose, one meaning per class name, tests beside the rooms they test."""

from __future__ import annotations

import ast
import importlib
import importlib.util
from collections import Counter
from pathlib import Path

import pytest

import gyrostat
from gyrostat.experiments import registry

HOME = Path(gyrostat.__file__).parent
TESTS = Path(__file__).parent
BENCHMARKS = TESTS.parent / "benchmarks"
MODULES = sorted([*HOME.rglob("*.py"), *BENCHMARKS.rglob("*.py")])
ROOMS = sorted(path.name for path in HOME.iterdir() if (path / "__init__.py").exists())


def test_few_modules_are_loose():
    loose = {"__init__.py", "__main__.py", "errors.py", "typing.py", "what_went.py"}
    assert {path.name for path in HOME.glob("*.py")} == loose


def test_class_names_are_distinct():
    """Those of experiments are told apart by their paper, as in xu2024/fig3."""
    # A file may define a class twice: once for checkers of types, and once to run.
    homes = {
        (path, node.name)
        for path in MODULES
        if not {"papers", "studies"} & {*path.relative_to(TESTS.parent).parts}
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.ClassDef)
    }
    assert [name for name, count in Counter(name for _, name in homes).items() if count > 1] == []


@pytest.mark.parametrize(
    "path", MODULES, ids=lambda path: str(path.relative_to(HOME.parent if HOME in path.parents else TESTS.parent))
)
def test_every_module_says_what_is_inside(path):
    text = ast.get_docstring(ast.parse(path.read_text()))
    assert text and text.splitlines()[0].endswith((".", ":", "?"))


def test_every_import_of_ours_exists():
    """Also those inside functions, which only a run of that function would find."""
    wrong = []
    for path in [*MODULES, *TESTS.rglob("*.py"), *(TESTS.parent / "tools").glob("*.py")]:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] in ("gyrostat", "benchmarks"):
                wrong += [f"{path.name}: {node.module}.{a.name}" for a in node.names if not exists(node.module, a.name)]
    assert wrong == []


def exists(module: str, name: str) -> bool:
    try:
        return hasattr(importlib.import_module(module), name) or bool(importlib.util.find_spec(f"{module}.{name}"))
    except ModuleNotFoundError:
        return False


def test_the_package_imports_no_benchmark():
    """They are not installed with it."""
    for path in HOME.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            names = [a.name for a in node.names] if isinstance(node, ast.Import) else [getattr(node, "module", None)]
            assert "benchmarks" not in {(name or "").split(".")[0] for name in names}, path


def test_tests_mirror_the_rooms():
    folders = {path.name for path in TESTS.iterdir() if path.is_dir() and any(path.glob("*.py"))}
    assert folders - {"tools", "fuzz"} == {*ROOMS, "benchmarks", "errors"} - {"studies"}  # tests/papers has their test


def test_every_slow_test_that_is_listed_exists():
    listed = [line for line in (TESTS / "slow_tests.txt").read_text().splitlines() if not line.startswith("#")]
    files = {path.relative_to(TESTS.parent).as_posix(): path for path in TESTS.rglob("test_*.py")}
    tests = {
        f"{file}::{node.name}"
        for file, path in files.items()
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.FunctionDef)
    }
    cases = {
        f"{file}[{experiment}]"
        for file in files
        if (paper := Path(file).stem.removeprefix("test_")) in registry.PAPERS
        for experiment in registry.experiments(paper)
    }
    assert [line for line in listed if line not in tests | cases] == [] and len(set(listed)) == len(listed)
