"""The digest of code covers what the experiments of the papers run through, and changes when one of these files changes."""

from __future__ import annotations

import ast
import shutil
from pathlib import Path

import grimp
import pytest

import gyrostat
from gyrostat.reproduce import code_digest

HOME = Path(gyrostat.__file__).parent
NO_NUMBERS = {"figures", "typing", ""}
"""Rooms that papers import and that change no number: drawing, types, and the public names of the package itself."""


def public_homes() -> dict[str, str]:
    """The module of every public name, from the stub of the package: ``gs.run`` is in ``gyrostat.engine.run``."""
    stub = ast.parse((HOME / "__init__.pyi").read_text())
    return {
        alias.asname or alias.name: f"gyrostat.{node.module}" if node.module else f"gyrostat.{alias.name}"
        for node in stub.body
        if isinstance(node, ast.ImportFrom) and node.level == 1
        for alias in node.names
    }


def lazily_used(path: Path) -> set[str]:
    """The modules behind ``gs.name`` in a file that has ``import gyrostat as gs``."""
    names = {
        node.attr
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "gs"
    }
    return {public_homes()[name] for name in names}


def rooms_of_papers() -> set[str]:
    """The rooms with a module that the papers import, directly or through others."""
    graph = grimp.build_graph("gyrostat")
    used = {"gyrostat.papers", *graph.find_descendants("gyrostat.papers")}
    for path in (HOME / "papers").rglob("*.py"):
        used |= lazily_used(path)
    for module in list(used):
        used |= graph.find_upstream_modules(module)
    return {module.removeprefix("gyrostat").lstrip(".").split(".")[0] for module in used}


def test_the_digest_covers_exactly_what_papers_run_through():
    covered = {room.removesuffix(".py") for room in code_digest.ROOMS}
    assert rooms_of_papers() - NO_NUMBERS == covered
    assert all((HOME / room).exists() for room in code_digest.ROOMS)


@pytest.mark.parametrize(
    "file", ["errors/value_checks.py", "engine/simulate.py", "papers/xu2024/settings.py", "figures/palette.py"]
)
def test_the_digest_changes_with_the_code_that_computes(tmp_path, monkeypatch, file):
    home = tmp_path / "gyrostat"
    shutil.copytree(HOME, home, ignore=shutil.ignore_patterns("__pycache__"))
    monkeypatch.setattr(gyrostat, "__file__", str(home / "__init__.py"))
    fresh = code_digest.code_digest.__wrapped__
    before = fresh()
    with (home / file).open("a") as source:
        source.write("# another line\n")
    assert (fresh() == before) == file.startswith("figures")


def test_the_digest_of_sweeps_also_covers_how_cells_are_made(monkeypatch):
    from gyrostat.sweeps import plan

    assert plan.sweep_digest() != code_digest.code_digest()
    assert all((HOME / file).is_file() for file in plan.CODE)
