"""Importing a paper from a module or a file, and the files of which its code consists.

An address is ``module:NAME`` or ``path/to/file.py:NAME``. It is all that another process needs to find the paper.
"""

from __future__ import annotations

import ast
import importlib
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

from gyrostat.errors import GyrostatError

DEFAULT_NAME = "PAPER"


def import_object(address: str) -> Any:
    """The object at an address.

    >>> import_object("gyrostat.papers.xu2024:PAPER").name
    'xu2024'
    """
    module, name = imported_module(address), split_address(address)[1]
    try:
        return getattr(module, name)
    except AttributeError:
        where = split_address(address)[0]
        raise GyrostatError(
            f"{where} has no {name}: write {name} = Paper(...) in it, or name it after a colon."
        ) from None


def split_address(address: str) -> tuple[str, str]:
    """The module or file of an address, and the name in it.

    >>> split_address("mypackage.paper:STUDY"), split_address("papers/mine.py")
    (('mypackage.paper', 'STUDY'), ('papers/mine.py', 'PAPER'))
    """
    where, colon, name = address.rpartition(":")
    return (where, name) if colon and name.isidentifier() else (address, DEFAULT_NAME)


def is_file_address(address: str) -> bool:
    """Whether the address is that of a file."""
    return split_address(address)[0].endswith(".py")


def imported_module(address: str) -> ModuleType:
    """The module of an address, imported; what its code raises is reported in one sentence."""
    where, _ = split_address(address)
    try:
        return _import_file(Path(where)) if is_file_address(address) else importlib.import_module(where)
    except GyrostatError:
        raise
    except Exception as error:  # the code of others can raise anything
        what = " ".join(f"{type(error).__name__}: {error}".split())
        raise GyrostatError(f"paper {where} cannot be imported ({what}): correct it, or uninstall it.") from error


def _import_file(path: Path) -> ModuleType:
    """Import a file as Python would import it from its folder, or as part of the package that it belongs to."""
    if not path.is_file():
        raise GyrostatError(f"there is no file {str(path)!r}: give the path of a Python file that declares a Paper.")
    path = path.resolve()
    root, dotted = _module_name(path)
    if str(root) not in sys.path:
        sys.path.insert(0, str(root))
    importlib.invalidate_caches()
    module = importlib.import_module(dotted)
    for file in {path, *_sibling_files(path)}:
        _check_not_shadowed(file)
    return module


def _module_name(path: Path) -> tuple[Path, str]:
    """The folder to import a file from, and the name of its module there."""
    root, parts = path.parent, [] if path.stem == "__init__" else [path.stem]
    while (root / "__init__.py").exists():
        parts.insert(0, root.name)
        root = root.parent
    return root, ".".join(parts)


def _check_not_shadowed(path: Path) -> None:
    """Refuse a file whose name another module has taken: Python would silently use that one instead."""
    dotted = _module_name(path)[1]
    module = sys.modules.get(dotted)
    other = getattr(module, "__file__", None)
    if module is not None and (other is None or Path(other).resolve() != path):
        taken = other or "Python itself"
        raise GyrostatError(f"{path.name} is hidden by another module {dotted!r} ({taken}): rename {path.name}.")


def _sibling_files(path: Path) -> set[Path]:
    """The Python files beside a file, or in packages beside it, that it imports, directly or through others."""
    found: set[Path] = set()
    # Among installed packages, what lies beside a file belongs to others.
    waiting = [] if any(path.parent.glob("*.dist-info")) else [path]
    while waiting:
        file = waiting.pop()
        found.add(file)
        for name in _imported_names(file):
            package, module = path.parent / name, path.parent / f"{name}.py"
            files = package.rglob("*.py") if (package / "__init__.py").exists() else [module] if module.exists() else []
            waiting += [f for f in files if f not in found]
    return found


def _imported_names(path: Path) -> set[str]:
    """The top-level names of all absolute imports in a file, also of those inside functions."""
    nodes = list(ast.walk(ast.parse(path.read_bytes())))
    names = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
    names |= {node.module for node in nodes if isinstance(node, ast.ImportFrom) and node.module and not node.level}
    return {name.split(".")[0] for name in names}


def code_files(address: str) -> list[Path]:
    """The files of a paper's code: its whole package with its data files, or a single file and what it imports beside it."""
    path = Path(imported_module(address).__file__ or "").resolve()
    root, dotted = _module_name(path)
    package = root / dotted.split(".")[0]
    if (package / "__init__.py").exists():
        return sorted(f for f in package.rglob("*") if f.is_file() and "__pycache__" not in f.parts)
    return sorted(_sibling_files(path) or _installed_with(path))


def _installed_with(path: Path) -> set[Path]:
    """The Python files of the distribution that installed a file, according to its RECORD."""
    for record in path.parent.glob("*.dist-info/RECORD"):
        names = [line.split(",")[0] for line in record.read_text(encoding="utf-8").splitlines()]
        if path.name in names:
            return {path.parent / name for name in names if name.endswith(".py") and (path.parent / name).is_file()}
    return {path}
