"""A digest of the code that computes results, so that results are computed again when that code changes."""

from __future__ import annotations

import ast
import functools
import hashlib
import sys
from collections.abc import Iterable
from pathlib import Path

import gyrostat
from gyrostat.experiments import registry

ROOMS = (
    "errors",
    "jax_tools",
    "models",
    "environments",
    "measurements",
    "algorithms",
    "diagnostics",
    "engine",
    "theory",
    "experiments",
    "papers",
)
"""The code that can change a number of an experiment.

Papers also import ``figures`` and ``typing``. Figures are drawn again from the stored data, and types change no number.
"""


@functools.cache
def code_digest(*more: str) -> str:
    """The first digits of the SHA-256 of all files in ``ROOMS``, and of ``more`` files and folders of the package."""
    return _digest(_files_of((*ROOMS, *more)))


@functools.cache
def experiment_digest(name: str) -> str:
    """The same for one experiment of a built-in paper, of whose files only those count that this experiment can run through.

    All rooms but ``papers`` count, the files in which the experiment ``name`` (``paper/experiment``) is declared, and the
    files of ``papers`` that these import. So a change to one experiment leaves the results of the others as they are.

    >>> experiment_digest("xu2024/fig3") == experiment_digest("xiong2024/fig1.1")
    False
    """
    declared = _declared_in(name)
    return _digest(_imported_papers(declared), _core_digest()) if declared else code_digest()


@functools.cache
def _core_digest() -> str:
    return _digest(_files_of(room for room in ROOMS if room != "papers"))


def _files_of(rooms: Iterable[str]) -> set[Path]:
    home = Path(gyrostat.__file__).parent
    return {path for room in rooms for path in (home / room, *(home / room).rglob("*.py")) if path.suffix == ".py"}


def _digest(files: Iterable[Path], start: str = "") -> str:
    home = Path(gyrostat.__file__).parent
    digest = hashlib.sha256(start.encode())
    for path in sorted(files):
        digest.update(path.relative_to(home).as_posix().encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:12]


def _declared_in(name: str) -> set[Path]:
    """The files of a built-in paper with a variable that is this experiment; none if it has no variable of its own."""
    paper, experiment = name.split("/")
    wanted = registry.experiments(paper)[experiment]
    modules = {n: m for n, m in sys.modules.items() if n.startswith(f"gyrostat.papers.{paper}.")}
    return {_file_of(n) for n, module in modules.items() if any(value is wanted for value in vars(module).values())}


def _imported_papers(files: set[Path]) -> set[Path]:
    """Files of ``papers`` and the files of ``papers`` that they import, directly or through others."""
    found: set[Path] = set()
    waiting = list(files)
    while waiting:
        path = waiting.pop()
        if path not in found:
            found.add(path)
            waiting += _papers_in(path)
    return found


def _papers_in(path: Path) -> set[Path]:
    """The files of ``papers`` that a file names in its imports, also in those inside functions."""
    nodes = list(ast.walk(ast.parse(path.read_bytes())))
    froms = [node for node in nodes if isinstance(node, ast.ImportFrom)]
    if any(node.level for node in froms):  # relative imports are not followed, so all files count
        return _files_of(["papers"])
    names = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
    names |= {f"{node.module}.{alias.name}" for node in froms for alias in node.names}
    return {_file_of(name) for name in names if name.startswith("gyrostat.papers.")}


def _file_of(name: str) -> Path:
    """The file of a module, or of the module or package that a name is imported from."""
    path = Path(gyrostat.__file__).parent.joinpath(*name.split(".")[1:])
    places = (file for place in (path, path.parent) for file in (place.with_suffix(".py"), place / "__init__.py"))
    return next(file for file in places if file.exists())
